package fib

import (
	"errors"
	"sync/atomic"
)

// family is one address family of a table: the candidates of every prefix,
// which are the writer's, and the structure that readers see.
type family struct {
	f      *FIB
	number Family
	pub    *atomic.Pointer[view]

	rib    rib
	routes int // candidates

	trie *trie     // the structure: either
	dir  dirForm   // or
	pres *presence // beside dir

	dirty   bool
	whole   bool     // build anew at the next publication
	changed []change // results that are others since the last publication
}

// change is a prefix with its candidates now, or nil.
type change struct {
	key key
	set *candset
}

func (m *family) init(f *FIB, number Family, pub *atomic.Pointer[view], r rib) {
	*m = family{f: f, number: number, pub: pub, rib: r, trie: newTrie(f)}
	m.show(m.trie)
}

// find is get for a change, which will need more memory than the RIB's: with the
// loads begun at once the processor waits for all of it together.
func (m *family) find(k key) *candset {
	if m.dir != nil {
		m.dir.warm(k)
		m.pres.warm(k)
	}
	return m.get(k)
}

// get returns the candidates of a prefix, or nil.
func (m *family) get(k key) *candset {
	if id := m.rib.get(k); id != 0 {
		return m.f.sets[id]
	}
	return nil
}

// exchange makes s, which may be nil, the candidates of a prefix; old is what it
// had.
func (m *family) exchange(k key, old, s *candset) {
	if s != nil {
		m.rib.put(k, s.id)
	} else {
		m.rib.del(k)
	}
	if old.result() == s.result() {
		if old != nil {
			m.f.dropSet(old)
		}
		return
	}
	if gone := s.result() == AdjMiss; m.pres != nil && gone != (old.result() == AdjMiss) {
		if gone {
			m.pres.clear(k)
		} else {
			m.pres.set(k)
		}
	}
	if old != nil {
		m.f.dropSet(old)
	}
	m.touch()
	if m.whole {
		return
	}
	if m.changed = append(m.changed, change{k, s}); m.bulk(len(m.changed)) {
		m.whole = true
	}
}

func (m *family) touch() {
	if !m.dirty {
		m.dirty = true
		m.f.dirty = append(m.f.dirty, m)
	}
}

// bulkMin and bulkPart: so many changes at once, and more than that part of the
// table, are made by building it anew.
const (
	bulkMin  = 64
	bulkPart = 8
)

func (m *family) bulk(changes int) bool {
	return changes > bulkMin && changes > m.rib.len()/bulkPart
}

// reset removes everything.
func (m *family) reset() {
	if m.rib.len() == 0 {
		return
	}
	if m.number == IPv4 {
		m.rib = new(rib4)
	} else {
		m.rib = new(rib6)
	}
	m.routes = 0
	if m.pres != nil {
		m.pres = newPresence()
	}
	m.whole = true
	m.touch()
}

// publish brings the structure up to date. After an error readers have the
// state before, or a part of the changes, and the next publication starts from
// nothing.
func (m *family) publish() error {
	small := m.small()
	err := errBuildAnew
	if !m.whole && small == m.isSmall() && (len(m.changed) < 2 || !small) {
		err = m.applyChanges()
	}
	if errors.Is(err, errBuildAnew) || errors.Is(err, errTooNarrow) {
		err = m.build(small)
	}
	m.whole = err != nil
	m.dirty = m.whole
	if cap(m.changed) > 4096 {
		m.changed = nil // a bulk load must not pin its memory
	}
	clear(m.changed)
	m.changed = m.changed[:0]
	return err
}

var errBuildAnew = errors.New("build the table anew")

// small says whether the table should be a trie without a direct table. Between
// two sizes it stays what it is.
func (m *family) small() bool {
	from := m.f.tuning.promote4
	if m.number == IPv6 {
		from = m.f.tuning.promote6
	}
	if !m.isSmall() {
		from /= m.f.tuning.demote
	}
	return m.rib.len() < from
}

func (m *family) isSmall() bool { return m.dir == nil && m.trie.direct == nil }

