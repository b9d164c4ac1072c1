package rx

import (
	"fmt"
	"testing"

	"gorouter/skb"
)

// TestReplenishBatchOfTheWholeRing: one slot always stays free, so the whole
// ring is one less than its size.
func TestReplenishBatchOfTheWholeRing(t *testing.T) {
	o := defaults()
	o.Ring, o.Replenish = MinRing, MinRing
	r := newRig(t, o, 64, false)
	for left := MinRing - 1; left > 0; left-- {
		r.dev.frame(make([]byte, 60))
		r.poll(1)
		r.free()
		if r.Owned() != left-1 {
			t.Fatalf("%d owned, want %d", r.Owned(), left-1)
		}
		r.Replenish()
	}
	if r.Owned() != MinRing-1 {
		t.Errorf("%d owned after a whole ring was free", r.Owned())
	}
}

// TestReplenishPlaces compares doorbells and the device's share in one turn
// of 64 frames, 8 a trip.
func TestReplenishPlaces(t *testing.T) {
	cases := []struct {
		at       string
		batch    int
		doorbell []int // buffers given after each trip, then at the end of the turn
	}{
		{ReplenishTurn, 1, []int{8, 8, 8, 8, 8, 8, 8, 8, 0}},
		{ReplenishTurn, 16, []int{0, 16, 0, 16, 0, 16, 0, 16, 0}},
		{ReplenishTurn, 17, []int{0, 0, 24, 0, 0, 24, 0, 0, 0}},
		{ReplenishTurn, 80, []int{0, 0, 0, 0, 0, 0, 0, 0, 0}},
		{ReplenishEnd, 1, []int{0, 0, 0, 0, 0, 0, 0, 0, 64}},
		{ReplenishEnd, 16, []int{0, 0, 0, 0, 0, 0, 0, 0, 64}},
	}
	for _, tc := range cases {
		t.Run(fmt.Sprint(tc.at, tc.batch), func(t *testing.T) {
			o := defaults()
			o.Ring, o.Replenish, o.ReplenishAt = MinRing, tc.batch, tc.at
			r := newRig(t, o, 64, false)
			for range MinRing - 1 {
				r.dev.frame(make([]byte, 60))
			}
			owned := MinRing - 1
			for trip, want := range tc.doorbell {
				before := r.dev.doorbells
				r.dev.given = 0
				if trip < 8 {
					if r.poll(8) != 8 {
						t.Fatal("no frame")
					}
					r.free()
					r.Replenish()
					owned -= 8
				} else {
					r.EndTurn(false)
				}
				owned += want
				if r.dev.given != want || r.Owned() != owned || r.dev.doorbells-before != min(want, 1) {
					t.Errorf("trip %d: %d given, %d owned; want %d, %d", trip, r.dev.given, r.Owned(), want, owned)
				}
			}
			// A turn that found the ring empty gives back all there is.
			for n := 64; n == 64; r.free() {
				n = r.poll(64)
			}
			r.EndTurn(true)
			if r.Owned() != MinRing-1 {
				t.Errorf("%d owned after an idle turn", r.Owned())
			}
		})
	}
}

// burstDrops sends bursts at a small ring: most of a ring at once, then as
// many a trip as the worker takes. It returns the frames that found no buffer.
func burstDrops(t *testing.T, at string, batch int) int {
	o := defaults()
	o.Ring, o.Replenish, o.ReplenishAt = MinRing, batch, at
	r := newRig(t, o, 64, false)
	const vector, weight = 4, 64
	var got, sent int
	for range 10 {
		burst := 400
		deliver := func(n int) {
			for ; n > 0 && burst > 0; n, burst = n-1, burst-1 {
				r.dev.frame(make([]byte, 60))
				sent++
			}
		}
		deliver(50)
		for n := vector; n == vector; {
			for quota := weight; quota > 0 && n == vector; quota -= n {
				n = r.poll(vector)
				got += n
				r.free()
				r.Replenish()
				deliver(vector)
			}
			r.EndTurn(n < vector)
		}
	}
	if got+r.dev.missed != sent {
		t.Errorf("%s %d: %d sent, %d received, %d missed", at, batch, sent, got, r.dev.missed)
	}
	r.audit(t)
	return r.dev.missed
}

// TestDropsChangeWithReplenish: the reason why the options exist.
func TestDropsChangeWithReplenish(t *testing.T) {
	turn := map[int]int{}
	for _, n := range []int{1, 4, 16, 32, 48, 64} {
		turn[n] = burstDrops(t, ReplenishTurn, n)
	}
	end := burstDrops(t, ReplenishEnd, 16)
	t.Logf("missed by replenish batch %v, at the end of the turn %d", turn, end)
	if turn[1] != 0 || turn[16] != 0 {
		t.Errorf("small batches inside the turn lose %d and %d", turn[1], turn[16])
	}
	if turn[48] <= turn[32] || turn[64] <= turn[48] {
		t.Errorf("more buffers at once do not lose more: %v", turn)
	}
	if end <= turn[16] {
		t.Errorf("at the end of the turn %d are lost, inside it %d", end, turn[16])
	}
}

func TestAllocationFailureKeepsTheRing(t *testing.T) {
	o := defaults()
	o.Ring = MinRing
	r := newRig(t, o, 0, false)
	spare := r.a.Count() - MinRing
	hs := make([]skb.Handle, spare)
	if r.c.AllocBatch(hs) != spare {
		t.Fatal("no spare buffers")
	}
	for round := range uint64(5) {
		for i := range 20 {
			r.dev.frame(numbered(make([]byte, 60), uint64(i)))
		}
		if n := r.poll(64); n != 20 || r.b.N != 0 {
			t.Fatalf("took %d, gave %d without any buffer", n, r.b.N)
		}
		if c := &r.Counters().Live; r.drops(skb.RxNoBuffer) != 20*(round+1) || c.NoBuffer != 20*(round+1) || c.Packets != 0 {
			t.Fatalf("%+v", *c)
		}
		r.EndTurn(true)
		if r.Owned() != MinRing-1 {
			t.Fatalf("the ring shrank to %d", r.Owned())
		}
		r.audit(t, hs...)
	}
	// Three buffers come back: three frames pass, the rest is counted.
	r.c.FreeBatch(hs[:3])
	for i := range 10 {
		r.dev.frame(numbered(make([]byte, 60), uint64(i)))
	}
	if n := r.poll(64); n != 10 || r.b.N != 3 || r.drops(skb.RxNoBuffer) != 107 {
		t.Fatalf("took %d, gave %d, drops %v", n, r.b.N, r.Counters().Live.Drops.Map())
	}
	for i, h := range r.b.Handles() {
		if !isNumbered(r.a.Bytes(h), uint64(i)) {
			t.Errorf("frame %d is not in its place", i)
		}
	}
	r.audit(t, append(hs[3:], r.b.Handles()...)...)
	r.free()
	r.c.FreeBatch(hs[3:])
	r.EndTurn(true)
	r.dev.frame(numbered(make([]byte, 60), 9))
	if r.poll(64) != 1 || r.b.N != 1 {
		t.Error("no recovery")
	}
}
