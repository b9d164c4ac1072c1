package neigh

import (
	"maps"
	"net/netip"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gorouter/fib"
	"gorouter/internal/inet"
)

// Several adjacencies for one next hop, or one per racing packet, would lose
// what the answer says (case of a well-known router: 33 % loss).
func TestRacingPacketsShareOneEntryAndOneQuestion(t *testing.T) {
	b := newBench(t)
	err := b.fib.Replace(fib.Route{Prefix: netip.MustParsePrefix("10.0.0.0/8"), Kind: fib.Forward, NextHops: []fib.NextHop{{Via: hostA}}})
	if err != nil {
		t.Fatal(err)
	}
	var (
		wg  sync.WaitGroup
		mu  sync.Mutex
		got = map[uint32]int{}
		qs  int
	)
	for range 100 {
		wg.Go(func() {
			adj, _, ask, ok := b.tab.Need(0, hostA, 0)
			mu.Lock()
			defer mu.Unlock()
			if got[adj]++; !ok {
				t.Error("no room")
			}
			if ask {
				qs++
			}
		})
	}
	wg.Wait()
	route := b.reader.Lookup(b.reader.Table(0), netip.MustParseAddr("10.1.1.1"))
	if len(got) != 1 || got[route] != 100 || qs != 1 {
		t.Errorf("adjacencies %v, the route's is %d, %d questions", got, route, qs)
	}
	b.answered(hostA, macA, 0)
	a := b.reader.Adjacency(route)
	if a.State != fib.Reachable || inet.MAC(a.Rewrite[0:6]) != macA || inet.MAC(a.Rewrite[6:12]) != own || a.Rewrite[12] != 8 || a.RewriteLen != 14 {
		t.Errorf("adjacency %+v", a)
	}
}

func TestOurOwnNewAddressIsInEveryUsableAdjacency(t *testing.T) {
	b := newBench(t)
	up, _ := b.need(hostA, 0)
	waiting, _ := b.need(hostB, 0)
	b.answered(hostA, macA, 0)
	other, _, _, _ := b.tab.Need(1, hostA, 0)
	if err := b.tab.SetPermanent(1, hostB, macB); err != nil {
		t.Fatal(err)
	}
	b.tab.SetPortMAC(0, inet.MAC{2, 9, 9, 9, 9, 9})
	if a := b.reader.Adjacency(up); inet.MAC(a.Rewrite[6:12]) != (inet.MAC{2, 9, 9, 9, 9, 9}) || inet.MAC(a.Rewrite[0:6]) != macA {
		t.Errorf("rewrite %x", a.Rewrite)
	}
	if b.state(waiting) != fib.Incomplete || b.state(other) != fib.Incomplete {
		t.Errorf("states %v, %v of unanswered neighbours", b.state(waiting), b.state(other))
	}
	perm, _ := b.tab.Find(1, v4of(hostB))
	if a := b.reader.Adjacency(perm); inet.MAC(a.Rewrite[6:12]) != (inet.MAC{}) {
		t.Errorf("another port's adjacency changed: %x", a.Rewrite)
	}
}

func TestAPermanentNeighbourStays(t *testing.T) {
	b := newBench(t)
	adj, _ := b.need(hostA, 0)
	if err := b.tab.SetPermanent(0, hostA, macA); err != nil {
		t.Fatal(err)
	}
	if b.tab.Hear(Heard{Addr: hostA, MAC: macB, Reply: true}, 0) {
		t.Error("an answer changed it")
	}
	if same, ask := b.need(hostA, 0); ask || same != adj {
		t.Error("it is asked for, or has two adjacencies")
	}
	for now := range int64(100) {
		if qs := b.tick(now * second); len(qs) != 0 {
			t.Fatalf("asked %v", qs)
		}
	}
	if n := b.only(); n != (Neighbour{Addr: hostA, MAC: macA, State: Permanent, Age: 99 * time.Second, Confirmed: 99 * time.Second}) || b.state(adj) != fib.Reachable {
		t.Errorf("%+v, adjacency %v", n, b.state(adj))
	}
	if err := b.tab.SetPermanent(0, netip.MustParseAddr("fe80::1"), macA); err == nil {
		t.Error("an IPv6 neighbour was accepted")
	}
}

func TestAFullTableOfUsedNeighboursRefuses(t *testing.T) {
	b := newBench(t, func(o *Options) { o.Max = 2 })
	b.need(hostA, 0)
	b.answered(hostA, macA, 0)
	if err := b.tab.SetPermanent(0, hostB, macB); err != nil {
		t.Fatal(err)
	}
	c := netip.MustParseAddr("192.0.2.4")
	if _, _, ask, ok := b.tab.Need(0, c, 0); ok || ask || b.tab.Busy(0) {
		t.Error("a third entry in a table of two")
	}
	if b.tab.Hear(Heard{Addr: c, MAC: macA, ForUs: true}, 0) || b.tab.SetPermanent(0, c, macA) == nil {
		t.Error("a third entry in a table of two")
	}
	if n := b.tab.Counts.Full.Load(); n != 3 {
		t.Errorf("%d refusals counted, want 3", n)
	}
	b.tick(30 * second) // nobody uses the first, so that it may go
	if _, _, ask, ok := b.tab.Need(0, c, 31*second); !ok || !ask || b.tab.Counts.Evicted.Load() != 1 {
		t.Error("no room though one is unused")
	}
	if _, ok := b.tab.Get(0, hostA); ok {
		t.Error("the unused one is still there")
	}
}

