package dataplane

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"gorouter/skb"
)

// load makes a port receive the same frame without end; what the router sends
// is counted and thrown away.
func (l *lab) load(t testing.TB, portIndex int) {
	p := udp("192.0.2.2", "203.0.113.0")
	if portIndex == 2 {
		p = udp("203.0.113.0", "192.0.2.2")
	}
	p.dstMAC = routerMAC[portIndex]
	q := l.wires[portIndex]
	q.in, q.loop = [][]byte{p.bytes(t)}, true
	for _, q := range l.wires {
		q.discard = true
	}
}

func (l *lab) received(portIndex int) int { return int(l.wires[portIndex].rxStats.Live.Packets) }

func options(f func(*Options)) func(*Config) { return func(c *Config) { f(&c.Options) } }

// Whatever weight, vector and budget are, two queues that always have frames
// get the same, however badly the budget divides by the weight.
func TestLoadedQueuesOfEqualWeightGetEqualShares(t *testing.T) {
	const rounds = 24
	rapid.Check(t, func(rt *rapid.T) {
		weight := rapid.IntRange(1, 100).Draw(rt, "weight")
		budget := rapid.IntRange(1, 300).Draw(rt, "budget")
		l := newLab(t, options(func(o *Options) {
			o.Weight, o.Budget = weight, budget
			o.Vector = rapid.IntRange(1, skb.BatchSize).Draw(rt, "vector")
		}))
		defer l.close()
		for i := range 3 {
			l.load(t, i)
		}
		w := l.r.workers[0]
		for r := range rounds {
			before := l.received(0) + l.received(1) + l.received(2)
			w.Round()
			if n := l.received(0) + l.received(1) + l.received(2) - before; n != budget {
				rt.Fatalf("round %d used %d frames of a budget of %d", r, n, budget)
			}
			a := []int{l.received(0), l.received(1), l.received(2)}
			if d := slices.Max(a) - slices.Min(a); d > weight {
				rt.Fatalf("after %d rounds the queues got %v: more than a weight of %d apart", r+1, a, weight)
			}
		}
		if w.stats.Live.Exhausted != rounds {
			rt.Fatalf("%d of %d rounds counted as exhausted", w.stats.Live.Exhausted, rounds)
		}
	})
}

// A queue with little to do is served in every round, however loaded the other.
func TestALightQueueIsNotStarved(t *testing.T) {
	l := newLab(t)
	l.load(t, 0)
	for _, q := range l.wires {
		q.discard = true
	}
	f := udp("198.51.100.2", "203.0.113.0")
	f.dstMAC = routerMAC[1]
	for i := range 100 {
		for range 5 {
			l.wires[1].in = append(l.wires[1].in, f.bytes(t))
		}
		l.r.workers[0].Round()
		if got := l.received(1); got != 5*(i+1) {
			t.Fatalf("round %d: %d of %d frames taken", i, got, 5*(i+1))
		}
	}
}

// record notes all calls of one round.
func (l *lab) record() (es []event) {
	for _, q := range l.wires {
		q.note = func(e event) { es = append(es, e) }
	}
	l.r.workers[0].Round()
	for _, q := range l.wires {
		q.note = nil
	}
	return es
}

