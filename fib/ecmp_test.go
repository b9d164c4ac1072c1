package fib_test

import (
	"fmt"
	"math"
	"math/bits"
	"net/netip"
	"testing"

	"pgregory.net/rapid"

	"gorouter/fib"
)

// nWay returns a route over n equal legs, port i to 192.0.2.i, from 1.
func nWay(n int) fib.Route {
	r := forward("10.0.0.0/8")
	for i := 1; i <= n; i++ {
		r.NextHops = append(r.NextHops, hop(uint16(i), fmt.Sprintf("192.0.2.%d", i)))
	}
	return r
}

func result(r *fib.Reader) uint32 { return r.Lookup(r.Table(mainTable), ip("10.1.1.1")) }

// within fails unless every leg has its share of the flows to within tol.
func within(t *testing.T, got map[uint32]int, shares []float64, tol float64) {
	t.Helper()
	total := 0
	for _, n := range got {
		total += n
	}
	left := make(map[uint32]int)
	for k, v := range got {
		left[k] = v
	}
	for _, want := range shares {
		best, diff := uint32(0), math.Inf(1)
		for k, v := range left {
			if d := math.Abs(float64(v)/float64(total) - want); d < diff {
				best, diff = k, d
			}
		}
		if diff > tol {
			t.Fatalf("no leg has %.3f ± %.3f of %d flows: %v", want, tol, total, got)
		}
		delete(left, best)
	}
	if len(left) > 0 {
		t.Fatalf("flows on unknown legs: %v", left)
	}
}

func TestWeightsAreHonoured(t *testing.T) {
	for _, weights := range [][]uint16{{3, 1}, {1, 1}, {0, 1}, {1, 1, 1}, {256, 1}, {7, 5, 3, 2}, {100, 99, 1}, {1, 1, 1, 1, 1, 1, 1}} {
		t.Run(fmt.Sprint(weights), func(t *testing.T) {
			f, r := newFIB(t)
			route := nWay(len(weights))
			var shares []float64
			var total float64
			for i, w := range weights {
				route.NextHops[i].Weight = w
				total += float64(max(w, 1))
			}
			for _, w := range weights {
				shares = append(shares, float64(max(w, 1))/total)
			}
			install(t, f, route)
			within(t, spread(r, result(r), flows(f.Hasher, 10000)), shares, 0.02)
			if weights[0] == 3 {
				want := "forward 10.0.0.0/8 via 192.0.2.1 port 1 weight 3 via 192.0.2.2 port 2 weight 1 table 254 metric 0"
				if got := f.Get(mainTable, route.Prefix)[0].String(); got != want {
					t.Fatalf("String() = %q, want %q", got, want)
				}
			}
		})
	}
}

func TestEqualNextHopsCountAsOne(t *testing.T) {
	f, r := newFIB(t)
	install(t, f, forward("10.0.0.0/8", hop(1, "192.0.2.1"), hop(1, "192.0.2.1")))
	if got := result(r); got&fib.GroupFlag != 0 {
		t.Fatalf("two equal legs make a group: %#x", got)
	}
	install(t, f, forward("10.0.0.0/8", hop(1, "192.0.2.1"), hop(2, "192.0.2.2"), hop(1, "192.0.2.1"), hop(1, "192.0.2.1")))
	within(t, spread(r, result(r), flows(f.Hasher, 10000)), []float64{0.75, 0.25}, 0.02)
}

func TestRoutesWithEqualLegsShareOneGroup(t *testing.T) {
	f, r := newFIB(t)
	a, b := nWay(3), nWay(3)
	b.Prefix = pfx("11.0.0.0/8")
	b.NextHops[0], b.NextHops[2] = b.NextHops[2], b.NextHops[0]
	install(t, f, a, b)
	if x, y := result(r), r.Lookup(r.Table(mainTable), ip("11.0.0.1")); x != y {
		t.Fatalf("results %#x and %#x", x, y)
	}
	if n := f.Stats().Groups; n != 1 {
		t.Fatalf("%d groups, want 1", n)
	}
}

// Callers give ports 0 for every fragment, the first too, so that the leg depends
// on addresses and protocol alone: all of these are used, and nothing else is.
func TestFragmentsOfOneDatagramTakeOneLeg(t *testing.T) {
	f, r := newFIB(t)
	install(t, f, nWay(4))
	type fragment struct {
		offset uint32
		more   bool
		ports  uint32 // what stands in the payload where the ports would be
	}
	fragments := []fragment{{0, true, 1024<<16 | 53}, {1480, true, 0xdeadbeef}, {2960, false, 0x01020304}}
	for src := range uint32(200) {
		var legs []uint32
		for _, fr := range fragments {
			ports := fr.ports
			if fr.more || fr.offset > 0 {
				ports = 0
			}
			legs = append(legs, r.Pick(result(r), r.Hash4(src, 0x0a000001, 17, ports)))
		}
		if legs[0] != legs[1] || legs[0] != legs[2] {
			t.Fatalf("source %d: fragments take legs %v", src, legs)
		}
	}
	base := r.Hash4(1, 2, 17, 0)
	for _, other := range []uint32{r.Hash4(2, 2, 17, 0), r.Hash4(1, 3, 17, 0), r.Hash4(1, 2, 6, 0)} {
		if other == base {
			t.Fatal("the hash leaves out an address or the protocol")
		}
	}
}

