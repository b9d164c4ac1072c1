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

// Who is late catches up with what has been due for 20 ms, at twice the rate;
// the rest counts as offered.
func TestLateSenderCatchesUpEvenly(t *testing.T) {
	const us, ms = 1_000, 1_000_000
	s := testStream(func(s *Stream) { s.Rate, s.Burst = 1_000_000, 8 })
	st, err := NewStation(StationConfig{MAC: macA, Streams: []*Stream{s}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		at   int64
		want int
		why  string
	}{
		{0, 1, "at the start"},
		{5 * us, 5, "after 5 us"},
		{10_005 * us, 2000, "after 10 ms: twice what a look of 1 ms makes due"},
		{10_105 * us, 200, "100 us later: twice what they made due"},
		{10_106 * us, 8, "1 us later: a burst"},
		{60_106 * us, 2000, "after 50 ms, of which 20 are not too old"},
	} {
		n := 0
		for st.Next(c.at) != nil {
			n++
		}
		if n != c.want {
			t.Errorf("%d frames %s, want %d", n, c.why, c.want)
		}
	}
	for at := int64(60_106 * us); at < 100*ms; {
		at += 50 * us
		for st.Next(at) != nil {
		}
	}
	st.Publish()
	r := st.Results()[0]
	// Of all that became due by 60 106 us, what was neither sent by then nor
	// of the last 20 ms was skipped.
	if skipped := uint64(60_107 - 2214 - 20_000); r.Offered != r.Sent+skipped || r.Offered != 100_007 {
		t.Errorf("sent %d, offered %d; want 100007 offered and %d of them skipped", r.Sent, r.Offered, skipped)
	}
}

// Looks that are short of a burst's time apart, or many bursts, or with stalls
// of a time slice now and then: the rate is kept.
func TestLateSenderKeepsTheRate(t *testing.T) {
	for _, rate := range []uint64{100_000, 500_000, 2_000_000} {
		for _, gap := range []int64{7_000, 130_000, 900_000} {
			p := pacer{rate: rate, burst: 32}
			var now int64
			var sent uint64
			for i := 1; now < second; i++ {
				for n := p.due(now); n > 0; n = p.due(now) {
					p.sent(uint64(n))
					sent += uint64(n)
				}
				now += gap
				if i%int(40_000_000/gap) == 0 {
					now += 15_000_000
				}
			}
			if p.skipped != 0 || sent < rate*97/100 || sent > rate+1 {
				t.Errorf("rate %d looked at every %d ns: %d sent, %d skipped", rate, gap, sent, p.skipped)
			}
		}
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
		var done uint64 // frames sent
		for range 30 {
			n := uint64(p.due(now))
			passed := uint64(now - start)
			// floor(k*second/rate) <= passed  <=>  k*second < (passed+1)*rate
			want := (passed/second)*rate + ((passed%second+1)*rate-1)/second + 1
			late := uint64(0)
			if now >= p.next {
				late = p.behind(now)
			}
			if got := late + p.skipped + done; got != want {
				rt.Fatalf("after %d ns at %d/s: %d due or past, want %d", passed, rate, got, want)
			}
			if n > burst || n > late || late > max(burst, rate/50) || n == 0 && late > 0 {
				rt.Fatalf("%d due, burst %d, %d late", n, burst, late)
			}
			p.sent(n)
			done += n
			now += 1 + rapid.Int64Range(0, 1<<33).Draw(rt, "step")
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
