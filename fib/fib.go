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

	tuning *tuning // tests only
}

// FIB holds all tables, groups and adjacencies. All methods are safe for use
// from any goroutine; see the package comment for the contract with readers.
type FIB struct {
	Hasher

	mu     sync.Mutex
	tuning tuning
	stats  Stats // its counters only

	tables      map[uint32]*table
	recentTable *table
	dirty       []*family // to be published by finish
	drops       []*paths  // to be released by finish, after publication

	sets     []*candset // by number; 0 is not used
	freeSets []uint32
	results  results

	paths  map[string]*paths
	recent [1024]*paths // with one next hop, by a hash of it
	keyBuf []byte

	adjIndex map[adjKey]uint32
	adjInfo  []adjInfo // by index

	groupIndex map[string]*group // by legs and layout
	fresh      map[string]*group // by legs, laid out from nothing
	derived    map[derivation]*group
	down       map[uint16]bool // ports

	readers []*Reader
	limbo   limbo

	_      [128]byte // readers load what follows
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
		sets:       make([]*candset, 1),
		tuning:     defaultTuning,
	}
	if o.tuning != nil {
		f.tuning = *o.tuning
	}
	f.results.init(f.tuning.results)
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
// that is refused changes nothing. Errors wrap ErrInvalid or ErrFull, or say
// that the system has no memory for the table: then readers keep what they had
// until a later change finds memory. The caller may reuse r.NextHops.
func (f *FIB) Replace(r Route) error {
	if err := r.Validate(); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	m := f.table(r.Table).family(r.Prefix.Addr())
	if _, err := f.replace(m, keyOf(r.Prefix), &r, nil); err != nil {
		return err
	}
	return f.finish()
}

// Delete removes one candidate; the next one, if any, takes over in the same
// step. It returns false, and counts (Stats.DeletesAbsent), when there is none
// with this key.
func (f *FIB) Delete(k Key) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	bad := !k.deletable()
	var at key
	if !bad {
		at = keyOf(k.Prefix)
	}
	ok := f.removeKey(k.Table, FamilyOf(k.Prefix.Addr()), at, k.Metric, k.TOS, bad)
	_ = f.finish() // tried again with the next change
	return ok
}

// DeleteTable removes all routes of a table and returns their number. The
// table's TableRefs stay valid.
func (f *FIB) DeleteTable(id uint32) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.removeTable(id)
	_ = f.finish() // tried again with the next change
	return n
}

// replace makes a change without publishing it and returns the route's paths.
// Of the route, all but the prefix counts. known are its paths if the caller
// has them.
func (f *FIB) replace(m *family, k key, r *Route, known *paths) (*paths, error) {
	s := m.find(k)
	var old *paths
	if s != nil {
		if i := s.find(r.Metric, r.TOS); i >= 0 {
			old = s.cands[i].paths
		}
	}
	p, err := known, error(nil)
	if p != nil {
		p.refs++
	} else if p, err = f.refPaths(r, old); err != nil {
		return nil, f.full(m, k, r, err)
	}
	if old == p {
		p.refs--
		f.stats.Replaced++
		return p, nil
	}
	if !f.setsLeft() {
		f.unrefPaths(p)
		return nil, f.full(m, k, r, fmt.Errorf("%w: all %d sets of candidates are in use: use fewer metrics or next hops", ErrFull, maxSets))
	}
	f.stats.Replaced++
	if old != nil {
		f.drops = append(f.drops, old)
	} else {
		m.routes++
	}
	m.exchange(k, s, f.with(s, cand{paths: p, metric: r.Metric, tos: r.TOS}))
	return p, nil
}

func (f *FIB) full(m *family, k key, r *Route, err error) error {
	f.stats.Full++
	return fmt.Errorf("route %s table %d: %w", k.prefix(m.number), r.Table, err)
}

// removeKey makes a deletion without publishing it. bad says that no route can
// have the key.
func (f *FIB) removeKey(table uint32, number Family, k key, metric uint32, tos uint8, bad bool) bool {
	t := f.tables[table]
	if t == nil || bad {
		f.stats.DeletesAbsent++
		return false
	}
	m := t.of(number)
	s := m.find(k)
	i := -1
	if s != nil {
		i = s.find(metric, tos)
	}
	if i < 0 {
		f.stats.DeletesAbsent++
		return false
	}
	f.drops = append(f.drops, s.cands[i].paths)
	f.stats.Deleted++
	m.routes--
	m.exchange(k, s, f.without(s, i))
	return true
}

func (f *FIB) removeTable(id uint32) int {
	t := f.tables[id]
	if t == nil {
		return 0
	}
	n := t.routes()
	for _, m := range []*family{&t.v4, &t.v6} {
		m.rib.each(func(_ key, id uint32) {
			s := f.sets[id]
			for i := range s.cands {
				f.drops = append(f.drops, s.cands[i].paths)
			}
			f.dropSet(s)
		})
		m.reset()
	}
	f.stats.Deleted += uint64(n)
	return n
}

// finish ends every change: publish first, then release what became unused,
// then see what earlier releases can be reused. While something could not be
// published nothing is released, because readers still use it.
func (f *FIB) finish() error {
	var stale []*family
	var failure error
	for i, m := range f.dirty {
		if err := m.publish(); err != nil {
			stale, failure = append(stale, m), err
		}
		f.dirty[i] = nil
	}
	f.dirty = append(f.dirty[:0], stale...)
	if failure != nil {
		f.stats.Full++
		return failure
	}
	for i, p := range f.drops {
		f.unrefPaths(p)
		f.drops[i] = nil
	}
	f.drops = f.drops[:0]
	if cap(f.drops) > 1<<16 {
		f.drops = nil
	}
	f.closeEpoch()
	f.reclaim()
	return nil
}