func TestPortsAndNearbyAddressesSpread(t *testing.T) {
	for seed := uint64(1); seed <= 5; seed++ {
		f := fib.New(fib.Options{Seed: seed})
		r := f.NewReader()
		install(t, f, nWay(4))
		quarter := []float64{0.25, 0.25, 0.25, 0.25}
		var ports, hosts, ports6, hosts6 []uint32
		for i := range uint32(1000) {
			ports = append(ports, r.Hash4(0xc0000201, 0x0a000001, 6, (1024+i)<<16|80))
			hosts = append(hosts, r.Hash4(0xc0000201, 0x0a000000+i, 1, 0))
			ports6 = append(ports6, r.Hash6(0x20010db8<<32, 1, 0x20010db8<<32|1, 1, 6, (1024+i)<<16|80))
			hosts6 = append(hosts6, r.Hash6(0x20010db8<<32, 1, 0x20010db8<<32|1, uint64(i), 58, 0))
		}
		for _, hashes := range [][]uint32{ports, hosts, ports6, hosts6} {
			within(t, spread(r, result(r), hashes), quarter, 0.05)
		}
		r.Close()
	}
}

func TestTwoRoutersInARowDoNotPolarise(t *testing.T) {
	one, two := fib.New(fib.Options{}), fib.New(fib.Options{})
	r1, r2 := one.NewReader(), two.NewReader()
	defer r1.Close()
	defer r2.Close()
	install(t, one, nWay(2))
	install(t, two, nWay(2))
	paths := make(map[uint32]int)
	for i := range uint32(10000) {
		leg1 := r1.Adjacency(r1.Pick(result(r1), r1.Hash4(i, 0x0a000001, 6, 80))).Port
		leg2 := r2.Adjacency(r2.Pick(result(r2), r2.Hash4(i, 0x0a000001, 6, 80))).Port
		paths[uint32(leg1)<<16|uint32(leg2)]++
	}
	within(t, paths, []float64{0.25, 0.25, 0.25, 0.25}, 0.05)
}

// Every input bit changes every output bit about half of the time.
func TestHashAvalanche(t *testing.T) {
	h := fib.NewHasher(3)
	const trials = 4000
	state := uint64(1)
	next := func() uint64 {
		state = state*6364136223846793005 + 1442695040888963407
		return state ^ state>>29
	}
	checkBits := func(name string, inputs int, hash func(flip int, v [6]uint64) uint32) {
		for bit := range inputs {
			var count [32]int
			for range trials {
				v := [6]uint64{next(), next(), next(), next(), next(), next()}
				d := hash(-1, v) ^ hash(bit, v)
				for d != 0 {
					count[bits.TrailingZeros32(d)]++
					d &= d - 1
				}
			}
			for out, n := range count {
				if p := float64(n) / trials; p < 0.45 || p > 0.55 {
					t.Errorf("%s: input bit %d flips output bit %d with probability %.3f", name, bit, out, p)
				}
			}
		}
	}
	flip := func(v *[6]uint64, word, bit int) { v[word] ^= 1 << bit }
	checkBits("Hash4", 104, func(b int, v [6]uint64) uint32 {
		switch {
		case b >= 72:
			flip(&v, 3, b-72)
		case b >= 64:
			flip(&v, 2, b-64)
		case b >= 0:
			flip(&v, b/32, b%32)
		}
		return h.Hash4(uint32(v[0]), uint32(v[1]), uint8(v[2]), uint32(v[3]))
	})
	checkBits("Hash6", 296, func(b int, v [6]uint64) uint32 {
		switch {
		case b >= 264:
			flip(&v, 5, b-264)
		case b >= 0:
			flip(&v, b/64, b%64)
		}
		return h.Hash6(v[0], v[1], v[2], v[3], uint8(v[4]), uint32(v[5]))
	})
}

func TestRemovingALegMovesOnlyItsFlows(t *testing.T) {
	f, r := newFIB(t)
	hashes := flows(f.Hasher, 10000)
	install(t, f, nWay(4))
	before := legsOf(r, result(r), hashes)
	route := nWay(4)
	route.NextHops = append(route.NextHops[:1], route.NextHops[2:]...)
	install(t, f, route)
	checkOnlyMoved(t, before, legsOf(r, result(r), hashes), ip("192.0.2.2"))
	within(t, spread(r, result(r), hashes), []float64{1. / 3, 1. / 3, 1. / 3}, 0.02)
}

// checkOnlyMoved fails unless exactly the flows of the leg that went are on
// other legs now.
func checkOnlyMoved(t *testing.T, before, after []netip.Addr, gone netip.Addr) {
	t.Helper()
	for i := range before {
		if (before[i] != after[i]) != (before[i] == gone) {
			t.Fatalf("flow %d went from %s to %s when %s was removed", i, before[i], after[i], gone)
		}
	}
}