func TestATurnGoesInTripsOfTheVector(t *testing.T) {
	for _, c := range []struct {
		weight, vector, budget, frames int
		want                           string
	}{
		{64, 24, 300, -1, "24/24 24/24 16/16"},
		{64, 64, 300, -1, "64/64"},
		{5, 1, 300, -1, "1/1 1/1 1/1 1/1 1/1"},
		{64, 32, 300, 40, "32/32 8/32"},
		{64, 32, 300, 32, "32/32 0/32"},
		{64, 32, 300, 64, "32/32 32/32"},
		{64, 32, 300, 0, "0/32"},
		{64, 32, 50, -1, "32/32 18/18"},
	} {
		l := newLab(t, options(func(o *Options) { o.Weight, o.Vector, o.Budget = c.weight, c.vector, c.budget }))
		l.load(t, 0)
		if c.frames >= 0 {
			in := l.wires[0].in[0]
			l.wires[0].loop, l.wires[0].in = false, nil
			for range c.frames {
				l.wires[0].in = append(l.wires[0].in, in)
			}
		}
		var polls []string
		repl, ends := 0, 0
		for _, e := range l.record() {
			if e.port != 0 {
				continue
			}
			switch e.what {
			case "poll":
				polls = append(polls, fmt.Sprintf("%d/%d", e.n, e.max))
			case "replenish":
				repl++
			case "end":
				ends++
			}
			if ends == 1 {
				break
			}
		}
		if got := fmt.Sprint(polls); got[1:min(len(got)-1, len(c.want)+1)] != c.want {
			t.Errorf("weight %d vector %d: polls %s, want %s", c.weight, c.vector, got, c.want)
		}
	}
}

// check walks through the calls of a round and checks the order that rx.Queue
// and tx.Queue ask for.
func checkCalls(es []event) error {
	open := map[uint16]bool{} // ports that were told more would come
	owed := false             // a frame was taken, and neither replenish nor end followed
	var turn *event
	idle, promised := false, false
	for i := range es {
		e := &es[i]
		switch e.what {
		case "poll":
			if turn != nil && turn.port != e.port {
				return fmt.Errorf("call %d: a turn of port %d begins within that of %d", i, e.port, turn.port)
			}
			if owed || idle {
				return fmt.Errorf("call %d: polled again, replenish owed: %v, ring was empty: %v", i, owed, idle)
			}
			turn, owed, idle, promised = e, e.n > 0, e.n < e.max, false
		case "replenish":
			if !owed {
				return fmt.Errorf("call %d: replenish without a trip", i)
			}
			owed = false
		case "send":
			if e.n == 0 {
				return fmt.Errorf("call %d: an empty send", i)
			}
			promised = e.flag
			if e.flag {
				open[e.port] = true
			}
		case "flush":
			if !open[e.port] {
				return fmt.Errorf("call %d: a flush that nothing asked for", i)
			}
			delete(open, e.port)
		case "end":
			if turn == nil || turn.port != e.port || owed {
				return fmt.Errorf("call %d: the end of no turn, or replenish owed", i)
			}
			if e.flag != idle {
				return fmt.Errorf("call %d: end of turn says idle %v, the ring says %v", i, e.flag, idle)
			}
			if promised {
				return fmt.Errorf("call %d: the last send of the turn said that more would come", i)
			}
			if len(open) != 0 {
				return fmt.Errorf("call %d: the turn ends with ports %v not flushed", i, open)
			}
			turn, idle = nil, false
		}
	}
	if turn != nil || len(open) != 0 {
		return fmt.Errorf("round ends within a turn, or with %v not flushed", open)
	}
	return nil
}

func TestQueuesAreCalledInTheirOrder(t *testing.T) {
	frames := map[string][]byte{
		"1 to 2":      nil,
		"1 to 0":      udp("198.51.100.2", "192.0.2.2").bytes(t),
		"no route":    udp("198.51.100.2", "11.0.0.1").bytes(t),
		"echo for us": echo("198.51.100.2", "198.51.100.1").bytes(t),
		"unresolved":  udp("198.51.100.2", "192.0.2.77").bytes(t),
	}
	frames["1 to 2"] = udp("198.51.100.2", "203.0.113.0").bytes(t)
	names := []string{"1 to 2", "1 to 0", "no route", "echo for us", "unresolved"}
	rapid.Check(t, func(rt *rapid.T) {
		l := newLab(t, options(func(o *Options) {
			o.Weight = rapid.IntRange(1, 200).Draw(rt, "weight")
			o.Vector = rapid.IntRange(1, skb.BatchSize).Draw(rt, "vector")
			o.Budget = rapid.IntRange(1, 400).Draw(rt, "budget")
		}))
		defer l.close()
		w := l.r.workers[0]
		w.icmp = tokenBucket{rate: 1e6, burst: 1e6, tokens: 1e6}
		for range rapid.IntRange(1, 6).Draw(rt, "rounds") {
			for i := range rapid.IntRange(0, 300).Draw(rt, "frames") {
				f := slices.Clone(frames[names[(i*7+rapid.IntRange(0, 4).Draw(rt, "kind"))%5]])
				copy(f, routerMAC[1][:])
				l.wires[1].in = append(l.wires[1].in, f)
			}
			es := l.record()
			if err := checkCalls(es); err != nil {
				rt.Fatalf("%v\n%+v", err, es)
			}
		}
		for w.Round() {
		}
		if err := checkPolls(l); err != nil {
			rt.Fatal(err)
		}
		if err := checkStages(l); err != nil {
			rt.Fatal(err)
		}
		if err := checkConservation(l); err != nil {
			rt.Fatal(err)
		}
	})
}

