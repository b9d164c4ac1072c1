package fib

import (
	"iter"
	"net/netip"
	"slices"
)

// Stats are counts of a FIB. The first part describes the present, the counters
// run from New.
type Stats struct {
	Tables      int // with a TableRef or routes, ever
	Routes4     int // candidates, all tables
	Routes6     int
	Adjacencies int // in use, with the fixed ones
	Groups      int // multi-leg groups in use
	GroupsDead  int // of those, groups without a live leg
	Retired     int // indices waiting for readers
	Readers     int
	Online      int // of those, readers that are not offline

	Replaced      uint64 // routes added, replaced or confirmed
	Deleted       uint64 // candidates removed
	DeletesAbsent uint64 // deletions of what was not there
	Full          uint64 // changes refused for want of an index
	Misuses       uint64 // releases or edits of adjacencies not held or not in use
}

// Stats returns the counts.
func (f *FIB) Stats() Stats {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.stats
	s.Tables = len(f.tables)
	for _, t := range f.tables {
		s.Routes4 += t.routes4
		s.Routes6 += t.routes6
	}
	s.Adjacencies = f.adj.live()
	s.Groups = f.groups.live()
	for _, g := range f.groupIndex {
		if g.live == 0 {
			s.GroupsDead++
		}
	}
	s.Retired = len(f.limbo)
	s.Readers = len(f.readers)
	for _, r := range f.readers {
		if r.seen.Load() != offline {
			s.Online++
		}
	}
	return s
}

// route builds the Route of a candidate. The next hops are the caller's own.
func (t *table) route(p netip.Prefix, c *cand) Route {
	return Route{Table: t.id, Prefix: p, TOS: c.tos, Metric: c.metric,
		Kind: c.paths.kind, NextHops: slices.Clone(c.paths.hops), Source: c.paths.source}
}

// Get returns all candidates of exactly this prefix, by metric, then TOS. Their
// weights are 1 where 0 was given.
func (f *FIB) Get(table uint32, p netip.Prefix) []Route {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.tables[table]
	if t == nil || p != p.Masked() {
		return nil
	}
	cands, _ := t.rib.Get(p)
	return t.append(nil, p, cands)
}

func (t *table) append(routes []Route, p netip.Prefix, cands []cand) []Route {
	for i := range cands {
		routes = append(routes, t.route(p, &cands[i]))
	}
	return routes
}

// Longest returns the route that forwards packets to addr. Zones are ignored,
// mapped IPv4 addresses count as IPv4, as in Reader.Lookup.
func (f *FIB) Longest(table uint32, addr netip.Addr) (Route, bool) {
	addr = addr.Unmap().WithZone("")
	if !addr.IsValid() {
		return Route{}, false
	}
	routes := f.covering(table, netip.PrefixFrom(addr, addr.BitLen()), 1)
	if len(routes) == 0 {
		return Route{}, false
	}
	return routes[0], true
}

// Covering returns the active routes of all prefixes that contain p, p itself
// among them, the longest first.
func (f *FIB) Covering(table uint32, p netip.Prefix) []Route {
	return f.covering(table, p, -1)
}

func (f *FIB) covering(table uint32, p netip.Prefix, limit int) []Route {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.tables[table]
	if t == nil || !p.IsValid() {
		return nil
	}
	var routes []Route
	for q, cands := range t.rib.Supernets(p.Masked()) {
		if len(routes) == limit {
			break
		}
		if a := active(cands); a != nil {
			routes = append(routes, t.route(q, a))
		}
	}
	return routes
}

// Covered returns all candidates of all prefixes within p, p itself among them,
// ordered by address, then length.
func (f *FIB) Covered(table uint32, p netip.Prefix) []Route {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.tables[table]
	if t == nil || !p.IsValid() {
		return nil
	}
	var routes []Route
	for q, cands := range t.rib.Subnets(p.Masked()) {
		routes = t.append(routes, q, cands)
	}
	return routes
}

// All yields all candidates of a table: IPv4 before IPv6, by address, then
// length, then metric, then TOS. It is a snapshot of the moment the loop
// starts: the loop may take its time and may call the FIB.
func (f *FIB) All(table uint32) iter.Seq[Route] {
	return func(yield func(Route) bool) {
		type entry struct {
			prefix netip.Prefix
			cands  []cand
		}
		f.mu.Lock()
		t := f.tables[table]
		if t == nil {
			f.mu.Unlock()
			return
		}
		entries := make([]entry, 0, t.rib.Size())
		for p, cands := range t.rib.AllSorted() {
			entries = append(entries, entry{p, cands})
		}
		f.mu.Unlock()
		for _, e := range entries {
			for i := range e.cands {
				if !yield(t.route(e.prefix, &e.cands[i])) {
					return
				}
			}
		}
	}
}

// Tables returns the numbers of all tables that have routes, ascending.
func (f *FIB) Tables() []uint32 {
	f.mu.Lock()
	defer f.mu.Unlock()
	var ids []uint32
	for id, t := range f.tables {
		if t.routes4+t.routes6 > 0 {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// Len returns the number of candidates of one family in a table.
func (f *FIB) Len(table uint32, family Family) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.tables[table]
	switch {
	case t == nil:
		return 0
	case family == IPv4:
		return t.routes4
	case family == IPv6:
		return t.routes6
	}
	return 0
}
