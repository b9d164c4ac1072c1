package mem

import (
	"testing"
	"unsafe"
)

func TestRegionIsZeroedAlignedAndWritable(t *testing.T) {
	for _, o := range []Options{{Size: 1}, {Size: PageSize}, {Size: 3*PageSize + 1}, {Size: 100, Shared: true}, {Size: 9 << 20, Lazy: true}, {Size: 5 << 20, Huge: true}} {
		r, err := Alloc(o)
		if err != nil {
			t.Fatalf("%+v: %v", o, err)
		}
		if uintptr(r.Base())%PageSize != 0 {
			t.Errorf("%+v: base %p is not page aligned", o, r.Base())
		}
		if r.Size() < o.Size || r.Size()%PageSize != 0 {
			t.Errorf("%+v: size %d", o, r.Size())
		}
		b := r.Bytes()
		for i := range b {
			if b[i] != 0 {
				t.Fatalf("%+v: byte %d is %#x", o, i, b[i])
			}
			b[i] = byte(i)
		}
		if *(*byte)(unsafe.Add(r.Base(), r.Size()-1)) != byte(r.Size()-1) {
			t.Errorf("%+v: last byte lost", o)
		}
		if want := raceEnabled && !o.Shared; r.OnHeap() != want {
			t.Errorf("%+v: on heap %v, want %v", o, r.OnHeap(), want)
		}
		if err := r.Free(); err != nil {
			t.Error(err)
		}
		if err := r.Free(); err != nil {
			t.Errorf("second Free: %v", err)
		}
	}
}

func TestBadSizeNamesIt(t *testing.T) {
	for _, n := range []int{0, -1} {
		if _, err := Alloc(Options{Size: n}); err == nil {
			t.Errorf("size %d accepted", n)
		}
	}
}
