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

// allOnes is what a read gives that no device answers.
const allOnes = 0xFFFFFFFF

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
		if c.qemu {
			c.sendInWrite()
		}
		return
	case off == regs.RDT && c.rx.on.Load():
		c.doorbell(&c.rx, v)
		return
	}
	c.writeVia(off, v, false)
}

// writeVia writes a register in memory or through the I/O window.
func (c *Chip) writeVia(off, v uint32, io bool) {
	c.mu.Lock()
	c.viaIO = io
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
	if c.gone {
		return allOnes
	}
	mode, ok := c.admit(off, "read")
	if !ok {
		if c.closed {
			return allOnes // nobody answers on the bus
		}
		return 0
	}
	if c.qemu {
		if v, ok := c.qemuRead(off); ok {
			return v
		}
	}
	switch off {
	case regs.CTRLDUP:
		return c.raw[regs.CTRL/4]
	case regs.STATUS:
		return c.status()
	case regs.EECD:
		return c.readEECD()
	case regs.RXCW:
		return c.rxcw()
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

// status is STATUS (13.4.2): link, bus, port and media.
func (c *Chip) status() uint32 {
	v := c.bus.status | uint32(c.cfg.Port)<<regs.StatusFUNCShift
	if c.info.Media != regs.Copper {
		v |= regs.StatusTBIMODE
	}
	if c.link {
		v |= regs.StatusLU | regs.StatusFD | regs.StatusSPEED1000 | 2<<8 // ASDV 1000
	}
	return v
}

func (c *Chip) write(off, v uint32) {
	if c.gone {
		return
	}
	mode, ok := c.admit(off, "written")
	if !ok {
		return
	}
	if c.info.lacks(off) {
		c.breachReg(RuleUnknownRegister, off, "%#x written, the %s has no such register", v, c.info.Name)
		return
	}
	if mode == regs.RO || mode == regs.RC {
		c.breachReg(RuleReadOnly, off, "%#x written", v)
		return
	}
	w := off / 4
	switch off {
	case regs.CTRL, regs.CTRLDUP:
		c.writeCTRL(off, v)
	case regs.CTRLEXT:
		if v&regs.CtrlExtEERST != 0 {
			v &^= regs.CtrlExtEERST
			c.loadAddress()
		}
		c.raw[w] = v
	case regs.TXCW:
		c.raw[w] = v
		c.setLink()
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
		if off >= regs.MTA && off < regs.MTA+4*regs.MTACount || off >= regs.VFTA && off < regs.VFTA+4*regs.VFTACount {
			c.writeTable(w, v)
			return
		}
		c.raw[w] = v
		if off >= regs.RAL && off < regs.RAL+regs.RARCount*regs.RARStride {
			c.rebuildFilter()
		}
	}
}
