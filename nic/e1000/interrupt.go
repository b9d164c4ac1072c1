package e1000

import (
	"gorouter/nic/e1000/regs"
	"gorouter/port"
)

// IRQ is the interrupt line of a device as its driver sees it: VFIO's eventfd
// for a chip, a port.Signal for a software one.
type IRQ interface {
	// FD polls as readable while an interrupt was delivered.
	FD() int
	// Clear takes what was delivered and lets the next one come.
	Clear()
}

var (
	_ port.Notifier = (*Device)(nil)
	_ IRQ           = (*port.Signal)(nil)
)

// timers are the moderation timers in force.
func (d *Device) timers() Interrupts {
	if d.irq == nil {
		return Interrupts{}
	}
	return d.cfg.Interrupts
}

// causesAlways are the interrupts that an idle port waits for (13.4.20):
// a received frame, few descriptors left, a frame missed, a link change.
const causesAlways = regs.IcrRXT0 | regs.IcrRXDMT0 | regs.IcrRXO | regs.IcrLSC

// FD implements port.Notifier: the descriptor of Config.IRQ, -1 without one.
func (d *Device) FD() int {
	if d.irq == nil {
		return -1
	}
	return d.irq.FD()
}

// Arm implements port.Notifier. Old causes are read away first, so that only
// what comes from now on interrupts; a cause that is set between that read and
// the write of the mask interrupts as soon as it is unmasked (13.4.17). What
// the read took away is in memory by then, since a read pushes the device's
// writes ahead of it, and the look at the rings finds it. While sent frames
// are on the ring their end interrupts too, so that their buffers do not stay
// captive. Frames that wait for a timed doorbell keep the port pending: no
// interrupt would come for them. A port that is stopped or down is silent.
func (d *Device) Arm() (pending bool) {
	if d.irq == nil {
		return true
	}
	if !d.live.Load() {
		return false
	}
	d.Cause()
	mask := causesAlways
	if d.txq.Pending() > 0 {
		mask |= regs.IcrTXDW
	}
	d.write(regs.IMS, mask)
	return d.rxq.Ready() || d.txq.Finished() || d.txq.Unshown() > 0
}

// Disarm implements port.Notifier.
func (d *Device) Disarm() {
	if d.irq == nil {
		return
	}
	if d.live.Load() {
		d.maskInterrupts()
	}
	d.irq.Clear()
}

// Cause reads the causes of interrupts, which clears them (13.4.17), and looks
// at the link when it changed. It returns the causes as bits of ICR; 0 on a
// device that is not running or does not answer, which Housekeep finds out.
func (d *Device) Cause() uint32 {
	if !d.live.Load() {
		return 0
	}
	icr := d.read(regs.ICR)
	if icr == allOnes {
		d.due.Store(0) // let Housekeep see to it at once
		d.observeSoon.Store(true)
		return 0
	}
	if icr&regs.IcrLSC != 0 {
		_ = d.CheckLink() // an error is Housekeep's to report
	}
	return icr
}
