package e1000

import (
	"encoding/binary"

	"gorouter/internal/inet"
	"gorouter/nic/e1000/regs"
)

// setUpFilters makes the port's address the only exact one, writes the groups
// of SetMulticast and empties the VLAN table (14.4). After a reset all of them are undefined (13.5).
func (d *Device) setUpFilters() {
	d.setAddress(d.port.MAC())
	for i := uint32(1); i < regs.RARCount; i++ {
		// The valid bit goes first, so that no half-cleared address matches.
		d.write(regs.RAH+i*regs.RARStride, 0)
		d.flush()
		d.write(regs.RAL+i*regs.RARStride, 0)
		d.flush()
	}
	// From the last word to the first: on the 82544 a write to an odd word
	// destroys the even one before it. The flushes keep a bridge from
	// combining the writes.
	for i := regs.MTACount - 1; i >= 0; i-- {
		d.writeMTA(i)
	}
	for i := regs.VFTACount - 1; i >= 0; i-- {
		d.write(regs.VFTA+uint32(i)*4, 0)
		d.flush()
	}
}

// setAddress writes receive address 0 (13.5.2, 13.5.3).
func (d *Device) setAddress(m inet.MAC) {
	d.write(regs.RAL, binary.LittleEndian.Uint32(m[:4]))
	d.flush()
	d.write(regs.RAH, uint32(binary.LittleEndian.Uint16(m[4:]))|regs.RahAV)
	d.flush()
}
