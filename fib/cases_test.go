package fib_test

// Tests named after kinds of mistakes that were reported against other
// forwarding tables.

import (
	"fmt"
	"net/netip"
	"sync"
	"testing"

	"gorouter/fib"
	"gorouter/fib/fibtest"
)

func TestHostRoutesDoNotTakeTheirNeighboursNextHop(t *testing.T) {
	f, r := newFIB(t)
	install(t, f, forward("200.0.0.1/32", hop(1, "192.0.2.1")))
	install(t, f, forward("200.0.1.1/32", hop(1, "192.0.2.2")))
	expect(t, r, "200.0.0.1", fib.Forward, "192.0.2.1")
	expect(t, r, "200.0.1.1", fib.Forward, "192.0.2.2")
	expect(t, r, "200.0.0.2", fib.Miss, "")
}

func TestDeleteFallsBackToTheCoveringRoute(t *testing.T) {
	f, r := newFIB(t)
	install(t, f,
		forward("10.10.128.0/24", hop(1, "192.0.2.1")),
		forward("10.10.0.0/16", hop(1, "192.0.2.2")),
		forward("10.0.0.0/8", hop(1, "192.0.2.3")))
	expect(t, r, "10.10.128.9", fib.Forward, "192.0.2.1")
	remove(t, f, "10.10.128.0/24")
	expect(t, r, "10.10.128.9", fib.Forward, "192.0.2.2")
	remove(t, f, "10.10.0.0/16")
	expect(t, r, "10.10.128.9", fib.Forward, "192.0.2.3")
	remove(t, f, "10.0.0.0/8")
	expect(t, r, "10.10.128.9", fib.Miss, "")
	if n := f.Len(mainTable, fib.IPv4); n != 0 {
		t.Fatalf("%d routes left", n)
	}
}

func TestNextHopsBeyondOneByteStayApart(t *testing.T) {
	f, r := newFIB(t)
	via := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{192, 0, byte(i >> 8), byte(i) | 1}) }
	for i := range 70000 {
		p := netip.PrefixFrom(netip.AddrFrom4([4]byte{20 + byte(i>>16), byte(i >> 8), byte(i), 0}), 24)
		route := fib.Route{Table: mainTable, Prefix: p, Kind: fib.Forward,
			NextHops: []fib.NextHop{{Port: uint16(i), Via: via(i)}}}
		if i < 300 || i >= 65536 && i < 65836 {
			install(t, f, route)
		}
	}
	// 0, 256 and 65536 agree in the low byte, 0 and 65536 in the low 16 bits.
	for _, i := range []int{0, 256} {
		p := fmt.Sprintf("20.%d.%d.0/24", i>>8, i&255)
		if got := f.Get(mainTable, pfx(p)); len(got) != 1 || got[0].NextHops[0].Port != uint16(i) {
			t.Fatalf("Get(%s) = %v", p, got)
		}
	}
	n := 0
	for route := range f.All(mainTable) {
		if n == 0 {
			remove(t, f, "20.0.0.0/24")
		}
		if route.Prefix.Addr().As4()[2] != byte(route.NextHops[0].Port) {
			t.Fatalf("iteration gives %v", route)
		}
		n++
	}
	if n != 600 {
		t.Fatalf("iteration gave %d routes, want the 600 there were when it began", n)
	}
	if a := lookup(r, "20.1.0.1"); a.Port != 256 {
		t.Fatalf("20.1.0.1 leaves by port %d, want 256", a.Port)
	}
	if a := lookup(r, "21.0.0.1"); a.NextHop != via(65536) {
		t.Fatalf("21.0.0.1 goes to %s, want %s", a.NextHop, via(65536))
	}
	expect(t, r, "20.0.0.1", fib.Miss, "")
}

func TestRouteBeforeNeighbourShareOneAdjacency(t *testing.T) {
	f, r := newFIB(t)
	install(t, f, forward("10.0.0.0/8", hop(3, "1.1.1.2")))
	route := r.Lookup(r.Table(mainTable), ip("10.0.0.1"))
	idx := f.AcquireAdjacency(3, ip("1.1.1.2"))
	if idx != route {
		t.Fatalf("route uses adjacency %d, neighbour %d", route, idx)
	}
	if other := f.AcquireAdjacency(4, ip("1.1.1.2")); other == idx {
		t.Fatal("the same address behind another port has the same adjacency")
	}
	f.SetAdjacency(idx, func(a *fib.Adjacency) { a.State, a.RewriteLen = fib.Reachable, 14 })
	if a := lookup(r, "10.0.0.1"); a.State != fib.Reachable {
		t.Fatalf("route's adjacency is %s after the neighbour answered", a.State)
	}
}

