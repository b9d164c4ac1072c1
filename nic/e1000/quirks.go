package e1000

import (
	"fmt"
	"strings"
	"time"

	"gorouter/nic/e1000/regs"
)

// ResetMethod is how a chip is told to reset itself.
type ResetMethod uint8

// Reset methods.
const (
	// ResetMMIO sets CTRL.RST in memory space (13.4.1).
	ResetMMIO ResetMethod = iota
	// ResetIO sets it through the I/O BAR (13.2.2), because the chip cannot
	// acknowledge the write that resets it and a 64-bit bus would hang.
	ResetIO
	// ResetDup sets it in the second copy of CTRL (13.4.1).
	ResetDup
)

// String names the method.
func (m ResetMethod) String() string {
	return [...]string{"CTRL", "CTRL through the I/O BAR", "CTRLDUP"}[min(m, ResetDup)]
}

// EEPROMAccess is how the EEPROM is read.
type EEPROMAccess uint8

// EEPROM access methods.
const (
	// ReadEERD uses the read register in the layout of regs.EERDLayoutFor.
	ReadEERD EEPROMAccess = iota
	// ReadEECD clocks the words out bit by bit (13.4.3).
	ReadEECD
)

// Erratum is a rule a chip imposes beyond the manual's text.
type Erratum struct {
	Ref    string // where it is described
	Rule   string // what software has to do
	Obeyed string // where this router does it
}

// Quirks is what is special about one chip.
type Quirks struct {
	Device regs.Device

	Reset         ResetMethod
	PHYResetFirst bool          // CTRL.PHYRST must come before CTRL.RST
	ReloadByHand  bool          // CTRLEXT.EERST must follow the reset
	ReloadWait    time.Duration // the EEPROM is being loaded for so long after a reset
	EEPROM        EEPROMAccess
	SecondPortMAC bool // function 1 has the EEPROM's address with the last bit flipped (5.6.1)
	MANC          bool // has the management control register
	StripsFCS     bool // RCTL.SECRC is used; otherwise software strips
	Timers        bool // has ITR, RADV and TADV (13.4.18, 13.4.31, 13.4.44)
	FirstMaxPCIX  int  // most bytes of a frame's first descriptor on PCI-X; 0: no limit
	SplitEvenPCIX bool // on PCI-X no transmit buffer ends in an even doubleword
	NoRelaxed     bool // relaxed ordering must be off
	TIPG          uint32
	Errata        []Erratum
}

// firstMaxPCIX is of errataPCIX.
const firstMaxPCIX = 2015

var (
	errataPCIX = Erratum{
		Ref:    "specification update of the family, PCI-X, erratum 10",
		Rule:   "the first descriptor of a frame holds at most 2015 bytes on a PCI-X bus",
		Obeyed: "tx.E1000 spreads longer frames over two descriptors",
	}
	errata64K = Erratum{
		Ref:    "82545/82546 specification update, erratum 23",
		Rule:   "no ring and no buffer crosses a 64 KiB boundary",
		Obeyed: "skb.Arena.AllocRing aligns rings to their size; buffers are aligned to a stride of at most 16 KiB",
	}
	errataSplit = Erratum{
		Ref:    "82544 specification update, PCI-X data corruption",
		Rule:   "on PCI-X no transmit buffer ends in the lower half of an aligned quadword, unless it has four bytes at most",
		Obeyed: "tx.E1000 gives the last four bytes a descriptor of their own",
	}
	errataMTA = Erratum{
		Ref:    "82544 specification update, MTA",
		Rule:   "a write to an odd word of MTA destroys the even word before it",
		Obeyed: "MTA is written from the last word to the first, on every chip",
	}
	errataFIFO = Erratum{
		Ref:    "82547 specification update, transmit FIFO",
		Rule:   "in half duplex a frame that wraps in the transmit FIFO may stall the chip",
		Obeyed: "half duplex is reported as unsupported on this chip",
	}
	errataRelaxed = Erratum{
		Ref:    "82546GB quad port, CTRLEXT.RODIS (13.4.6)",
		Rule:   "relaxed ordering must be off",
		Obeyed: "set in reset.go",
	}
)

