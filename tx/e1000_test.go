package tx

import (
	"bytes"
	"strings"
	"testing"

	"gorouter/skb"
)

// noReclaim sets a watermark that no ring reaches before it is full.
func noReclaim(o Options) Options { o.ReclaimAt = MaxRing; return o }

func small() Options {
	o := defaults()
	o.Ring = MinRing
	return o
}

func TestNewE1000RefusesWhatCannotWork(t *testing.T) {
	cases := []struct {
		name string
		set  func(*E1000Config)
		want string
	}{
		{"ring too small", func(c *E1000Config) { c.Options.Ring = 72 }, "p0 tx: ring is 72, expected 80 to 4096 descriptors in multiples of 8"},
		{"ring too large", func(c *E1000Config) { c.Options.Ring = 4104 }, "ring is 4104"},
		{"ring not a multiple", func(c *E1000Config) { c.Options.Ring = 84 }, "ring is 84"},
		{"no reports", func(c *E1000Config) { c.Options.ReportEvery = 0 }, "report_every is 0"},
		{"unknown doorbell", func(c *E1000Config) { c.Options.Doorbell = "never" }, `doorbell is "never"`},
		{"unknown reclaim", func(c *E1000Config) { c.Options.Reclaim = "eager" }, `reclaim is "eager"`},
		{"timer of nothing", func(c *E1000Config) { c.Options.DoorbellTimer = 0 }, "doorbell_timer is 0s"},
		{"no frame fits", func(c *E1000Config) { c.MaxFrame = 0 }, "p0 tx: longest frame is 0 bytes, expected at least 60"},
		{"negative frame", func(c *E1000Config) { c.MaxFrame = -1 }, "longest frame is -1 bytes"},
		{"no ring memory", func(c *E1000Config) {
			for _, err := c.Arena.AllocRing(64 << 10); err == nil; _, err = c.Arena.AllocRing(64 << 10) {
			}
		}, "p0 tx: descriptor ring of 4096 bytes"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			a := newArena(t, skb.Options{Buffers: 256})
			c := E1000Config{Name: "p0 tx", Arena: a, Cache: a.NewCache("w"), Regs: &fake{t: t, a: a}, MaxFrame: 1518, Options: defaults()}
			tc.set(&c)
			if _, err := NewE1000(c); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v lacks %q", err, tc.want)
			}
		})
	}
}

// TestPaddingIsZeros: what a buffer held before must not leave with a short
// frame.
func TestPaddingIsZeros(t *testing.T) {
	r := newRig(t, defaults())
	for n := 1; n <= 62; n++ {
		h := r.c.Alloc()
		old := r.a.Put(h, 200)
		for i := range old {
			old[i] = 0xee
		}
		r.a.Trim(h, n)
		r.b.Add(h)
		r.dev.sent = nil
		r.Send(&r.b, false)
		r.dev.send(1)
		want := append(bytes.Repeat([]byte{0xee}, n), make([]byte, max(0, 60-n))...)
		if !bytes.Equal(r.dev.sent[0], want) {
			t.Fatalf("frame of %d bytes went out as %x", n, r.dev.sent[0])
		}
		if len(r.a.Bytes(h)) != n {
			t.Errorf("frame of %d bytes became %d", n, len(r.a.Bytes(h)))
		}
	}
	if got := r.Counters().Live.Bytes; got != 60*60+61+62 {
		t.Errorf("%d bytes counted", got)
	}
}

func TestFrameStartsWhereItsDataIs(t *testing.T) {
	r := newRig(t, defaults())
	h := r.c.Alloc()
	copy(r.a.Put(h, 80), bytes.Repeat([]byte("0123456789"), 8))
	r.a.Pull(h, 5)
	copy(r.a.Push(h, 3), "abc")
	r.b.Add(h)
	r.Send(&r.b, false)
	r.dev.send(1)
	if got := string(r.dev.sent[0]); !strings.HasPrefix(got, "abc5678901") || len(got) != 78 {
		t.Errorf("sent %q", got)
	}
}

func TestTooLong(t *testing.T) {
	for _, bell := range []string{DoorbellFrame, DoorbellBatch} {
		o := defaults()
		o.Doorbell = bell
		r := newRig(t, o)
		r.fill(1, 1519)
		r.fill(1, 1518)
		r.fill(2, 1519)
		r.fill(1, 100)
		r.fill(1, 1792)
		if n := r.Send(&r.b, true); n != 2 || r.drops(skb.TxTooLong) != 4 {
			t.Errorf("queued %d, drops %v", n, r.Counters().Live.Drops.Map())
		}
		r.fill(3, 1519)
		if n := r.Send(&r.b, false); n != 0 {
			t.Errorf("queued %d", n)
		}
		r.Flush()
		r.dev.send(2)
		r.inOrder(t, 1, 4)
		if c := r.Counters().Live; c.Bytes != 1618 || c.Packets != 2 || r.Reclaim() != 2 {
			t.Errorf("%+v", c)
		}
		r.audit(t)
	}
}

