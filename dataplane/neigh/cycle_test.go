package neigh

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"gorouter/fib"
	"gorouter/internal/inet"
)

const second = int64(time.Second)

var (
	hostA = netip.MustParseAddr("192.0.2.2")
	hostB = netip.MustParseAddr("192.0.2.3")
	macA  = inet.MAC{2, 0, 0, 0, 0, 0xa}
	macB  = inet.MAC{2, 0, 0, 0, 0, 0xb}
	own   = inet.MAC{2, 0, 0, 0, 0, 1}
)

type bench struct {
	*testing.T
	fib    *fib.FIB
	reader *fib.Reader
	tab    *Table
}

func newBench(t *testing.T, change ...func(*Options)) *bench {
	o := DefaultOptions()
	for _, f := range change {
		f(&o)
	}
	f := fib.New(fib.Options{Seed: 1})
	b := &bench{T: t, fib: f, reader: f.NewReader(), tab: New(f, o)}
	b.tab.random = middle
	b.tab.SetPortMAC(0, own)
	return b
}

// middle makes every answer believed for just Options.Reachable.
func middle(n int64) int64 { return (n - 1) / 2 }

// answered makes a neighbour reachable by its answer to us.
func (b *bench) answered(addr netip.Addr, mac inet.MAC, now int64) {
	b.tab.Hear(Heard{Addr: addr, MAC: mac, Reply: true, ForUs: true}, now)
}

// tick runs Tick and returns what was asked.
func (b *bench) tick(now int64) []Question {
	var qs []Question
	b.tab.Tick(now, func(q Question) { qs = append(qs, q) })
	return qs
}

func (b *bench) need(addr netip.Addr, now int64) (uint32, bool) {
	b.Helper()
	adj, q, ask, ok := b.tab.Need(0, addr, now)
	if !ok {
		b.Fatalf("no room for %v", addr)
	}
	if ask && (q.Addr != addr || q.Port != 0 || q.To != inet.Broadcast) {
		b.Errorf("the first question is %+v", q)
	}
	return adj, ask
}

func (b *bench) state(adj uint32) fib.State { return b.reader.Adjacency(adj).State }

func (b *bench) only() Neighbour {
	b.Helper()
	all := b.tab.All()
	if len(all) != 1 {
		b.Fatalf("%d entries: %v", len(all), all)
	}
	return all[0]
}

func TestASilentNeighbourIsAskedThriceThenRefusedThenForgotten(t *testing.T) {
	b := newBench(t)
	gen := b.tab.Generation()
	adj, ask := b.need(hostA, 0)
	if b.tab.Generation() != gen {
		t.Error("a question wakes the workers, for whom nothing changed")
	}
	if !ask || b.state(adj) != fib.Incomplete {
		t.Fatalf("ask %v, adjacency %v", ask, b.state(adj))
	}
	asked := []int64{0}
	failed := int64(-1)
	for now := int64(0); now <= 7*second; now += second / 4 {
		for _, q := range b.tick(now) {
			if q.To != inet.Broadcast {
				t.Errorf("at %d ms: asked %v", now/1e6, q.To)
			}
			asked = append(asked, now)
		}
		if failed < 0 && b.state(adj) == fib.Failed {
			failed = now
			// The failure is remembered: no question for a new packet.
			if same, ask := b.need(hostA, now); ask || same != adj {
				t.Errorf("a failed neighbour is asked at once: %v, adjacency %d", ask, same)
			}
		}
		if len(b.tab.All()) == 0 {
			if now != 6*second {
				t.Errorf("forgotten after %d ms, want 6000", now/1e6)
			}
			break
		}
	}
	if want := []int64{0, second, 2 * second}; len(asked) != 3 || asked[1] != want[1] || asked[2] != want[2] {
		t.Errorf("questions at %v, want %v", asked, want)
	}
	if failed != 3*second {
		t.Errorf("failed at %d, want 3 s", failed)
	}
	if n := b.tab.Counts.Failures.Load(); n != 1 {
		t.Errorf("%d failures counted", n)
	}
	if _, ok := b.tab.Find(0, v4of(hostA)); ok {
		t.Error("a forgotten neighbour is still found")
	}
	if _, ask := b.need(hostA, 7*second); !ask {
		t.Error("a forgotten neighbour is not asked again")
	}
}