// Those without an address go first, the oldest before the others; then the
// stale ones, the longest unused before the others.
func TestInAFullTableTheOldestOfTheWorstMakesRoom(t *testing.T) {
	b := newBench(t, func(o *Options) { o.Max = 6; o.Negative = time.Hour })
	host := func(i byte) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, i}) }
	for _, i := range []byte{1, 2} { // stale, 2 before 1
		b.need(host(i), 0)
	}
	b.tab.Hear(Heard{Addr: host(2), MAC: macA, Gratuitous: true}, 0)
	b.tab.Hear(Heard{Addr: host(1), MAC: macA, Gratuitous: true}, 0)
	b.need(host(3), 0) // will fail
	for now := range int64(4) {
		b.tick(now * second)
	}
	b.need(host(4), 4*second)
	b.need(host(5), 4*second)
	b.answered(host(5), macA, 4*second)
	if err := b.tab.SetPermanent(0, host(6), macA); err != nil {
		t.Fatal(err)
	}
	for i, gone := range []byte{3, 4, 2, 1} {
		if _, ok := b.tab.Get(0, host(gone)); !ok {
			t.Fatalf("neighbour %d went before its time", gone)
		}
		next := host(byte(10 + i))
		b.need(next, 5*second)
		b.answered(next, macA, 5*second)
		if _, ok := b.tab.Get(0, host(gone)); ok {
			t.Fatalf("neighbour %d did not make room: %v", gone, b.tab.All())
		}
	}
	if _, _, _, ok := b.tab.Need(0, host(99), 5*second); ok {
		t.Error("one in use made room")
	}
	b.reader.Quiescent()
	if s := b.fib.Stats(); s.Misuses != 0 || s.Adjacencies != 4+6 {
		t.Errorf("%+v", s)
	}
}

func TestAPortThatLostItsLinkForgetsWhatItLearned(t *testing.T) {
	b := newBench(t)
	adj, _ := b.need(hostA, 0)
	b.answered(hostA, macA, 0)
	b.need(hostB, 0)
	if err := b.tab.SetPermanent(0, netip.MustParseAddr("192.0.2.9"), macB); err != nil {
		t.Fatal(err)
	}
	other, _, _, _ := b.tab.Need(1, hostA, 0)
	gen := b.tab.Generation()
	b.tab.FlushPort(0)
	if len(b.tab.All()) != 2 || b.tab.Generation() == gen || b.state(other) != fib.Incomplete {
		t.Errorf("%v stay", b.tab.All())
	}
	if a := b.reader.Adjacency(adj); a.State.String() == "reachable" && a.NextHop == hostA {
		t.Errorf("adjacency %+v", a)
	}
}

func TestDelete(t *testing.T) {
	b := newBench(t)
	if err := b.tab.SetPermanent(0, hostA, macA); err != nil {
		t.Fatal(err)
	}
	if b.tab.Delete(1, hostA) || b.tab.Delete(0, netip.MustParseAddr("fe80::1")) || !b.tab.Delete(0, hostA) || b.tab.Delete(0, hostA) {
		t.Error("wrong result")
	}
	if _, ok := b.tab.Find(0, v4of(hostA)); ok {
		t.Error("still found")
	}
}

func TestStatsCountsByState(t *testing.T) {
	b := newBench(t)
	b.need(hostA, 0)
	b.answered(hostA, macA, 0)
	b.need(hostB, 0)
	b.tab.Hear(Heard{Addr: netip.MustParseAddr("192.0.2.77"), MAC: macB, Reply: true}, 0)
	s := b.tab.Stats()
	want := map[string]int{"incomplete": 1, "reachable": 1, "stale": 0, "delay": 0, "probe": 0, "failed": 0, "permanent": 0}
	if !maps.Equal(s.States, want) || s.Requests != 2 || s.Learned != 1 || s.Unasked != 1 {
		t.Errorf("%+v", s)
	}
}

// Each option's default is within its limits, and the table has one row for
// each field.
func TestOptionTable(t *testing.T) {
	o := DefaultOptions()
	if errs := OptionTable.Check(&o); len(errs) > 0 {
		t.Error(errs)
	}
	if n := reflect.TypeFor[Options]().NumField(); len(OptionTable) != n {
		t.Errorf("%d options for %d fields", len(OptionTable), n)
	}
}

