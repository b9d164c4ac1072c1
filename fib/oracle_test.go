package fib_test

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"gorouter/fib"
)

// oracle is a FIB one can see the correctness of: a list, searched linearly.
type oracle struct {
	routes []fib.Route
	down   map[uint16]bool
}

func newOracle() *oracle { return &oracle{down: make(map[uint16]bool)} }

func (o *oracle) find(k fib.Key) int {
	return slices.IndexFunc(o.routes, func(r fib.Route) bool { return r.Key() == k })
}

func (o *oracle) replace(r fib.Route) {
	r.NextHops = slices.Clone(r.NextHops)
	for i := range r.NextHops {
		r.NextHops[i].Weight = max(r.NextHops[i].Weight, 1)
	}
	if i := o.find(r.Key()); i >= 0 {
		o.routes[i] = r
		return
	}
	o.routes = append(o.routes, r)
}

func (o *oracle) delete(k fib.Key) bool {
	i := o.find(k)
	if i >= 0 {
		o.routes = slices.Delete(o.routes, i, i+1)
	}
	return i >= 0
}

func (o *oracle) deleteTable(id uint32) int {
	n := len(o.routes)
	o.routes = slices.DeleteFunc(o.routes, func(r fib.Route) bool { return r.Table == id })
	return n - len(o.routes)
}

// covering returns the routes that forward, longest prefix first.
func (o *oracle) covering(table uint32, p netip.Prefix) []fib.Route {
	var out []fib.Route
	for _, r := range o.routes {
		if r.Table != table || r.TOS != 0 || r.Prefix.Bits() > p.Bits() || !r.Prefix.Contains(p.Addr()) {
			continue
		}
		better := func(q fib.Route) bool {
			return q.Table == r.Table && q.TOS == 0 && q.Prefix == r.Prefix && q.Metric < r.Metric
		}
		if !slices.ContainsFunc(o.routes, better) {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b fib.Route) int { return b.Prefix.Bits() - a.Prefix.Bits() })
	return out
}

// sorted returns all candidates of a table in the order of FIB.All.
func (o *oracle) sorted(table uint32) []fib.Route {
	var out []fib.Route
	for _, r := range o.routes {
		if r.Table == table {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b fib.Route) int {
		return cmp.Or(
			cmp.Compare(fib.FamilyOf(a.Prefix.Addr()), fib.FamilyOf(b.Prefix.Addr())),
			a.Prefix.Addr().Compare(b.Prefix.Addr()), cmp.Compare(a.Prefix.Bits(), b.Prefix.Bits()),
			cmp.Compare(a.Metric, b.Metric), cmp.Compare(a.TOS, b.TOS))
	})
	return out
}

// end is where a packet may go: an adjacency without its index and state.
type end struct {
	kind fib.Kind
	port uint16
	via  netip.Addr
}

// ends returns where packets to addr may go, with the weight of each.
func (o *oracle) ends(table uint32, addr netip.Addr) map[end]int {
	routes := o.covering(table, netip.PrefixFrom(addr, addr.BitLen()))
	if len(routes) == 0 {
		return map[end]int{{kind: fib.Miss}: 1}
	}
	r := routes[0]
	switch r.Kind {
	case fib.Blackhole, fib.Unreachable, fib.Prohibit:
		return map[end]int{{kind: r.Kind}: 1}
	}
	legs := make(map[end]int)
	for _, h := range r.NextHops {
		e := end{kind: r.Kind, port: h.Port, via: h.Via}
		if r.Kind == fib.Forward && !h.Via.IsValid() {
			e.kind = fib.Connected
		}
		legs[e] += int(h.Weight)
	}
	if len(legs) == 1 {
		return legs
	}
	for e := range legs {
		if o.down[e.port] {
			delete(legs, e)
		}
	}
	if len(legs) == 0 {
		return map[end]int{{kind: fib.Unreachable}: 1}
	}
	return legs
}

// observed returns where the FIB sends packets to addr, with the share of each
// over evenly spread hashes, in parts of samples.
const samples = 512

func observed(r *fib.Reader, tab fib.TableRef, addr netip.Addr) map[end]int {
	result := r.Lookup(tab, addr)
	out := make(map[end]int)
	n := uint32(1)
	if result&fib.GroupFlag != 0 {
		n = samples
	}
	for i := range n {
		idx := r.Pick(result, i*(1<<32/samples))
		a := r.Adjacency(idx)
		if a.Index != idx {
			return map[end]int{{kind: a.Kind, port: 0xdead}: int(idx)}
		}
		out[end{kind: a.Kind, port: a.Port, via: a.NextHop}]++
	}
	return out
}

// compareEnds checks members and shares.
func compareEnds(got, want map[end]int) error {
	total, all := 0, 0
	for _, w := range want {
		total += w
	}
	for _, n := range got {
		all += n
	}
	for e, w := range want {
		n, ok := got[e]
		if !ok {
			return fmt.Errorf("no packet goes to %v: got %v, want %v", e, got, want)
		}
		// A leg's buckets are off by rounding: one of 64 in unlucky cases.
		if diff := float64(n)/float64(all) - float64(w)/float64(total); diff > 0.02 || diff < -0.02 {
			return fmt.Errorf("%v gets %d of %d, weight is %d of %d", e, n, all, w, total)
		}
	}
	for e := range got {
		if _, ok := want[e]; !ok {
			return fmt.Errorf("packets go to %v: got %v, want %v", e, got, want)
		}
	}
	return nil
}

// check compares the answers for one address in one table.
func (o *oracle) check(f *fib.FIB, r *fib.Reader, table uint32, addr netip.Addr) error {
	addr = addr.Unmap() // as Lookup and Longest do
	if err := compareEnds(observed(r, r.Table(table), addr), o.ends(table, addr)); err != nil {
		return fmt.Errorf("table %d, %s: %w", table, addr, err)
	}
	want := o.covering(table, netip.PrefixFrom(addr, addr.BitLen()))
	got, ok := f.Longest(table, addr)
	if ok != (len(want) > 0) || ok && got.String() != want[0].String() {
		return fmt.Errorf("table %d, Longest(%s) = %v %v, want the first of %v", table, addr, got, ok, want)
	}
	return nil
}

// checkTable compares the lists.
func (o *oracle) checkTable(f *fib.FIB, table uint32) error {
	want := o.sorted(table)
	got := slices.Collect(f.All(table))
	if !slices.EqualFunc(got, want, equalRoutes) {
		return fmt.Errorf("table %d: All = %v, want %v", table, got, want)
	}
	n4 := 0
	for _, r := range want {
		if r.Prefix.Addr().Is4() {
			n4++
		}
	}
	if a, b := f.Len(table, fib.IPv4), f.Len(table, fib.IPv6); a != n4 || b != len(want)-n4 {
		return fmt.Errorf("table %d: Len = %d and %d, want %d and %d", table, a, b, n4, len(want)-n4)
	}
	return nil
}

func equalRoutes(a, b fib.Route) bool {
	if a.Key() != b.Key() || a.Kind != b.Kind || a.Source != b.Source {
		return false
	}
	return a.Kind >= fib.Blackhole || slices.Equal(a.NextHops, b.NextHops)
}