// The manual asks for IPGT 10 on copper (8 on the 82544), for safety "under
// all synchronization conditions" (13.4.34). With 10 the gap is 14 byte times
// and the chip tops out at 1,453,488 short frames a second; with 8 it is the
// 12 of IEEE 802.3 and 1,488,095. The kernel's driver uses 8, and so do we.
const (
	tipgCopper = regs.TIPGCopper
	tipgFiber  = regs.TIPGFiber
)

const (
	reloadUsual = 5 * time.Millisecond
	// The 82541 and 82547 load more from their serial EEPROM.
	reloadLong = 20 * time.Millisecond
)

// quirkTable has one row a MAC type. Reset methods: section 14.3's write to
// CTRL cannot be acknowledged by the chips of the first group.
var quirkTable = map[regs.MACType]Quirks{
	regs.MAC82544: {Reset: ResetIO, ReloadByHand: true, ReloadWait: reloadUsual, EEPROM: ReadEECD, FirstMaxPCIX: firstMaxPCIX, SplitEvenPCIX: true,
		// The manual's SECRC is not confirmed for this chip; with SECRC off
		// every chip counts the FCS, so stripping in software is always right.
		Errata: []Erratum{errataSplit, errataMTA, errataPCIX}},
	regs.MAC82540: {Reset: ResetIO, ReloadWait: reloadUsual, MANC: true, StripsFCS: true, Timers: true},
	regs.MAC82545: {FirstMaxPCIX: firstMaxPCIX, Reset: ResetIO, ReloadWait: reloadUsual, MANC: true, StripsFCS: true, Timers: true,
		Errata: []Erratum{errata64K, errataPCIX}},
	regs.MAC82545Rev3: {FirstMaxPCIX: firstMaxPCIX, Reset: ResetDup, ReloadWait: reloadUsual, MANC: true, StripsFCS: true, Timers: true,
		Errata: []Erratum{errataPCIX}},
	regs.MAC82546: {FirstMaxPCIX: firstMaxPCIX, Reset: ResetIO, ReloadWait: reloadUsual, MANC: true, StripsFCS: true, Timers: true, SecondPortMAC: true,
		Errata: []Erratum{errata64K, errataPCIX}},
	regs.MAC82546Rev3: {FirstMaxPCIX: firstMaxPCIX, Reset: ResetDup, ReloadWait: reloadUsual, MANC: true, StripsFCS: true, Timers: true, SecondPortMAC: true,
		Errata: []Erratum{errataPCIX}},
	regs.MAC82541:     {Reset: ResetIO, PHYResetFirst: true, ReloadWait: reloadLong, MANC: true, StripsFCS: true, Timers: true},
	regs.MAC82541Rev2: {Reset: ResetIO, ReloadWait: reloadLong, MANC: true, StripsFCS: true, Timers: true},
	regs.MAC82547: {Reset: ResetMMIO, PHYResetFirst: true, ReloadWait: reloadLong, MANC: true, StripsFCS: true, Timers: true,
		Errata: []Erratum{errataFIFO}},
	regs.MAC82547Rev2: {Reset: ResetMMIO, ReloadWait: reloadLong, MANC: true, StripsFCS: true, Timers: true,
		Errata: []Erratum{errataFIFO}},
}

// Identifiers of the quad-port boards that need relaxed ordering off.
const (
	idQuad     = 0x1099
	idQuadKSP3 = 0x10B5
)

// Probe gives the quirk record of a PCI device identifier of vendor 8086. The
// error for an unknown one lists what is supported.
func Probe(deviceID uint16) (Quirks, error) {
	dev, ok := regs.LookupDevice(regs.VendorIntel, deviceID)
	if !ok {
		return Quirks{}, fmt.Errorf("PCI device %04x:%04x is not an 8254x this driver knows; supported: %s",
			regs.VendorIntel, deviceID, supported())
	}
	q := quirkTable[dev.MAC]
	q.Device = dev
	q.TIPG = tipgCopper
	if dev.Media != regs.Copper {
		q.TIPG = tipgFiber
	}
	if deviceID == idQuad || deviceID == idQuadKSP3 {
		q.NoRelaxed = true
		q.Errata = append(q.Errata[:len(q.Errata):len(q.Errata)], errataRelaxed)
	}
	return q, nil
}

func supported() string {
	var s []string
	for _, d := range regs.Devices() {
		s = append(s, fmt.Sprintf("%s (%04x)", d.Name, d.ID))
	}
	return strings.Join(s, ", ")
}
