package dataplane

import (
	"slices"
	"testing"

	"gorouter/skb"
)

func TestOptionsChangeLive(t *testing.T) {
	l := newLab(t)
	l.load(t, 0)
	w := l.r.workers[0]
	o := w.Options()
	o.Weight, o.Vector, o.Budget = 7, 3, 7
	if err := l.r.SetPoll(o); err != nil || w.Options() != o {
		t.Fatalf("%v, options %+v", err, w.Options())
	}
	var polls []int
	for _, e := range l.record() {
		if e.what == "poll" && e.port == 0 {
			polls = append(polls, e.max)
		}
	}
	if !slices.Equal(polls, []int{3, 3, 1}) {
		t.Errorf("trips of %v", polls)
	}
	bad := o
	bad.Vector = skb.BatchSize + 1
	if err := l.r.SetPoll(bad); err == nil || w.Options() != o {
		t.Errorf("a vector of %d was accepted: %v", bad.Vector, err)
	}
	if _, err := New(Config{Options: bad}); err == nil {
		t.Error("a router with bad options was made")
	}
}

func TestWeightsShareOut(t *testing.T) {
	l := newLab(t)
	w := l.r.workers[0]
	for i := range 3 {
		l.load(t, i)
	}
	if err := l.r.SetWeight("p1", 16); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		w.Round()
	}
	a, b, c := l.received(0), l.received(1), l.received(2)
	if a-4*b > 64 || 4*b-a > 64 || a-c > 64 || c-a > 64 {
		t.Errorf("shares %d, %d, %d; want 4 : 1 : 4", a, b, c)
	}
	if err := l.r.SetWeight("p1", 0); err != nil { // back to the worker's
		t.Fatal(err)
	}
	for range 100 {
		w.Round()
	}
	if d := l.received(0) - a - (l.received(1) - b); d > 64 || d < -64 {
		t.Errorf("shares differ by %d after the weight was taken back", d)
	}
	for _, weight := range []int{-1, 4097} {
		if l.r.SetWeight("p1", weight) == nil {
			t.Errorf("weight %d was accepted", weight)
		}
	}
	if l.r.SetWeight("p9", 10) == nil {
		t.Error("a port that is not there was accepted")
	}
}
