package pktgen

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"

	"pgregory.net/rapid"

	"gorouter/skb"
)

func newTestGenerator(t testing.TB, w *wire, streams ...*Stream) *Generator {
	t.Helper()
	g, err := NewGenerator(GeneratorConfig{Name: "p0 pktgen", Streams: streams, Queue: w, Cache: w.cache})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestFreshAndClonedBuffers(t *testing.T) {
	for _, clone := range []int{0, 1, 4, 1000} {
		cache := newCache(t, skb.Options{Buffers: 256})
		w := newWire(t, cache, 100)
		w.keep = true
		s := testStream(func(s *Stream) { s.Clone, s.Count, s.Size = clone, 1001, 300 })
		g := newTestGenerator(t, w, s)
		for now := int64(0); !g.Done(); now += 1000 {
			g.Run(64, now)
			if _, err := cache.Arena().Audit(g, w); err != nil {
				t.Fatal(err)
			}
		}
		g.Finish(5_000_000)
		if got := g.Run(64, 6_000_000); got != 0 {
			t.Errorf("%d frames beyond the count", got)
		}
		allocs := (1001 + max(clone, 1) - 1) / max(clone, 1)
		if r := g.Results()[0]; len(w.frames) != 1001 || r.Sent != 1001 || r.Bytes != 1001*300 || !r.Done || r.Errors != 0 {
			t.Errorf("clone %d: %d frames, %+v", clone, len(w.frames), r)
		}
		if cache.Allocs != uint64(allocs) {
			t.Errorf("clone %d: %d buffers were built, want %d", clone, cache.Allocs, allocs)
		}
		for i, f := range w.frames {
			checkFrame(t, s, f)
			seq := binary.BigEndian.Uint32(f[42+tagSeq:])
			if want := i / max(clone, 1) * max(clone, 1); int(seq) != want {
				t.Fatalf("clone %d: frame %d has number %d, want %d", clone, i, seq, want)
			}
			if i > 0 && clone > 1 && i%clone != 0 && !bytes.Equal(f, w.frames[i-1]) {
				t.Fatalf("frame %d is no clone of the one before", i)
			}
		}
		w.Reclaim()
		if c, err := cache.Arena().Audit(); err != nil || c.Free+c.Cached != 256 {
			t.Errorf("clone %d: %+v, %v", clone, c, err)
		}
	}
}

// In the middle of a buffer's clones the generator still holds one reference.
func TestHeldCloneIsGivenBack(t *testing.T) {
	cache := newCache(t, skb.Options{Buffers: 256})
	w := newWire(t, cache, 8)
	g := newTestGenerator(t, w, testStream(func(s *Stream) { s.Clone, s.Burst = 100, 5 }))
	g.Run(5, 0)
	c, err := cache.Arena().Audit(g, w)
	if err != nil || c.Places["p0 pktgen"] != 1 || c.Places["p0 tx"] != 5 {
		t.Errorf("%+v, %v", c, err)
	}
	g.Close()
	g.Close()
	w.Reclaim()
	if _, err := cache.Arena().Audit(); err != nil {
		t.Error(err)
	}
}

func TestRingIsNeverOverfilled(t *testing.T) {
	cache := newCache(t, skb.Options{Buffers: 256})
	w := newWire(t, cache, 20) // Send complains about frames beyond the room
	w.limit = 7
	g := newTestGenerator(t, w, testStream(nil))
	for i := range 100 {
		g.Run(64, int64(i))
	}
	if r := g.Results()[0]; r.Errors != 0 || r.Sent != w.tx.Live.Packets || r.Sent < 700 {
		t.Errorf("%+v", r)
	}
}

func TestNoBufferIsCounted(t *testing.T) {
	cache := newCache(t, skb.Options{Buffers: 256, CacheSize: 16})
	w := newWire(t, cache, 1000)
	g := newTestGenerator(t, w, testStream(nil))
	if n := g.Run(1000, 0); n != 256 {
		t.Errorf("%d frames from 256 buffers", n)
	}
	if r := g.Results()[0]; r.NoBuffer == 0 || r.Sent != 256 {
		t.Errorf("%+v", r)
	}
	w.Reclaim()
	if n := g.Run(10, 1); n != 10 {
		t.Errorf("%d frames after buffers came back", n)
	}
}

func TestDroppedFramesAreErrors(t *testing.T) {
	cache := newCache(t, skb.Options{Buffers: 256})
	w := newWire(t, cache, 100)
	w.down = true
	g := newTestGenerator(t, w, testStream(func(s *Stream) { s.Count = 50 }))
	for i := range int64(5) {
		g.Run(64, i)
	}
	if r := g.Results()[0]; r.Sent != 0 || r.Errors != 50 || !r.Done || r.Offered != 50 {
		t.Errorf("%+v", r)
	}
	if _, err := cache.Arena().Audit(g, w); err != nil {
		t.Error(err)
	}
}

func TestFrameMustFitTheBuffer(t *testing.T) {
	cache := newCache(t, skb.Options{Buffers: 256})
	_, err := NewGenerator(GeneratorConfig{Streams: []*Stream{testStream(func(s *Stream) { s.Size = 9014 })}, Queue: newWire(t, cache, 9), Cache: cache})
	if err == nil || !bytes.Contains([]byte(err.Error()), []byte("stride")) {
		t.Errorf("got %v", err)
	}
}

// Any mix of streams, budgets and device speeds: counts are exact, bursts are
// kept, buffers are conserved.
func TestAnyRunConserves(t *testing.T) {
	cache := newCache(t, skb.Options{Buffers: 256, CacheSize: 16})
	rapid.Check(t, func(rt *rapid.T) {
		w := newWire(t, cache, rapid.IntRange(1, 80).Draw(rt, "ring"))
		w.limit = rapid.IntRange(1, 80).Draw(rt, "limit")
		var streams []*Stream
		total := 0
		for i := range rapid.IntRange(1, 3).Draw(rt, "streams") {
			s := testStream(nil)
			s.Name, s.ID = "", uint16(i+1)
			s.Name = string(rune('a' + i))
			s.Clone = rapid.SampledFrom([]int{0, 1, 3, 50}).Draw(rt, "clone")
			s.Count = rapid.IntRange(1, 200).Draw(rt, "count")
			s.Burst = rapid.IntRange(1, 64).Draw(rt, "burst")
			s.Rate = rapid.SampledFrom([]int{0, 1_000_000, 3_000_000}).Draw(rt, "rate")
			total += s.Count
			streams = append(streams, s)
		}
		g := newTestGenerator(t, w, streams...)
		sent := 0
		for now := int64(0); !g.Done(); now += rapid.Int64Range(1000, 50_000).Draw(rt, "step") {
			most := rapid.IntRange(1, 100).Draw(rt, "max")
			n := g.Run(most, now)
			if n > most {
				rt.Fatalf("%d frames, allowed %d", n, most)
			}
			sent += n
			if _, err := cache.Arena().Audit(g, w); err != nil {
				rt.Fatal(err)
			}
		}
		if sent != total || g.Due() != math.MaxInt64 {
			rt.Fatalf("%d frames, want %d; due %d", sent, total, g.Due())
		}
		for i, r := range g.Results() {
			if int(r.Sent) != streams[i].Count {
				rt.Fatalf("%+v, want %d", r, streams[i].Count)
			}
		}
		g.Close()
		for w.Pending() > 0 {
			w.Reclaim()
		}
		if _, err := cache.Arena().Audit(); err != nil {
			rt.Fatal(err)
		}
	})
}

func TestGeneratorDoesNotAllocate(t *testing.T) {
	cache := newCache(t, skb.Options{Buffers: 256})
	w := newWire(t, cache, 200)
	w.held = make([]skb.Handle, 0, 256)
	w.sends = make([]int, 0, 1)
	a := testStream(func(s *Stream) { s.Flows = 7 })
	b := testStream(func(s *Stream) { v6(s); s.Size, s.Name, s.Clone, s.Rate = 100, "b", 10, 1_000_000 })
	g := newTestGenerator(t, w, a, b)
	now := int64(0)
	if n := testing.AllocsPerRun(1000, func() {
		now += 10_000
		g.Run(64, now)
	}); n != 0 {
		t.Errorf("%v allocations per run", n)
	}
}

func BenchmarkGenerator(b *testing.B) {
	for _, c := range []struct {
		name  string
		size  int
		clone int
	}{{"60fresh", 60, 0}, {"60clone", 60, 1000}, {"1514fresh", 1514, 0}} {
		b.Run(c.name, func(b *testing.B) {
			cache := newCache(b, skb.Options{})
			w := newWire(b, cache, 255)
			g := newTestGenerator(b, w, testStream(func(s *Stream) { s.Size, s.Clone, s.Flows = c.size, c.clone, 16 }))
			for n := 0; n < b.N; {
				n += g.Run(64, int64(n))
			}
		})
	}
}
