package e1000

import "gorouter/nic/e1000/regs"

// Dump reads and decodes the device's registers; none that a read changes.
// After Close it is empty.
func (d *Device) Dump() []regs.Line {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	return regs.Dump(d.read, regs.DumpOptions{MAC: d.quirks.Device.MAC})
}

// DiffDump dumps the registers again and returns the new dump and what changed
// since an old one, decoded.
func (d *Device) DiffDump(old []regs.Line) ([]regs.Line, []regs.Change) {
	now := d.Dump()
	return now, regs.DiffDump(old, now)
}
