package e1000

import (
	"fmt"
	"time"

	"gorouter/nic/e1000/regs"
)

// mdicCeiling is ten times what an access takes on the serial bus: 64 bits at
// 2.5 MHz, rounded up.
const mdicCeiling = 500 * time.Microsecond

// readPHY reads a register of the internal PHY (13.4.7).
func (d *Device) readPHY(reg uint32) (uint16, error) {
	return d.mdic(regs.MdicOPRead, reg, 0)
}

// writePHY writes a register of the internal PHY (13.4.7).
func (d *Device) writePHY(reg uint32, v uint16) error {
	_, err := d.mdic(regs.MdicOPWrite, reg, v)
	return err
}

func (d *Device) mdic(op, reg uint32, data uint16) (uint16, error) {
	d.write(regs.MDIC, op|regs.PhyAddr<<regs.MdicPHYADDShift|reg<<regs.MdicREGADDShift|uint32(data))
	name := fmt.Sprintf("PHY register %d", reg)
	if r, ok := regs.PHYLookup(reg); ok {
		name = "PHY register " + r.Name
	}
	const remedy = "power the card off and on; the link may still come up by itself"
	v, err := d.waitFor(name, regs.MDIC, func(v uint32) bool { return v&regs.MdicREADY != 0 }, mdicCeiling, remedy)
	if err != nil {
		return 0, err
	}
	if v&regs.MdicERROR != 0 {
		return 0, fmt.Errorf("%s: %s: the PHY did not answer: %s; %s", d.name, name, d.show(regs.MDIC, v), remedy)
	}
	return uint16(v & regs.MdicDATA), nil
}
