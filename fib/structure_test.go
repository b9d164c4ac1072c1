package fib_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/gaissmai/bart"

	"gorouter/fib"
	"gorouter/fib/fibtest"
)

// forms makes each structure from a table of a few thousand prefixes.
var forms = []struct {
	form4, form6 string
	sizes        fib.Sizes
}{
	{fib.FormTrie, fib.FormTrie, fib.Sizes{Promote4: 1 << 30, Promote6: 1 << 30}},
	{fib.FormNarrow, fib.FormDirect, fib.Sizes{Promote4: 1, Promote6: 1}},
	{fib.FormWide, fib.FormDirect, fib.Sizes{Promote4: 1, Promote6: 1, Results16: 2, Groups32: 64}},
}

// peer is a table of bart's beside one of ours. Route values are ports, 0 for
// none.
type peer struct {
	t     testing.TB
	f     *fib.FIB
	r     *fib.Reader
	tab   fib.TableRef
	bart  *bart.Table[uint16]
	via4  netip.Addr
	via6  netip.Addr
	hi    []uint64
	lo    []uint64
	dst   []uint32
	addrs []netip.Addr
}

func newPeer(t testing.TB, sizes fib.Sizes) *peer {
	f := fib.NewForTest(3, sizes)
	r := f.NewReader()
	t.Cleanup(r.Close)
	return &peer{t: t, f: f, r: r, tab: r.Table(mainTable), bart: new(bart.Table[uint16]), via4: ip("192.0.2.1"), via6: ip("fe80::1")}
}

func (p *peer) route(q netip.Prefix, port uint16) fib.Route {
	via := p.via4
	if q.Addr().Is6() {
		via = p.via6
	}
	return fib.Route{Table: mainTable, Prefix: q, Kind: fib.Forward, NextHops: []fib.NextHop{{Port: port, Via: via}}}
}

func (p *peer) insert(q netip.Prefix, port uint16) {
	p.t.Helper()
	if err := p.f.Replace(p.route(q, port)); err != nil {
		p.t.Fatal(err)
	}
	p.bart.Insert(q, port)
}

func (p *peer) delete(q netip.Prefix) {
	p.t.Helper()
	_, want := p.bart.Get(q)
	if got := p.f.Delete(fib.Key{Table: mainTable, Prefix: q}); got != want {
		p.t.Fatalf("Delete(%s) = %v, want %v", q, got, want)
	}
	p.bart.Delete(q)
}

// probe checks an address later, with the batch lookups.
func (p *peer) probe(addrs ...netip.Addr) {
	for _, a := range addrs {
		if a.IsValid() {
			p.addrs = append(p.addrs, a)
		}
	}
}

func (p *peer) check() {
	p.t.Helper()
	p.dst, p.hi, p.lo = p.dst[:0], p.hi[:0], p.lo[:0]
	for _, a := range p.addrs {
		if a.Is4() {
			p.dst = append(p.dst, host4(a))
		} else {
			h, l := halves(a)
			p.hi, p.lo = append(p.hi, h), append(p.lo, l)
		}
	}
	four, six := make([]uint32, len(p.dst)), make([]uint32, len(p.hi))
	p.r.Lookup4Batch(p.tab, p.dst, four)
	p.r.Lookup6Batch(p.tab, p.hi, p.lo, six)
	for _, a := range p.addrs {
		var got uint32
		if a.Is4() {
			got, four = four[0], four[1:]
		} else {
			got, six = six[0], six[1:]
		}
		want, ok := p.bart.Lookup(a)
		adj := p.r.Adjacency(got)
		if ok != (got != fib.AdjMiss) || ok && adj.Port != want {
			p.t.Fatalf("%s leads to result %d, port %d, want port %d, %v", a, got, adj.Port, want, ok)
		}
		if single := p.r.Lookup(p.tab, a); single != got {
			p.t.Fatalf("%s: batch %d, single %d", a, got, single)
		}
	}
	p.addrs = p.addrs[:0]
}

