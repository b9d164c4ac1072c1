package pktgen

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"gorouter/clock"
	"gorouter/port"
	"gorouter/rx"
	"gorouter/skb"
	"gorouter/tx"
)

func testPort(w *wire) *port.Port {
	p := &port.Port{Name: "p0", MTU: 1500, Tx: []tx.Queue{w}, Rx: []rx.Queue{rxWire{w}}}
	p.SetMAC(macA)
	p.SetUp(true)
	return p
}

// A port whose frames come back to it, under a virtual clock: count, pace,
// loss and buffers are all exact.
func TestPortRun(t *testing.T) {
	for _, clone := range []int{0, 10} {
		cache := newCache(t, skb.Options{Buffers: 1024})
		w := newWire(t, cache, 255)
		w.back = true
		s := testStream(func(s *Stream) { s.Count, s.Rate, s.Clone, s.SrcMAC = 2000, 100_000, clone, [6]byte{} })
		rep, err := Port(context.Background(), PortConfig{Streams: []*Stream{s}, Port: testPort(w), Cache: cache, Clock: clock.Virtual()})
		if err != nil {
			t.Fatal(err)
		}
		r, k := rep.Streams[0], rep.Sink[0]
		if r.Sent != 2000 || r.Offered != 2000 || r.PPS < 99_000 || r.PPS > 101_000 || k.Packets != 2000 || k.Lost+k.Duplicates+k.Reordered != 0 {
			t.Errorf("clone %d: %+v, sink %+v", clone, r, k)
		}
		if rep.Pending != 0 || rep.Tx.Packets != 2000 || rep.Rx.Packets != 2000 || !w.flushed {
			t.Errorf("pending %d, tx %d, rx %d, flushed %v", rep.Pending, rep.Tx.Packets, rep.Rx.Packets, w.flushed)
		}
		if b := rep.Buffers; b["total"] != 1024 || b["free"]+b["cached"] != 1024 {
			t.Errorf("buffers %v", b)
		}
		if _, err := cache.Arena().Audit(w); err != nil {
			t.Error(err)
		}
		out, err := json.Marshal(rep)
		if err != nil || !strings.Contains(string(out), `"duration_s":0.02,`) || !strings.Contains(string(out), `"lost":0`) {
			t.Errorf("%v: %s", err, out)
		}
		if line := r.String(); !strings.Contains(line, "Result: OK: 20000(c") || !strings.Contains(line, "2000 (60byte,0frags)") || !strings.Contains(line, "100000pps") {
			t.Errorf("%s", line)
		}
	}
}

func TestPortRunEndsByDuration(t *testing.T) {
	cache := newCache(t, skb.Options{Buffers: 1024})
	w := newWire(t, cache, 255)
	s := testStream(func(s *Stream) { s.Rate = 1000 })
	rep, err := Port(context.Background(), PortConfig{Streams: []*Stream{s}, Port: testPort(w), Cache: cache, Clock: clock.Virtual(), Duration: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if n := rep.Streams[0].Sent; n < 1990 || n > 2010 {
		t.Errorf("%d frames in 2 s at 1000/s", n)
	}
	if rep.Streams[0].Done || rep.Streams[0].Idle < Seconds(1900*time.Millisecond) {
		t.Errorf("%+v", rep.Streams[0])
	}
}

// A pace whose gaps are too short to sleep leaves time to wait all the same.
func TestIdleOfAFastPace(t *testing.T) {
	cache := newCache(t, skb.Options{Buffers: 1024})
	s := testStream(func(s *Stream) { s.Rate, s.Count = 20_000, 400 })
	rep, err := Port(context.Background(), PortConfig{Streams: []*Stream{s}, Port: testPort(newWire(t, cache, 255)), Cache: cache, Clock: clock.Machine()})
	if err != nil {
		t.Fatal(err)
	}
	if r := rep.Streams[0]; r.Idle <= 0 || r.Idle > r.Duration {
		t.Errorf("idle %v of %v", r.Idle, r.Duration)
	}
}

// On the machine's clock, ended by its context, with a device that keeps some
// buffers for good: the wait is bounded and the report says where they are.
func TestPortRunEndsByContext(t *testing.T) {
	defer goleak.VerifyNone(t)
	cache := newCache(t, skb.Options{Buffers: 1024})
	w := newWire(t, cache, 255)
	ctx, cancel := context.WithCancel(context.Background())
	stuck := &stuckWire{wire: w}
	p := testPort(w)
	p.Tx[0] = stuck
	p.Step = func(int64) {
		if w.tx.Live.Packets > 1000 {
			cancel()
		}
	}
	r, err := NewRunner(PortConfig{Streams: []*Stream{testStream(nil)}, Port: p, Cache: cache, Clock: clock.Machine(), Drain: 5 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	rep, err := r.Run(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if rep.Pending != 3 || rep.Buffers["p0 tx"] != 3 || rep.Streams[0].Sent < 1000 || r.Results()[0].Sent != rep.Streams[0].Sent {
		t.Errorf("%+v", rep)
	}
}

// stuckWire never gives its last three frames back.
type stuckWire struct{ *wire }

func (w *stuckWire) Reclaim() int {
	keep := min(3, len(w.held))
	n := len(w.held) - keep
	w.cache.FreeBatch(w.held[:n])
	w.held = append(w.held[:0], w.held[n:]...)
	return n
}

func TestPortWithoutLink(t *testing.T) {
	cache := newCache(t, skb.Options{Buffers: 256})
	w := newWire(t, cache, 255)
	p := testPort(w)
	p.SetUp(false)
	c := PortConfig{Streams: []*Stream{testStream(nil)}, Port: p, Cache: cache, Clock: clock.Virtual()}
	if _, err := Port(context.Background(), c); err == nil || !strings.Contains(err.Error(), "p0 has no link after 5s") {
		t.Errorf("got %v", err)
	}
	p.Tx = nil
	if _, err := Port(context.Background(), c); err == nil || !strings.Contains(err.Error(), "no transmit queue") {
		t.Errorf("got %v", err)
	}
}

// A stream that one round sends takes the time of sending it.
func TestShortStreamTakesTime(t *testing.T) {
	cache := newCache(t, skb.Options{Buffers: 1024})
	w := newWire(t, cache, 255)
	s := testStream(func(s *Stream) { s.Count = 100; s.Rate = 0 })
	rep, err := Port(context.Background(), PortConfig{Streams: []*Stream{s}, Port: testPort(w), Cache: cache, Clock: clock.Machine()})
	if err != nil {
		t.Fatal(err)
	}
	if r := rep.Streams[0]; r.Sent != 100 || r.Duration <= 0 || r.PPS <= 0 || !r.Done {
		t.Errorf("%+v", r)
	}
	b, err := json.Marshal(rep.Totals)
	if err != nil || string(b) != strings.ToLower(string(b)) {
		t.Errorf("%v: %s", err, b)
	}
}
