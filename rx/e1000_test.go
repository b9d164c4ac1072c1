package rx

import (
	"strings"
	"testing"

	"gorouter/skb"
)

func TestNewE1000RefusesWhatCannotWork(t *testing.T) {
	cases := []struct {
		name  string
		o     func(*Options)
		ready int // buffers taken by others
		want  string
	}{
		{"ring too small", func(o *Options) { o.Ring = 72 }, 0, "p0 rx: ring is 72, expected 80 to 4096 descriptors in multiples of 8"},
		{"ring too large", func(o *Options) { o.Ring = 4104 }, 0, "ring is 4104"},
		{"ring not a multiple", func(o *Options) { o.Ring = 84 }, 0, "ring is 84"},
		{"replenish nothing", func(o *Options) { o.Replenish = 0 }, 0, "replenish is 0"},
		{"no such place", func(o *Options) { o.ReplenishAt = "never" }, 0, `replenish_at is "never"`},
		{"copybreak too long", func(o *Options) { o.Copybreak = 1515 }, 0, "copybreak is 1515"},
		{"no ring memory", func(o *Options) { o.Ring = 4096 }, 1, "p0 rx: descriptor ring of 65536 bytes"},
		{"no buffers", func(o *Options) {}, 200, "p0 rx: 80 buffers for the ring, only 56 are free (raise buffers count or lower the ring)"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			a := newArena(t, skb.Options{CacheSize: 16, Buffers: 256})
			c := a.NewCache("w")
			o := defaults()
			o.Ring = MinRing
			tc.o(&o)
			var held holding
			for range tc.ready {
				held = append(held, c.Alloc())
			}
			if o.Ring == 4096 {
				for _, err := a.AllocRing(64 << 10); err == nil; _, err = a.AllocRing(64 << 10) {
				}
			}
			_, err := NewE1000(E1000Config{Name: "p0 rx", Arena: a, Cache: c, Regs: &fake{t: t, a: a}, Tail: tailReg, Options: o})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v lacks %q", err, tc.want)
			}
			if _, err := a.Audit(held); err != nil {
				t.Errorf("the failed ring kept buffers: %v", err)
			}
		})
	}
}

func TestPollObeysItsLimits(t *testing.T) {
	r := newRig(t, defaults(), 128, false)
	for i := range 100 {
		r.dev.frame(numbered(make([]byte, 60), uint64(i)))
	}
	r.b.Reset()
	for _, step := range []struct{ max, want, total int }{{0, 0, 0}, {-1, 0, 0}, {1, 1, 1}, {7, 7, 8}, {64, 56, 64}, {64, 0, 64}} {
		if n := r.Poll(&r.b, step.max, 0); n != step.want || r.b.N != step.total {
			t.Errorf("Poll(%d) took %d, the batch has %d; want %d, %d", step.max, n, r.b.N, step.want, step.total)
		}
	}
	for i, h := range r.b.Handles() {
		if !isNumbered(r.a.Bytes(h), uint64(i)) {
			t.Errorf("frame %d is not in its place", i)
		}
	}
	r.free()
	if n := r.poll(64); n != 36 || r.Ready() {
		t.Errorf("the rest is %d, ready %v", n, r.Ready())
	}
}

func TestPollsAreCounted(t *testing.T) {
	r := newRig(t, defaults(), 64, false)
	r.poll(1)
	r.dev.frame(make([]byte, 60))
	r.poll(1)
	r.free()
	r.poll(8)
	if c := r.Counters().Live; c.Polls != 3 || c.Empty != 2 || c.Descriptors != 1 {
		t.Errorf("%+v", c)
	}
}

func TestReadyTellsOfAWaitingFrame(t *testing.T) {
	o := defaults()
	o.Ring, o.ReplenishAt = MinRing, ReplenishEnd
	r := newRig(t, o, 100, false)
	if r.Ready() {
		t.Error("ready when empty")
	}
	for range MinRing - 1 {
		r.dev.frame(make([]byte, 60))
	}
	for i := range MinRing - 1 {
		if !r.Ready() {
			t.Fatalf("not ready with %d frames waiting", MinRing-1-i)
		}
		r.poll(1)
		r.free()
	}
	// Everything is software's now; old reports must not look like frames.
	if r.Ready() || r.poll(64) != 0 || r.Owned() != 0 {
		t.Error("ready with no descriptor at the device")
	}
	r.EndTurn(false)
	if r.Ready() || r.Owned() != MinRing-1 {
		t.Errorf("after the turn: ready %v, %d owned", r.Ready(), r.Owned())
	}
}