// edges probes the addresses on both sides of both ends of a prefix.
func (p *peer) edges(q netip.Prefix) {
	first, last := q.Addr(), lastAddr(q)
	p.probe(first, last, first.Prev(), last.Next())
}

// Random changes of a table like the Internet's, with prefixes of all lengths
// mixed in, against bart.
func TestChurnAgainstBart(t *testing.T) {
	for _, c := range forms {
		t.Run(c.form4+" and "+c.form6, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, 2))
			p := newPeer(t, c.sizes)
			pool := append(fibtest.Table4(1500, 1), fibtest.Table6(1500, 1)...)
			shortest := 0
			if raceEnabled {
				shortest = 10 // the detector makes a million stores too slow
			}
			for n := len(pool); len(pool) < 2*n; {
				// Any length, near or inside another prefix.
				a := pool[rng.IntN(n)].Addr()
				q := netip.PrefixFrom(a, shortest+rng.IntN(a.BitLen()+1-shortest)).Masked()
				if rng.IntN(2) == 0 {
					q = netip.PrefixFrom(lastAddr(q), min(a.BitLen(), q.Bits()+rng.IntN(24))).Masked()
				}
				pool = append(pool, q)
			}
			steps := 12000
			if raceEnabled {
				steps = 2000
			}
			for step := range steps {
				q := pool[rng.IntN(len(pool))]
				if rng.IntN(5) < 2 {
					p.delete(q)
				} else {
					p.insert(q, uint16(1+rng.IntN(50)))
				}
				p.edges(q)
				p.edges(pool[rng.IntN(len(pool))])
				if step%4 == 0 {
					p.check()
				}
				if step%64 == 0 {
					p.r.Quiescent()
				}
				if step == steps/2 {
					if a, b := fib.FormForTest(p.tab, fib.IPv4), fib.FormForTest(p.tab, fib.IPv6); a != c.form4 || b != c.form6 {
						t.Fatalf("forms are %s and %s", a, b)
					}
				}
			}
			for _, q := range pool {
				p.edges(q)
			}
			p.check()
			for _, q := range pool {
				p.delete(q)
			}
			p.edges(pfx("0.0.0.0/1"))
			p.edges(pfx("2000::/3"))
			p.check()
			p.r.Quiescent()
			p.f.Reclaim()
			if s := p.f.Stats(); s.Retired+s.Parked != 0 || s.Adjacencies != 4 {
				t.Fatalf("left behind: %+v", s)
			}
			for _, family := range []fib.Family{fib.IPv4, fib.IPv6} {
				if units, groups := fib.MemoryForTest(p.f, mainTable, family); units != 0 || groups != 0 {
					t.Errorf("IPv%d: %d units and %d groups in use in an empty table", family, units, groups)
				}
			}
		})
	}
}

// Batches of all sizes, some of which build the table anew.
func TestBatchesAgainstBart(t *testing.T) {
	for _, c := range forms {
		t.Run(c.form4+" and "+c.form6, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(3, 4))
			p := newPeer(t, c.sizes)
			pool := append(fibtest.Table4(1000, 5), fibtest.Table6(1000, 5)...)
			pool = append(pool, pfx("0.0.0.0/0"), pfx("::/0"), pfx("2000::/3"), pfx("128.0.0.0/1"))
			for i, q := range pool[:2000] {
				if i%3 == 0 { // whole nests
					pool = append(pool, netip.PrefixFrom(q.Addr(), q.Bits()+(q.Addr().BitLen()-q.Bits())/2).Masked())
				}
			}
			rounds := 150
			if raceEnabled {
				rounds = 15
			}
			for range rounds {
				err := p.f.Batch(func(tx *fib.Tx) error {
					for range 1 << rng.IntN(9) {
						q := pool[rng.IntN(len(pool))]
						p.edges(q)
						if rng.IntN(3) == 0 {
							tx.Delete(fib.Key{Table: mainTable, Prefix: q})
							p.bart.Delete(q)
							continue
						}
						port := uint16(1 + rng.IntN(50))
						p.bart.Insert(q, port)
						if err := tx.Replace(p.route(q, port)); err != nil {
							return err
						}
					}
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				p.edges(pool[rng.IntN(len(pool))])
				p.check()
				p.r.Quiescent()
			}
			for _, q := range pool {
				p.edges(q)
			}
			p.check()
		})
	}
}

