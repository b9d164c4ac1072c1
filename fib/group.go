package fib

import (
	"encoding/binary"
	"fmt"
	"iter"
	"slices"
)

// buckets is the published side of a group: adjacency indices, drawn by hash.
type buckets struct{ adj []uint32 }

func (b *buckets) pick(hash uint32) uint32 {
	return b.adj[uint64(hash)*uint64(len(b.adj))>>32]
}

// leg is one member of a group.
type leg struct {
	adj    uint32
	weight uint32
	port   uint16
}

// group is the writer's side of a multi-leg group. Groups with the same legs
// and the same layout are shared by all routes that need them. layout is the
// assignment with all ports up; what is published differs from it only in the
// buckets of legs over dead ports, so it depends on the present link state
// alone and not on the order of events.
type group struct {
	idx    uint32
	refs   int
	legs   []leg // ordered by port and gateway
	layout []uint16
	key    string // legs and layout
	fresh  bool   // registered in FIB.fresh under its legs
	live   int    // legs over live ports
}

// derivation is one remembered use of deriveLayout.
type derivation struct {
	from *group
	legs string
}

// maxDerived bounds FIB.derived, which only saves repeated work.
const maxDerived = 1024

// legsKey encodes legs for use as a map key.
func legsKey(legs []leg) string {
	b := make([]byte, 0, 8*len(legs))
	for _, l := range legs {
		b = binary.LittleEndian.AppendUint32(b, l.adj)
		b = binary.LittleEndian.AppendUint32(b, l.weight)
	}
	return string(b)
}

func weightsOf(legs []leg) []uint32 {
	w := make([]uint32, len(legs))
	for i, l := range legs {
		w[i] = l.weight
	}
	return w
}

// refGroup takes a reference to a group of the legs, of which there are two or
// more with references of their own. On success those references belong to the
// group; on error they stay the caller's. old is the group that the route had,
// or nil; flows stay on their legs as far as possible.
func (f *FIB) refGroup(legs []leg, old *group) (*group, error) {
	lk := legsKey(legs)
	if old == nil {
		if g := f.fresh[lk]; g != nil {
			f.shareGroup(g)
			return g, nil
		}
		g, err := f.groupOf(legs, lk, newLayout(weightsOf(legs)))
		if err == nil {
			g.fresh = true
			f.fresh[lk] = g
		}
		return g, err
	}
	if legsKey(old.legs) == lk {
		f.shareGroup(old)
		return old, nil
	}
	d := derivation{from: old, legs: lk}
	if g := f.derived[d]; g != nil {
		f.shareGroup(g)
		return g, nil
	}
	g, err := f.groupOf(legs, lk, derivedFrom(old, legs))
	if err != nil {
		return nil, err
	}
	if len(f.derived) >= maxDerived {
		clear(f.derived)
	}
	f.derived[d] = g
	return g, nil
}

// derivedFrom lays the legs out as near to the old group as possible.
func derivedFrom(old *group, legs []leg) []uint16 {
	from := make([]int, len(old.legs))
	kept := 0
	news := false
	for i, o := range old.legs {
		from[i] = slices.IndexFunc(legs, func(l leg) bool { return l.adj == o.adj })
		if from[i] >= 0 {
			kept++
			news = news || legs[from[i]].weight != o.weight
		}
	}
	return deriveLayout(old.layout, from, weightsOf(legs), news || kept < len(legs))
}

// shareGroup adds a reference to a group and drops the caller's references to
// the legs, which the group has already.
func (f *FIB) shareGroup(g *group) {
	g.refs++
	for _, l := range g.legs {
		f.adjInfo[l.adj].refs--
	}
}

