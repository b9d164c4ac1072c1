package skb

import (
	"math"
	"strings"
	"testing"
	"unsafe"
)

// newArena makes a small arena and closes it with the test.
func newArena(t testing.TB, o Options) *Arena {
	t.Helper()
	if o.Buffers == 0 {
		o.Buffers = 256
	}
	a, err := NewArena(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return a
}

func mustAlloc(t testing.TB, c *Cache) Handle {
	t.Helper()
	h := c.Alloc()
	if h == None {
		t.Fatal("no buffer")
	}
	return h
}

func mustAudit(t testing.TB, a *Arena, holders ...Holder) Census {
	t.Helper()
	c, err := a.Audit(holders...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// hand is a Holder for tests.
type hand struct {
	name string
	held []Handle
}

func (p *hand) HolderName() string { return p.name }
func (p *hand) EachHeld(f func(Handle)) {
	for _, h := range p.held {
		f(h)
	}
}

func TestMetaIsOneCacheLine(t *testing.T) {
	if s := unsafe.Sizeof(Meta{}); s != 64 || MetaSize != 64 {
		t.Fatalf("Meta has %d bytes, MetaSize is %d", s, MetaSize)
	}
	a := newArena(t, Options{})
	c := a.NewCache("t")
	h := mustAlloc(t, c)
	if p := uintptr(unsafe.Pointer(a.Meta(h))); p%64 != 0 {
		t.Errorf("Meta at %#x is not aligned to a cache line", p)
	}
}

func TestNewArenaRefusesBadLayouts(t *testing.T) {
	cases := []struct {
		name string
		o    Options
		want string
	}{
		{"device could write into the neighbour", Options{Headroom: 512, DeviceMax: 1600},
			"buffers: headroom 512 + device buffer 1600 exceed the stride 2048: a device could write into the next buffer (raise stride or lower headroom)"},
		{"one byte too long", Options{Headroom: 256, DeviceMax: 1793}, "exceed the stride 2048"},
		{"stride no power of two", Options{Stride: 3072}, "stride 3072 is not a power of two"},
		{"stride below the range", Options{Stride: 1024}, "stride is 1024, expected 2048 to 16384 bytes"},
		{"too few buffers", Options{Buffers: 255}, "count is 255"},
		{"headroom no multiple", Options{Headroom: 100}, "headroom is 100"},
		{"unknown order", Options{AllocOrder: "random"}, `order is "random"`},
		{"cache too small", Options{CacheSize: 1}, "cache is 1"},
		{"negative device buffer", Options{DeviceMax: -1}, "expected positive sizes"},
		{"negative ring memory", Options{RingBytes: -1}, "expected positive sizes"},
		{"ring memory overflows", Options{RingBytes: math.MaxInt}, "at most 4 GiB"},
		{"beyond 32-bit bus addresses", Options{BusBase: 1<<32 - 64<<10}, "above 4 GiB"},
		{"bus address wraps", Options{BusBase: math.MaxUint64 - (64<<10 - 1)}, "above 4 GiB"},
		{"bus address unaligned", Options{BusBase: 0x1000_1000}, "not a multiple of 0x10000"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			if tc.o.Buffers == 0 {
				tc.o.Buffers = 256
			}
			a, err := NewArena(tc.o)
			if err == nil {
				_ = a.Close()
				t.Fatal("accepted")
			}
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %q lacks %q", err, tc.want)
			}
		})
	}
}

func TestArenaTakesExactFitAndReportsIt(t *testing.T) {
	a := newArena(t, Options{Buffers: 300, Stride: 4096, Headroom: 512, DeviceMax: 4096 - 512, HugePages: true})
	if a.Count() != 300 || a.Stride() != 4096 || a.Headroom() != 512 {
		t.Fatalf("count %d stride %d headroom %d", a.Count(), a.Stride(), a.Headroom())
	}
	o := a.Options()
	if o.AllocOrder != OrderLIFO || o.CacheSize != 128 || o.BusBase != DefaultBusBase || o.RingBytes != 2<<20 {
		t.Errorf("defaults not filled in: %+v", o)
	}
	c := mustAudit(t, a)
	if c.Total != 300 || c.Free != 300 || c.Cached != 0 {
		t.Errorf("census of a new arena: %+v", c)
	}
}

func TestBuffersDoNotOverlap(t *testing.T) {
	a := newArena(t, Options{})
	c := a.NewCache("t")
	seen := map[unsafe.Pointer]bool{}
	for range a.Count() {
		h := mustAlloc(t, c)
		p := a.Start(h)
		if seen[p] {
			t.Fatalf("two buffers at %p", p)
		}
		seen[p] = true
		if uintptr(p)%uintptr(a.Stride()) != 0 && uintptr(p)%4096 != 0 && a.Stride() == 4096 {
			t.Fatalf("buffer at %p is not aligned", p)
		}
		b := a.Put(h, a.Tailspace(h))
		for i := range b {
			b[i] = byte(h)
		}
	}
	for h := range Handle(a.Count()) {
		for i, x := range a.Bytes(h) {
			if x != byte(h) {
				t.Fatalf("buffer %d byte %d is %#x", h, i, x)
			}
		}
	}
	if c.Alloc() != None || c.Failed != 1 {
		t.Fatalf("an exhausted arena handed out a buffer (failed %d)", c.Failed)
	}
}

func TestCloseIsIdempotentAndForgetsAddresses(t *testing.T) {
	a, err := NewArena(Options{Buffers: 256})
	if err != nil {
		t.Fatal(err)
	}
	bus := a.BusAt(0, 0)
	for range 2 {
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if a.DMA(bus, 1) != nil || a.DMA(DefaultBusBase, 1) != nil {
		t.Error("a closed arena still resolves bus addresses")
	}
	if _, _, ok := a.BufferAt(bus); ok {
		t.Error("a closed arena still has buffers")
	}
	if _, err := a.AllocRing(4096); err == nil {
		t.Error("a closed arena gave ring memory")
	}
}
