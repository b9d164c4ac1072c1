//go:build skbdebug

package skb

import (
	"fmt"
	"strings"
	"testing"
)

func TestDebugBuildCatchesMisuse(t *testing.T) {
	cases := []struct {
		name string
		do   func(a *Arena, c *Cache, h Handle)
		want string
	}{
		{"double free", func(_ *Arena, c *Cache, h Handle) { c.Free(h); c.Free(h) }, "double free by w0 (last owner: w0, who freed it)"},
		{"double free of a clone", func(a *Arena, c *Cache, h Handle) { a.Clone(h); c.Free(h); c.Free(h); c.Free(h) }, "double free by w0"},
		{"read after free", func(a *Arena, c *Cache, h Handle) { c.Free(h); a.Bytes(h) }, "use after free"},
		{"metadata after free", func(a *Arena, c *Cache, h Handle) { c.Free(h); a.Meta(h) }, "use after free"},
		{"bus address after free", func(a *Arena, c *Cache, h Handle) { c.Free(h); a.Bus(h) }, "use after free"},
		{"push after free", func(a *Arena, c *Cache, h Handle) { c.Free(h); a.Push(h, 1) }, "use after free"},
		{"clone after free", func(a *Arena, c *Cache, h Handle) { c.Free(h); a.Clone(h) }, "use after free"},
		{"write after free", func(a *Arena, c *Cache, h Handle) {
			b := a.Put(h, 10)
			c.Free(h)
			b[3] = 1
			c.Alloc()
		}, fmt.Sprintf("byte %d was written after free (last owner: w0, who freed it)", 256+3)},
		{"device write after free", func(a *Arena, c *Cache, h Handle) {
			c.Free(h)
			a.DMA(a.BusAt(h, 2047), 1)[0] = 0
			c.AllocBatch(make([]Handle, 1))
		}, "byte 2047 was written after free"},
		{"use of no buffer", func(a *Arena, _ *Cache, _ Handle) { a.Bytes(None) }, "no such buffer (last owner: nobody)"},
		{"use beyond the arena", func(a *Arena, _ *Cache, _ Handle) { a.Push(Handle(a.Count()), 1) }, "no such buffer"},
		{"free of no buffer", func(_ *Arena, c *Cache, _ Handle) { c.Free(None) }, "free of no such buffer"},
		{"never handed out", func(a *Arena, _ *Cache, h Handle) { a.Bytes(h + 1) }, "use after free (last owner: nobody)"},
		{"in the free list while in use", func(a *Arena, c *Cache, h Handle) { c.stack[c.n] = h; c.n++; c.Alloc() }, "handed out while in use"},
		{"reserve on a frame", func(a *Arena, _ *Cache, h Handle) { a.Put(h, 1); a.Reserve(h, 1) }, "reserve on a filled buffer"},
		{"reserve beyond the end", func(a *Arena, _ *Cache, h Handle) { a.Reserve(h, 1793) }, "beyond its end"},
		{"reserve backwards", func(a *Arena, _ *Cache, h Handle) { a.Reserve(h, -1) }, "reserve on a filled buffer"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			a := newArena(t, Options{CacheSize: 16})
			c := a.NewCache("w0")
			h := mustAlloc(t, c)
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, tc.want) {
					t.Errorf("panic %q lacks %q", got, tc.want)
				}
			}()
			tc.do(a, c, h)
		})
	}
}

func TestLeakIsReportedWithItsOwner(t *testing.T) {
	a := newArena(t, Options{CacheSize: 16})
	c := a.NewCache("worker 3")
	mustAlloc(t, c)
	a.SetOwner(mustAlloc(t, c), "p1 tx")
	a.SetOwner(mustAlloc(t, c), "p1 tx")
	_, err := a.Audit()
	want := "leak: 1 buffers held by nobody, last owner worker 3; 2 buffers held by nobody, last owner p1 tx"
	if err == nil || err.Error() != want {
		t.Errorf("Audit says %v, want %s", err, want)
	}
}

func TestDebugBuildSaysSo(t *testing.T) {
	if !Debug {
		t.Error("Debug is false with the tag skbdebug")
	}
}
