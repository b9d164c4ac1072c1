package mmio

import (
	"testing"
	"unsafe"
)

func TestStubsMoveExactly32Bits(t *testing.T) {
	mem := [4]uint32{0x11111111, 0x22222222, 0x33333333, 0x44444444}
	for _, v := range []uint32{0, 1, 0x7fffffff, 0x80000000, 0xffffffff} {
		Store32(unsafe.Pointer(&mem[1]), v)
		if mem[1] != v || mem[0] != 0x11111111 || mem[2] != 0x33333333 {
			t.Fatalf("store of %#x left %#x", v, mem)
		}
		if got := Load32(unsafe.Pointer(&mem[1])); got != v {
			t.Errorf("load gives %#x, want %#x", got, v)
		}
	}
}

func TestWindowRefusesWhatIsOutside(t *testing.T) {
	var mem [4]uint32
	w := NewWindow(unsafe.Pointer(&mem), 16)
	w.Write(12, 7)
	if w.Read(12) != 7 || mem[3] != 7 {
		t.Errorf("last register: %v", mem)
	}
	for _, off := range []uint32{2, 13, 16, 0xfffffffc} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("offset %#x was accepted", off)
				}
			}()
			w.Read(off)
		}()
	}
}

func TestCountedCounts(t *testing.T) {
	var mem [4]uint32
	c := Counted{Next: NewWindow(unsafe.Pointer(&mem), 16)}
	c.Write(0, 5)
	c.Write(4, 6)
	if c.Read(0) != 5 || c.Reads != 1 || c.Writes != 2 {
		t.Errorf("%+v", c)
	}
}

func BenchmarkStore32(b *testing.B) {
	var v uint32
	for b.Loop() {
		Store32(unsafe.Pointer(&v), 1)
	}
}
