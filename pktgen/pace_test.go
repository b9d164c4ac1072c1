package pktgen

import (
	"math/rand/v2"
	"testing"
	"time"

	"gorouter/clock"
	"pgregory.net/rapid"
)

// Rates within 1 % under a virtual clock that is looked at at random moments.
func TestRateIsKept(t *testing.T) {
	for _, rate := range []int{1_000, 100_000, 1_000_000, 1_488_095, 3} {
		clk := clock.Virtual()
		r := rand.New(rand.NewPCG(uint64(rate), 2))
		st, err := NewStation(StationConfig{MAC: macA, Streams: []*Stream{testStream(func(s *Stream) { s.Rate = rate })}})
		if err != nil {
			t.Fatal(err)
		}
		length := int64(max(200*time.Millisecond, 20*time.Second/time.Duration(rate)))
		gap := min(20*second/int64(rate), 100_000) // within one burst of 32
		var last int64
		n := 0
		for clk.Now() < length {
			now := clk.Now()
			for st.Next(now) != nil {
				n++
				if d := now - last; rate < 50_000 && n > 1 && (d < second/int64(rate)-gap || d > second/int64(rate)+gap) {
					t.Fatalf("rate %d: frame %d came %d ns after the one before", rate, n, d)
				}
				last = now
			}
			clk.Sleep(time.Duration(1 + r.Int64N(gap)))
		}
		st.Publish()
		want := float64(rate) * float64(length) / second
		if float64(n) < want*0.99 || float64(n) > want*1.01+1 {
			t.Errorf("rate %d: %d frames in %v, want %.0f", rate, n, time.Duration(length), want)
		}
		if res := st.Results()[0]; res.Sent != uint64(n) || res.Offered != res.Sent || (rate > 100 && (res.PPS < float64(rate)*0.99 || res.PPS > float64(rate)*1.01)) {
			t.Errorf("rate %d: %+v", rate, res)
		}
	}
}

// Who sleeps catches up one burst only, and the rest counts as offered.
func TestLateSenderCatchesUpOneBurst(t *testing.T) {
	s := testStream(func(s *Stream) { s.Rate, s.Burst = 1_000_000, 8 })
	st, err := NewStation(StationConfig{MAC: macA, Streams: []*Stream{s}})
	if err != nil {
		t.Fatal(err)
	}
	count := func(now int64) (n int) {
		for st.Next(now) != nil {
			n++
		}
		return n
	}
	if n := count(0); n != 1 {
		t.Errorf("%d frames at the start, want 1", n)
	}
	if n := count(5_000); n != 5 {
		t.Errorf("%d frames after 5 us, want 5", n)
	}
	if n := count(1_000_000); n != 8 {
		t.Errorf("%d frames after a stall, want one burst of 8", n)
	}
	if n := count(1_002_000); n != 2 {
		t.Errorf("%d frames 2 us later, want 2: the pace must go on", n)
	}
	st.Publish()
	if r := st.Results()[0]; r.Sent != 16 || r.Offered != 1003 {
		t.Errorf("sent %d, offered %d; want 16 and 1003", r.Sent, r.Offered)
	}
}

// A frame that leaves late carries the time when it was due, so that what its
// sender was late by is part of its latency.
func TestLatenessCountsAsLatency(t *testing.T) {
	s := testStream(func(s *Stream) { s.Rate, s.Burst = 1_000_000, 8 })
	st, err := NewStation(StationConfig{MAC: macA, Streams: []*Stream{s}})
	if err != nil {
		t.Fatal(err)
	}
	sink := NewSink(SinkConfig{Streams: []*Stream{s}})
	sink.SetNow(200)
	sink.Deliver(st.Next(0))
	// Frames due at 1, 2, ... 5 us all leave at 5 us and arrive 200 ns later.
	sink.SetNow(5_200)
	n := 0
	for f := st.Next(5_000); f != nil; f = st.Next(5_000) {
		sink.Deliver(f)
		n++
	}
	sink.Publish()
	if l := sink.Results()[0].Latency; n != 5 || l == nil || l.Min != 200 || l.Max != 4_200 || l.Avg != (2*200+1_200+2_200+3_200+4_200)/6 {
		t.Errorf("%d late frames, latency %+v", n, l)
	}
}

// Against big steps of plain arithmetic: frame k is due at k/rate.
func TestPacerIsExact(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rate := uint64(rapid.IntRange(1, 200_000_000).Draw(rt, "rate"))
		burst := uint64(rapid.IntRange(1, 64).Draw(rt, "burst"))
		start := rapid.Int64Range(0, 1<<50).Draw(rt, "start")
		p := pacer{rate: rate, burst: burst}
		now := start
		var done uint64 // frames sent or skipped
		for range 30 {
			n := uint64(p.due(now))
			passed := uint64(now - start)
			// floor(k*second/rate) <= passed  <=>  k*second < (passed+1)*rate
			want := (passed/second)*rate + ((passed%second+1)*rate-1)/second + 1
			if got := n + p.skipped + done; got != want {
				rt.Fatalf("after %d ns at %d/s: %d due or past, want %d", passed, rate, got, want)
			}
			if n > burst {
				rt.Fatalf("%d due, burst %d", n, burst)
			}
			p.advance(n)
			done += n
			now += rapid.Int64Range(0, 1<<33).Draw(rt, "step")
		}
	})
}

func TestStartIsDelayed(t *testing.T) {
	s := testStream(func(s *Stream) { s.Start, s.Count = 3*time.Millisecond, 2 })
	st, err := NewStation(StationConfig{MAC: macA, Streams: []*Stream{s}})
	if err != nil {
		t.Fatal(err)
	}
	if st.Next(1000) != nil || st.Next(3_000_999) != nil {
		t.Error("sent before the start")
	}
	n := 0
	for st.Next(3_001_000) != nil {
		n++
	}
	if n != 2 || !st.Done() {
		t.Errorf("sent %d at the start, want 2", n)
	}
}

func TestMovingRate(t *testing.T) {
	var m MovingRate
	if r := m.Add(0, 0); r != 0 {
		t.Errorf("first sample gave %v", r)
	}
	for i := 1; i <= 100; i++ {
		if r := m.Add(int64(i)*100_000_000, uint64(i)*500); r != 5000 {
			t.Fatalf("sample %d: %v, want 5000", i, r)
		}
	}
	// A change shows in full after one window.
	at, n := int64(100)*100_000_000, uint64(50_000)
	var r float64
	for range 11 {
		at, n = at+100_000_000, n+10
		r = m.Add(at, n)
	}
	if r != 100 {
		t.Errorf("after a window at 100/s: %v", r)
	}
	if r := m.Add(at+60*second, n+6000); r < 99 || r > 101 {
		t.Errorf("over a long gap: %v, want 100", r)
	}
	slow := MovingRate{Window: time.Millisecond}
	slow.Add(0, 0)
	if r := slow.Add(0, 5); r != 0 {
		t.Errorf("no time passed: %v", r)
	}
}
