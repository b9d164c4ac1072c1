package model

import "gorouter/nic/e1000/regs"

// phy is the internal PHY: 1000BASE-T with autonegotiation that succeeds as
// soon as both ends of the cable are there.
type phy struct {
	reg   [32]uint16
	id    uint32
	latch bool // the link was down since STATUS was read (it latches low)
	busy  bool // an MDIC access has not finished
}

func (p *phy) reset(id uint32) {
	*p = phy{id: id, latch: true}
	p.reg[regs.PhyCTRL] = uint16(regs.PhyCtrlANEN | regs.PhyCtrlFD | regs.PhyCtrlSPEEDMSB)
	p.reg[regs.PhyANA] = uint16(regs.PhyAnaCSMACD | regs.PhyAna10HD | regs.PhyAna10FD | regs.PhyAna100HD | regs.PhyAna100FD | regs.PhyAnaPAUSE | regs.PhyAnaASMDIR)
	p.reg[regs.PhyGCON] = uint16(regs.PhyGconFD | regs.PhyGconHD)
	p.reg[regs.PhyPSCON] = 0x0068
	p.reg[regs.PhyEPSCON] = 0x0D60
}

func (p *phy) powered() bool {
	return uint32(p.reg[regs.PhyCTRL])&(regs.PhyCtrlPWRDN|regs.PhyCtrlISOLATE) == 0
}

func (c *Chip) readPHY(n uint32) uint16 {
	p := &c.phy
	if c.qemu {
		return c.qemuPHY(n)
	}
	switch n {
	case regs.PhySTATUS:
		v := regs.PhyStatus10HD | regs.PhyStatus10FD | regs.PhyStatus100HD | regs.PhyStatus100FD |
			regs.PhyStatusEXTSTAT | regs.PhyStatusMFPS | regs.PhyStatusANCAP | regs.PhyStatusEXTCAP
		if c.link {
			v |= regs.PhyStatusANDONE
			if !p.latch {
				v |= regs.PhyStatusLINK
			}
		}
		p.latch = !c.link
		return uint16(v)
	case regs.PhyID1:
		return uint16(p.id >> 16)
	case regs.PhyID2:
		return uint16(p.id)
	case regs.PhyLPA:
		if c.link {
			return p.reg[regs.PhyANA] | uint16(regs.PhyLpaACK)
		}
		return 0
	case regs.PhyANE:
		if c.link {
			return 1
		}
		return 0
	case regs.PhyGSTATUS:
		if c.link {
			return uint16(regs.PhyGstatusLPFD | regs.PhyGstatusLPHD | regs.PhyGstatusRROK | regs.PhyGstatusLROK | regs.PhyGstatusMSRES)
		}
		return 0
	case regs.PhyESTATUS:
		return 3 << 12 // 1000BASE-T, both duplexes
	case regs.PhyPSSTAT:
		if c.link && c.info.MAC.IGP() {
			return igpSpeed1000 | igpLink | igpFD
		}
		if c.link {
			return uint16(regs.PhyPsstatSPEED1000 | regs.PhyPsstatFD | regs.PhyPsstatRESOLVED | regs.PhyPsstatLINK)
		}
		return 0
	case regs.PhyPINTS, regs.PhyPREC:
		v := p.reg[n]
		p.reg[n] = 0
		return v
	}
	return p.reg[n]
}

// The PHY-specific status of the 82541 has its own layout.
const (
	igpFD        = 1 << 9
	igpLink      = 1 << 10
	igpSpeed1000 = 3 << 14
)

// qemuPHY reads a register of QEMU's PHY, where nothing latches.
func (c *Chip) qemuPHY(n uint32) uint16 {
	p := &c.phy
	switch n {
	case regs.PhySTATUS:
		v := regs.PhyStatus10HD | regs.PhyStatus10FD | regs.PhyStatus100HD | regs.PhyStatus100FD |
			regs.PhyStatusEXTSTAT | regs.PhyStatusMFPS | regs.PhyStatusANCAP | regs.PhyStatusEXTCAP
		if c.link {
			v |= regs.PhyStatusLINK
		}
		if c.anDone {
			v |= regs.PhyStatusANDONE
		}
		return uint16(v)
	case regs.PhyID1:
		return uint16(p.id >> 16)
	case regs.PhyID2:
		return uint16(p.id & regs.PhyIDMask)
	case regs.PhyLPA:
		v := regs.PhyAna10HD | regs.PhyAna10FD | regs.PhyAna100HD | regs.PhyAna100FD
		if c.anDone {
			v |= regs.PhyLpaACK
		}
		return uint16(v)
	case regs.PhyGSTATUS:
		return uint16(regs.PhyGstatusLPHD | regs.PhyGstatusLPFD | regs.PhyGstatusRROK | regs.PhyGstatusLROK)
	case regs.PhyPSSTAT:
		return 0xAC00
	}
	return p.reg[n]
}