// groupOf finds the group with exactly these legs and layout or makes it.
func (f *FIB) groupOf(legs []leg, lk string, layout []uint16) (*group, error) {
	key := []byte(lk)
	for _, b := range layout {
		key = binary.LittleEndian.AppendUint16(key, b)
	}
	if g := f.groupIndex[string(key)]; g != nil {
		f.shareGroup(g)
		return g, nil
	}
	idx, ok := f.groups.alloc()
	if !ok {
		return nil, fmt.Errorf("%w: all %d next-hop groups are in use: use fewer sets of next hops", ErrFull, maxSlots)
	}
	g := &group{idx: idx, refs: 1, legs: legs, layout: layout, key: string(key)}
	f.groupIndex[g.key] = g
	f.publishGroup(g)
	return g, nil
}

func (f *FIB) unrefGroup(g *group) {
	if g.refs--; g.refs > 0 {
		return
	}
	delete(f.groupIndex, g.key)
	if g.fresh {
		delete(f.fresh, legsKey(g.legs))
	}
	// Entries from or to the dead group must not be found again, and the
	// adjacency indices in their keys may get other meanings.
	clear(f.derived)
	for _, l := range g.legs {
		f.unrefAdj(l.adj)
	}
	f.groups.waiting++
	f.retire(&f.groups, uint64(g.idx))
}

// publishGroup computes the buckets for the present link state.
func (f *FIB) publishGroup(g *group) {
	layout := slices.Clone(g.layout)
	weights := weightsOf(g.legs)
	g.live = len(g.legs)
	for i, l := range g.legs {
		if f.down[l.port] {
			weights[i] = 0
			g.live--
		}
	}
	if g.live == 0 {
		f.groups.set(g.idx, &buckets{adj: []uint32{AdjUnreachable}})
		return
	}
	if g.live < len(g.legs) {
		for b, i := range layout {
			if weights[i] == 0 {
				layout[b] = vacant
			}
		}
		fill(layout, weights)
	}
	rec := &buckets{adj: make([]uint32, len(layout))}
	for b, i := range layout {
		rec.adj[b] = g.legs[i].adj
	}
	f.groups.set(g.idx, rec)
}

// SetPortState says whether a port can send. Legs over a dead port leave every
// group at once and come back with the port; only their own flows move. The
// cost grows with the number of groups that use the port, not with routes.
// Routes with a single leg are not touched: their result stays the adjacency of
// the dead port. Ports are up until said otherwise.
func (f *FIB) SetPortState(port uint16, up bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.down[port] == !up {
		return
	}
	if up {
		delete(f.down, port)
	} else {
		f.down[port] = true
	}
	for _, g := range f.groupIndex {
		if slices.ContainsFunc(g.legs, func(l leg) bool { return l.port == port }) {
			f.publishGroup(g)
		}
	}
}

// GroupInfo describes a next-hop group, for people and counters.
type GroupInfo struct {
	Result uint32 // the result word lookups give
	Users  int    // sets of candidates with equal next hops that share it
	Legs   []LegInfo
}

// LegInfo describes one leg of a group.
type LegInfo struct {
	Adjacency uint32 // index
	Weight    uint32
	Buckets   int // buckets it has now; 0 while its port is down
}

// Groups yields all multi-leg groups, by result word. It is a snapshot: the loop
// may call the FIB.
func (f *FIB) Groups() iter.Seq[GroupInfo] {
	return func(yield func(GroupInfo) bool) {
		f.mu.Lock()
		list := make([]GroupInfo, 0, len(f.groupIndex))
		for _, g := range f.groupIndex {
			list = append(list, f.groupInfo(g))
		}
		f.mu.Unlock()
		slices.SortFunc(list, func(a, b GroupInfo) int { return int(a.Result) - int(b.Result) })
		for _, g := range list {
			if !yield(g) {
				return
			}
		}
	}
}

func (f *FIB) groupInfo(g *group) GroupInfo {
	count := make(map[uint32]int)
	for _, a := range f.groups.get(g.idx).adj {
		count[a]++
	}
	info := GroupInfo{Result: g.idx | GroupFlag, Users: g.refs}
	for _, l := range g.legs {
		info.Legs = append(info.Legs, LegInfo{Adjacency: l.adj, Weight: l.weight, Buckets: count[l.adj]})
	}
	return info
}