// applyChanges changes the published structure in place.
func (m *family) applyChanges() error {
	for _, c := range m.changed {
		k, s := c.key, c.set
		if k.bits == 0 {
			m.setDefault(s.result())
			continue
		}
		owner := k
		if s == nil || s.active == nil {
			owner, s = m.cover(k)
		}
		if m.dir != nil {
			number := uint32(0)
			if s != nil && owner.bits > 0 {
				number = s.active.number
			}
			if err := m.dir.assign(k, number, owner.bits, m.pres); err != nil {
				return err
			}
			continue
		}
		leaf := uint32(0)
		if owner.bits > 0 && m.trie.inDirect(owner) == m.trie.inDirect(k) {
			leaf = leafOf(s.result(), owner.bits)
		}
		if err := m.trie.assign(k, leaf); err != nil {
			return err
		}
	}
	if t := m.trie; t != nil {
		if t.a.size > 4*firstUnits && t.a.used < t.a.size/8 {
			return errBuildAnew
		}
		if t.moved {
			m.show(t)
		}
	}
	return nil
}

func (m *family) setDefault(word uint32) {
	if m.dir != nil {
		m.dir.setDefault(word)
	} else {
		m.trie.setDefault(word)
	}
}

// show publishes a trie.
func (m *family) show(t *trie) {
	m.trie = t
	t.fresh, t.moved = false, false
	m.pub.Store(&view{trie: t.v})
}

// build makes the structure anew and swaps it in one step.
func (m *family) build(small bool) error {
	oldTrie, oldDir := m.trie, m.dir
	if m.number == IPv4 && !small {
		if err := m.buildDir(); err != nil {
			return err
		}
	} else if err := m.buildTrie(!small); err != nil {
		return err
	}
	if oldTrie != nil {
		m.f.retire(oldTrie.memory(), 0)
	}
	if oldDir != nil {
		m.f.retire(oldDir, wholeDir)
	}
	return nil
}

func (m *family) buildTrie(direct bool) error {
	t := newTrie(m.f)
	err := t.reserve(m.rib.len())
	if err == nil && direct {
		err = t.makeDirect()
	}
	if err == nil {
		err = t.load(m.rib.sorted())
	}
	if err != nil {
		t.memory().reuse(0)
		return err
	}
	t.v.def.Store(m.get(key{}).result())
	m.show(t)
	m.dir, m.pres = nil, nil
	return nil
}

func (m *family) buildDir() error {
	tune := &m.f.tuning
	words := m.rib.(*rib4).words()
	d, err := loadDir[uint16](m, words, tune.groups16, tune.results16)
	for groups := tune.groups32; errors.Is(err, errTooNarrow) && groups <= maxGroups; groups *= 2 {
		d, err = loadDir[uint32](m, words, groups, tune.results)
	}
	if err != nil {
		return err
	}
	if m.pres == nil {
		m.pres = newPresence()
		for _, w := range words {
			if m.f.sets[w&setMask].active != nil {
				m.pres.set(key4(w))
			}
		}
	}
	d.setDefault(m.get(key{}).result())
	m.dir, m.trie = d, nil
	m.pub.Store(d.view())
	return nil
}

func loadDir[W width](m *family, words []uint64, groups, numbers int) (dirForm, error) {
	d, err := newDir[W](m.f, groups, numbers)
	if err != nil {
		return nil, err
	}
	if err := d.load(words, m.f.sets); err != nil {
		d.release()
		return nil, err
	}
	d.fresh = false
	return d, nil
}

// cover returns the longest prefix that contains k, is shorter, and has an
// active candidate, with its set; a nil set means there is none.
func (m *family) cover(k key) (key, *candset) {
	lens := m.rib.lengths()
	for n := int(k.bits) - 1; n >= 0; n-- {
		if lens[n] == 0 {
			continue
		}
		if m.pres != nil && n <= 24 {
			if n = m.pres.longest(uint32(k.hi>>32), n); n < 0 {
				break
			}
		}
		c := k.cut(uint8(n))
		if s := m.get(c); s != nil && s.active != nil {
			return c, s
		}
	}
	return key{}, nil
}
