package tx

import (
	"fmt"
	"testing"

	"gorouter/skb"
)

func TestDoorbells(t *testing.T) {
	for _, tc := range []struct {
		policy        string
		more          bool
		each, flushed int // doorbells after each Send of 8, and after Flush
	}{
		{DoorbellFrame, false, 8, 0}, {DoorbellFrame, true, 7, 1},
		{DoorbellBatch, false, 1, 0}, {DoorbellBatch, true, 1, 1},
		{DoorbellTimer, false, 0, 0}, {DoorbellTimer, true, 0, 0},
	} {
		t.Run(fmt.Sprint(tc.policy, tc.more), func(t *testing.T) {
			o := defaults()
			o.Doorbell, o.ReportEvery = tc.policy, 256
			r := newRig(t, o)
			total := 0
			for i := range 4 {
				r.Send(r.fill(8, 60), tc.more)
				total += tc.each
				if tc.policy == DoorbellFrame && tc.more && i > 0 {
					total++ // the one held back before
				}
				if r.dev.doorbells != total {
					t.Fatalf("Send %d: %d doorbells, want %d", i, r.dev.doorbells, total)
				}
			}
			r.Flush()
			if total += tc.flushed; r.dev.doorbells != total {
				t.Errorf("after Flush %d doorbells, want %d", r.dev.doorbells, total)
			}
			r.Flush()
			if r.dev.doorbells != total || r.Counters().Live.Doorbells != uint64(total) || r.Counters().Live.Sends != 4 {
				t.Errorf("%d doorbells, %+v", r.dev.doorbells, r.Counters().Live)
			}
			if tc.policy != DoorbellTimer && len(r.dev.shown) != 32 {
				t.Errorf("the device sees %d frames", len(r.dev.shown))
			}
		})
	}
}

func TestTimedDoorbell(t *testing.T) {
	o := small()
	o.Doorbell, o.DoorbellTimer = DoorbellTimer, 1000
	r := newRig(t, noReclaim(o))
	tick := func(now int64, doorbells, visible int) {
		t.Helper()
		r.Tick(now)
		if r.dev.doorbells != doorbells || len(r.dev.shown) != visible {
			t.Fatalf("at %d: %d doorbells, %d frames visible; want %d, %d", now, r.dev.doorbells, len(r.dev.shown), doorbells, visible)
		}
	}
	tick(100, 0, 0)
	r.Send(r.fill(3, 60), false)
	tick(500, 0, 0) // the interval begins
	r.Send(r.fill(4, 60), false)
	tick(1499, 0, 0)
	tick(1500, 1, 7)
	tick(9000, 1, 7)
	r.Send(r.fill(1, 60), true)
	tick(9001, 1, 7)
	tick(10001, 2, 8)
	// Half a ring does not wait.
	r.Send(r.fill(39, 60), true)
	tick(10100, 2, 8)
	r.Send(r.fill(1, 60), true)
	tick(10200, 3, 48)
	r.dev.send(48)
	if r.Reclaim() != 48 {
		t.Errorf("%d frames captive", r.Pending())
	}
	r.audit(t)
}

// TestTimerShowsBeforeItDrops: a ring that has room as soon as the device
// knows of its frames must not drop any.
func TestTimerShowsBeforeItDrops(t *testing.T) {
	o := small()
	o.Doorbell = DoorbellTimer
	r := newRig(t, o)
	r.dev.atOnce = true
	for range 20 {
		r.Send(r.fill(39, 60), false)
		r.Send(r.fill(64, 60), false)
	}
	if r.drops(skb.TxRingFull) != 0 {
		t.Errorf("%d frames dropped", r.drops(skb.TxRingFull))
	}
}

func TestHeldBackFrame(t *testing.T) {
	o := defaults()
	o.ReportEvery = 10
	r := newRig(t, o)
	visible := func(want int) {
		t.Helper()
		if len(r.dev.shown) != want {
			t.Fatalf("the device sees %d frames, want %d", len(r.dev.shown), want)
		}
	}
	r.Send(r.fill(1, 60), true)
	visible(0) // alone and held back
	if r.dev.doorbells != 0 {
		t.Error("a doorbell for nothing")
	}
	r.Send(r.fill(5, 60), true)
	visible(5)
	r.Send(r.fill(4, 60), true)
	visible(10) // the tenth reports anyway
	r.Send(r.fill(3, 60), true)
	visible(12)
	r.Send(&skb.Batch{}, false) // an empty Send says nothing
	visible(12)
	r.Send(r.fill(2, 60), false)
	visible(15)
	r.Flush()
	r.dev.send(15)
	if want := []bool{9: true, 14: true}; fmt.Sprint(r.dev.reports) != fmt.Sprint(want) {
		t.Errorf("reports %v", r.dev.reports)
	}
	if r.Reclaim() != 15 {
		t.Errorf("%d captive", r.Pending())
	}
}
