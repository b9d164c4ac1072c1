package fib

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
)

// Options are the options of a FIB. The zero value is good.
type Options struct {
	// Seed of the flow hash; 0 takes a random one. Two routers in a row must
	// not have the same.
	Seed uint64
}

// FIB holds all tables, groups and adjacencies. All methods are safe for use
// from any goroutine; see the package comment for the contract with readers.
type FIB struct {
	Hasher

	mu    sync.Mutex
	stats Stats // its counters only

	tables map[uint32]*table
	dirty  []*table // to be published by finish
	drops  []*paths // to be released by finish, after publication

	paths  map[string]*paths
	keyBuf []byte

	adjIndex map[adjKey]uint32
	adjInfo  []adjInfo // by index

	groupIndex map[string]*group // by legs and layout
	fresh      map[string]*group // by legs, laid out from nothing
	derived    map[derivation]*group
	down       map[uint16]bool // ports

	readers []*Reader
	limbo   []retired // in order of epoch

	adj    slots[Adjacency]
	groups slots[buckets]

	_     [128]byte // readers load epoch once per batch
	epoch atomic.Uint64
	_     [128]byte
}

// New returns an empty FIB.
func New(o Options) *FIB {
	if o.Seed == 0 {
		o.Seed = rand.Uint64()
	}
	f := &FIB{
		Hasher:     NewHasher(o.Seed),
		tables:     make(map[uint32]*table),
		paths:      make(map[string]*paths),
		groupIndex: make(map[string]*group),
		fresh:      make(map[string]*group),
		derived:    make(map[derivation]*group),
		down:       make(map[uint16]bool),
	}
	f.epoch.Store(1)
	f.initAdjacencies()
	f.groups.init(&buckets{adj: []uint32{AdjMiss}})
	return f
}

// Table resolves a table number for lookups and makes the table if needed.
func (f *FIB) Table(id uint32) TableRef {
	f.mu.Lock()
	defer f.mu.Unlock()
	return TableRef{t: f.table(id)}
}

// Replace adds the route, or replaces the candidate with the same key, in one
// step: every lookup sees either the state before or the state after. A route
// that is refused changes nothing. Errors wrap ErrInvalid or ErrFull. The
// caller may reuse r.NextHops.
func (f *FIB) Replace(r Route) error {
	if err := r.Validate(); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.replace(&r)
	f.finish()
	return err
}

// Delete removes one candidate; the next one, if any, takes over in the same
// step. It returns false, and counts (Stats.DeletesAbsent), when there is none
// with this key.
func (f *FIB) Delete(k Key) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	ok := f.remove(&k)
	f.finish()
	return ok
}

// DeleteTable removes all routes of a table and returns their number. The
// table's TableRefs stay valid.
func (f *FIB) DeleteTable(id uint32) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.removeTable(id)
	f.finish()
	return n
}

func (f *FIB) replace(r *Route) error {
	t := f.table(r.Table)
	old := t.find(r.Key())
	var oldGroup *group
	if old != nil {
		oldGroup = old.group
	}
	p, err := f.refPaths(r, oldGroup)
	if err != nil {
		f.stats.Full++
		return fmt.Errorf("route %s table %d: %w", r.Prefix, r.Table, err)
	}
	f.stats.Replaced++
	if old == p {
		p.refs--
		return nil
	}
	t.put(r.Prefix, cand{paths: p, metric: r.Metric, tos: r.TOS})
	f.touched(t)
	if old != nil {
		f.drops = append(f.drops, old)
	}
	return nil
}

func (f *FIB) remove(k *Key) bool {
	t := f.tables[k.Table]
	if t == nil {
		f.stats.DeletesAbsent++
		return false
	}
	var old *paths
	if k.Prefix == k.Prefix.Masked() { // the RIB would mask it silently
		old = t.take(*k)
	}
	if old == nil {
		f.stats.DeletesAbsent++
		return false
	}
	f.stats.Deleted++
	f.touched(t)
	f.drops = append(f.drops, old)
	return true
}

func (f *FIB) removeTable(id uint32) int {
	t := f.tables[id]
	if t == nil {
		return 0
	}
	n := 0
	for _, cands := range t.rib.All() {
		for _, c := range cands {
			f.drops = append(f.drops, c.paths)
			n++
		}
	}
	f.stats.Deleted += uint64(n)
	t.reset()
	f.touched(t)
	return n
}

// finish ends every change: publish first, then release what became unused,
// then see what earlier releases can be reused.
func (f *FIB) finish() {
	for i, t := range f.dirty {
		t.publish()
		f.dirty[i] = nil
	}
	f.dirty = f.dirty[:0]
	for i, p := range f.drops {
		f.unrefPaths(p)
		f.drops[i] = nil
	}
	f.drops = f.drops[:0]
	f.closeEpoch()
	f.reclaim()
}

func (f *FIB) touched(t *table) {
	if !t.dirty {
		t.dirty = true
		f.dirty = append(f.dirty, t)
	}
}
