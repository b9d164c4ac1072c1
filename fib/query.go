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
	Parked      int // result numbers, node blocks and tables waiting for readers
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
		s.Routes4 += t.v4.routes
		s.Routes6 += t.v6.routes
	}
	s.Adjacencies = f.adj.live()
	s.Groups = f.groups.live()
	for _, g := range f.groupIndex {
		if g.live == 0 {
			s.GroupsDead++
		}
	}
	s.Retired = f.waiting()
	s.Parked = f.limbo.len() - s.Retired
	s.Readers = len(f.readers)
	for _, r := range f.readers {
		if r.seen.Load() != offline {
			s.Online++
		}
	}
	return s
}

// routeOf builds the Route of a candidate. The next hops are the caller's own.
func routeOf(table uint32, p netip.Prefix, c *cand) Route {
	return Route{Table: table, Prefix: p, TOS: c.tos, Metric: c.metric,
		Kind: c.paths.kind, NextHops: slices.Clone(c.paths.hops), Source: c.paths.source}
}

// Get returns all candidates of exactly this prefix, by metric, then TOS. Their
// weights are 1 where 0 was given.
func (f *FIB) Get(table uint32, p netip.Prefix) []Route {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.tables[table]
	if t == nil || !p.IsValid() || p != p.Masked() {
		return nil
	}
	s := t.family(p.Addr()).get(keyOf(p))
	if s == nil {
		return nil
	}
	return appendRoutes(nil, table, p, s)
}

func appendRoutes(routes []Route, table uint32, p netip.Prefix, s *candset) []Route {
	for i := range s.cands {
		routes = append(routes, routeOf(table, p, &s.cands[i]))
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
	m := t.family(p.Addr())
	p = p.Masked()
	var routes []Route
	k := keyOf(p)
	s := m.get(k)
	if s == nil || s.active == nil {
		k, s = m.cover(k)
	}
	for s != nil && len(routes) != limit {
		routes = append(routes, routeOf(table, k.prefix(m.number), s.chosen()))
		k, s = m.cover(k)
	}
	return routes
}

// Covered returns all candidates of all prefixes within p, p itself among them,
// ordered by address, then length. It looks at the whole table.
func (f *FIB) Covered(table uint32, p netip.Prefix) []Route {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.tables[table]
	if t == nil || !p.IsValid() {
		return nil
	}
	m := t.family(p.Addr())
	k := keyOf(p.Masked())
	var within []entry
	m.rib.each(func(o key, set uint32) {
		if k.contains(o) {
			within = append(within, entry{o, set})
		}
	})
	slices.SortFunc(within, func(a, b entry) int { return a.key.compare(b.key) })
	var routes []Route
	for i := range within {
		routes = appendRoutes(routes, table, within[i].prefix(m.number), f.sets[within[i].set])
	}
	return routes
}

// All yields all candidates of a table: IPv4 before IPv6, by address, then
// length, then metric, then TOS. It is a snapshot of the moment the loop
// starts: the loop may take its time and may call the FIB.
func (f *FIB) All(table uint32) iter.Seq[Route] {
	return func(yield func(Route) bool) {
		snaps, _ := f.snapshot(table, table)
		for _, s := range snaps {
			for i := range s.list {
				for _, r := range s.routes(i) {
					if !yield(r) {
						return
					}
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
		if t.routes() > 0 {
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
		return t.v4.routes
	case family == IPv6:
		return t.v6.routes
	}
	return 0
}
