package model

import (
	"sync/atomic"

	"gorouter/nic/e1000/regs"
)

// Bits that the manual gives a meaning; the others have to be written zero.
const (
	rctlKnown = regs.RctlEN | regs.RctlSBP | regs.RctlUPE | regs.RctlMPE | regs.RctlLPE | regs.RctlLBM |
		regs.RctlRDMTS | regs.RctlMO | regs.RctlBAM | regs.RctlBSIZE | regs.RctlVFE | regs.RctlCFIEN |
		regs.RctlCFI | regs.RctlDPF | regs.RctlPMCF | regs.RctlBSEX | regs.RctlSECRC
	tctlKnown = regs.TctlEN | regs.TctlPSP | regs.TctlCT | regs.TctlCOLD | regs.TctlSWXOFF | regs.TctlPBE |
		regs.TctlRTLC | regs.TctlNRTU
)

// writeCTRL is a write to CTRL or its second copy.
func (c *Chip) writeCTRL(off, v uint32) {
	if c.qemu {
		c.qemuCTRL(v)
		return
	}
	if v&regs.CtrlRST != 0 {
		c.orderReset(v, off)
		return
	}
	if v&regs.CtrlPHYRST != 0 {
		c.phy.reset(c.info.PHY)
		c.phyReset = true
	}
	c.raw[regs.CTRL/4] = v
	c.rebuildFilter()
	c.setLink()
}

// writeTable is a write to a word of MTA or VFTA.
func (c *Chip) writeTable(w, v uint32) {
	c.raw[w] = v
	if c.info.TablePairs && w&1 != 0 {
		c.raw[w-1] = v
	}
}

// writeRingReg takes base and length. Hardware ignores the low bits (13.4.25,
// 13.4.27), which a strict chip does not let pass.
func (c *Chip) writeRingReg(off, v, length uint32, enabled bool) {
	if enabled && c.breachReg(RuleRingEnabled, off, "%#x written", v) {
		return
	}
	switch {
	case off == length:
		if v%regs.RingAlign != 0 || v > maxRing*descBytes {
			c.breachReg(RuleRingLength, off, "%d bytes written", v)
		}
		v &= regs.RingLenMask
	case off == length-8:
		if v%regs.RingBaseAlign != 0 {
			c.breachReg(RuleRingBase, off, "%#x written", v)
		}
		v &^= regs.RingBaseAlign - 1
	}
	c.raw[off/4] = v
	if enabled && c.qemu {
		r := &c.rx
		if length == regs.TDLEN {
			r = &c.tx
		}
		r.on.Store(false)
		c.enable(r, length-8) // QEMU looks at the registers every time
	}
}

func (c *Chip) writeHead(r *ring, off, v uint32, enabled bool) {
	if enabled && c.breachReg(RuleHeadEnabled, off, "%d written", v) {
		return
	}
	if r.on.Load() && v >= r.size {
		v = 0
	}
	r.head = v & 0xFFFF
	c.publish32(&r.clean, r.head)
}

func (c *Chip) writeRCTL(v uint32) {
	if v&^rctlKnown != 0 {
		c.breachReg(RuleReservedValue, regs.RCTL, "reserved bits %#x", v&^rctlKnown)
	}
	if v&regs.RctlBSIZEMask == regs.RctlBSEX || v&regs.RctlRDMTS == regs.RctlRDMTS {
		c.breachReg(RuleReservedValue, regs.RCTL, "reserved buffer size or threshold in %#x", v)
	}
	if v&regs.RctlLBM != 0 {
		c.breachReg(RuleUnsupported, regs.RCTL, "loopback in %#x", v)
	}
	was := c.rctl
	c.rctl = v
	c.raw[regs.RCTL/4] = v
	c.rebuildFilter()
	c.derive()
	if c.qemu {
		c.rxRefuse = c.cfg.Clock.Now() + qemuRefuse
	}
	if c.stopped.Load() {
		return
	}
	switch {
	case v&regs.RctlEN == 0:
		c.flushRx()
		c.rx.on.Store(false)
	case was&regs.RctlEN == 0:
		c.enable(&c.rx, regs.RDBAL)
	case c.strict && c.rx.on.Load() && (was^v)&(regs.RctlBSIZEMask|regs.RctlLPE) != 0:
		// The buffers already handed over have to do for the new size.
		c.handOver(&c.rx, c.rx.head, atomic.LoadUint32(&c.rx.tail))
	}
}

func (c *Chip) writeTCTL(v uint32) {
	if v&^tctlKnown != 0 {
		c.breachReg(RuleReservedValue, regs.TCTL, "reserved bits %#x", v&^tctlKnown)
	}
	if v&regs.TctlSWXOFF != 0 {
		c.breachReg(RuleUnsupported, regs.TCTL, "pause frame ordered by %#x", v)
	}
	was := c.raw[regs.TCTL/4]
	c.raw[regs.TCTL/4] = v &^ regs.TctlSWXOFF
	if c.stopped.Load() {
		return
	}
	switch {
	case v&regs.TctlEN == 0:
		c.finishTx()
		c.flushTx()
		c.tx.on.Store(false)
	case was&regs.TctlEN == 0:
		c.enable(&c.tx, regs.TDBAL)
		c.txState.fetched = c.tx.head
	}
	if c.qemu {
		c.transmitNow()
	}
}