func TestResetStartsOverWithItsBuffers(t *testing.T) {
	o := defaults()
	o.Ring = MinRing
	r := newRig(t, o, 64, false)
	for range 33 {
		r.dev.frame(make([]byte, 60))
	}
	r.dev.write(nil, 1522, DescStatusDD) // half a frame
	r.poll(40)
	r.free()
	for range 40 {
		r.dev.frame(make([]byte, 60)) // lost in the reset
	}
	before := append([]skb.Handle(nil), r.slots...)
	r.dev.head, r.dev.tail = 0, 0
	r.Reset()
	if r.Owned() != 0 || r.Ready() || r.poll(64) != 0 {
		t.Errorf("after Reset the device owns %d, ready %v", r.Owned(), r.Ready())
	}
	r.Start()
	if r.Owned() != MinRing-1 || r.Ready() || r.poll(64) != 0 {
		t.Errorf("after Start the device owns %d, ready %v", r.Owned(), r.Ready())
	}
	for i, h := range r.slots {
		if h != before[i] {
			t.Errorf("slot %d changed its buffer", i)
		}
	}
	// Not taken for the end of the half frame.
	r.dev.frame(numbered(make([]byte, 60), 5))
	if r.poll(64) != 1 || r.b.N != 1 || !isNumbered(r.a.Bytes(r.b.H[0]), 5) {
		t.Error("the first frame after Reset is lost")
	}
	r.audit(t, r.b.Handles()...)
	r.free()
	for range 2 {
		r.Close()
	}
	r.audit(t)
	if c := r.a.Census(r.E1000); c.Places["p0 rx"] != 0 {
		t.Errorf("a closed ring holds %d buffers", c.Places["p0 rx"])
	}
}

func TestConfigureOnARunningRing(t *testing.T) {
	o := defaults()
	o.Ring = MinRing
	r := newRig(t, o, 64, false)
	o.Ring, o.Replenish, o.Copybreak, o.ReplenishAt = 4096, 4096, 100, ReplenishEnd
	r.Configure(o)
	if got := r.Options(); got.Ring != MinRing || got.Replenish != 4096 || got.Copybreak != 100 || got.ReplenishAt != ReplenishEnd {
		t.Errorf("in force: %+v", got)
	}
	for range 20 {
		r.dev.frame(make([]byte, 60))
	}
	r.poll(20)
	r.free()
	r.Replenish()
	if r.Owned() != MinRing-1-20 || r.Counters().Live.Copied != 20 {
		t.Errorf("%d owned, %d copied", r.Owned(), r.Counters().Live.Copied)
	}
	o.Replenish, o.ReplenishAt = 20, ReplenishTurn
	r.Configure(o)
	r.Replenish()
	if r.Owned() != MinRing-1 {
		t.Errorf("%d owned after the change", r.Owned())
	}
}

func TestPollAndReplenishDoNotAllocate(t *testing.T) {
	for _, copybreak := range []int{0, 100} {
		o := defaults()
		o.Copybreak = copybreak
		r := newRig(t, o, 64, true)
		frame := make([]byte, 64)
		n := testing.AllocsPerRun(500, func() {
			for range 64 {
				r.dev.frame(frame)
			}
			r.dev.pieces(2, 0)
			r.dev.write(nil, 64, word0|DescErrorCE)
			for n := 16; n == 16; {
				n = r.poll(16)
				r.free()
				r.Replenish()
			}
			r.EndTurn(true)
			r.Counters().Publish()
		})
		if n != 0 {
			t.Errorf("copybreak %d: %v allocations", copybreak, n)
		}
	}
}

func TestCountersAddEveryWord(t *testing.T) {
	q := &newRig(t, defaults(), 0, false).Counters().Live
	one := Counters{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, skb.DropCounts{skb.RxCRC: 11, skb.Shutdown: 12}}
	*q = Counters{}
	q.Add(&one)
	q.Add(&one)
	want := Counters{2, 4, 6, 8, 10, 12, 14, 16, 18, 20, skb.DropCounts{skb.RxCRC: 22, skb.Shutdown: 24}}
	if *q != want {
		t.Errorf("sum %+v", *q)
	}
}
