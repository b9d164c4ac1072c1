package main

import (
	"fmt"
	"testing"
	"time"

	"gorouter/nic/model"
)

// However short a run is, generated frames are at their sink, dropped under a
// name, or named as under way: nothing vanishes at the end.
func TestNoFrameVanishesAtTheEnd(t *testing.T) {
	for _, c := range []struct {
		workers int
		thread  bool
	}{{1, false}, {2, false}, {2, true}} {
		t.Run(fmt.Sprintf("%d workers, threads %v", c.workers, c.thread), func(t *testing.T) {
			for range 5 {
				b := star(t, 2, c.workers, c.thread, "idle: backoff", 0, 0)
				if err := b.start(); err != nil {
					t.Fatal(err)
				}
				await(t, "traffic", func() bool { return b.router.Stats().Forwarded > 500 })
				b.halt()
				r := conserved(t, b)
				missing := b.inFlight()
				left := uint64(0)
				for _, n := range missing {
					left += n
				}
				var lost, dropped uint64
				for _, s := range r.Streams {
					lost += s.Lost
				}
				for reason, n := range r.Drops {
					if reason != "arp_consumed" {
						dropped += n
					}
				}
				// A frame made here, such as an announcement, may be dropped too.
				if left != 0 || lost > dropped || dropped > lost+r.Originated {
					t.Errorf("lost %d, drops %v, in flight %v", lost, r.Drops, missing)
				}
				if err := b.close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// What cannot arrive is named.
func TestFramesUnderWayAreNamed(t *testing.T) {
	b := star(t, 2, 1, false, "idle: backoff", 0, 0)
	chip := b.chips["p0"]
	if err := b.start(); err != nil {
		t.Fatal(err)
	}
	await(t, "traffic", func() bool { return b.router.Stats().Forwarded > 500 })
	b.router.Stop()
	// Nobody receives any more.
	for range 2 {
		b.cables["p0"].Step(b.clk.Now(), 10)
		chip.Step(b.clk.Now())
	}
	want := uint64(20)
	left := b.inFlight()
	if left["p0 rx ring"] < want {
		t.Errorf("in flight %v, want at least %d in the receive ring of p0", left, want)
	}
	if b.quiet(map[string][2]model.WireStats{"p0": {{}, {InFlight: 1}}}) {
		t.Error("a cable with a frame under way is quiet")
	}
	done := make(chan struct{})
	go func() { b.halt(); close(done) }()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("waits for ever for frames that cannot arrive")
	}
}
