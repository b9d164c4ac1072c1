package e1000

import (
	"time"

	"gorouter/nic/e1000/regs"
)

const (
	// settle lets transactions that are under way on the bus end before the
	// reset cuts them off.
	settle = 10 * time.Millisecond
	// resetCeiling is far above the microseconds that a reset takes.
	resetCeiling = 200 * time.Millisecond
	phyResetTime = 5 * time.Millisecond
)

// resetHardware brings the device to its power-on state, quiet (14.3).
func (d *Device) resetHardware() error {
	if err := d.alive(); err != nil {
		return err
	}
	d.maskInterrupts()
	d.stopUnits()
	d.clock.Sleep(settle)
	if d.quirks.PHYResetFirst {
		d.resetPHY()
	}
	if err := d.resetMAC(); err != nil {
		return err
	}
	// The reset may have enabled what the EEPROM says.
	d.maskInterrupts()
	d.read(regs.ICR) // forget old causes (13.4.17)
	d.quietManagement()
	return d.alive()
}

// maskInterrupts keeps the device from interrupting (13.4.21).
func (d *Device) maskInterrupts() { d.write(regs.IMC, regs.IMCAll) }

// stopUnits disables receiver and transmitter (13.4.22, 13.4.33). Frames
// under way are finished by the device.
func (d *Device) stopUnits() {
	d.write(regs.RCTL, 0)
	d.write(regs.TCTL, regs.TctlPSP)
	d.flush()
}

// resetPHY resets the PHY ahead of the MAC, which the first 82541 and 82547
// need (13.4.1, PHY_RST).
func (d *Device) resetPHY() {
	ctrl := d.read(regs.CTRL)
	d.write(regs.CTRL, ctrl|regs.CtrlPHYRST)
	d.flush()
	d.clock.Sleep(phyResetTime)
}

// resetMAC resets the device by the method of the chip and waits until it is
// back and the EEPROM is loaded (13.4.1, RST).
//
// QEMU: its I/O BAR does nothing, and its CTRL.RST clears itself but leaves
// rings, filters and statistics as they were. So nothing here relies on the
// reset values: every register this driver depends on is written later.
func (d *Device) resetMAC() error {
	ctrl := d.read(regs.CTRL)
	switch {
	case d.quirks.Reset == ResetIO && d.io != nil:
		d.io.Write(regs.IOADDR, regs.CTRL)
		d.io.Write(regs.IODATA, ctrl|regs.CtrlRST)
	case d.quirks.Reset == ResetDup:
		d.write(regs.CTRLDUP, ctrl|regs.CtrlRST)
	default:
		d.write(regs.CTRL, ctrl|regs.CtrlRST)
	}
	// No access for a microsecond at least; the load of the EEPROM, which no
	// bit of these chips reports, takes longer.
	d.clock.Sleep(d.quirks.ReloadWait)
	if d.quirks.ReloadByHand {
		d.write(regs.CTRLEXT, d.read(regs.CTRLEXT)|regs.CtrlExtEERST)
		d.flush()
		d.clock.Sleep(d.quirks.ReloadWait)
	}
	if _, err := d.waitFor("reset", regs.CTRL,
		func(v uint32) bool { return v&regs.CtrlRST == 0 }, resetCeiling,
		"power the card off and on"); err != nil {
		return err
	}
	if d.quirks.NoRelaxed {
		d.write(regs.CTRLEXT, d.read(regs.CTRLEXT)|regs.CtrlExtRODIS)
	}
	return nil
}

// quietManagement keeps the management unit from answering ARP requests that
// belong to the router.
func (d *Device) quietManagement() {
	if !d.quirks.MANC {
		return
	}
	manc := d.read(regs.MANC)
	d.write(regs.MANC, manc&^(regs.MancARPEN|regs.MancARPRESEN))
}

const (
	// drainCeiling bounds the wait for transfers that are under way: at
	// 10 Mb/s a full-sized frame takes 1.2 ms, and pause frames may hold one.
	drainCeiling = 100 * time.Millisecond
	drainSame    = 3 // equal samples in a row that count as standing still
)

// quiesce stops both units and waits until the heads stand still, so that no
// transfer is under way when the reset comes. It reports false when they still
// move at the ceiling; the reset that follows ends that.
func (d *Device) quiesce() bool {
	d.maskInterrupts()
	d.stopUnits()
	nap, same := firstNap, 0
	rdh, tdh := d.read(regs.RDH), d.read(regs.TDH)
	for waited := time.Duration(0); waited < drainCeiling; waited += nap {
		if waited > 0 {
			nap = min(2*nap, longNap)
		}
		d.clock.Sleep(nap)
		r, t := d.read(regs.RDH), d.read(regs.TDH)
		if r == rdh && t == tdh {
			if same++; same == drainSame {
				return true
			}
			continue
		}
		rdh, tdh, same = r, t, 0
	}
	return false
}