func TestResetAndCloseConserve(t *testing.T) {
	for _, bell := range []string{DoorbellFrame, DoorbellBatch, DoorbellTimer} {
		o := small()
		o.Doorbell, o.ReportEvery = bell, 4
		r := newRig(t, noReclaim(o))
		lost := uint64(0)
		for round := range uint64(5) {
			r.Send(r.fill(30, 100), false)
			r.Send(r.fill(21, 50), true)
			sent := len(r.dev.sent)
			r.dev.send(10)
			reported := uint64(0) // what DD tells of what was sent
			for i, yes := range r.dev.reports[sent:] {
				if yes {
					reported = uint64(i + 1)
				}
			}
			if round == 4 {
				r.Close()
			} else {
				r.Reset()
			}
			lost += 51 - reported
			c := &r.Counters().Live
			if r.drops(skb.TxAborted) != lost || c.Packets+c.Drops.Total() != r.seq {
				t.Errorf("%s: %d aborted, want %d; %d packets of %d", bell, r.drops(skb.TxAborted), lost, c.Packets, r.seq)
			}
			if c.Bytes != 100*c.Packets { // only long ones were reported
				t.Errorf("%s: %d bytes in %d packets", bell, c.Bytes, c.Packets)
			}
			if r.Pending() != 0 || r.Room() != MinRing-1 {
				t.Errorf("%s: %d pending, room %d", bell, r.Pending(), r.Room())
			}
			r.audit(t)
			r.dev.head, r.dev.tail, r.dev.shown = 0, 0, nil
		}
		before := r.Counters().Live.Drops
		r.Close()
		if r.Counters().Live.Drops != before {
			t.Errorf("%s: the second Close drops again", bell)
		}
		r.audit(t)
		if c := r.a.Census(r.E1000); c.Places["p0 tx"] != 0 {
			t.Errorf("%s: a closed ring holds %d", bell, c.Places["p0 tx"])
		}
	}
}

func TestConfigureOnARunningRing(t *testing.T) {
	o := small()
	o.Doorbell = DoorbellTimer
	r := newRig(t, noReclaim(o))
	r.Send(r.fill(10, 60), false)
	if len(r.dev.shown) != 0 {
		t.Fatal("the timer did not wait")
	}
	o.Ring, o.Doorbell, o.ReportEvery, o.ReclaimAt = 4096, DoorbellFrame, 2, 4096
	r.Configure(o)
	if got := r.Options(); got.Ring != MinRing || got.Doorbell != DoorbellFrame || got.ReportEvery != 2 {
		t.Errorf("in force: %+v", got)
	}
	if len(r.dev.shown) != 10 {
		t.Errorf("the device sees %d of the frames that waited", len(r.dev.shown))
	}
	r.Send(r.fill(5, 60), false)
	if r.dev.doorbells != 6 {
		t.Errorf("%d doorbells", r.dev.doorbells)
	}
	r.dev.send(15)
	if r.Reclaim() != 15 {
		t.Errorf("%d captive", r.Pending())
	}
	r.inOrder(t, upTo(15)...)
}

func TestSendAndReclaimDoNotAllocate(t *testing.T) {
	for _, bell := range []string{DoorbellFrame, DoorbellBatch, DoorbellTimer} {
		o := defaults()
		o.Doorbell = bell
		r := newRig(t, o)
		r.dev.quiet = true
		now := int64(0)
		n := testing.AllocsPerRun(500, func() {
			for range 4 {
				r.Send(r.fill(33, 50), true)
				r.Send(r.fill(1, 1519), true)
			}
			r.Flush()
			now += int64(o.DoorbellTimer)
			r.Tick(now)
			r.dev.send(MaxRing)
			r.Reclaim()
			r.Counters().Publish()
		})
		if n != 0 {
			t.Errorf("%s: %v allocations", bell, n)
		}
		if c := r.Counters().Live; c.Reclaimed == 0 || c.Packets == 0 {
			t.Errorf("%s: nothing was sent: %+v", bell, c)
		}
	}
}

func TestCountersAddEveryWord(t *testing.T) {
	one := Counters{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, skb.DropCounts{skb.TxRingFull: 12, skb.Shutdown: 13}}
	var sum Counters
	sum.Add(&one)
	sum.Add(&one)
	want := Counters{2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, skb.DropCounts{skb.TxRingFull: 24, skb.Shutdown: 26}}
	if sum != want {
		t.Errorf("sum %+v", sum)
	}
}
