package model

import (
	"sync/atomic"

	"gorouter/nic/e1000/regs"
)

// regWords covers every register of the tables; beyond are only memories of
// the chip that no driver needs.
const regWords = 0x6000 / 4

// regModes holds for every word of the register space its access mode plus
// one, 0 where there is no register.
var regModes = func() (m [regWords]uint8) {
	for _, r := range regs.All() {
		for i := range int(r.Len()) {
			if w := r.At(i) / 4; w < regWords {
				m[w] = uint8(r.Mode) + 1
			}
		}
	}
	return m
}()

// resetNanos is how long the chip answers nothing but CTRL after a reset was
// ordered: one microsecond (13.4.1).
const resetNanos = 1000

// Bits that the manual gives a meaning; the others have to be written zero.
const (
	rctlKnown = regs.RctlEN | regs.RctlSBP | regs.RctlUPE | regs.RctlMPE | regs.RctlLPE | regs.RctlLBM |
		regs.RctlRDMTS | regs.RctlMO | regs.RctlBAM | regs.RctlBSIZE | regs.RctlVFE | regs.RctlCFIEN |
		regs.RctlCFI | regs.RctlDPF | regs.RctlPMCF | regs.RctlBSEX | regs.RctlSECRC
	tctlKnown = regs.TctlEN | regs.TctlPSP | regs.TctlCT | regs.TctlCOLD | regs.TctlSWXOFF | regs.TctlPBE |
		regs.TctlRTLC | regs.TctlNRTU
)

// Read implements mmio.Registers.
func (c *Chip) Read(off uint32) uint32 {
	c.mu.Lock()
	v := c.read(off)
	c.evaluate()
	call := c.irq.take()
	c.mu.Unlock()
	if call {
		c.cfg.Interrupt()
	}
	return v
}

// Write implements mmio.Registers.
func (c *Chip) Write(off uint32, v uint32) {
	switch {
	case off == regs.TDT && c.tx.on.Load():
		c.doorbell(&c.tx, v)
		return
	case off == regs.RDT && c.rx.on.Load():
		c.doorbell(&c.rx, v)
		return
	}
	c.mu.Lock()
	c.write(off, v)
	c.evaluate()
	call := c.irq.take()
	c.mu.Unlock()
	if call {
		c.cfg.Interrupt()
	}
}

// admit checks what holds for every access and returns the register's mode.
func (c *Chip) admit(off uint32, what string) (regs.Mode, bool) {
	if off&3 != 0 || off/4 >= regWords || regModes[off/4] == 0 {
		c.breachReg(RuleUnknownRegister, off, "%s", what)
		return 0, false
	}
	if c.closed {
		c.breachReg(RuleClosed, off, "%s", what)
		return 0, false
	}
	if c.resetUntil != 0 {
		if c.cfg.Clock.Now() >= c.resetUntil {
			c.resetUntil = 0
			c.raw[regs.CTRL/4] &^= regs.CtrlRST
		} else if off != regs.CTRL || what == "written" {
			c.breachReg(RuleResetPending, off, "%s", what)
			return 0, false
		}
	}
	return regs.Mode(regModes[off/4] - 1), true
}

func (c *Chip) read(off uint32) uint32 {
	mode, ok := c.admit(off, "read")
	if !ok {
		if c.closed {
			return 0xFFFFFFFF // nobody answers on the bus
		}
		return 0
	}
	switch off {
	case regs.CTRLDUP:
		return c.raw[regs.CTRL/4]
	case regs.STATUS:
		v := uint32(0)
		if c.link {
			v = regs.StatusLU | regs.StatusFD | regs.StatusSPEED1000 | 2<<8 // ASDV 1000
		}
		return v
	case regs.EERD:
		return c.readEERD()
	case regs.MDIC:
		return c.readMDIC()
	case regs.ICR:
		v := c.irq.cause
		c.irq.cause = 0
		return v
	case regs.IMS:
		return c.irq.mask
	case regs.RDH:
		return c.rx.head
	case regs.RDT:
		return atomic.LoadUint32(&c.rx.tail)
	case regs.TDH:
		if c.cfg.TDH == TDHFetched {
			return c.txState.fetched
		}
		return c.tx.head
	case regs.TDT:
		return atomic.LoadUint32(&c.tx.tail)
	}
	if off >= statBase && off < statBase+4*statWords {
		return c.readStat(off)
	}
	if mode == regs.WO {
		return 0
	}
	return c.raw[off/4]
}