func TestSimultaneousFirstPacketsGetOneAdjacency(t *testing.T) {
	f, _ := newFIB(t)
	got := make([]uint32, 100)
	var wg sync.WaitGroup
	for i := range got {
		wg.Go(func() { got[i] = f.AcquireAdjacency(1, ip("192.0.2.77")) })
	}
	wg.Wait()
	for _, idx := range got {
		if idx != got[0] {
			t.Fatalf("adjacencies %v", got)
		}
	}
	for range got {
		f.ReleaseAdjacency(got[0])
	}
	if _, ok := f.FindAdjacency(fib.Forward, 1, ip("192.0.2.77")); ok {
		t.Fatal("adjacency is there after the last release")
	}
	f.ReleaseAdjacency(got[0])
	if n := f.Stats().Misuses; n != 1 {
		t.Fatalf("Misuses = %d after one release too many, want 1", n)
	}
}

func TestNeighbourExpiryKeepsRoutes(t *testing.T) {
	f, r := newFIB(t)
	install(t, f,
		fib.Route{Table: mainTable, Prefix: pfx("1.1.1.1/32"), Kind: fib.Local, NextHops: []fib.NextHop{{Port: 3}}},
		fib.Route{Table: mainTable, Prefix: pfx("1.1.1.0/24"), Kind: fib.Connected, NextHops: []fib.NextHop{{Port: 3}}},
		forward("10.0.0.0/8", hop(3, "1.1.1.2")))
	idx := f.AcquireAdjacency(3, ip("1.1.1.2"))
	f.SetAdjacency(idx, func(a *fib.Adjacency) { a.State = fib.Reachable })
	f.SetAdjacency(idx, func(a *fib.Adjacency) { a.State = fib.Failed })
	f.ReleaseAdjacency(idx)
	if n := f.Len(mainTable, fib.IPv4); n != 3 {
		t.Fatalf("%d routes after the neighbour failed, want 3", n)
	}
	expect(t, r, "1.1.1.1", fib.Local, "")
	expect(t, r, "1.1.1.9", fib.Connected, "")
	expect(t, r, "10.9.9.9", fib.Forward, "1.1.1.2")
	if a := lookup(r, "10.9.9.9"); a.State != fib.Failed {
		t.Fatalf("state %s, want failed", a.State)
	}
}

func TestRouteChangesKeepWhatTheNeighbourTableLearned(t *testing.T) {
	f, r := newFIB(t)
	install(t, f, forward("10.0.0.0/8", hop(3, "1.1.1.2")))
	idx, ok := f.FindAdjacency(fib.Forward, 3, ip("1.1.1.2"))
	if !ok {
		t.Fatal("no adjacency for the gateway")
	}
	f.SetAdjacency(idx, func(a *fib.Adjacency) {
		a.State, a.MTU, a.RewriteLen, a.Rewrite[0] = fib.Reachable, 1400, 14, 0x02
		a.Kind, a.Port, a.NextHop, a.Index = fib.Local, 9, ip("9.9.9.9"), 99 // must not stick
	})
	// Into a group, another metric, out of the group again: always in one step.
	install(t, f, forward("10.0.0.0/8", hop(3, "1.1.1.2"), hop(4, "2.2.2.2")))
	worse := forward("10.0.0.0/8", hop(3, "1.1.1.2"))
	worse.Metric = 100
	install(t, f, worse)
	remove(t, f, "10.0.0.0/8")
	r.Quiescent()
	f.Reclaim()
	want := fib.Adjacency{Kind: fib.Forward, State: fib.Reachable, Port: 3, MTU: 1400, RewriteLen: 14,
		Rewrite: [22]byte{0x02}, NextHop: ip("1.1.1.2"), Index: idx}
	if got := *lookup(r, "10.1.1.1"); got != want {
		t.Fatalf("adjacency %+v, want %+v", got, want)
	}
}

// Persistent updates once corrupted the table they were made from. Here tables
// change in place, so a reader in the middle of its batch may see a change or
// not, but nothing else, whatever is done and however often the structure
// is exchanged under it.
func TestOldViewsAnswerBeforeOrAfter(t *testing.T) {
	for name, sizes := range map[string]fib.Sizes{"trie": {}, "promoted": {Promote4: 1500, Groups16: 64}} {
		t.Run(name, func(t *testing.T) {
			f := fib.NewForTest(1, sizes)
			r := f.NewReader()
			defer r.Close()
			table := fibtest.Table4(2000, 3)
			route := func(i, n int) fib.Route {
				return fib.Route{Table: 1, Prefix: table[i], Kind: fib.Forward, NextHops: []fib.NextHop{hop(uint16(n), "192.0.2.1")}}
			}
			for i := range table[:1000] {
				install(t, f, route(i, i%7))
			}
			tab := r.Table(1)
			views := []func(netip.Addr) uint32{fib.SnapshotForTest(tab)}
			seen := make([]map[uint32]bool, len(table))
			note := func() {
				for i, p := range table {
					if seen[i] == nil {
						seen[i] = make(map[uint32]bool)
					}
					seen[i][r.Lookup(tab, p.Addr())] = true
				}
			}
			note()
			for i := range table {
				switch i % 4 {
				case 0, 1:
					install(t, f, route(i, 9))
				case 2:
					f.Delete(fib.Key{Table: 1, Prefix: table[i]})
				case 3:
					if err := f.Batch(func(tx *fib.Tx) error {
						tx.Delete(fib.Key{Table: 1, Prefix: table[i]})
						return tx.Replace(fib.Route{Table: 1, Prefix: table[(i+7)%len(table)], Kind: fib.Blackhole})
					}); err != nil {
						t.Fatal(err)
					}
				}
				if i%100 == 0 {
					note()
					views = append(views, fib.SnapshotForTest(tab))
				}
			}
			note()
			f.DeleteTable(1)
			note()
			for _, view := range views {
				for i, p := range table {
					// Changes since the last note are one prefix's own.
					if got := view(p.Addr()); !seen[i][got] {
						if a := r.Adjacency(got); a.Kind != fib.Forward && a.Kind != fib.Blackhole || a.Index != got {
							t.Fatalf("%s: an old view answers %d", p.Addr(), got)
						}
					}
				}
			}
		})
	}
}

