package model

import "gorouter/nic/e1000/regs"

// orderReset is CTRL.RST. dup says that it was written to the second copy.
func (c *Chip) orderReset(v uint32, off uint32) {
	hang := false
	switch {
	case c.viaIO:
		if c.info.Reset == ResetDup && c.breachReg(RuleResetMethod, off, "RST through the I/O window, not in CTRLDUP") {
			return
		}
	case c.info.Reset == ResetIO && c.bus.Wide:
		if c.breachReg(RuleResetMethod, off, "RST written in memory on a 64-bit bus, not through the I/O window") {
			return
		}
		hang = true
	case c.info.Reset == ResetDup && off != regs.CTRLDUP:
		if c.breachReg(RuleResetMethod, off, "RST written to CTRL, not to CTRLDUP") {
			return
		}
	}
	if c.info.PHYFirst && !c.phyReset && c.breachReg(RulePHYReset, off, "RST written, PHYRST never was") {
		return
	}
	c.phyReset = false
	c.reset()
	c.endFaults()
	if hang {
		c.vanish() // the bus waits for an acknowledgement that never comes
		return
	}
	c.raw[regs.CTRL/4] |= regs.CtrlRST
	c.resetUntil = c.cfg.Clock.Now() + resetNanos
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
		if r.HasReset && r.Offset/4 < regWords && !c.info.lacks(r.Offset) {
			for i := range int(r.Len()) {
				c.raw[r.At(i)/4] = r.Reset
			}
		}
	}
	c.rctl = c.raw[regs.RCTL/4]
	c.eerdBusy, c.phy.busy = false, false
	c.wire = microwire{}
	c.raw[regs.CTRL/4] = regs.CtrlFD | regs.CtrlSPEED1000
	c.raw[regs.EECD/4] = regs.EecdPRES
	if c.info.SPI {
		c.raw[regs.EECD/4] |= regs.EecdTYPE
	}
	c.raw[regs.VET/4] = regs.VETValue
	c.raw[regs.TXDMAC/4] = regs.TxdmacDPP // prefetching is off
	c.raw[regs.PBA/4] = 16<<regs.PbaTXAShift | 48
	if !c.info.lacks(regs.MANC) {
		c.raw[regs.LEDCTL/4] = 0x07061302
		// The EEPROM turns management on, which the driver has to undo.
		c.raw[regs.MANC/4] = regs.MancSMBUSEN | regs.MancARPEN
	}
	c.irq.reset()
	c.derive()
	if c.info.ReloadByHand {
		c.rebuildFilter()
	} else {
		c.loadAddress()
	}
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
	if c.qemu {
		s.longest += fcsBytes // QEMU compares without the FCS
	}
	if c.rctl&regs.RctlLPE != 0 {
		s.longest = maxLong
	}
	s.fcs = fcsBytes
	if c.rctl&regs.RctlSECRC != 0 {
		s.fcs = 0
	}
	s.perFrame = (s.longest + size - 1) / size
	s.threshold = c.threshold(c.raw[regs.RXDCTL/4])
	s.pcss = c.raw[regs.RXCSUM/4] & 0xFF
	s.offload = c.raw[regs.RXCSUM/4]&(1<<8|1<<9) != 0
	c.rxNeed.Store(min(size, s.longest))

	c.txState.threshold = c.threshold(c.raw[regs.TXDCTL/4])
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
// GRAN is set (13.4.43). QEMU knows no thresholds.
func (c *Chip) threshold(v uint32) uint32 {
	if c.qemu {
		return 0
	}
	n := v & regs.TxdctlWTHRESH >> regs.TxdctlWTHRESHShift
	if v&regs.TxdctlGRAN == 0 {
		n *= 4
	}
	return n
}
