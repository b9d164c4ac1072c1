package fib

import (
	"iter"
	"slices"
)

// Difference is a candidate that two tables do not have alike. A is that of the
// first table and B that of the second; one of them may be nil.
type Difference struct{ A, B *Route }

// Diff yields what the tables a and b do not have in common, in the order of
// All. Candidates correspond when they agree in prefix, metric and TOS; they are
// alike when they lead to the same place. Both tables are taken at one moment,
// when the loop starts: the loop may take its time and may call the FIB.
func (f *FIB) Diff(a, b uint32) iter.Seq[Difference] {
	return func(yield func(Difference) bool) {
		from, to := f.snapshot(a, b)
		for i := range from {
			if !from[i].diff(&to[i], yield) {
				return
			}
		}
	}
}

// diff merges two sorted snapshots.
func (a *snapshot) diff(b *snapshot, yield func(Difference) bool) bool {
	i, j := 0, 0
	for i < len(a.list) || j < len(b.list) {
		order := 0
		switch {
		case i == len(a.list):
			order = 1
		case j == len(b.list):
			order = -1
		default:
			order = a.list[i].key.compare(b.list[j].key)
		}
		var left, right []Route
		if order <= 0 {
			left = a.routes(i)
			i++
		}
		if order >= 0 {
			right = b.routes(j)
			j++
		}
		if !diffRoutes(left, right, yield) {
			return false
		}
	}
	return true
}

// diffRoutes merges the candidates of one prefix.
func diffRoutes(a, b []Route, yield func(Difference) bool) bool {
	for len(a) > 0 || len(b) > 0 {
		order := 0
		switch {
		case len(a) == 0:
			order = 1
		case len(b) == 0:
			order = -1
		default:
			x, y := cand{metric: a[0].Metric, tos: a[0].TOS}, cand{metric: b[0].Metric, tos: b[0].TOS}
			order = x.compare(&y)
		}
		var d Difference
		if order <= 0 {
			d.A, a = &a[0], a[1:]
		}
		if order >= 0 {
			d.B, b = &b[0], b[1:]
		}
		if order == 0 && d.A.sameWay(d.B) {
			continue
		}
		if !yield(d) {
			return false
		}
	}
	return true
}

// snapshot is the candidates of one family of a table at one moment.
type snapshot struct {
	table  uint32
	number Family
	list   []entry
	sets   []*candset
}

// routes returns the candidates of prefix i.
func (s *snapshot) routes(i int) []Route {
	e := &s.list[i]
	return appendRoutes(nil, s.table, e.prefix(s.number), s.sets[e.set])
}

// snapshot takes the state of two tables, IPv4 before IPv6, under the lock and
// sorts it without. A table that does not exist is empty.
func (f *FIB) snapshot(a, b uint32) (first, second [2]snapshot) {
	var ribs [4]rib
	f.mu.Lock()
	sets := slices.Clone(f.sets)
	for i, id := range [2]uint32{a, b} {
		if t := f.tables[id]; t != nil && (i == 0 || a != b) {
			ribs[2*i], ribs[2*i+1] = t.v4.rib.copy(), t.v6.rib.copy()
		}
	}
	f.mu.Unlock()
	take := func(r rib, id uint32, number Family) snapshot {
		s := snapshot{table: id, number: number, sets: sets}
		if r != nil {
			s.list = r.sorted()
		}
		return s
	}
	first = [2]snapshot{take(ribs[0], a, IPv4), take(ribs[1], a, IPv6)}
	if a == b {
		return first, first
	}
	return first, [2]snapshot{take(ribs[2], b, IPv4), take(ribs[3], b, IPv6)}
}
