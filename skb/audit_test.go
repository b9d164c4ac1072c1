package skb

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestAuditFindsWhatIsWrong(t *testing.T) {
	cases := []struct {
		name  string
		spoil func(a *Arena, c *Cache, in *hand)
		want  string
	}{
		{"free twice in a cache", func(_ *Arena, c *Cache, _ *hand) { c.stack[c.n] = c.stack[0]; c.n++ }, "is free twice, the second time in the cache of w"},
		{"free twice in the list", func(a *Arena, c *Cache, _ *hand) { a.give(c.stack[:1]) }, "is free twice"},
		{"in use and free", func(a *Arena, _ *Cache, in *hand) { a.give(in.held[:1]) }, "lies in the shared list with 1 references"},
		{"forgotten", func(_ *Arena, _ *Cache, in *hand) { in.held = in.held[1:] }, "leak: 1 buffers held by nobody, last owner "},
		{"clone forgotten", func(a *Arena, _ *Cache, in *hand) { a.Clone(in.held[0]); a.Clone(in.held[1]) }, "leak: 2 buffers held by nobody, last owner "},
		{"lost from the cache", func(_ *Arena, c *Cache, _ *hand) { c.n -= 3 }, "leak: 3 buffers no reference and in no list"},
		{"held twice", func(_ *Arena, _ *Cache, in *hand) { in.held = append(in.held, in.held[2]) }, "has 1 references and is held 2 times"},
		{"held after free", func(_ *Arena, c *Cache, in *hand) { c.Free(in.held[0]) }, "has 0 references and is held 1 times"},
		{"no handle", func(_ *Arena, _ *Cache, in *hand) { in.held = append(in.held, None) }, "hand holds handle 4294967295 of 256 buffers"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			a := newArena(t, Options{CacheSize: 16})
			c := a.NewCache("w")
			in := &hand{name: "hand"}
			for range 5 {
				in.held = append(in.held, mustAlloc(t, c))
			}
			mustAudit(t, a, in)
			tc.spoil(a, c, in)
			_, err := a.Audit(in)
			if err == nil {
				t.Fatal("not found")
			}
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %q lacks %q", err, tc.want)
			}
		})
	}
}

func TestCensusCountsReferencesByPlace(t *testing.T) {
	a := newArena(t, Options{CacheSize: 16})
	c := a.NewCache("w")
	one, two := &hand{name: "ring"}, &hand{name: "queue"}
	for range 4 {
		one.held = append(one.held, mustAlloc(t, c))
	}
	two.held = append(two.held, a.Clone(one.held[0]), a.Clone(one.held[0]), mustAlloc(t, c))
	for _, got := range []Census{a.Census(one, two), mustAudit(t, a, two, one)} {
		if got.Total != 256 || got.Cached != 11 || got.Free != 240 || got.Places["ring"] != 4 || got.Places["queue"] != 3 {
			t.Errorf("census %+v", got)
		}
	}
}

// TestConservation runs random operations of two workers, clones included,
// against a map of how often each buffer is held.
func TestConservation(t *testing.T) {
	for _, order := range []string{OrderLIFO, OrderFIFO} {
		t.Run(order, func(t *testing.T) { rapid.Check(t, func(t *rapid.T) { conservation(t, order) }) })
	}
}

func conservation(t *rapid.T, order string) {
	a, err := NewArena(Options{Buffers: 256, CacheSize: 16, AllocOrder: order})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Close() }()
	caches := []*Cache{a.NewCache("w0"), a.NewCache("w1")}
	in := &hand{name: "model"}
	refs := map[Handle]int{}
	worker := func(t *rapid.T) *Cache { return caches[rapid.IntRange(0, 1).Draw(t, "worker")] }
	got := func(t *rapid.T, h Handle) {
		if refs[h] != 0 {
			t.Fatalf("buffer %d handed out while held", h)
		}
		refs[h]++
		in.held = append(in.held, h)
	}
	pick := func(t *rapid.T) int {
		if len(in.held) == 0 {
			t.Skip("nothing held")
		}
		return rapid.IntRange(0, len(in.held)-1).Draw(t, "which")
	}
	t.Repeat(map[string]func(*rapid.T){
		"alloc": func(t *rapid.T) {
			c := worker(t)
			if h := c.Alloc(); h != None {
				got(t, h)
			} else if a.SharedFree() != 0 || c.Cached() != 0 {
				t.Fatalf("no buffer with %d free and %d cached", a.SharedFree(), c.Cached())
			}
		},
		"allocBatch": func(t *rapid.T) {
			dst := make([]Handle, rapid.IntRange(0, 100).Draw(t, "n"))
			for _, h := range dst[:worker(t).AllocBatch(dst)] {
				got(t, h)
			}
		},
		"clone": func(t *rapid.T) {
			h := a.Clone(in.held[pick(t)])
			refs[h]++
			in.held = append(in.held, h)
		},
		"free": func(t *rapid.T) {
			i := pick(t)
			h := in.held[i]
			in.held = append(in.held[:i], in.held[i+1:]...)
			if refs[h]--; refs[h] == 0 {
				delete(refs, h)
			}
			worker(t).Free(h)
		},
		"freeBatch": func(t *rapid.T) {
			n := rapid.IntRange(0, len(in.held)).Draw(t, "n")
			for _, h := range in.held[:n] {
				if refs[h]--; refs[h] == 0 {
					delete(refs, h)
				}
			}
			worker(t).FreeBatch(in.held[:n])
			in.held = append([]Handle(nil), in.held[n:]...)
		},
		"flush": func(t *rapid.T) { worker(t).Flush() },
		"": func(t *rapid.T) {
			c, err := a.Audit(in)
			if err != nil {
				t.Fatal(err)
			}
			if c.Free+c.Cached+len(refs) != c.Total || c.Places["model"] != len(in.held) && len(in.held) > 0 {
				t.Fatalf("census %+v with %d buffers held %d times", c, len(refs), len(in.held))
			}
			for h, n := range refs {
				if int(a.RefsAt(h)) != n {
					t.Fatalf("buffer %d has %d references, want %d", h, a.RefsAt(h), n)
				}
			}
		},
	})
}

func ExampleArena_Audit() {
	a, err := NewArena(Options{Buffers: 256, CacheSize: 16})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer a.Close()
	c := a.NewCache("worker 0")
	ring := &hand{name: "p0 tx"}
	for range 3 {
		ring.held = append(ring.held, c.Alloc())
	}
	census, err := a.Audit(ring)
	fmt.Println(census.Total, census.Free+census.Cached, census.Places["p0 tx"], err)
	// Output: 256 253 3 <nil>
}