// A table grows through all forms and shrinks again.
func TestPromotionAndDemotion(t *testing.T) {
	p := newPeer(t, fib.Sizes{Promote4: 200, Promote6: 300, Results16: 40, Groups16: 8, Groups32: 16})
	t4, t6 := fibtest.Table4(600, 9), fibtest.Table6(600, 9)
	form := func() string {
		return fib.FormForTest(p.tab, fib.IPv4) + "; " + fib.FormForTest(p.tab, fib.IPv6)
	}
	var seen []string
	note := func() {
		if s := form(); len(seen) == 0 || seen[len(seen)-1] != s {
			seen = append(seen, s)
		}
	}
	for i := range t4 {
		port := uint16(1 + i%20)
		if i >= 400 {
			port = uint16(i) // more results than 16 bits hold here
		}
		p.insert(t4[i], port)
		p.insert(t6[i], port)
		p.edges(t4[i])
		p.edges(t6[i])
		p.check()
		note()
	}
	for i := range 40 { // more groups than the first wide table has
		p.insert(netip.PrefixFrom(t4[i].Addr(), 32), 7)
		p.edges(netip.PrefixFrom(t4[i].Addr(), 32))
		p.check()
	}
	for i := range t4 {
		p.delete(t4[i])
		p.delete(t6[i])
		p.edges(t4[i])
		p.edges(t6[i])
		p.check()
		note()
	}
	want := []string{
		fib.FormTrie + "; " + fib.FormTrie,
		fib.FormNarrow + "; " + fib.FormTrie,
		fib.FormNarrow + "; " + fib.FormDirect,
		fib.FormWide + "; " + fib.FormDirect,
		fib.FormWide + "; " + fib.FormTrie,
		fib.FormTrie + "; " + fib.FormTrie,
	}
	if fmt.Sprint(seen) != fmt.Sprint(want) {
		t.Errorf("forms were\n%q, want\n%q", seen, want)
	}
}

// Groups and blocks of nodes are not free before the readers are done.
func TestGroupsAndBlocksWaitForReaders(t *testing.T) {
	p := newPeer(t, fib.Sizes{Promote4: 1, Promote6: 1})
	used := func() [2]int {
		_, groups := fib.MemoryForTest(p.f, mainTable, fib.IPv4)
		units, _ := fib.MemoryForTest(p.f, mainTable, fib.IPv6)
		return [2]int{groups, units}
	}
	p.insert(pfx("10.0.0.0/8"), 1)
	p.insert(pfx("2001:db8::/32"), 1)
	before := used()
	p.insert(pfx("10.0.0.1/32"), 2)
	p.insert(pfx("2001:db8::1/128"), 2)
	with := used()
	if with[0] != before[0]+1 || with[1] <= before[1] {
		t.Fatalf("groups and units %v before, %v with host routes", before, with)
	}
	p.delete(pfx("10.0.0.1/32"))
	p.delete(pfx("2001:db8::1/128"))
	p.f.Reclaim()
	if now := used(); now[0] < with[0] || now[1] < with[1] {
		t.Fatalf("groups and units %v with host routes, %v free at once", with, now)
	}
	p.r.Quiescent()
	p.f.Reclaim()
	if now := used(); now != before {
		t.Fatalf("groups and units %v before, %v after", before, now)
	}
}
