package regs

import (
	"fmt"
	"strconv"
	"strings"
)

// otherBits is the name under which bits outside all fields are shown.
const otherBits = "other"

// Decode describes the value of the register at off in the usual layout of the
// fields: set bits by name, other fields as NAME=value, parted by blanks. A
// zero field is left out unless its zero has a name. Bits that belong to no
// field are kept as other=0x.... A register without fields, or an unknown
// offset, gives the number in hexadecimal; nothing to show gives "0".
func Decode(off, value uint32) string { return DecodeFor(MACUnknown, off, value) }

// DecodeFor is Decode in the layout of the given MAC type.
func DecodeFor(mac MACType, off, value uint32) string {
	r, _, _ := Lookup(off)
	return decode(r.FieldsFor(mac), value, 8)
}

func decode(fields []Field, value uint32, digits int) string {
	if len(fields) == 0 {
		return hex(value, digits)
	}
	var b strings.Builder
	word := func(s string) {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(s)
	}
	rest := value
	for i := range fields {
		f := &fields[i]
		rest &^= f.Mask()
		v := f.Get(value)
		text, named := f.text(value)
		switch {
		case v == 0 && !named:
		case f.Width == 1:
			word(f.Name)
		default:
			word(f.Name + "=" + text)
		}
	}
	if rest != 0 {
		word(fmt.Sprintf("%s=%#x", otherBits, rest))
	}
	if b.Len() == 0 {
		return "0"
	}
	return b.String()
}

func (f *Field) text(reg uint32) (text string, named bool) {
	v := f.Get(reg)
	for _, n := range f.values(reg) {
		if n.V == v {
			return n.Name, true
		}
	}
	if f.Hex {
		return fmt.Sprintf("%#x", v), false
	}
	return strconv.FormatUint(uint64(v), 10), false
}

func hex(v uint32, digits int) string { return fmt.Sprintf("0x%0*x", digits, v) }

// Diff describes how a register changed, one "NAME old->new" for each field
// that did, parted by commas. Equal values give an empty string.
func Diff(off, old, now uint32) string { return DiffFor(MACUnknown, off, old, now) }

// DiffFor is Diff in the layout of the given MAC type.
func DiffFor(mac MACType, off, old, now uint32) string {
	if old == now {
		return ""
	}
	r, _, _ := Lookup(off)
	fields := r.FieldsFor(mac)
	if len(fields) == 0 {
		return hex(old, 8) + "->" + hex(now, 8)
	}
	var out []string
	restOld, restNow := old, now
	for i := range fields {
		f := &fields[i]
		restOld &^= f.Mask()
		restNow &^= f.Mask()
		a, _ := f.text(old)
		b, _ := f.text(now)
		if a != b {
			out = append(out, f.Name+" "+a+"->"+b)
		}
	}
	if restOld != restNow {
		out = append(out, fmt.Sprintf("%s %#x->%#x", otherBits, restOld, restNow))
	}
	return strings.Join(out, ", ")
}

// Parse is the reverse of Decode: it reads field names and NAME=value pairs, or
// a plain number, and returns the register value. Fields that are not named are
// zero. It fails for an unknown offset, field or value name, and for a number
// that does not fit its field.
func Parse(off uint32, text string) (uint32, error) { return ParseFor(MACUnknown, off, text) }

// ParseFor is Parse in the layout of the given MAC type.
func ParseFor(mac MACType, off uint32, text string) (uint32, error) {
	r, elem, ok := Lookup(off)
	if !ok {
		return 0, fmt.Errorf("no register at offset %#x", off)
	}
	v, err := parse(r.FieldsFor(mac), text)
	if err != nil {
		return 0, fmt.Errorf("value %q for %s: %w", text, r.ElemName(elem), err)
	}
	return v, nil
}

func parse(fields []Field, text string) (uint32, error) {
	words := strings.Fields(text)
	if len(words) == 1 {
		if v, err := strconv.ParseUint(words[0], 0, 32); err == nil {
			return uint32(v), nil
		}
	}
	var value uint32
	// The bit that chooses a field's value names may come after the field, so
	// such fields wait for the second round.
	for _, late := range []bool{false, true} {
		for _, w := range words {
			name, val, pair := strings.Cut(w, "=")
			f := findField(fields, name)
			if late != (f != nil && f.AltBit != 0) {
				continue
			}
			v, err := parseWord(f, name, val, pair, value)
			if err != nil {
				return 0, err
			}
			value |= v
		}
	}
	return value, nil
}

func parseWord(f *Field, name, val string, pair bool, reg uint32) (uint32, error) {
	switch {
	case f == nil && pair && name == otherBits:
		v, err := strconv.ParseUint(val, 0, 32)
		if err != nil {
			return 0, fmt.Errorf("field %s: %q is not a number", otherBits, val)
		}
		return uint32(v), nil
	case f == nil:
		return 0, fmt.Errorf("no field %q", name)
	case !pair && f.Width > 1:
		return 0, fmt.Errorf("field %s needs a value", name)
	case !pair:
		return f.Mask(), nil
	}
	for _, n := range f.values(reg) {
		if n.Name == val {
			return f.Set(0, n.V), nil
		}
	}
	v, err := strconv.ParseUint(val, 0, int(f.Width))
	if err != nil {
		return 0, fmt.Errorf("field %s: %q is neither a value name nor a number below %d", name, val, uint64(1)<<f.Width)
	}
	return f.Set(0, uint32(v)), nil
}
