package regs

import "fmt"

// Mode says what reading and writing a register does.
type Mode uint8

// Access modes.
const (
	RW    Mode = iota // read and write
	RO                // writes are ignored
	WO                // reads return nothing useful
	RC                // a read returns the value and clears it; writes are ignored
	RCW1C             // a read clears all; writing ones clears those bits (ICR)
	RWS               // reads give the value; writing ones sets bits, zeros do nothing (IMS)
)

var modeNames = [...]string{RW: "RW", RO: "RO", WO: "WO", RC: "RC", RCW1C: "RC/W1C", RWS: "RWS"}

// String returns the short name of the mode, for example "RC".
func (m Mode) String() string {
	if int(m) < len(modeNames) {
		return modeNames[m]
	}
	return fmt.Sprintf("Mode(%d)", uint8(m))
}

// ReadSafe reports whether a read has no effect on the device and returns
// something useful.
func (m Mode) ReadSafe() bool { return m == RW || m == RO || m == RWS }

// Value is a named value of a field.
type Value struct {
	V    uint32 // value, right-aligned
	Name string
}

// Field is a group of adjacent bits of a register.
type Field struct {
	Name  string
	Shift uint8 // number of the lowest bit
	Width uint8 // number of bits, 1..32
	// Values names values. A field whose zero is named is shown even when
	// zero, because the zero then means something.
	Values []Value
	// AltBit, if not zero, is a mask in the same register. While it is set
	// the names in AltValues hold instead of Values.
	AltBit    uint32
	AltValues []Value
	Hex       bool // shown in hexadecimal, not decimal
	Help      string
}

// Mask returns the field's bits in place.
func (f *Field) Mask() uint32 { return uint32(1<<f.Width-1) << f.Shift }

// Get extracts the field from a register value, right-aligned.
func (f *Field) Get(reg uint32) uint32 { return reg & f.Mask() >> f.Shift }

// Set returns reg with the field replaced by v. Bits of v that do not fit are
// dropped.
func (f *Field) Set(reg, v uint32) uint32 {
	return reg&^f.Mask() | v<<f.Shift&f.Mask()
}

func (f *Field) values(reg uint32) []Value {
	if f.AltBit != 0 && reg&f.AltBit != 0 {
		return f.AltValues
	}
	return f.Values
}

// Reg is one register, or an array of equal registers.
type Reg struct {
	Name   string
	Offset uint32 // bytes from the start of BAR 0; for the PHY table the register number
	Count  uint32 // elements of the array; 0 for a single register
	Stride uint32 // bytes between elements; 0 for a single register
	Mode   Mode
	// Reset is the value after a device reset. It holds only if HasReset; the
	// others start undefined, from the EEPROM, or differ between chips.
	Reset    uint32
	HasReset bool
	Section  string // section of the manual, empty where it has none
	Help     string
	Fields   []Field // by bit number; nil for a plain 32-bit quantity
	// IGPFields is the layout on the 82541 and 82547, nil where it is the same.
	IGPFields []Field
}

// Len returns the number of elements, 1 for a single register.
func (r *Reg) Len() uint32 { return max(r.Count, 1) }

// At returns the offset of element i. It does not check i.
func (r *Reg) At(i int) uint32 { return r.Offset + uint32(i)*r.Stride }

// ElemName returns the name of element i: "RCTL", or "MTA[5]" in an array.
func (r *Reg) ElemName(i int) string {
	if r.Count == 0 {
		return r.Name
	}
	return fmt.Sprintf("%s[%d]", r.Name, i)
}

// FieldsFor returns the fields as the given MAC type lays them out.
// The slice is shared and must not be changed.
func (r *Reg) FieldsFor(mac MACType) []Field {
	if r.IGPFields != nil && mac.IGP() {
		return r.IGPFields
	}
	return r.Fields
}

// Field returns the named field of the usual layout, or nil.
func (r *Reg) Field(name string) *Field { return findField(r.Fields, name) }

func findField(fields []Field, name string) *Field {
	for i := range fields {
		if fields[i].Name == name {
			return &fields[i]
		}
	}
	return nil
}

func bit(name string, n uint8, help string) Field {
	return Field{Name: name, Shift: n, Width: 1, Help: help}
}

func bits(name string, hi, lo uint8, help string, values ...Value) Field {
	return Field{Name: name, Shift: lo, Width: hi - lo + 1, Help: help, Values: values}
}

func hexBits(name string, hi, lo uint8, help string) Field {
	f := bits(name, hi, lo, help)
	f.Hex = true
	return f
}