func (c *Chip) writePHY(n uint32, v uint16) {
	p := &c.phy
	r, ok := regs.PHYLookup(n)
	if !ok || r.Mode != regs.RW {
		return
	}
	if n == regs.PhyCTRL && c.qemu {
		p.reg[n] = v &^ uint16(0x3F|regs.PhyCtrlRESET|regs.PhyCtrlANRST)
		if uint32(v)&(regs.PhyCtrlANRST|regs.PhyCtrlANEN) == regs.PhyCtrlANRST|regs.PhyCtrlANEN {
			c.renegotiate()
		}
		return
	}
	if n == regs.PhyCTRL {
		if uint32(v)&regs.PhyCtrlRESET != 0 {
			p.reset(p.id)
			c.setLink()
			return
		}
		v &^= uint16(regs.PhyCtrlANRST) // clears itself
	}
	p.reg[n] = v
	c.setLink()
}

// writeMDIC does a PHY access (13.4.7). As with EERD it is finished when the
// register has been read once.
func (c *Chip) writeMDIC(v uint32) {
	if c.phy.busy && c.breachReg(RuleBusy, regs.MDIC, "%#x written before the last access was done", v) {
		return
	}
	out := v &^ (regs.MdicREADY | regs.MdicERROR)
	n := v & regs.MdicREGADD >> regs.MdicREGADDShift
	addr := v & regs.MdicPHYADD >> regs.MdicPHYADDShift
	c.phy.busy = true
	if c.strike(FaultMDICStuck) {
		c.phy.busy = false
		c.raw[regs.MDIC/4] = out
		return
	}
	switch op := v & regs.MdicOP; {
	case addr != regs.PhyAddr, c.info.Media != regs.Copper, op != regs.MdicOPRead && op != regs.MdicOPWrite:
		out |= regs.MdicERROR
	case op == regs.MdicOPRead:
		out = out&^regs.MdicDATA | uint32(c.readPHY(n))
	default:
		c.writePHY(n, uint16(v))
		c.phy.busy = true // a PHY reset forgets it
	}
	if c.qemu {
		c.phy.busy = false
		out |= regs.MdicREADY
	}
	c.raw[regs.MDIC/4] = out
	if v&regs.MdicINTEN != 0 {
		c.irq.cause |= regs.IcrMDAC
	}
}

func (c *Chip) readMDIC() uint32 {
	v := c.raw[regs.MDIC/4]
	if c.phy.busy {
		c.phy.busy = false
		c.raw[regs.MDIC/4] = v | regs.MdicREADY
	}
	return v
}

// setLink works out STATUS.LU: a partner on the cable, the MAC told to (SLU),
// and the PHY powered and not held in reset, or fibre negotiating.
func (c *Chip) setLink() {
	if c.qemu {
		c.qemuLink()
		return
	}
	ctrl := c.raw[regs.CTRL/4]
	up := c.plugged && !c.closed && !c.gone && ctrl&regs.CtrlSLU != 0
	if c.info.Media == regs.Copper {
		up = up && ctrl&regs.CtrlPHYRST == 0 && c.phy.powered()
	} else {
		up = up && ctrl&regs.CtrlLRST == 0 && c.raw[regs.TXCW/4]&regs.TxcwANE != 0
	}
	c.linkIs(up)
}

// rxcw is RXCW: what comes in over the fibre (13.4.14).
func (c *Chip) rxcw() uint32 {
	switch {
	case c.info.Media == regs.Copper:
		return 0
	case !c.plugged:
		return regs.RxcwNC
	case c.link:
		return regs.RxcwSYNCH | regs.RxcwANC | regs.RxcwC | regs.TxcwFD
	}
	return regs.RxcwSYNCH
}

// linkIs notes the state of the link and raises LSC when it changed.
func (c *Chip) linkIs(up bool) {
	if up == c.link {
		return
	}
	c.link = up
	c.phy.latch = true
	c.irq.cause |= regs.IcrLSC
}

// Link reports whether the link is up.
func (c *Chip) Link() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.link
}

// plug tells the chip whether its cable has a partner at the other end.
func (c *Chip) plug(up bool) {
	c.mu.Lock()
	c.plugged = up
	c.setLink()
	c.evaluate()
	call := c.irq.take()
	c.mu.Unlock()
	if call {
		c.cfg.Interrupt()
	}
}
