package regs

import (
	"fmt"
	"slices"
)

// VendorIntel is the PCI vendor identifier of every chip of the family.
const VendorIntel uint16 = 0x8086

// MACType is the generation of the controller. Code that works around chip
// differences decides by it. Zero is "not known".
type MACType uint8

// Controller generations. Rev3 and Rev2 are the later steppings (GM and GB, GI
// and PI), which reset in another way than the earlier ones.
const (
	MACUnknown MACType = iota
	MAC82544
	MAC82540
	MAC82545
	MAC82545Rev3
	MAC82546
	MAC82546Rev3
	MAC82541
	MAC82541Rev2
	MAC82547
	MAC82547Rev2
)

var macNames = [...]string{
	"unknown", "82544", "82540", "82545", "82545-rev3", "82546", "82546-rev3",
	"82541", "82541-rev2", "82547", "82547-rev2",
}

// String returns the chip number, for example "82540".
func (m MACType) String() string {
	if int(m) < len(macNames) {
		return macNames[m]
	}
	return fmt.Sprintf("MACType(%d)", uint8(m))
}

// IGP reports whether the chip is an 82541 or 82547: other PHY, other layout of
// EERD.
func (m MACType) IGP() bool { return m >= MAC82541 && m <= MAC82547Rev2 }

// Media is how a port meets its cable.
type Media uint8

// Media types.
const (
	Copper Media = iota
	Fiber
	SerDes
)

// String returns "copper", "fiber" or "serdes".
func (m Media) String() string { return [...]string{"copper", "fiber", "serdes"}[min(m, SerDes)] }

// Device is one PCI device identifier of the family (5.2).
type Device struct {
	ID    uint16 // PCI device; the vendor is VendorIntel
	Name  string
	MAC   MACType
	Media Media
}

var devices = [...]Device{
	{0x1008, "82544EI", MAC82544, Copper},
	{0x1009, "82544EI fiber", MAC82544, Fiber},
	{0x100C, "82544GC", MAC82544, Copper},
	{0x100D, "82544GC LOM", MAC82544, Copper},
	{0x100E, "82540EM", MAC82540, Copper},
	{0x100F, "82545EM", MAC82545, Copper},
	{0x1010, "82546EB", MAC82546, Copper},
	{0x1011, "82545EM fiber", MAC82545, Fiber},
	{0x1012, "82546EB fiber", MAC82546, Fiber},
	{0x1013, "82541EI", MAC82541, Copper},
	{0x1014, "82541ER LOM", MAC82541, Copper},
	{0x1015, "82540EM LOM", MAC82540, Copper},
	{0x1016, "82540EP LOM", MAC82540, Copper},
	{0x1017, "82540EP", MAC82540, Copper},
	{0x1018, "82541EI mobile", MAC82541, Copper},
	{0x1019, "82547EI", MAC82547, Copper},
	{0x101A, "82547EI mobile", MAC82547, Copper},
	{0x101D, "82546EB quad", MAC82546, Copper},
	{0x101E, "82540EP mobile", MAC82540, Copper},
	{0x1026, "82545GM", MAC82545Rev3, Copper},
	{0x1027, "82545GM fiber", MAC82545Rev3, Fiber},
	{0x1028, "82545GM serdes", MAC82545Rev3, SerDes},
	{0x1075, "82547GI", MAC82547Rev2, Copper},
	{0x1076, "82541GI", MAC82541Rev2, Copper},
	{0x1077, "82541GI mobile", MAC82541Rev2, Copper},
	{0x1078, "82541ER", MAC82541Rev2, Copper},
	{0x1079, "82546GB", MAC82546Rev3, Copper},
	{0x107A, "82546GB fiber", MAC82546Rev3, Fiber},
	{0x107B, "82546GB serdes", MAC82546Rev3, SerDes},
	{0x107C, "82541PI", MAC82541Rev2, Copper},
	{0x1099, "82546GB quad", MAC82546Rev3, Copper},
	{0x10B5, "82546GB quad KSP3", MAC82546Rev3, Copper},
}

// Devices returns the known devices in order of identifier. The slice is the
// caller's.
func Devices() []Device { return slices.Clone(devices[:]) }

// LookupDevice finds a device by its PCI vendor and device identifiers.
func LookupDevice(vendor, device uint16) (Device, bool) {
	if vendor != VendorIntel {
		return Device{}, false
	}
	i, ok := slices.BinarySearchFunc(devices[:], device, func(d Device, id uint16) int {
		return int(d.ID) - int(id)
	})
	if !ok {
		return Device{}, false
	}
	return devices[i], true
}
