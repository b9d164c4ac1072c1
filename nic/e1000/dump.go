package e1000

import (
	"slices"

	"gorouter/nic/e1000/regs"
)

// Dump reads and decodes the device's registers; none that a read changes.
// After Close it is empty.
func (d *Device) Dump() []regs.Line {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	return d.dump(d.read)
}

// absent82544 are the registers of the table that came with the 82540.
var absent82544 = []uint32{regs.EERD, regs.ITR, regs.RADV, regs.TADV, regs.MANC, regs.LEDCTL}

// dump decodes the registers that the chip has, as read gives them.
func (d *Device) dump(read func(off uint32) uint32) []regs.Line {
	absent := func(off uint32) bool {
		return d.quirks.Device.MAC == regs.MAC82544 && slices.Contains(absent82544, off)
	}
	lines := regs.Dump(func(off uint32) uint32 {
		if absent(off) {
			return 0
		}
		return read(off)
	}, regs.DumpOptions{MAC: d.quirks.Device.MAC})
	return slices.DeleteFunc(lines, func(l regs.Line) bool { return absent(l.Offset) })
}

// DiffDump dumps the registers again and returns the new dump and what changed
// since an old one, decoded.
func (d *Device) DiffDump(old []regs.Line) ([]regs.Line, []regs.Change) {
	now := d.Dump()
	return now, regs.DiffDump(old, now)
}