func TestDefaultRouteFlapDoesNotTouchTheTable(t *testing.T) {
	f, r := newFIB(t)
	if err := f.Batch(func(tx *fib.Tx) error {
		for _, p := range fibtest.Table4(20000, 4) {
			if err := tx.Replace(fib.Route{Table: mainTable, Prefix: p, Kind: fib.Blackhole}); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	def := forward("0.0.0.0/0", hop(1, "192.0.2.1"))
	flap := func() {
		install(t, f, def)
		f.Delete(def.Key())
	}
	before := fib.SnapshotForTest(r.Table(mainTable))
	if n := testing.AllocsPerRun(100, flap); n > 25 {
		t.Errorf("a flap of the default route makes %v allocations", n)
	}
	install(t, f, def)
	if got := before(ip("240.0.0.1")); got == fib.AdjMiss {
		t.Error("a default route came and the table was built anew")
	}
	f.Delete(def.Key())
	expect(t, r, "240.0.0.1", fib.Miss, "")
	install(t, f, def)
	expect(t, r, "240.0.0.1", fib.Forward, "192.0.2.1")
	expect(t, r, "2001:db8::1", fib.Miss, "")
	install(t, f, forward("::/0", hop(1, "fe80::1")))
	expect(t, r, "2001:db8::1", fib.Forward, "fe80::1")
	expect(t, r, "240.0.0.1", fib.Forward, "192.0.2.1")
}

func TestMetricsAreCandidatesOfTheirOwn(t *testing.T) {
	f, r := newFIB(t)
	low, high := forward("10.0.0.0/8", hop(1, "192.0.2.1")), forward("10.0.0.0/8", hop(1, "192.0.2.2"))
	high.Metric = 200
	install(t, f, high)
	expect(t, r, "10.0.0.1", fib.Forward, "192.0.2.2")
	install(t, f, low)
	expect(t, r, "10.0.0.1", fib.Forward, "192.0.2.1")
	if n := f.Len(mainTable, fib.IPv4); n != 2 {
		t.Fatalf("%d candidates, want 2", n)
	}
	remove(t, f, "10.0.0.0/8")
	expect(t, r, "10.0.0.1", fib.Forward, "192.0.2.2")
	tos := forward("10.1.0.0/16", hop(1, "192.0.2.3"))
	tos.TOS = 0x10
	install(t, f, tos)
	expect(t, r, "10.1.0.1", fib.Forward, "192.0.2.2")
	if got := f.Get(mainTable, pfx("10.1.0.0/16")); len(got) != 1 || got[0].TOS != 0x10 {
		t.Fatalf("Get = %v", got)
	}
}

func TestSpecialRoutesHaveFixedIndices(t *testing.T) {
	f, r := newFIB(t)
	for kind, want := range map[fib.Kind]uint32{
		fib.Blackhole: fib.AdjBlackhole, fib.Unreachable: fib.AdjUnreachable, fib.Prohibit: fib.AdjProhibit} {
		for _, p := range []string{"10.9.0.0/16", "2001:db8:dead::/48"} {
			// Kernels announce them with a device nobody chose.
			install(t, f, fib.Route{Table: mainTable, Prefix: pfx(p), Kind: kind, NextHops: []fib.NextHop{{Port: 1}}})
			if got := r.Lookup(r.Table(mainTable), pfx(p).Addr()); got != want || r.Adjacency(got).Kind != kind {
				t.Fatalf("%s %s: result %d, want %d", kind, p, got, want)
			}
			if got := f.Get(mainTable, pfx(p)); len(got) != 1 || len(got[0].NextHops) != 0 {
				t.Fatalf("Get(%s) = %v", p, got)
			}
		}
	}
	if got := r.Lookup(fib.TableRef{}, ip("10.0.0.1")); got != fib.AdjMiss {
		t.Fatalf("the zero table finds %d", got)
	}
}