func (c *Chip) write(off, v uint32) {
	mode, ok := c.admit(off, "written")
	if !ok {
		return
	}
	if mode == regs.RO || mode == regs.RC {
		c.breachReg(RuleReadOnly, off, "%#x written", v)
		return
	}
	w := off / 4
	switch off {
	case regs.CTRL, regs.CTRLDUP:
		c.writeCTRL(v)
	case regs.EECD:
		c.writeEECD(v)
	case regs.EERD:
		c.writeEERD(v)
	case regs.MDIC:
		c.writeMDIC(v)
	case regs.ICR:
		c.irq.cause &^= v
	case regs.ICS:
		c.irq.cause |= v
	case regs.IMS:
		c.irq.mask |= v
	case regs.IMC:
		c.irq.mask &^= v
	case regs.RCTL:
		c.writeRCTL(v)
	case regs.TCTL:
		c.writeTCTL(v)
	case regs.RDBAL, regs.RDBAH, regs.RDLEN:
		c.writeRingReg(off, v, regs.RDLEN, c.rctl&regs.RctlEN != 0)
	case regs.TDBAL, regs.TDBAH, regs.TDLEN:
		c.writeRingReg(off, v, regs.TDLEN, c.raw[regs.TCTL/4]&regs.TctlEN != 0)
	case regs.RDH:
		c.writeHead(&c.rx, off, v, c.rctl&regs.RctlEN != 0)
	case regs.TDH:
		c.writeHead(&c.tx, off, v, c.raw[regs.TCTL/4]&regs.TctlEN != 0)
		c.txState.fetched = c.tx.head
	case regs.RDT:
		c.publish32(&c.rx.tail, v&0xFFFF)
	case regs.TDT:
		c.publish32(&c.tx.tail, v&0xFFFF)
	case regs.RDTR:
		c.raw[w] = v &^ regs.RdtrFPD
		if v&regs.RdtrFPD != 0 {
			c.rxTimer()
		}
	case regs.TIDV, regs.TXDCTL:
		c.raw[w] = v
		c.derive()
	case regs.RXDCTL, regs.RXCSUM:
		c.raw[w] = v
		c.derive()
	case regs.PBA:
		// The transmit part gets what the receive part leaves of 64 KiB.
		c.raw[w] = v&regs.PbaRXA | (64-v&63)<<regs.PbaTXAShift
	default:
		c.raw[w] = v
		if off >= regs.RAL && off < regs.RAL+regs.RARCount*regs.RARStride {
			c.rebuildFilter()
		}
	}
}

func (c *Chip) writeCTRL(v uint32) {
	if v&regs.CtrlRST != 0 {
		c.reset()
		c.raw[regs.CTRL/4] |= regs.CtrlRST
		c.resetUntil = c.cfg.Clock.Now() + resetNanos
		return
	}
	if v&regs.CtrlPHYRST != 0 {
		c.phy.reset(c.info.PHY)
	}
	c.raw[regs.CTRL/4] = v
	c.rebuildFilter()
	c.setLink()
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
}

// reset brings the registers to their values after a device reset; those that
// the manual leaves undefined become zero.
func (c *Chip) reset() {
	c.rx.on.Store(false)
	c.tx.on.Store(false)
	c.txState.drop()
	c.rxState.held = 0
	clear(c.raw)
	clear(c.stats[:])
	for _, r := range []*ring{&c.rx, &c.tx} {
		r.head = 0
		c.publish32(&r.tail, 0)
		c.publish32(&r.clean, 0)
	}
	for _, r := range regs.All() {
		if r.HasReset && r.Offset/4 < regWords {
			for i := range int(r.Len()) {
				c.raw[r.At(i)/4] = r.Reset
			}
		}
	}
	c.rctl = c.raw[regs.RCTL/4]
	c.eerdBusy, c.phy.busy = false, false
	c.raw[regs.CTRL/4] = regs.CtrlFD | regs.CtrlSPEED1000
	c.raw[regs.EECD/4] = regs.EecdPRES
	c.raw[regs.VET/4] = regs.VETValue
	c.raw[regs.LEDCTL/4] = 0x07061302
	c.raw[regs.PBA/4] = 16<<regs.PbaTXAShift | 48
	// The EEPROM turns management on, which the driver has to undo.
	c.raw[regs.MANC/4] = regs.MancSMBUSEN | regs.MancARPEN
	w := &c.eeprom
	c.raw[regs.RAL/4] = uint32(w[0]) | uint32(w[1])<<16
	c.raw[regs.RAH/4] = uint32(w[2]) | regs.RahAV
	c.irq.reset()
	c.derive()
	c.rebuildFilter()
	c.setLink()
	c.irq.cause = 0
}

// What a transmit descriptor has to look like depends on two registers; the
// tail write, which takes no lock, finds it here.
const (
	txNeedsRS uint32 = 1 << iota // WTHRESH is not zero
	txNoTimer                    // TIDV is zero
)

// derive works out what the packet path needs from the registers.
func (c *Chip) derive() {
	size := uint32(2048) >> (c.rctl & regs.RctlBSIZE >> regs.RctlBSIZEShift)
	if c.rctl&regs.RctlBSEX != 0 {
		size *= 16
	}
	s := &c.rxState
	s.size = size
	s.longest = maxShort
	if c.rctl&regs.RctlLPE != 0 {
		s.longest = maxLong
	}
	s.fcs = fcsBytes
	if c.rctl&regs.RctlSECRC != 0 {
		s.fcs = 0
	}
	s.perFrame = (s.longest + size - 1) / size
	s.threshold = threshold(c.raw[regs.RXDCTL/4])
	s.pcss = c.raw[regs.RXCSUM/4] & 0xFF
	s.offload = c.raw[regs.RXCSUM/4]&(1<<8|1<<9) != 0
	c.rxNeed.Store(min(size, s.longest))

	c.txState.threshold = threshold(c.raw[regs.TXDCTL/4])
	flags := uint32(0)
	if c.txState.threshold != 0 {
		flags |= txNeedsRS
	}
	if c.raw[regs.TIDV/4]&0xFFFF == 0 {
		flags |= txNoTimer
	}
	c.txRule.Store(flags)
}

// threshold is WTHRESH in descriptors. It counts cache lines of four unless
// GRAN is set (13.4.43).
func threshold(v uint32) uint32 {
	n := v & regs.TxdctlWTHRESH >> regs.TxdctlWTHRESHShift
	if v&regs.TxdctlGRAN == 0 {
		n *= 4
	}
	return n
}