// checkPolls compares the poll statistics with what the queues saw.
func checkPolls(l *lab) error {
	var turns uint64
	for _, q := range l.wires {
		turns += uint64(q.turns)
	}
	s := l.r.Stats().Polls
	if s.Turns != turns {
		return fmt.Errorf("%d turns counted, the queues saw %d", s.Turns, turns)
	}
	return nil
}

func TestPollStatistics(t *testing.T) {
	l := newLab(t, options(func(o *Options) { o.Vector = 10 }))
	in := udp("192.0.2.2", "203.0.113.0").bytes(t)
	for range 25 {
		l.wires[0].in = append(l.wires[0].in, in)
	}
	var full, short, empty uint64
	for _, q := range l.wires {
		q.note = func(e event) {
			switch {
			case e.what != "poll":
			case e.n == 0:
				empty++
			case e.n == e.max:
				full++
			default:
				short++
			}
		}
	}
	l.run()
	s := l.r.Stats().Polls
	if full != 2 || short != 1 || s.Full != full || s.Short != short || s.Empty != empty || s.Rounds < 2 {
		t.Errorf("counted %+v, the queues saw %d full, %d short, %d empty", s, full, short, empty)
	}
}

func TestTheTimeLimitEndsARound(t *testing.T) {
	l := newLab(t, options(func(o *Options) { o.Budget, o.Limit, o.Vector = 65536, time.Millisecond, 64 }))
	for i := range 3 {
		l.load(t, i)
		l.wires[i].note = func(e event) {
			if e.what == "poll" {
				l.clk.Advance(300e6) // 300 microseconds a trip
			}
		}
	}
	w := l.r.workers[0]
	for r := range 10 {
		begin := l.clk.Now()
		if !w.Round() {
			t.Fatal("no work")
		}
		// 300, 600, 900, 1200: the turn that passes the limit is the last.
		if d := l.clk.Now() - begin; d != 12e5 {
			t.Fatalf("round %d took %v", r, time.Duration(d))
		}
	}
	if c := w.stats.Live; c.Exhausted != 10 || c.Turns != 40 || c.BusyNs != 12e6 {
		t.Errorf("counted %d exhausted, %d turns, busy %d ns", c.Exhausted, c.Turns, c.BusyNs)
	}
	// The rest of the list goes on in the next round: nobody is left out.
	for i := range 3 {
		if n := l.received(i); n < 13*64 || n > 14*64 {
			t.Errorf("port %d got %d frames", i, n)
		}
	}
}

func TestStepsAndCommandsRunEveryRound(t *testing.T) {
	steps := 0
	l := newLab(t)
	w := l.r.workers[0]
	w.steps = append(w.steps, func(now int64) { steps++ })
	ran := false
	w.Do(func() { ran = true })
	w.Do(func() { w.Do(func() { steps += 100 }) }) // from within: next round
	w.Round()
	if steps != 1 || !ran {
		t.Errorf("%d steps, command ran: %v", steps, ran)
	}
	w.Round()
	if steps != 102 {
		t.Errorf("%d, want two steps and the second command", steps)
	}
}
