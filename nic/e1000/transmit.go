package e1000

import "gorouter/nic/e1000/regs"

// setUpTransmit points the transmit unit at its ring; the transmitter is off
// (14.5).
func (d *Device) setUpTransmit() {
	mem := d.txq.Memory()
	d.write(regs.TDBAL, uint32(mem.Bus))
	d.write(regs.TDBAH, uint32(mem.Bus>>32))
	d.write(regs.TDLEN, uint32(mem.Size))
	// A reset clears both; QEMU's does not, and with the old ones it would
	// send an old ring as soon as TCTL.EN is set.
	d.write(regs.TDH, 0)
	d.write(regs.TDT, 0)
	d.write(regs.TXDCTL, transmitDescriptorControl)
	d.write(regs.TIPG, d.quirks.TIPG)
	i := d.timers()
	d.write(regs.TIDV, uint32(i.TIDV))
	if d.quirks.Timers {
		d.write(regs.TADV, uint32(i.TADV))
	}
}

// transmitDescriptorControl prefetches as the receive side does. WTHRESH is 0:
// with a threshold only descriptors that report are counted, so a ring that
// asks for a report on every Nth one (which can be changed while running)
// would wait for others that never come (13.4.43). Bit 22 is reserved and
// written as one. QEMU ignores all of it.
const transmitDescriptorControl = regs.TxdctlGRAN | regs.TxdctlRSV22 | 8 | 8<<regs.TxdctlHTHRESHShift

// transmitControl is the value of TCTL (13.4.33). The ring pads short frames
// with zeros itself; PSP is a second line of defence. The collision fields
// have the recommended values for full duplex, the only mode supported.
const transmitControl = regs.TctlEN | regs.TctlPSP | regs.TctlRTLC |
	regs.CollisionThreshold<<regs.TctlCTShift | regs.CollisionDistanceFull<<regs.TctlCOLDShift

// enableTransmit turns the transmitter on.
func (d *Device) enableTransmit() {
	d.write(regs.TCTL, transmitControl)
	d.flush()
}
