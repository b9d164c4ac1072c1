package rx

import (
	"runtime"
	"sync"
	"testing"

	"gorouter/skb"
)

// TestWrapAtEverySizeAndBatch carries numbered frames once and a bit round
// rings of every size with every kind of replenish batch. The fake device
// fails the test when a tail meets the head or a descriptor comes back dirty.
func TestWrapAtEverySizeAndBatch(t *testing.T) {
	sizes := make(chan int, MaxRing)
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for n := range sizes {
				wrapSize(t, n)
			}
		})
	}
	for n := MinRing; n <= MaxRing; n += wrapStep * RingStep {
		sizes <- n
	}
	sizes <- MaxRing
	close(sizes)
	wg.Wait()
}

func wrapSize(t *testing.T, n int) {
	a, err := skb.NewArena(skb.Options{Buffers: max(256, n+skb.BatchSize), CacheSize: 16})
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = a.Close() }()
	for k, batch := range []int{1, 2, 15, 16, 17, 64, n - 1, n} {
		o := defaults()
		o.Ring, o.Replenish = n, batch
		if (n/RingStep+k)%4 == 0 {
			o.ReplenishAt = ReplenishEnd
		}
		wrap(t, a, o)
	}
}

// wrap does not use t.Fatal, which belongs to the test's own goroutine.
func wrap(t *testing.T, a *skb.Arena, o Options) {
	r := newRigOn(softly{t}, a, o, false)
	defer func() {
		r.Close()
		r.c.Flush()
		if _, err := a.Audit(); err != nil {
			t.Errorf("%+v: %v", o, err)
		}
	}()
	if r.Owned() != o.Ring-1 || r.dev.room() != uint32(o.Ring-1) {
		t.Errorf("%+v: %d descriptors are the device's at first", o, r.Owned())
	}
	frame := make([]byte, 60)
	var sent, got uint64
	total := uint64(o.Ring + 200)
	for burst := 1; got < total; burst = burst*7%101 + 1 {
		for range burst {
			if sent < total && r.dev.room() > 0 {
				r.dev.frame(numbered(frame, sent))
				sent++
			}
		}
		vector := burst%skb.BatchSize + 1
		for n := vector; n == vector; {
			n = r.poll(vector)
			if n != r.b.N {
				t.Errorf("%+v: Poll took %d frames and gave %d", o, n, r.b.N)
				return
			}
			for _, h := range r.b.Handles() {
				if m := r.a.Meta(h); !isNumbered(r.a.Bytes(h), got) || m.Port != 3 || m.Stamp != 42 || int(m.Data) != a.Headroom() {
					t.Errorf("%+v: frame %d is %x with %+v", o, got, r.a.Bytes(h), *m)
					return
				}
				got++
			}
			r.free()
			r.Replenish()
			if r.Owned()+int(r.E1000.free) != o.Ring-1 {
				t.Errorf("%+v: no gap: %d are the device's, %d free", o, r.Owned(), r.E1000.free)
			}
		}
		r.EndTurn(true)
		if r.Owned() != o.Ring-1 {
			t.Errorf("%+v: %d descriptors are the device's after an idle turn", o, r.Owned())
			return
		}
	}
	c := &r.Counters().Live
	if sent != total || c.Packets != total || c.Bytes != 60*total || c.Descriptors != total || c.Drops.Total() != 0 ||
		c.Doorbells != uint64(r.dev.doorbells) || c.Doorbells != c.Replenishes || c.Replenished != total+uint64(o.Ring-1) {
		t.Errorf("%+v: %d sent, counters %+v, %d doorbells", o, sent, *c, r.dev.doorbells)
	}
}

// softly lets the fake device report from another goroutine.
type softly struct{ *testing.T }

func (s softly) Fatalf(format string, args ...any) {
	s.Errorf(format, args...)
	runtime.Goexit()
}

// TestManyTurnsOfTheIndices passes 2^16 frames and more, so that an index
// narrower than it should be would wrap.
func TestManyTurnsOfTheIndices(t *testing.T) {
	o := defaults()
	o.Ring = MinRing
	r := newRig(t, o, 128, false)
	frame := make([]byte, 60)
	const total = 1<<16 + 1<<15
	for i := range uint64(total) {
		r.dev.frame(numbered(frame, i))
		if r.poll(64) != 1 || !isNumbered(r.a.Bytes(r.b.H[0]), i) {
			t.Fatalf("frame %d was lost", i)
		}
		r.free()
		r.Replenish()
	}
	if c := r.Counters().Live; c.Packets != total || c.Drops.Total() != 0 || r.dev.missed != 0 {
		t.Errorf("%+v", c)
	}
	r.audit(t)
}
