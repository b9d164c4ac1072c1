package model

import (
	"fmt"
	"slices"
	"strings"

	"gorouter/nic/e1000/regs"
)

// ResetMethod is how software has to reset a chip (13.2.2, 14.3).
type ResetMethod uint8

// Reset methods.
const (
	// ResetAny is CTRL.RST, in memory or through the I/O window.
	ResetAny ResetMethod = iota
	// ResetIO is CTRL.RST through the I/O window only, on a 64-bit bus: the
	// chip does not acknowledge a memory write that resets it, and the bus
	// hangs.
	ResetIO
	// ResetDup is RST in the second copy of CTRL.
	ResetDup
)

// String names the method.
func (m ResetMethod) String() string {
	return [...]string{"any", "I/O window", "CTRLDUP"}[min(m, ResetDup)]
}

// ChipInfo identifies a chip that the model can be, with what is special
// about it.
type ChipInfo struct {
	Name     string
	Device   uint16 // PCI device identifier; the vendor is regs.VendorIntel
	Revision uint8
	MAC      regs.MACType
	Media    regs.Media
	PHY      uint32 // PHY identifier with revision; 0 on fibre
	Ports    int    // PCI functions, each a port

	Wide  bool // can be on a 64-bit bus and on PCI-X
	Reset ResetMethod

	// Boundary64K: no ring and no buffer may cross a 64 KiB boundary.
	Boundary64K bool
	// EvenEnd: on PCI-X no transmit buffer may end in the lower half of eight
	// bytes, or the chip may hang.
	EvenEnd bool
	// BitBanged: no usable EERD, the EEPROM is read through the lines of EECD.
	BitBanged bool
	// SPI: the EEPROM is not a Microwire part.
	SPI bool
	// ReloadByHand: a reset does not load the EEPROM, CTRLEXT.EERST does.
	ReloadByHand bool
	// PHYFirst: the PHY has to be reset before the chip is.
	PHYFirst bool
	// TablePairs: a write to an odd word of MTA or VFTA destroys the even word
	// before it.
	TablePairs bool

	absent []uint32 // registers of the family that this chip lacks
}

const (
	phy82544 = regs.PhyID82544 | 3
	phy82540 = regs.PhyID82540 | 4
	phyIGP   = regs.PhyIDIGP | 1
)

// absent82544 are registers that came with the 82540.
var absent82544 = []uint32{regs.EERD, regs.ITR, regs.RADV, regs.TADV, regs.MANC, regs.LEDCTL}

// The 64 KiB erratum is described for the first 82545 and 82546; it is armed
// for the GB as well, since one driver serves both.
var chips = []ChipInfo{
	{Name: "82540EM", Device: 0x100E, Revision: 2, MAC: regs.MAC82540, PHY: phy82540},
	{Name: "82541EI", Device: 0x1013, Revision: 0, MAC: regs.MAC82541, PHY: phyIGP, SPI: true, PHYFirst: true},
	{Name: "82541GI", Device: 0x1076, Revision: 0, MAC: regs.MAC82541Rev2, PHY: phyIGP, SPI: true},
	{Name: "82541PI", Device: 0x107C, Revision: 5, MAC: regs.MAC82541Rev2, PHY: phyIGP, SPI: true},
	{Name: "82544EI", Device: 0x1008, Revision: 2, MAC: regs.MAC82544, PHY: phy82544, Wide: true, Reset: ResetIO,
		EvenEnd: true, BitBanged: true, ReloadByHand: true, TablePairs: true, absent: absent82544},
	{Name: "82544EI fiber", Device: 0x1009, Revision: 2, MAC: regs.MAC82544, Media: regs.Fiber, Wide: true, Reset: ResetIO,
		EvenEnd: true, BitBanged: true, ReloadByHand: true, TablePairs: true, absent: absent82544},
	{Name: "82544GC", Device: 0x100C, Revision: 2, MAC: regs.MAC82544, PHY: phy82544, Wide: true, Reset: ResetIO,
		EvenEnd: true, BitBanged: true, ReloadByHand: true, TablePairs: true, absent: absent82544},
	{Name: "82545EM", Device: 0x100F, Revision: 1, MAC: regs.MAC82545, PHY: phy82540, Wide: true, Reset: ResetIO, Boundary64K: true},
	{Name: "82545EM fiber", Device: 0x1011, Revision: 1, MAC: regs.MAC82545, Media: regs.Fiber, Wide: true, Reset: ResetIO, Boundary64K: true},
	{Name: "82546EB", Device: 0x1010, Revision: 1, MAC: regs.MAC82546, PHY: phy82540, Ports: 2, Wide: true, Reset: ResetIO, Boundary64K: true},
	{Name: "82546GB", Device: 0x1079, Revision: 3, MAC: regs.MAC82546Rev3, PHY: phy82540, Ports: 2, Wide: true, Reset: ResetDup, Boundary64K: true},
	{Name: "82546GB fiber", Device: 0x107A, Revision: 3, MAC: regs.MAC82546Rev3, Media: regs.Fiber, Ports: 2, Wide: true, Reset: ResetDup, Boundary64K: true},
}

// Chips lists the chips that the model can be. The slice is the caller's.
func Chips() []ChipInfo {
	out := slices.Clone(chips)
	for i := range out {
		out[i].Ports = max(out[i].Ports, 1)
	}
	return out
}

// ChipNames lists their names, for messages and configurations.
func ChipNames() []string {
	var s []string
	for i := range chips {
		s = append(s, chips[i].Name)
	}
	return s
}

func chipByName(name string) (ChipInfo, error) {
	for _, i := range Chips() {
		if i.Name == name {
			return i, nil
		}
	}
	return ChipInfo{}, fmt.Errorf("unknown chip %q, known are %s", name, strings.Join(ChipNames(), ", "))
}

// Bus is the bus that a chip is on, as STATUS tells it (13.4.2).
type Bus struct {
	Name string
	Wide bool // 64 bits
	PCIX bool

	status uint32
}

const pcix = regs.StatusPCIXMODE | regs.StatusBUS64

var buses = []Bus{
	{Name: "pci33"},
	{Name: "pci66", status: regs.StatusPCI66},
	{Name: "pci64-33", Wide: true, status: regs.StatusBUS64},
	{Name: "pci64-66", Wide: true, status: regs.StatusBUS64 | regs.StatusPCI66},
	{Name: "pcix66", Wide: true, PCIX: true, status: pcix | regs.StatusPCIXSPD66},
	{Name: "pcix100", Wide: true, PCIX: true, status: pcix | regs.StatusPCIXSPD100},
	{Name: "pcix133", Wide: true, PCIX: true, status: pcix | regs.StatusPCIXSPD133},
}

// Buses lists the buses by name. The slice is the caller's.
func Buses() []Bus { return slices.Clone(buses) }

// bus finds the bus of a chip; empty is the fastest one without PCI-X that
// cards with the chip were made for.
func (i *ChipInfo) bus(name string) (Bus, error) {
	if name == "" {
		name = "pci33"
		if i.Wide {
			name = "pci64-66"
		}
	}
	var known []string
	for _, b := range buses {
		if b.Wide && !i.Wide {
			continue
		}
		if b.Name == name {
			return b, nil
		}
		known = append(known, b.Name)
	}
	return Bus{}, fmt.Errorf("the %s is not on a bus %q, possible are %s", i.Name, name, strings.Join(known, ", "))
}

// lacks reports whether the chip has no register at an offset that others of
// the family have one at.
func (i *ChipInfo) lacks(off uint32) bool { return slices.Contains(i.absent, off) }
