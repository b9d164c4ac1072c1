package fib

import (
	"cmp"
	"net/netip"
	"slices"
	"sync/atomic"

	"github.com/gaissmai/bart"
)

// cand is one candidate of a prefix.
type cand struct {
	paths  *paths
	metric uint32
	tos    uint8
}

func (c *cand) compare(o *cand) int {
	return cmp.Or(cmp.Compare(c.metric, o.metric), cmp.Compare(c.tos, o.tos))
}

// table is one routing table: the candidates of every prefix, which is the
// writer's, and the published lookup structure.
type table struct {
	id      uint32
	rib     *bart.Table[[]cand] // candidates by metric and TOS; slices are never edited
	routes4 int                 // candidates
	routes6 int

	dirty   bool
	emptied bool           // start from nothing at the next publication
	changed []netip.Prefix // since the last publication
	pub     atomic.Pointer[lpm]
}

// table returns the table and makes it if needed.
func (f *FIB) table(id uint32) *table {
	t := f.tables[id]
	if t == nil {
		t = &table{id: id, rib: new(bart.Table[[]cand])}
		t.pub.Store(emptyLPM)
		f.tables[id] = t
	}
	return t
}

// active returns the candidate that forwards: TOS 0, lowest metric.
func active(cands []cand) *cand {
	for i := range cands {
		if cands[i].tos == 0 {
			return &cands[i]
		}
	}
	return nil
}

func (t *table) find(k Key) *paths {
	cands, _ := t.rib.Get(k.Prefix)
	for i := range cands {
		if cands[i].metric == k.Metric && cands[i].tos == k.TOS {
			return cands[i].paths
		}
	}
	return nil
}

// put adds or replaces a candidate.
func (t *table) put(p netip.Prefix, c cand) {
	old, _ := t.rib.Get(p)
	i, found := slices.BinarySearchFunc(old, &c, func(o cand, c *cand) int { return o.compare(c) })
	cands := make([]cand, 0, len(old)+1)
	cands = append(append(cands, old[:i]...), c)
	if found {
		i++
	} else {
		t.count(p, 1)
	}
	t.rib.Insert(p, append(cands, old[i:]...))
	t.changed = append(t.changed, p)
}

// take removes a candidate and returns its paths, or nil if there is none.
func (t *table) take(k Key) *paths {
	old, _ := t.rib.Get(k.Prefix)
	i := slices.IndexFunc(old, func(c cand) bool { return c.metric == k.Metric && c.tos == k.TOS })
	if i < 0 {
		return nil
	}
	if len(old) == 1 {
		t.rib.Delete(k.Prefix)
	} else {
		t.rib.Insert(k.Prefix, slices.Concat(old[:i], old[i+1:]))
	}
	t.count(k.Prefix, -1)
	t.changed = append(t.changed, k.Prefix)
	return old[i].paths
}

func (t *table) count(p netip.Prefix, delta int) {
	if p.Addr().Is4() {
		t.routes4 += delta
	} else {
		t.routes6 += delta
	}
}

// reset removes everything.
func (t *table) reset() {
	t.rib = new(bart.Table[[]cand])
	t.routes4, t.routes6 = 0, 0
	t.emptied = true
	t.changed = nil
}

// publish brings the lookup structure up to date with one store.
func (t *table) publish() {
	base := t.pub.Load()
	if t.emptied {
		base = emptyLPM
	}
	changes := make([]change, 0, len(t.changed))
	for _, p := range t.changed {
		c := change{prefix: p, gone: true}
		cands, _ := t.rib.Get(p)
		if a := active(cands); a != nil {
			c.result, c.gone = a.paths.result, false
		}
		if !base.has(&c) { // a candidate that is not the active one came or went
			changes = append(changes, c)
		}
	}
	if len(changes) > 0 || t.emptied {
		t.pub.Store(base.apply(changes))
	}
	t.dirty, t.emptied = false, false
	if cap(t.changed) > 4096 {
		t.changed = nil // a bulk load must not pin its memory
	}
	t.changed = t.changed[:0]
}
