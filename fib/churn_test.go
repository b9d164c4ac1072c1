package fib_test

import (
	"math/rand/v2"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/gaissmai/bart"

	"gorouter/fib"
)

// schedule is a round of changes with the right answer of every probe after
// each of them. The last change leads back to the state before the first.
type schedule struct {
	changes []scheduled
	probes  []netip.Addr
	answers [][]uint16 // after change i; ports, 0 for none
}

type scheduled struct {
	prefix netip.Prefix
	port   uint16 // 0 withdraws
}

// newSchedule changes prefixes of all lengths around some bases. Nearly every
// change has a port that no other route has then, so that its adjacency,
// its result number and what held them are given up and taken again.
func newSchedule(bases []netip.Addr, shortest, changes int) *schedule {
	rng := rand.New(rand.NewPCG(11, uint64(len(bases))))
	s := new(schedule)
	var pool []netip.Prefix
	for _, b := range bases {
		pool = append(pool, netip.PrefixFrom(b, 0).Masked())
		for bits := shortest; bits <= b.BitLen(); bits += 1 + rng.IntN(max(1, b.BitLen()/16)) {
			p := netip.PrefixFrom(b, bits).Masked()
			pool = append(pool, p)
			s.probes = append(s.probes, p.Addr(), lastAddr(p))
		}
	}
	oracle := new(bart.Table[uint16])
	apply := func(p netip.Prefix, port uint16) {
		if port == 0 {
			oracle.Delete(p)
		} else {
			oracle.Insert(p, port)
		}
		now := make([]uint16, len(s.probes))
		for i, a := range s.probes {
			now[i], _ = oracle.Lookup(a)
		}
		s.changes = append(s.changes, scheduled{p, port})
		s.answers = append(s.answers, now)
	}
	for len(s.changes) < changes {
		p, port := pool[rng.IntN(len(pool))], uint16(0)
		// Mostly full in one half, mostly empty in the other.
		if full := len(s.changes) < changes/2; rng.IntN(10) < 3 != full {
			port = uint16(1 + len(s.changes))
		}
		apply(p, port)
	}
	for _, p := range pool {
		apply(p, 0)
	}
	return s
}

// Readers on all processors check every answer of every batch against the
// states between the change that was complete before the batch and the one
// that had begun after it. Everything given up is taken again at once.
func TestAnswersUnderChurn(t *testing.T) {
	changes, rounds, shortest := 1500, 8, 6
	if raceEnabled {
		changes, rounds, shortest = 400, 2, 12
	}
	four := []netip.Addr{ip("10.1.2.3"), ip("10.1.2.131"), ip("10.1.3.3"), ip("200.0.0.1"), ip("200.255.255.255")}
	six := []netip.Addr{ip("2001:db8:aaaa:5555::1"), ip("2001:db8:aaaa:5555::ffff:1"), ip("2001:db8:aaab::"), ip("2a00::1"), ip("fd00::5")}
	type run struct {
		name  string
		sizes fib.Sizes
	}
	runs := []run{{"changing forms", fib.Sizes{Promote4: 30, Promote6: 30, Groups16: 2, Groups32: 4}}}
	for _, c := range forms {
		runs = append(runs, run{c.form4 + " and " + c.form6, c.sizes})
	}
	for _, c := range runs {
		t.Run(c.name+"/IPv4", func(t *testing.T) { underChurn(t, c.sizes, newSchedule(four, shortest, changes), rounds) })
		t.Run(c.name+"/IPv6", func(t *testing.T) { underChurn(t, c.sizes, newSchedule(six, shortest, changes), rounds) })
	}
}

func underChurn(t *testing.T, sizes fib.Sizes, s *schedule, rounds int) {
	f := fib.NewForTest(1, sizes)
	// State i is the one after change i-1; the states repeat.
	var begun, done atomic.Int64
	var stop atomic.Bool
	var checked atomic.Int64
	var wg sync.WaitGroup
	n := int64(len(s.changes))
	right := func(state int64, probe int) uint16 { return s.answers[(state+n-1)%n][probe] }
	for range runtime.GOMAXPROCS(0) {
		r := f.NewReader()
		wg.Go(func() {
			defer r.Close()
			tab := r.Table(mainTable)
			var dst []uint32
			var hi, lo []uint64
			for _, a := range s.probes {
				if a.Is4() {
					dst = append(dst, host4(a))
				} else {
					h, l := halves(a)
					hi, lo = append(hi, h), append(lo, l)
				}
			}
			out := make([]uint32, len(s.probes))
			for turn := 0; !stop.Load(); turn++ {
				from := done.Load()
				if dst != nil {
					r.Lookup4Batch(tab, dst, out)
				} else {
					r.Lookup6Batch(tab, hi, lo, out)
				}
				to := begun.Load()
				for i, w := range out {
					port := uint16(0)
					if w != fib.AdjMiss {
						port = r.Adjacency(w).Port
					}
					ok := false
					for state := from; state <= to && !ok; state++ {
						ok = right(state, i) == port
					}
					if !ok {
						t.Errorf("%s leads to port %d (result %d), which is right in none of the states %d to %d", s.probes[i], port, w, from, to)
						return
					}
				}
				checked.Add(1)
				if turn%64 == 63 {
					r.Offline()
					runtime.Gosched()
					r.Online()
				}
				r.Quiescent()
			}
		})
	}
	via := ip("192.0.2.1")
	if s.probes[0].Is6() {
		via = ip("fe80::1")
	}
	for range rounds {
		for _, c := range s.changes {
			begun.Add(1)
			if c.port == 0 {
				f.Delete(fib.Key{Table: mainTable, Prefix: c.prefix})
			} else {
				install(t, f, fib.Route{Table: mainTable, Prefix: c.prefix, Kind: fib.Forward, NextHops: []fib.NextHop{{Port: c.port, Via: via}}})
			}
			done.Add(1)
			if t.Failed() {
				break
			}
		}
	}
	stop.Store(true)
	wg.Wait()
	if checked.Load() == 0 {
		t.Error("no reader finished a batch")
	}
	f.Reclaim()
	if s := f.Stats(); s.Retired+s.Parked != 0 || s.Adjacencies != 4 || s.Routes4+s.Routes6 != 0 {
		t.Errorf("left behind: %+v", s)
	}
}