func TestAFailedNeighbourThatSpeaksIsBack(t *testing.T) {
	b := newBench(t)
	adj, _ := b.need(hostA, 0)
	for now := range int64(4) {
		b.tick(now * second)
	}
	if b.state(adj) != fib.Failed {
		t.Fatalf("state %v", b.state(adj))
	}
	gen := b.tab.Generation()
	if !b.tab.Hear(Heard{Addr: hostA, MAC: macA, Reply: true, ForUs: true}, 4*second) {
		t.Error("the late answer was not taken")
	}
	if b.state(adj) != fib.Reachable || b.tab.Generation() == gen {
		t.Errorf("state %v, generation unchanged: %v", b.state(adj), b.tab.Generation() == gen)
	}
}

func TestFailureTakesNoRouteAway(t *testing.T) {
	b := newBench(t)
	for _, r := range []fib.Route{
		{Prefix: netip.MustParsePrefix("10.0.0.0/8"), Kind: fib.Forward, NextHops: []fib.NextHop{{Via: hostA}}},
		{Prefix: netip.MustParsePrefix("192.0.2.0/24"), Kind: fib.Connected, NextHops: []fib.NextHop{{}}},
		{Prefix: netip.MustParsePrefix("192.0.2.1/32"), Kind: fib.Local, NextHops: []fib.NextHop{{}}},
	} {
		if err := b.fib.Replace(r); err != nil {
			t.Fatal(err)
		}
	}
	b.need(hostA, 0)
	for now := range int64(8) {
		b.tick(now * second)
		b.reader.Quiescent()
	}
	if len(b.tab.All()) != 0 || b.fib.Len(0, fib.IPv4) != 3 {
		t.Fatalf("%d neighbours, %d routes", len(b.tab.All()), b.fib.Len(0, fib.IPv4))
	}
	adj := b.reader.Lookup(b.reader.Table(0), netip.MustParseAddr("10.1.1.1"))
	if a := b.reader.Adjacency(adj); a.Kind != fib.Forward || a.State != fib.Unresolved {
		t.Errorf("the route's adjacency is %+v, want unresolved", a)
	}
	if s := b.fib.Stats(); s.Misuses != 0 {
		t.Errorf("%d misuses of adjacencies", s.Misuses)
	}
}

