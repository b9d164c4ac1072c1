package neigh

import (
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
	b.tab.SetPortMAC(0, own)
	return b
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
	if !b.tab.Hear(Heard{Addr: hostA, MAC: macA, Reply: true}, 4*second) {
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

func TestReprobingIsUnicastThenBroadcastThenFailure(t *testing.T) {
	b := newBench(t)
	adj, _ := b.need(hostA, 0)
	b.tab.Hear(Heard{Addr: hostA, MAC: macA, Reply: true}, 0)
	var to []inet.MAC
	var at []int64
	for now := int64(0); now < 40*second; now += second / 2 {
		for _, q := range b.tick(now) {
			to, at = append(to, q.To), append(at, now/second)
		}
		if want := now < 36*second; (b.state(adj) == fib.Reachable) != want && now < 39*second {
			t.Errorf("at %d ms the adjacency is %v", now/1e6, b.state(adj))
		}
	}
	if len(to) != 6 {
		t.Fatalf("asked %v at %v", to, at)
	}
	for i, m := range to {
		want := macA
		if i >= 3 {
			want = inet.Broadcast
		}
		if m != want || at[i] != int64(30+i) {
			t.Errorf("question %d went to %v at %d s", i, m, at[i])
		}
	}
}

func TestAnAnswerToAProbeConfirms(t *testing.T) {
	b := newBench(t)
	adj, _ := b.need(hostA, 0)
	b.tab.Hear(Heard{Addr: hostA, MAC: macA, Reply: true}, 0)
	if len(b.tick(30*second)) != 1 || b.only().State != Probe || b.state(adj) != fib.Reachable {
		t.Fatalf("no probe: %+v", b.only())
	}
	gen := b.tab.Generation()
	b.tab.Hear(Heard{Addr: hostA, MAC: macA, Reply: true}, 30*second)
	if b.only().State != Reachable || b.tab.Generation() != gen {
		t.Errorf("%+v; an unchanged neighbour must not wake the workers", b.only())
	}
	if qs := b.tick(59 * second); len(qs) != 0 {
		t.Errorf("asked again after 29 s: %v", qs)
	}
}

func TestAMovedNeighbourIsRewrittenAtOnce(t *testing.T) {
	b := newBench(t)
	adj, _ := b.need(hostA, 0)
	b.tab.Hear(Heard{Addr: hostA, MAC: macA, Reply: true}, 0)
	b.tab.Hear(Heard{Addr: hostA, MAC: macB}, 1) // a gratuitous request
	if a := b.reader.Adjacency(adj); inet.MAC(a.Rewrite[0:6]) != macB || b.tab.Counts.Moved.Load() != 1 {
		t.Errorf("rewrite %x, %d moves", a.Rewrite, b.tab.Counts.Moved.Load())
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
		{"gratuitous request", Heard{Addr: hostA, MAC: macA}, 0, 0},
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

// A burst of new neighbours must not become a burst of questions, nor may the
// limit leave anybody out.
func TestQuestionsOfManyAreSpreadOut(t *testing.T) {
	b := newBench(t)
	const n = 5000
	for i := range n {
		b.need(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}).Next(), 0)
	}
	asked := map[netip.Addr]int{}
	for now := second; now < 2*second; now += second / 10 {
		qs := b.tick(now)
		// One hold of the lock may go over by what its buckets have.
		if len(qs) > tickQuestions+n/8 {
			t.Fatalf("%d questions at once", len(qs))
		}
		for _, q := range qs {
			asked[q.Addr]++
		}
	}
	if len(asked) != n {
		t.Errorf("%d of %d asked within a second", len(asked), n)
	}
	for a, k := range asked {
		if k != 1 {
			t.Fatalf("%v asked %d times within a second", a, k)
		}
	}
}
