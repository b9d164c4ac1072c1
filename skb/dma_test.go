package skb

import (
	"math"
	"strings"
	"testing"
	"unsafe"
)

func TestRingsAreAlignedAndCrossNo64K(t *testing.T) {
	a := newArena(t, Options{RingBytes: 4 << 20})
	type span struct{ from, to uint64 }
	var got []span
	for _, n := range []int{80, 4096, 88, 96, 2048, 4096, 1000, 80, 4088, 256} {
		size := n * 16
		r, err := a.AllocRing(size)
		if err != nil {
			t.Fatal(err)
		}
		if r.Size != size {
			t.Errorf("asked for %d bytes, got %d", size, r.Size)
		}
		if r.Bus%4096 != 0 || uintptr(r.Base)%4096 != 0 {
			t.Errorf("ring of %d bytes at bus %#x, %p is not page aligned", size, r.Bus, r.Base)
		}
		if first, last := r.Bus>>16, (r.Bus+uint64(size)-1)>>16; first != last {
			t.Errorf("ring of %d bytes at %#x crosses a 64 KiB boundary", size, r.Bus)
		}
		if b := a.DMA(r.Bus, size); b == nil || unsafe.Pointer(&b[0]) != r.Base {
			t.Errorf("DMA does not find the ring at %#x", r.Bus)
		}
		if _, _, ok := a.BufferAt(r.Bus + uint64(size) - 1); ok {
			t.Errorf("a ring lies in a buffer")
		}
		for _, s := range got {
			if r.Bus < s.to && s.from < r.Bus+uint64(size) {
				t.Errorf("ring at %#x overlaps the one at %#x", r.Bus, s.from)
			}
		}
		got = append(got, span{r.Bus, r.Bus + uint64(size)})
	}
}

func TestRingMemoryRunsOut(t *testing.T) {
	a := newArena(t, Options{RingBytes: 1}) // rounded up to 2 MiB
	for i := range 32 {
		if _, err := a.AllocRing(64 << 10); err != nil {
			t.Fatalf("ring %d: %v", i, err)
		}
	}
	for _, size := range []int{16, 64 << 10, 0, -16, math.MaxInt, math.MinInt, 1<<62 + 1} {
		_, err := a.AllocRing(size)
		if err == nil {
			t.Fatalf("%d bytes given from full ring memory", size)
		}
		if !strings.Contains(err.Error(), "0 of 2097152 bytes of ring memory are left (raise RingBytes)") {
			t.Errorf("error %q", err)
		}
	}
}

func TestDMABounds(t *testing.T) {
	a := newArena(t, Options{HugePages: true})
	base := uint64(DefaultBusBase)
	size := uint64(2<<20 + 256*2048)
	cases := []struct {
		bus uint64
		n   int
		ok  bool
	}{
		{base, 0, true}, {base, 1, true}, {base, int(size), true},
		{base, int(size) + 1, false}, {base, -1, false}, {base, math.MinInt, false}, {base, math.MaxInt, false},
		{base - 1, 1, false}, {base - 1, 2, false}, {0, 1, false},
		{base + size - 1, 1, true}, {base + size - 1, 2, false}, {base + size, 1, false}, {base + size + 1, 0, false},
		{math.MaxUint64, 1, false}, {math.MaxUint64, math.MaxInt, false}, {math.MaxUint64 - 15, 16, false},
		{1 << 63, 1, false}, {base + 1<<32, 1, false}, {base + 8, math.MaxInt, false},
	}
	for _, tc := range cases {
		b := a.DMA(tc.bus, tc.n)
		if (b != nil) != tc.ok {
			t.Errorf("DMA(%#x, %d) found %v, want %v", tc.bus, tc.n, b != nil, tc.ok)
		}
		if tc.ok && len(b) != tc.n {
			t.Errorf("DMA(%#x, %d) has %d bytes", tc.bus, tc.n, len(b))
		}
	}
}

func TestBufferAtBounds(t *testing.T) {
	a := newArena(t, Options{})
	last := Handle(a.Count() - 1)
	first, end := a.BusAt(0, 0), a.BusAt(last, a.Stride())
	cases := []struct {
		bus  uint64
		h    Handle
		room int
		ok   bool
	}{
		{first, 0, 2048, true}, {first + 2047, 0, 1, true}, {first + 2048, 1, 2048, true},
		{end - 1, last, 1, true}, {end, None, 0, false}, {first - 1, None, 0, false},
		{0, None, 0, false}, {math.MaxUint64, None, 0, false}, {first + 1<<63, None, 0, false}, {first + 1<<32, None, 0, false},
	}
	for _, tc := range cases {
		h, room, ok := a.BufferAt(tc.bus)
		if h != tc.h || room != tc.room || ok != tc.ok {
			t.Errorf("BufferAt(%#x) = %d, %d, %v; want %d, %d, %v", tc.bus, h, room, ok, tc.h, tc.room, tc.ok)
		}
	}
}

func TestBusAddressesNameTheSameBytes(t *testing.T) {
	a := newArena(t, Options{BusBase: 1 << 20, Stride: 4096})
	c := a.NewCache("t")
	for range 10 {
		h := mustAlloc(t, c)
		copy(a.Put(h, 5), "hello")
		a.Pull(h, 1)
		if got := string(a.DMA(a.Bus(h), 4)); got != "ello" {
			t.Errorf("DMA at the frame's bus address is %q", got)
		}
		if a.Bus(h) != a.BusAt(h, a.Headroom()+1) {
			t.Errorf("Bus %#x, BusAt %#x", a.Bus(h), a.BusAt(h, a.Headroom()+1))
		}
		got, room, ok := a.BufferAt(a.Bus(h))
		if !ok || got != h || room != 4096-a.Headroom()-1 {
			t.Errorf("BufferAt = %d, %d, %v", got, room, ok)
		}
		if a.RefsAt(h) != 1 {
			t.Errorf("RefsAt = %d", a.RefsAt(h))
		}
	}
}