func TestUsesHandsOutEachNoteOnce(t *testing.T) {
	var u Uses
	take := func() (got []uint32) {
		u.Take(func(a uint32) { got = append(got, a) })
		slices.Sort(got)
		return got
	}
	for range 3 {
		for a := uint32(4); a < 24; a++ {
			u.Note(a)
		}
	}
	if got := take(); len(got) != 20 || got[0] != 4 || got[19] != 23 {
		t.Errorf("%v", got)
	}
	if got := take(); len(got) != 0 {
		t.Errorf("again %v", got)
	}
	// Two in one slot: both come out if the first is no longer noted.
	a := uint32(7)
	b := a + 1
	for b*0x9e3779b1>>24 != a*0x9e3779b1>>24 {
		b++
	}
	u.Note(a)
	u.Note(b)
	if got := take(); len(got) != 1 || got[0] != b {
		t.Errorf("%v", got)
	}
	u.Note(a)
	if got := take(); len(got) != 1 || got[0] != a {
		t.Errorf("%v", got)
	}
	if n := testing.AllocsPerRun(10, func() { u.Note(9); u.Note(10) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// One notes, another takes: every adjacency that goes on being noted comes out.
func TestUsesBesideTake(t *testing.T) {
	var u Uses
	var stop atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		for a := uint32(4); !stop.Load(); a = 4 + (a-3)%64 {
			u.Note(a)
		}
	})
	seen := map[uint32]bool{}
	for len(seen) < 64 {
		u.Take(func(a uint32) {
			if a < 4 || a >= 68 {
				t.Errorf("adjacency %d was never noted", a)
			}
			seen[a] = true
		})
		runtime.Gosched()
	}
	stop.Store(true)
	wg.Wait()
}

func TestWhatIsNoNeighbour(t *testing.T) {
	b := newBench(t)
	for _, a := range []string{"0.0.0.0", "224.0.0.1", "fe80::1"} {
		if _, _, ask, ok := b.tab.Need(0, netip.MustParseAddr(a), 0); ok || ask {
			t.Errorf("%s became a neighbour", a)
		}
	}
	if len(b.tab.All()) != 0 {
		t.Errorf("entries %v", b.tab.All())
	}
}

func TestFindBesideChanges(t *testing.T) {
	b := newBench(t, func(o *Options) { o.Negative = 0; o.Broadcast = 1; o.Delay = 0; o.Max = 50; o.GCMin, o.GCSoft = 0, 0 })
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for range 2 {
		wg.Go(func() {
			r := b.fib.NewReader()
			for {
				select {
				case <-stop:
					r.Close()
					return
				default:
				}
				for i := range 64 {
					if adj, ok := b.tab.Find(0, 0x0a000000+uint32(i)); ok {
						if a := r.Adjacency(adj); (a.State == fib.Reachable || a.State == fib.Stale) && a.RewriteLen != 14 {
							t.Errorf("half an adjacency: %+v", a)
						}
					}
				}
				r.Quiescent()
			}
		})
	}
	now := int64(0)
	for round := range 200 {
		for i := range 64 {
			a := netip.AddrFrom4([4]byte{10, 0, 0, byte(i)})
			if (i+round)%3 == 0 {
				b.tab.Hear(Heard{Addr: a, MAC: macA, ForUs: true}, now)
			} else {
				if adj, _, _, ok := b.tab.Need(0, a, now); ok {
					b.tab.Used(adj, now)
				}
			}
		}
		now += 20 * second
		b.tab.Tick(now, func(Question) {})
		b.tab.SetPortMAC(0, inet.MAC{2, byte(round)})
		b.reader.Quiescent()
	}
	close(stop)
	wg.Wait()
}

// A neighbour that fails keeps its place in the queue of those that make room.
func TestAFailedNeighbourIsNoYoungerForIt(t *testing.T) {
	b := newBench(t, func(o *Options) { o.Max = 2 })
	b.need(hostA, 0)
	for now := range int64(3) {
		b.tick(now * second)
	}
	b.need(hostB, 3*second-1)
	b.tick(3 * second)
	if n, _ := b.tab.Get(0, hostA); n.State != Failed {
		t.Fatalf("%+v", n)
	}
	b.need(netip.MustParseAddr("192.0.2.4"), 3*second)
	if _, ok := b.tab.Get(0, hostB); !ok {
		t.Error("the younger one made room")
	}
}

// Forged requests for our address cannot fill the table faster than the rate.
func TestRequestsForUsMakeEntriesUnderTheRate(t *testing.T) {
	b := newBench(t, func(o *Options) { o.RequestRate = 10 })
	for i := range 100 {
		b.tab.Hear(Heard{Addr: netip.AddrFrom4([4]byte{192, 0, 2, byte(10 + i)}), MAC: macA, ForUs: true}, 0)
	}
	if n := len(b.tab.All()); n != 5 {
		t.Errorf("%d entries, want half of a second's", n)
	}
}