// The whole life of a neighbour that is used and falls silent, with the times of
// the kernel: believed for 30 s, stale, 5 s after the next packet probed, three
// times alone and three times among all, then failed.
func TestAUsedNeighbourIsProbedUnicastThenBroadcastThenFails(t *testing.T) {
	b := newBench(t)
	adj, _ := b.need(hostA, 0)
	b.answered(hostA, macA, 0)
	var got []string
	last := Reachable
	for now := int64(0); now < 60*second && len(b.tab.All()) > 0; now += second / 2 {
		b.tab.Used(adj, now) // packets all the time
		for _, q := range b.tick(now) {
			got = append(got, fmt.Sprintf("%v asks %v", time.Duration(now), q.To))
		}
		if all := b.tab.All(); len(all) == 1 && all[0].State != last {
			last = all[0].State
			got = append(got, fmt.Sprintf("%v %v, shown %v", time.Duration(now), last, b.state(adj)))
		}
	}
	want := []string{
		"30s stale, shown stale",
		"30.5s delay, shown reachable",
		"35.5s asks 02:00:00:00:00:0a", "35.5s probe, shown reachable",
		"36.5s asks 02:00:00:00:00:0a", "37.5s asks 02:00:00:00:00:0a",
		"38.5s asks ff:ff:ff:ff:ff:ff", "39.5s asks ff:ff:ff:ff:ff:ff", "40.5s asks ff:ff:ff:ff:ff:ff",
		"41.5s failed, shown failed",
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
}

func TestAnUnusedNeighbourIsNotProbedButForgotten(t *testing.T) {
	b := newBench(t, func(o *Options) { o.GCMin = 0 })
	adj, _ := b.need(hostA, 0)
	b.answered(hostA, macA, 0)
	b.tab.Used(adj, second) // while it is reachable nobody minds
	for now := int64(0); now < 90*second; now += second {
		if qs := b.tick(now); len(qs) != 0 {
			t.Fatalf("at %d s: asked %v", now/second, qs)
		}
		if len(b.tab.All()) != 1 {
			t.Fatalf("forgotten at %d s", now/second)
		}
	}
	if n := b.only(); n.State != Stale || n.Age != 59*time.Second || n.Confirmed != 89*time.Second {
		t.Errorf("%+v", n)
	}
	gen := b.tab.Generation()
	b.tick(90 * second)
	if len(b.tab.All()) != 0 || b.state(adj) != fib.Unresolved && b.state(adj) != fib.Failed {
		t.Errorf("%v stays, adjacency %v", b.tab.All(), b.state(adj))
	}
	if b.tab.Generation() != gen || b.tab.Counts.Collected.Load() != 1 {
		t.Errorf("generation moved: %v, %d collected", b.tab.Generation() != gen, b.tab.Counts.Collected.Load())
	}
	b.tab.Used(adj, 91*second) // a note that came too late is nobody's
}

func TestAnAnswerDuringDelayOrProbeConfirms(t *testing.T) {
	for _, at := range []int64{32, 36} {
		b := newBench(t)
		adj, _ := b.need(hostA, 0)
		b.answered(hostA, macA, 0)
		for now := int64(30); now <= at; now++ {
			b.tick(now * second)
			b.tab.Used(adj, now*second)
		}
		want := map[int64]State{32: Delay, 36: Probe}[at]
		if b.only().State != want || b.state(adj) != fib.Reachable {
			t.Fatalf("at %d s %+v, adjacency %v", at, b.only(), b.state(adj))
		}
		gen := b.tab.Generation()
		b.answered(hostA, macA, at*second)
		if n := b.only(); n.State != Reachable || n.Asked != 0 || b.tab.Generation() != gen {
			t.Errorf("%+v; an unchanged neighbour must not wake the workers", n)
		}
		if qs := b.tick((at + 29) * second); len(qs) != 0 || b.only().State != Reachable {
			t.Errorf("29 s later asked %v, %+v", qs, b.only())
		}
		b.tick((at + 30) * second)
		if b.only().State != Stale {
			t.Errorf("30 s later %+v", b.only())
		}
	}
}

func TestAnAnswerIsBelievedBetweenHalfAndOneAndAHalf(t *testing.T) {
	f := fib.New(fib.Options{Seed: 1})
	tab := New(f, DefaultOptions())
	lowest, highest := time.Hour, time.Duration(0)
	for range 1000 {
		d := time.Duration(tab.believe())
		lowest, highest = min(lowest, d), max(highest, d)
	}
	if lowest < 15*time.Second || highest > 45*time.Second || lowest > 17*time.Second || highest < 43*time.Second {
		t.Errorf("from %v to %v", lowest, highest)
	}
}

// What is no answer to us tells where the neighbour is, not that it hears us.
func TestOnlyAnAnswerToUsMakesReachable(t *testing.T) {
	for _, c := range []struct {
		name string
		h    Heard
		want State
	}{
		{"answer to us", Heard{Reply: true, ForUs: true}, Reachable},
		{"answer to all", Heard{Reply: true, Gratuitous: true}, Stale},
		{"request for us", Heard{ForUs: true}, Stale},
		{"gratuitous request", Heard{Gratuitous: true}, Stale},
	} {
		b := newBench(t)
		adj, _ := b.need(hostA, 0)
		gen := b.tab.Generation()
		c.h.Addr, c.h.MAC = hostA, macA
		b.tab.Hear(c.h, second)
		if n := b.only(); n.State != c.want || n.MAC != macA || b.tab.Generation() == gen || b.tab.Counts.Learned.Load() != 1 {
			t.Errorf("%s: %+v", c.name, n)
		}
		if a := b.reader.Adjacency(adj); a.State != c.want.shown() || inet.MAC(a.Rewrite[0:6]) != macA || a.RewriteLen != 14 {
			t.Errorf("%s: adjacency %+v", c.name, a)
		}
		// On a reachable neighbour none of them takes anything away.
		b.answered(hostA, macA, 2*second)
		b.tab.Hear(c.h, 3*second)
		if b.only().State != Reachable {
			t.Errorf("%s of a reachable neighbour: %+v", c.name, b.only())
		}
	}
}

func TestAMovedNeighbourIsRewrittenAtOnce(t *testing.T) {
	for _, c := range []struct {
		name  string
		h     Heard
		at    time.Duration // after it was learned
		state State
		moves bool
	}{
		{"announced at once", Heard{Gratuitous: true}, 1, Stale, true},
		{"announced by an answer to all", Heard{Gratuitous: true, Reply: true}, 1, Stale, true},
		{"a second answer to one question", Heard{Reply: true, ForUs: true}, time.Second - 1, Reachable, false},
		{"a request with another address", Heard{ForUs: true}, time.Second - 1, Reachable, false},
		{"a later answer", Heard{Reply: true, ForUs: true}, time.Second, Reachable, true},
		{"a later request", Heard{ForUs: true}, time.Second, Stale, true},
	} {
		b := newBench(t)
		adj, _ := b.need(hostA, 0)
		b.answered(hostA, macA, 0)
		c.h.Addr, c.h.MAC = hostA, macB
		if b.tab.Hear(c.h, int64(c.at)) != c.moves {
			t.Errorf("%s: taken %v", c.name, !c.moves)
		}
		want := map[bool]inet.MAC{true: macB, false: macA}[c.moves]
		a := b.reader.Adjacency(adj)
		if inet.MAC(a.Rewrite[0:6]) != want || b.only().MAC != want || b.only().State != c.state || a.State != c.state.shown() {
			t.Errorf("%s: %+v, rewrite %x", c.name, b.only(), a.Rewrite)
		}
		if m, l := b.tab.Counts.Moved.Load(), b.tab.Counts.Locked.Load(); (m == 1) != c.moves || m+l != 1 {
			t.Errorf("%s: %d moves, %d refused", c.name, m, l)
		}
	}
}

func TestWhoMayMakeAnEntry(t *testing.T) {
	for _, c := range []struct {
		name    string
		h       Heard
		entries int
		unasked uint64
	}{
		{"answer nobody asked for", Heard{Addr: hostA, MAC: macA, Reply: true}, 0, 1},
		{"answer that claims to be for us", Heard{Addr: hostA, MAC: macA, Reply: true, ForUs: true}, 0, 1},
		{"gratuitous request", Heard{Addr: hostA, MAC: macA, Gratuitous: true}, 0, 0},
		{"request for us", Heard{Addr: hostA, MAC: macA, ForUs: true}, 1, 0},
	} {
		b := newBench(t)
		if b.tab.Hear(c.h, 0) != (c.entries > 0) {
			t.Errorf("%s: wrong result", c.name)
		}
		if n := len(b.tab.All()); n != c.entries || b.tab.Counts.Unasked.Load() != c.unasked {
			t.Errorf("%s: %d entries, %d unasked", c.name, n, b.tab.Counts.Unasked.Load())
		}
	}
}
