package e1000

import (
	"errors"

	"gorouter/nic/e1000/regs"
)

// setUpLink tells MAC and PHY to bring the link up and does not wait for it:
// autonegotiation takes seconds, and Housekeep watches. Only a device that is
// gone is an error.
func (d *Device) setUpLink() error {
	ctrl := d.read(regs.CTRL)
	// The PHY tells the MAC speed and duplex: nothing forced, no detection
	// (8.6.4.1). No pause frames, so that nothing but the router sets the
	// rate; VLAN tags stay in the frames.
	ctrl &^= regs.CtrlFRCSPD | regs.CtrlFRCDPLX | regs.CtrlASDE | regs.CtrlILOS | regs.CtrlLRST |
		regs.CtrlPHYRST | regs.CtrlRFCE | regs.CtrlTFCE | regs.CtrlVME
	ctrl |= regs.CtrlSLU | regs.CtrlFD
	d.write(regs.CTRL, ctrl)
	d.flush()
	// Flow control unused: all its registers are zero (14.3).
	for _, off := range []uint32{regs.FCAL, regs.FCAH, regs.FCT, regs.FCTTV, regs.FCRTL, regs.FCRTH} {
		d.write(off, 0)
	}
	d.write(regs.VET, regs.VETValue)
	if d.quirks.Device.Media != regs.Copper {
		d.negotiateFiber()
		return nil
	}
	err := d.wakePHY()
	switch {
	case errors.Is(err, ErrGone):
		return err
	case err != nil:
		d.log.Warn("the PHY could not be set up", "err", err)
	}
	return nil
}

// wakePHY makes sure that the PHY is on and negotiates. One that already does
// is left alone: a restart would take an existing link down for seconds (half
// a second on QEMU).
func (d *Device) wakePHY() error {
	v, err := d.readPHY(regs.PhyCTRL)
	if err != nil {
		return err
	}
	const asleep = uint16(regs.PhyCtrlPWRDN | regs.PhyCtrlISOLATE | regs.PhyCtrlLOOPBACK)
	if v&asleep == 0 && uint32(v)&regs.PhyCtrlANEN != 0 {
		return nil
	}
	d.log.Info("autonegotiation restarted", "phy_ctrl", regs.DecodePHYFor(d.quirks.Device.MAC, regs.PhyCTRL, v))
	return d.writePHY(regs.PhyCTRL, v&^asleep|uint16(regs.PhyCtrlANEN|regs.PhyCtrlANRST))
}

// negotiateFiber starts autonegotiation of fibre and SerDes, which the MAC
// does itself: full duplex, no pause (8.6.3, 13.4.13).
func (d *Device) negotiateFiber() {
	d.write(regs.TXCW, regs.TxcwANE|regs.TxcwFD)
	d.flush()
}

// Link is the state of a port's link.
type Link struct {
	Up         bool
	Mbps       int // 10, 100 or 1000 while up
	FullDuplex bool
}

// linkOf decodes STATUS (13.4.2). Fibre reports no speed other than 1000.
func linkOf(status uint32) Link {
	if status&regs.StatusLU == 0 {
		return Link{}
	}
	l := Link{Up: true, Mbps: 1000, FullDuplex: status&regs.StatusFD != 0}
	switch status & regs.StatusSPEED {
	case regs.StatusSPEED10:
		l.Mbps = 10
	case regs.StatusSPEED100:
		l.Mbps = 100
	}
	if status&regs.StatusTBIMODE != 0 {
		l.Mbps = 1000
	}
	return l
}

// sampleLink reads the link and notes a change. The lock is held; the port is
// told by tellLink after it was released, since its watcher may call back.
func (d *Device) sampleLink() error {
	status := d.read(regs.STATUS)
	if status == allOnes {
		d.link = Link{}
		return d.gone()
	}
	l := linkOf(status)
	if l == d.link {
		return nil
	}
	d.link = l
	d.linkChanges.Add(1)
	if !l.Up {
		d.log.Warn("link down")
		return nil
	}
	d.log.Info("link up", "mbps", l.Mbps, "full_duplex", l.FullDuplex)
	if !l.FullDuplex {
		d.log.Warn("half duplex is not supported: expect late collisions; set the link partner to autonegotiate")
	}
	return nil
}
