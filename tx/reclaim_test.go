package tx

import (
	"testing"

	"gorouter/skb"
)

// TestReportEveryExactly requires a report on every Nth descriptor and on the
// last before idling, and on no other.
func TestReportEveryExactly(t *testing.T) {
	for _, every := range []int{1, 2, 3, 15, 16, 17, 64, 79, 256} {
		for _, vector := range []int{1, 7, 16, 64} {
			for _, bell := range []string{DoorbellFrame, DoorbellBatch} {
				o := defaults()
				o.ReportEvery, o.Doorbell, o.Ring = every, bell, 512
				r := newRig(t, noReclaim(o))
				const total = 300
				for i := 0; i < total-total%vector; i += vector {
					r.Send(r.fill(vector, 60), true)
				}
				r.Flush()
				n := int(r.seq)
				r.dev.send(n)
				reports := 0
				for i, got := range r.dev.reports {
					if want := (i+1)%every == 0 || i == n-1; got != want {
						t.Fatalf("every %d, vector %d, %s: frame %d of %d reports %v", every, vector, bell, i, n, got)
					}
					if got {
						reports++
					}
				}
				if c := &r.Counters().Live; int(c.Reports) != reports {
					t.Errorf("every %d, vector %d: %d reports counted, %d seen", every, vector, c.Reports, reports)
				}
				if r.Reclaim() != n || r.Pending() != 0 {
					t.Errorf("every %d, vector %d: %d captive", every, vector, r.Pending())
				}
				r.inOrder(t, upTo(uint64(n))...)
				r.audit(t)
			}
		}
	}
}

// TestLastOfEachSendReportsWithoutMore: without the promise of another Send
// the ring may idle after any of them.
func TestLastOfEachSendReportsWithoutMore(t *testing.T) {
	o := defaults()
	o.ReportEvery = 256
	r := newRig(t, o)
	for _, n := range []int{1, 5, 64} {
		r.Send(r.fill(n, 60), false)
		r.dev.send(n)
		if got := r.Reclaim(); got != n {
			t.Errorf("%d of %d frames freed", got, n)
		}
	}
	r.audit(t)
}

func TestFullRing(t *testing.T) {
	for _, every := range []int{1, 16, 256} {
		o := small()
		o.WakeAt, o.ReportEvery = 40, every
		r := newRig(t, o)
		if r.Room() != MinRing-1 {
			t.Fatalf("an empty ring has room for %d", r.Room())
		}
		if n := r.Send(r.fill(64, 60), true); n != 64 {
			t.Fatalf("queued %d", n)
		}
		if n := r.Send(r.fill(64, 60), true); n != 15 || r.b.N != 0 {
			t.Fatalf("queued %d into room for 15, batch has %d", n, r.b.N)
		}
		c := &r.Counters().Live
		if r.Room() != 0 || r.drops(skb.TxRingFull) != 49 || c.Drops.Total() != 49 || c.Packets != 79 || c.Stops != 1 || c.Wakes != 0 {
			t.Fatalf("room %d, %+v", r.Room(), *c)
		}
		r.Send(r.fill(2, 60), true)
		if r.drops(skb.TxRingFull) != 51 || c.Stops != 1 {
			t.Fatalf("still full: %+v", *c)
		}
		r.audit(t)
		// A full ring takes no further frame, so its last one must be visible
		// and report, though more was promised.
		if len(r.dev.shown) != 79 {
			t.Errorf("every %d: the device sees %d of a full ring", every, len(r.dev.shown))
		}
		if every == 1 {
			r.dev.send(39)
			r.Reclaim()
			if c.Wakes != 0 || r.Room() != 39 {
				t.Errorf("woken at %d", r.Room())
			}
			r.dev.send(1)
			r.Reclaim()
			if c.Wakes != 1 || r.Room() != 40 {
				t.Errorf("%d wakes at %d", c.Wakes, r.Room())
			}
		}
		r.dev.send(79)
		if n := r.Send(r.fill(64, 60), true); n != 64 {
			t.Errorf("every %d: queued %d after the device was done", every, n)
		}
		if c.Wakes != 1 || c.Stops != 1 {
			t.Errorf("every %d: %+v", every, *c)
		}
	}
}

func TestReclaimWatermark(t *testing.T) {
	o := small()
	o.ReclaimAt, o.ReportEvery = 20, 1
	r := newRig(t, o)
	r.dev.atOnce = true
	for i := 1; i <= 20; i++ {
		r.Send(r.fill(1, 60), false)
		if r.Pending() != i || r.Counters().Live.Reclaims != 0 {
			t.Fatalf("reclaimed below the watermark: %d pending", r.Pending())
		}
	}
	r.Send(r.fill(1, 60), false)
	if c := r.Counters().Live; r.Pending() != 1 || c.Reclaims != 1 || c.Reclaimed != 20 {
		t.Errorf("at the watermark: %d pending, %+v", r.Pending(), c)
	}
	if r.Reclaim() != 1 || r.Reclaim() != 0 {
		t.Error("the idle pass does not free")
	}
	if c := r.Counters().Live; c.Reclaims != 2 {
		t.Errorf("an empty ring was looked at: %d", c.Reclaims)
	}
	r.inOrder(t, upTo(21)...)
}

func TestPartialCompletionInOrder(t *testing.T) {
	o := defaults()
	o.ReportEvery = 8
	r := newRig(t, noReclaim(o))
	for range 5 { // 5 rounds of 60 lie differently on the ring of 256
		r.Send(r.fill(60, 60), false)
		freed := 0
		for done := 1; done <= 60; done++ {
			r.dev.send(1)
			freed += r.Reclaim()
			want := done / 8 * 8
			if done == 60 {
				want = 60
			}
			if freed != want || r.Pending() != 60-want {
				t.Fatalf("%d sent, %d freed, want %d", done, freed, want)
			}
			r.audit(t)
		}
	}
	r.inOrder(t, upTo(300)...)
}

func TestClonesLeaveTogether(t *testing.T) {
	o := defaults()
	r := newRig(t, o)
	h := r.c.Alloc()
	r.a.Put(h, 40)
	for range 50 {
		r.b.Add(r.a.Clone(h))
	}
	r.Send(&r.b, false)
	r.audit(t, h)
	r.dev.send(50)
	if r.Reclaim() != 50 || r.a.RefsAt(h) != 1 {
		t.Errorf("%d references left", r.a.RefsAt(h))
	}
	r.audit(t, h)
	r.c.Free(h)
	r.audit(t)
}

func TestStaleReportsAfterReset(t *testing.T) {
	o := small()
	o.ReportEvery = 1
	r := newRig(t, noReclaim(o))
	r.Send(r.fill(40, 60), false)
	r.dev.send(40)
	r.Reset()
	r.dev.head, r.dev.tail = 0, 0
	r.Send(r.fill(40, 60), false)
	if n := r.Reclaim(); n != 0 {
		t.Errorf("%d frames freed that the device has not sent", n)
	}
	r.dev.send(40)
	if n := r.Reclaim(); n != 40 {
		t.Errorf("%d of 40 freed", n)
	}
	r.audit(t)
}
