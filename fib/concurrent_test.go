package fib_test

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"

	"gorouter/fib"
)

// Readers run beside a writer that changes everything it can. Route i only ever
// points to ports 4i..4i+3 or, while it is withdrawn, is covered by ports of the
// default: any other answer is neither the state before nor the state after, and
// an index reused too early shows as a foreign port.
func TestReadersSeeBeforeOrAfter(t *testing.T) {
	const prefixes, rounds = 40, 400
	f := fib.New(fib.Options{})
	prefix := func(i int) netip.Prefix { return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i), 0, 0}), 16) }
	route := func(i, n int) fib.Route {
		r := fib.Route{Table: mainTable, Prefix: prefix(i), Kind: fib.Forward}
		for leg := range 1 + n%3 {
			port := uint16(4*i + (n+leg)%4)
			r.NextHops = append(r.NextHops, fib.NextHop{Port: port, Via: netip.AddrFrom4([4]byte{192, 0, byte(n), byte(port) | 1})})
		}
		return r
	}
	install(t, f, fib.Route{Table: mainTable, Prefix: pfx("0.0.0.0/0"), Kind: fib.Blackhole})
	for i := range prefixes {
		install(t, f, route(i, 0))
	}
	var stop atomic.Bool
	var wg sync.WaitGroup
	for range 2 {
		r := f.NewReader()
		wg.Go(func() {
			defer r.Close()
			tab := r.Table(mainTable)
			dst, out := make([]uint32, prefixes), make([]uint32, prefixes)
			for i := range dst {
				dst[i] = 10<<24 | uint32(i)<<16 | 1
			}
			for n := uint32(0); !stop.Load(); n++ {
				r.Lookup4Batch(tab, dst, out)
				for i, result := range out {
					a := r.Adjacency(r.Pick(result, n*0x9e3779b9))
					own := a.Kind == fib.Forward && int(a.Port)/4 == i
					if !own && !(i%4 == 3 && a.Kind == fib.Blackhole) {
						t.Errorf("prefix %d: %s port %d via %s", i, a.Kind, a.Port, a.NextHop)
						return
					}
					if a.State == fib.Reachable && a.Rewrite[0] != byte(a.Port) {
						t.Errorf("torn adjacency %+v", a)
						return
					}
				}
				if n%64 == 0 {
					r.Offline()
					r.Online()
				}
				r.Quiescent()
			}
		})
	}
	for n := 1; n <= rounds && !t.Failed(); n++ {
		for i := range prefixes {
			if i%4 == 3 && n%2 == 0 {
				f.Delete(fib.Key{Table: mainTable, Prefix: prefix(i)})
				continue
			}
			rt := route(i, n+i)
			install(t, f, rt)
			h := rt.NextHops[0]
			if idx, ok := f.FindAdjacency(fib.Forward, h.Port, h.Via); ok {
				f.SetAdjacency(idx, func(a *fib.Adjacency) {
					a.State, a.RewriteLen, a.Rewrite[0] = fib.Reachable, 14, byte(a.Port)
				})
			}
		}
		if err := f.Batch(func(tx *fib.Tx) error {
			for i := 0; i < prefixes; i += 2 {
				if err := tx.Replace(route(i, n+1)); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	}
	stop.Store(true)
	wg.Wait()
	f.DeleteTable(mainTable)
	if s := f.Stats(); s.Adjacencies != 4 || s.Groups != 0 || s.Retired+s.Parked != 0 {
		t.Errorf("left behind: %+v", s)
	}
}

// A whole table is exchanged in one step: a batch of lookups never sees a mix.
func TestBatchIsSeenWholeOrNotAtAll(t *testing.T) {
	f := fib.New(fib.Options{})
	r := f.NewReader()
	const n = 64
	fill := func(kind fib.Kind) {
		if err := f.Batch(func(tx *fib.Tx) error {
			tx.DeleteTable(mainTable)
			for i := range n {
				p := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i), 0, 0}), 16)
				if err := tx.Replace(fib.Route{Table: mainTable, Prefix: p, Kind: kind}); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	}
	fill(fib.Blackhole)
	var stop atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		defer r.Close()
		tab := r.Table(mainTable)
		dst, out := make([]uint32, n), make([]uint32, n)
		for i := range dst {
			dst[i] = 10<<24 | uint32(i)<<16
		}
		for !stop.Load() {
			r.Lookup4Batch(tab, dst, out)
			for _, v := range out {
				if v != out[0] || v == fib.AdjMiss {
					t.Errorf("a mix of two states: %v", out)
					return
				}
			}
			r.Quiescent()
		}
	})
	for i := range 500 {
		fill([]fib.Kind{fib.Prohibit, fib.Unreachable, fib.Blackhole}[i%3])
	}
	stop.Store(true)
	wg.Wait()
}
