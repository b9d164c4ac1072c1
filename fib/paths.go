package fib

import (
	"cmp"
	"encoding/binary"
	"net/netip"
	"slices"
)

// paths is what candidates with equal kind, next hops, source and result share,
// so that a full table does not hold a copy per route.
type paths struct {
	kind   Kind
	hops   []NextHop // as the caller gave them, weights at least 1
	source netip.Addr
	result uint32
	group  *group // for results with GroupFlag
	number uint32 // of the result, in FIB.results
	refs   int
	key    string

	singles []*candset // the sets that have this as their only candidate
}

// refPaths takes a reference to the paths of a valid route. old are the paths of
// the candidate it replaces, or nil.
func (f *FIB) refPaths(r *Route, old *paths) (*paths, error) {
	recent := f.recently(r)
	if p := *recent; p != nil && p.refs > 0 && p.group == nil && p.suits(r) {
		p.refs++
		return p, nil
	}
	var oldGroup *group
	if old != nil {
		oldGroup = old.group
	}
	result, g, err := f.resolve(r, oldGroup)
	if err != nil {
		return nil, err
	}
	key := f.pathsKey(r, result)
	p := f.paths[string(key)]
	if p != nil {
		p.refs++
		f.dropResult(result, g) // p has its own reference
	} else {
		number, err := f.refResult(result)
		if err != nil {
			f.dropResult(result, g)
			return nil, err
		}
		p = &paths{kind: r.Kind, source: r.Source, result: result, group: g, number: number, refs: 1, key: string(key)}
		if usesHops(r.Kind) {
			p.hops = make([]NextHop, len(r.NextHops))
			for i, h := range r.NextHops {
				h.Weight = max(h.Weight, 1)
				p.hops[i] = h
			}
		}
		f.paths[p.key] = p
	}
	if g == nil {
		*recent = p
	}
	return p, nil
}

// recently returns where paths like the route's are remembered if they were
// used lately. Only those without a group are: a group depends on the one it
// replaces.
func (f *FIB) recently(r *Route) **paths {
	h := uint64(r.Kind)
	if usesHops(r.Kind) && len(r.NextHops) > 0 {
		hop := &r.NextHops[0]
		hi, lo := uint64(0), uint64(0)
		if hop.Via.IsValid() {
			hi, lo = addrWords(hop.Via)
		}
		h |= fold(hi^lo^mix1, uint64(hop.Port)^mix2) << 8
	}
	return &f.recent[(h^h>>32)%uint64(len(f.recent))]
}

// suits says whether the route leads where the paths do.
func (p *paths) suits(r *Route) bool {
	way := Route{Kind: p.kind, Source: p.source, NextHops: p.hops}
	return way.sameWay(r)
}

func (f *FIB) unrefPaths(p *paths) {
	if p.refs--; p.refs == 0 {
		delete(f.paths, p.key)
		f.unrefResult(p.number)
		f.dropResult(p.result, p.group)
	}
}

func usesHops(k Kind) bool { return k == Forward || k == Connected || k == Local }

// pathsKey encodes all that makes paths equal, in a buffer of the FIB.
func (f *FIB) pathsKey(r *Route, result uint32) []byte {
	f.keyBuf = appendWay(binary.LittleEndian.AppendUint32(f.keyBuf[:0], result), r)
	return f.keyBuf
}

// appendWay encodes where a route leads.
func appendWay(b []byte, r *Route) []byte {
	b = appendAddr(append(b, byte(r.Kind)), r.Source)
	if usesHops(r.Kind) {
		for i := range r.NextHops {
			h := &r.NextHops[i]
			b = binary.LittleEndian.AppendUint16(b, h.Port)
			b = binary.LittleEndian.AppendUint16(b, max(h.Weight, 1))
			b = appendAddr(b, h.Via)
		}
	}
	return b
}

// sameWay says whether two routes lead to the same place, as appendWay has it.
func (r *Route) sameWay(o *Route) bool {
	if r.Kind != o.Kind || r.Source != o.Source {
		return false
	}
	return !usesHops(r.Kind) || slices.EqualFunc(r.NextHops, o.NextHops, func(a, b NextHop) bool {
		return a.Port == b.Port && a.Via == b.Via && max(a.Weight, 1) == max(b.Weight, 1)
	})
}

// appendAddr writes a length first, so that keys cannot be confused.
func appendAddr(b []byte, a netip.Addr) []byte {
	b = append(b, byte(a.BitLen()))
	switch a.BitLen() {
	case 32:
		x := a.As4()
		b = append(b, x[:]...)
	case 128:
		x := a.As16()
		b = append(b, x[:]...)
	}
	return b
}

// resolve finds the result word of a route and takes a reference to the
// adjacency or group behind it.
func (f *FIB) resolve(r *Route, old *group) (uint32, *group, error) {
	switch r.Kind {
	case Blackhole:
		return AdjBlackhole, nil, nil
	case Unreachable:
		return AdjUnreachable, nil, nil
	case Prohibit:
		return AdjProhibit, nil, nil
	}
	if len(r.NextHops) == 1 {
		idx, err := f.refAdj(hopKey(r.Kind, &r.NextHops[0]))
		return idx, nil, err
	}
	legs, err := f.refLegs(r)
	if err != nil {
		return 0, nil, err
	}
	if len(legs) == 1 {
		return legs[0].adj, nil, nil
	}
	g, err := f.refGroup(legs, old)
	if err != nil {
		f.dropLegs(legs)
		return 0, nil, err
	}
	return g.idx | GroupFlag, g, nil
}

// hopKey gives the adjacency of a next hop. On-link legs of a Forward route use
// the port's Connected adjacency.
func hopKey(kind Kind, h *NextHop) adjKey {
	if kind == Forward && !h.Via.IsValid() {
		kind = Connected
	}
	return adjKey{addr: h.Via, port: h.Port, kind: kind}
}

// refLegs takes a reference to the adjacency of every distinct next hop and
// orders them by port and gateway, so that the group does not depend on the
// order of the caller or of earlier routes.
func (f *FIB) refLegs(r *Route) ([]leg, error) {
	hops := slices.Clone(r.NextHops)
	slices.SortFunc(hops, func(a, b NextHop) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), a.Via.Compare(b.Via))
	})
	legs := make([]leg, 0, len(hops))
	for i := range hops {
		h := &hops[i]
		w := uint32(max(h.Weight, 1))
		if i > 0 && h.Port == hops[i-1].Port && h.Via == hops[i-1].Via {
			legs[len(legs)-1].weight += w
			continue
		}
		idx, err := f.refAdj(hopKey(r.Kind, h))
		if err != nil {
			f.dropLegs(legs)
			return nil, err
		}
		legs = append(legs, leg{adj: idx, weight: w, port: h.Port})
	}
	return legs, nil
}

func (f *FIB) dropLegs(legs []leg) {
	for _, l := range legs {
		f.unrefAdj(l.adj)
	}
}

func (f *FIB) dropResult(result uint32, g *group) {
	if g != nil {
		f.unrefGroup(g)
		return
	}
	f.unrefAdj(result)
}
