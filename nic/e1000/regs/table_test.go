package regs

import (
	"testing"

	"pgregory.net/rapid"
)

func TestRegistersDoNotOverlap(t *testing.T) {
	names := map[string]bool{}
	owner := map[uint32]string{}
	last := int64(-1)
	for _, r := range All() {
		if names[r.Name] {
			t.Errorf("two registers are called %s", r.Name)
		}
		names[r.Name] = true
		if int64(r.Offset) <= last {
			t.Errorf("%s at %#x is out of order", r.Name, r.Offset)
		}
		last = int64(r.Offset)
		if (r.Count == 0) != (r.Stride == 0) {
			t.Errorf("%s has count %d but stride %d", r.Name, r.Count, r.Stride)
		}
		if r.Help == "" || (r.Section == "" && r.Name != "MANC") {
			t.Errorf("%s lacks help or section", r.Name)
		}
		for i := range int(r.Len()) {
			off := r.At(i)
			if off%4 != 0 || off+4 > BARSize {
				t.Errorf("%s lies at %#x", r.ElemName(i), off)
			}
			if o, taken := owner[off]; taken {
				t.Errorf("%s and %s share offset %#x", o, r.ElemName(i), off)
			}
			owner[off] = r.ElemName(i)
		}
	}
}

func TestFieldsDoNotOverlap(t *testing.T) {
	check := func(kind string, r Reg, fields []Field, width uint8) {
		var used uint32
		seen := map[string]bool{otherBits: true}
		for i := range fields {
			f := &fields[i]
			where := kind + " " + r.Name + "." + f.Name
			if f.Width == 0 || f.Shift+f.Width > width {
				t.Errorf("%s: bits %d+%d do not fit %d", where, f.Shift, f.Width, width)
				continue
			}
			if used&f.Mask() != 0 {
				t.Errorf("%s overlaps another field", where)
			}
			if i > 0 && f.Shift < fields[i-1].Shift {
				t.Errorf("%s is out of order", where)
			}
			used |= f.Mask()
			if seen[f.Name] || f.Help == "" {
				t.Errorf("%s: name used twice, or no help", where)
			}
			seen[f.Name] = true
			for _, values := range [][]Value{f.Values, f.AltValues} {
				byName, byValue := map[string]bool{}, map[uint32]bool{}
				for _, v := range values {
					if f.Width == 1 || v.V > f.Mask()>>f.Shift || byName[v.Name] || byValue[v.V] {
						t.Errorf("%s: value %d %q is wrong", where, v.V, v.Name)
					}
					byName[v.Name], byValue[v.V] = true, true
				}
			}
			if f.AltBit != 0 && f.AltBit&f.Mask() != 0 {
				t.Errorf("%s chooses its own names", where)
			}
		}
	}
	for _, r := range All() {
		check("MAC", r, r.Fields, 32)
		check("MAC(IGP)", r, r.IGPFields, 32)
	}
	last := -1
	for _, r := range PHYRegs() {
		check("PHY", r, r.Fields, 16)
		check("PHY(IGP)", r, r.IGPFields, 16)
		if int(r.Offset) <= last || r.Offset > 31 {
			t.Errorf("PHY %s has number %d", r.Name, r.Offset)
		}
		last = int(r.Offset)
	}
}

func TestFieldGetSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := Field{Width: uint8(rapid.IntRange(1, 32).Draw(t, "width"))}
		f.Shift = uint8(rapid.IntRange(0, 32-int(f.Width)).Draw(t, "shift"))
		reg, v := rapid.Uint32().Draw(t, "reg"), rapid.Uint32().Draw(t, "v")
		got := f.Set(reg, v)
		if got&^f.Mask() != reg&^f.Mask() {
			t.Fatalf("Set changed other bits: %#x -> %#x, mask %#x", reg, got, f.Mask())
		}
		if want := uint32(uint64(v) & (1<<f.Width - 1)); f.Get(got) != want {
			t.Fatalf("Get after Set = %#x, want %#x", f.Get(got), want)
		}
	})
}

func TestLookup(t *testing.T) {
	for _, c := range []struct {
		off  uint32
		name string
		elem int
	}{
		{0x00000, "CTRL", 0}, {0x00100, "RCTL", 0}, {0x05200, "MTA", 0}, {0x053FC, "MTA", 127},
		{0x05400, "RAL", 0}, {0x05404, "RAH", 0}, {0x05478, "RAL", 15}, {0x0547C, "RAH", 15},
		{0x057FC, "VFTA", 127}, {0x040C4, "TORH", 0},
	} {
		r, elem, ok := Lookup(c.off)
		if !ok || r.Name != c.name || elem != c.elem {
			t.Errorf("Lookup(%#x) = %s, %d, %v; want %s, %d", c.off, r.Name, elem, ok, c.name, c.elem)
		}
		back, n, ok := ByName(r.ElemName(elem))
		if !ok || back.At(n) != c.off {
			t.Errorf("ByName(%s) = %#x, %v", r.ElemName(elem), back.At(n), ok)
		}
	}
	for _, off := range []uint32{1, 0x0000C, 0x05480, BARSize} {
		if r, _, ok := Lookup(off); ok {
			t.Errorf("Lookup(%#x) found %s", off, r.Name)
		}
	}
	for _, name := range []string{"", "RCTLX", "RCTL[0]", "RAL[16]", "RAL[", "RAL[-1]", "RAL[1]x"} {
		if r, _, ok := ByName(name); ok {
			t.Errorf("ByName(%q) found %s", name, r.Name)
		}
	}
	if r, _, ok := ByName("rctl"); !ok || r.Offset != RCTL {
		t.Error("names are not matched in any case")
	}
}

func TestReadSafe(t *testing.T) {
	for m, want := range map[Mode]bool{RW: true, RO: true, RWS: true, WO: false, RC: false, RCW1C: false} {
		if m.ReadSafe() != want {
			t.Errorf("%v.ReadSafe() = %v", m, !want)
		}
	}
}
