package neigh

import (
	"net/netip"
	"sync"
	"testing"

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
	b.tab.Hear(Heard{Addr: hostA, MAC: macA, Reply: true}, 0)
	a := b.reader.Adjacency(route)
	if a.State != fib.Reachable || inet.MAC(a.Rewrite[0:6]) != macA || inet.MAC(a.Rewrite[6:12]) != own || a.Rewrite[12] != 8 || a.RewriteLen != 14 {
		t.Errorf("adjacency %+v", a)
	}
}

func TestOurOwnNewAddressIsInEveryUsableAdjacency(t *testing.T) {
	b := newBench(t)
	up, _ := b.need(hostA, 0)
	waiting, _ := b.need(hostB, 0)
	b.tab.Hear(Heard{Addr: hostA, MAC: macA, Reply: true}, 0)
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
	if n := b.only(); n != (Neighbour{Addr: hostA, MAC: macA, State: Permanent}) || b.state(adj) != fib.Reachable {
		t.Errorf("%+v, adjacency %v", n, b.state(adj))
	}
	if err := b.tab.SetPermanent(0, netip.MustParseAddr("fe80::1"), macA); err == nil {
		t.Error("an IPv6 neighbour was accepted")
	}
}

func TestAFullTableRefusesAndRecovers(t *testing.T) {
	b := newBench(t, func(o *Options) { o.Max = 2 })
	b.need(hostA, 0)
	b.need(hostB, 0)
	c := netip.MustParseAddr("192.0.2.4")
	if _, _, ask, ok := b.tab.Need(0, c, 0); ok || ask {
		t.Error("a third entry in a table of two")
	}
	if b.tab.Hear(Heard{Addr: c, MAC: macA, ForUs: true}, 0) || b.tab.SetPermanent(0, c, macA) == nil {
		t.Error("a third entry in a table of two")
	}
	if n := b.tab.Counts.Full.Load(); n != 3 {
		t.Errorf("%d refusals counted, want 3", n)
	}
	for now := range int64(8) {
		b.tick(now * second)
	}
	if _, _, ask, ok := b.tab.Need(0, c, 8*second); !ok || !ask {
		t.Error("no room after the silent ones were forgotten")
	}
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
	b := newBench(t, func(o *Options) { o.Negative = 0; o.Broadcast = 1 })
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
						if a := r.Adjacency(adj); a.State == fib.Reachable && a.RewriteLen != 14 {
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
				b.tab.Need(0, a, now)
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
