package e1000

import "gorouter/nic/e1000/regs"

// setUpReceive points the receive unit at its ring; the receiver is off
// (14.4). Heads and tails are written here, between reset and enable, and the
// tail then only by the ring.
func (d *Device) setUpReceive() {
	mem := d.rxq.Memory()
	d.write(regs.RDBAL, uint32(mem.Bus))
	d.write(regs.RDBAH, uint32(mem.Bus>>32))
	d.write(regs.RDLEN, uint32(mem.Size))
	// A reset clears both; QEMU's does not.
	d.write(regs.RDH, 0)
	d.write(regs.RDT, 0)
	i := d.timers()
	d.write(regs.RDTR, uint32(i.RDTR))
	if d.quirks.Timers {
		d.write(regs.RADV, uint32(i.RADV))
		d.write(regs.ITR, uint32(i.ITR))
	}
	// Descriptors are fetched eight at a time, two cache lines, and written
	// back at once (13.4.46): a poll loop waits for each.
	d.write(regs.RXDCTL, regs.RxdctlGRAN|8|8<<regs.RxdctlHTHRESHShift)
	d.write(regs.RXCSUM, 0) // the router checks for itself
}

// receiveControl is the value of RCTL (13.4.22): broadcast accepted, no bad
// frames, no loopback, MTA indexed by address bits 47:36.
func (d *Device) receiveControl() uint32 {
	v := regs.RctlEN | regs.RctlBAM | regs.RctlRDMTSHalf | d.layout.bits
	if d.stripsFCS() {
		v |= regs.RctlSECRC
	}
	if d.layout.long {
		v |= regs.RctlLPE
	}
	if d.cfg.Promisc {
		v |= regs.RctlUPE
	}
	if d.cfg.AllMulti {
		v |= regs.RctlMPE
	}
	return v
}

// stripsFCS tells who takes the frame check sequence off: the chip, or the
// ring. QEMU counts it in the length without SECRC but stores nothing there,
// so software must never look at it.
func (d *Device) stripsFCS() bool { return d.quirks.StripsFCS && !d.cfg.KeepFCS }

// enableReceive turns the receiver on and gives it the buffers. RCTL is
// written this once: on QEMU every write refuses reception for a second.
func (d *Device) enableReceive() {
	d.write(regs.RCTL, d.receiveControl())
	d.flush()
	d.rxq.Start()
}