func TestAddingALegMovesItsShareOnly(t *testing.T) {
	for n := 2; n <= 16; n++ {
		f, r := newFIB(t)
		hashes := flows(f.Hasher, 10000)
		install(t, f, nWay(n))
		before := legsOf(r, result(r), hashes)
		install(t, f, nWay(n+1))
		after := legsOf(r, result(r), hashes)
		if m, most := moved(before, after), float64(len(hashes))*(1/float64(n+1)+0.05); float64(m) > most {
			t.Errorf("%d legs and one: %d of %d flows moved, want at most %.0f", n, m, len(hashes), most)
		}
		shares := make([]float64, n+1)
		for i := range shares {
			shares[i] = 1 / float64(n+1)
		}
		within(t, spread(r, result(r), hashes), shares, 0.02)
	}
}

func TestPortFailureMovesOnlyItsFlowsAndComesBack(t *testing.T) {
	f, r := newFIB(t)
	hashes := flows(f.Hasher, 10000)
	install(t, f, nWay(4), forward("12.0.0.0/8", hop(3, "192.0.2.3")))
	before := legsOf(r, result(r), hashes)
	word := result(r)
	f.SetPortState(3, false)
	checkOnlyMoved(t, before, legsOf(r, result(r), hashes), ip("192.0.2.3"))
	expect(t, r, "12.0.0.1", fib.Forward, "192.0.2.3") // single legs are not touched
	for _, p := range []uint16{1, 2, 4} {
		f.SetPortState(p, false)
	}
	if got := r.Pick(result(r), 5); got != fib.AdjUnreachable {
		t.Fatalf("all ports dead: adjacency %d, want %d", got, fib.AdjUnreachable)
	}
	if s := f.Stats(); s.GroupsDead != 1 {
		t.Fatalf("GroupsDead = %d, want 1", s.GroupsDead)
	}
	for _, p := range []uint16{4, 3, 1, 2} {
		f.SetPortState(p, true)
	}
	if n := moved(before, legsOf(r, result(r), hashes)); n != 0 || result(r) != word {
		t.Fatalf("all ports back: %d flows are elsewhere", n)
	}
}

// Whatever ports did on the way, and whichever routes came meanwhile, the end
// depends only on which ports are up at the end.
func TestFinalStateDependsOnlyOnFinalLinkState(t *testing.T) {
	hashes := flows(fib.NewHasher(1), 500)
	rapid.Check(t, func(t *rapid.T) {
		weights := rapid.SliceOfN(rapid.Uint16Range(1, 9), 2, 6).Draw(t, "weights")
		route := nWay(len(weights))
		for i, w := range weights {
			route.NextHops[i].Weight = w
		}
		events := rapid.SliceOf(rapid.IntRange(0, 2*len(weights)-1)).Draw(t, "events")
		late := rapid.IntRange(0, len(events)).Draw(t, "route comes after")
		a := fib.New(fib.Options{Seed: 1})
		final := make(map[uint16]bool)
		for i, e := range events {
			if i == late {
				if err := a.Replace(route); err != nil {
					t.Fatal(err)
				}
			}
			port, up := uint16(e/2+1), e%2 == 0
			a.SetPortState(port, up)
			final[port] = up
		}
		b := fib.New(fib.Options{Seed: 1})
		for port, up := range final {
			b.SetPortState(port, up)
		}
		for _, f := range []*fib.FIB{a, b} {
			if err := f.Replace(route); err != nil {
				t.Fatal(err)
			}
		}
		ra, rb := a.NewReader(), b.NewReader()
		x, y := legsOf(ra, result(ra), hashes), legsOf(rb, result(rb), hashes)
		if n := moved(x, y); n != 0 {
			t.Fatalf("%d of %d flows differ", n, len(hashes))
		}
		for i, leg := range x {
			port := uint16(0)
			if leg.IsValid() {
				port = uint16(leg.As4()[3])
			}
			if up, said := final[port]; said && !up {
				t.Fatalf("flow %d goes to dead port %d", i, port)
			}
		}
	})
}

// The memory of how one group was made from another must not outlive the groups.
func TestGroupsAreNotFoundAfterTheirDeath(t *testing.T) {
	f, r := newFIB(t)
	other := nWay(2)
	other.Prefix = pfx("11.0.0.0/8")
	install(t, f, nWay(3), other)
	// The next hops stay, so that their indices do; the groups come and go.
	for port := range uint16(4) {
		f.AcquireAdjacency(port+1, netip.AddrFrom4([4]byte{192, 0, 2, byte(port + 1)}))
	}
	for range 3 {
		install(t, f, nWay(2), nWay(4)) // out of the group of "other", which lives on
		within(t, spread(r, result(r), flows(f.Hasher, 10000)), []float64{0.25, 0.25, 0.25, 0.25}, 0.02)
		if n := f.Stats().Groups; n != 2 {
			t.Fatalf("%d groups, want 2", n)
		}
		remove(t, f, "10.0.0.0/8")
		r.Quiescent()
		f.Reclaim()
		if s := f.Stats(); s.Groups != 1 || s.Retired != 0 {
			t.Fatalf("after the delete: %+v", s)
		}
	}
}
