package tx

import (
	"encoding/binary"
	"runtime"
	"sync"
	"testing"

	"gorouter/skb"
)

// TestWrapAtEverySize carries numbered frames once and a bit round rings of
// every size with several report intervals and doorbells. The fake device
// fails the test when a tail meets the head or a shown descriptor changes.
func TestWrapAtEverySize(t *testing.T) {
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
	a, err := skb.NewArena(skb.Options{Buffers: max(256, n+2*skb.BatchSize), CacheSize: 16})
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = a.Close() }()
	for _, k := range []struct {
		every    int
		doorbell string
	}{{1, DoorbellFrame}, {16, DoorbellBatch}, {17, DoorbellTimer}, {256, DoorbellBatch}} {
		o := defaults()
		o.Ring, o.ReportEvery, o.Doorbell, o.ReclaimAt = n, k.every, k.doorbell, n
		wrap(t, a, o)
	}
}

// softly lets the fake device report from another goroutine than the test's.
type softly struct{ *testing.T }

func (s softly) Fatalf(format string, args ...any) {
	s.Errorf(format, args...)
	runtime.Goexit()
}

func wrap(t *testing.T, a *skb.Arena, o Options) {
	r := newRigOn(softly{t}, a, o)
	defer func() {
		r.Close()
		r.c.Flush()
		if _, err := a.Audit(); err != nil {
			t.Errorf("%+v: %v", o, err)
		}
	}()
	total := uint64(o.Ring + 200)
	var got uint64
	now := int64(1)
	for burst := 1; r.seq < total; burst = burst*7%101 + 1 {
		n := min(burst, skb.BatchSize, r.Room(), int(total-r.seq))
		if sent := r.Send(r.fill(n, 60), burst%3 > 0); sent != n {
			t.Errorf("%+v: Send queued %d of %d with room", o, sent, n)
			return
		}
		if r.Pending()+r.Room() != o.Ring-1 {
			t.Errorf("%+v: no gap: %d pending, room for %d", o, r.Pending(), r.Room())
		}
		// The device is slower than the driver until the ring is full.
		r.dev.send(burst / 2)
		if r.Room() < skb.BatchSize || r.seq == total {
			r.Flush()
			for range 2 { // the first notes the time, the second rings
				now += int64(o.DoorbellTimer)
				r.Tick(now)
			}
			r.dev.send(o.Ring)
			r.Reclaim()
			if r.Pending() != 0 {
				t.Errorf("%+v: %d frames captive", o, r.Pending())
				return
			}
		}
		for _, b := range r.dev.sent {
			if len(b) != 60 || binary.LittleEndian.Uint64(b) != got {
				t.Errorf("%+v: frame %d on the wire is %x", o, got, b)
				return
			}
			got++
		}
		r.dev.sent, r.dev.reports = r.dev.sent[:0], r.dev.reports[:0]
	}
	c := &r.Counters().Live
	if got != total || c.Packets != total || c.Bytes != 60*total || c.Descriptors != total || c.Reclaimed != total ||
		c.Drops.Total() != 0 || c.Doorbells != uint64(r.dev.doorbells) || c.Stops != 0 {
		t.Errorf("%+v: %d of %d came, counters %+v, %d doorbells", o, got, total, *c, r.dev.doorbells)
	}
}

// TestManyTurnsOfTheIndices passes 2^16 frames and more, so that an index
// narrower than it should be would wrap.
func TestManyTurnsOfTheIndices(t *testing.T) {
	o := defaults()
	o.Ring = MinRing
	r := newRig(t, o)
	r.dev.atOnce = true
	const total = 1<<16 + 1<<15
	for i := range uint64(total) {
		r.Send(r.fill(1, 60), true)
		r.Flush()
		if len(r.dev.sent) != 1 || binary.LittleEndian.Uint64(r.dev.sent[0]) != i {
			t.Fatalf("frame %d was lost", i)
		}
		r.dev.sent, r.dev.reports = r.dev.sent[:0], r.dev.reports[:0]
	}
	r.Reclaim()
	if c := r.Counters().Live; c.Packets != total || c.Reclaimed != total || c.Drops.Total() != 0 {
		t.Errorf("%+v", c)
	}
	r.audit(t)
}
