package fib

import "slices"

// rib6 is an open hash. A tag of 0 is a free slot.
type rib6 struct {
	slots []slot6
	n     int
	lens  [129]int32
}

type slot6 struct {
	hi, lo uint64
	tag    uint32 // length 8 bits, number of the candidate set 24 bits
}

func (s *slot6) key() key    { return key{hi: s.hi, lo: s.lo, bits: uint8(s.tag >> setBits)} }
func (s *slot6) set() uint32 { return s.tag & setMask }

func (r *rib6) home(k key) int {
	return home(fold(k.hi^mix2, k.lo^uint64(k.bits)*mix1^mix1), len(r.slots))
}

// find returns the slot of a prefix, or the free slot where it belongs.
func (r *rib6) find(k key) int {
	i := r.home(k)
	for r.slots[i].tag != 0 && r.slots[i].key() != k {
		if i++; i == len(r.slots) {
			i = 0
		}
	}
	return i
}

func (r *rib6) get(k key) uint32 {
	if r.n == 0 {
		return 0
	}
	return r.slots[r.find(k)].set()
}

func (r *rib6) put(k key, set uint32) uint32 {
	if len(r.slots) == 0 {
		r.resize(minSlots)
	}
	i := r.find(k)
	old := r.slots[i].set()
	if old == 0 {
		if r.n >= len(r.slots)*fullNum/fullDen {
			r.resize(len(r.slots) * growNum / growDen)
			i = r.find(k)
		}
		r.n++
		r.lens[k.bits]++
	}
	r.slots[i] = slot6{hi: k.hi, lo: k.lo, tag: uint32(k.bits)<<setBits | set}
	return old
}

func (r *rib6) del(k key) uint32 {
	if r.n == 0 {
		return 0
	}
	hole := r.find(k)
	old := r.slots[hole].set()
	if old == 0 {
		return 0
	}
	for j := hole; ; {
		if j++; j == len(r.slots) {
			j = 0
		}
		if r.slots[j].tag == 0 {
			break
		}
		if follows(r.home(r.slots[j].key()), hole, j, len(r.slots)) {
			r.slots[hole] = r.slots[j]
			hole = j
		}
	}
	r.slots[hole] = slot6{}
	r.n--
	r.lens[k.bits]--
	if n := slotsFor(r.n) * 2; n*2 < len(r.slots) {
		r.resize(n)
	}
	return old
}

func (r *rib6) resize(slots int) {
	old := r.slots
	r.slots = make([]slot6, slots)
	for i := range old {
		if s := &old[i]; s.tag != 0 {
			r.slots[r.find(s.key())] = *s
		}
	}
}

func (r *rib6) grow(n int) {
	if s := slotsFor(n); s > len(r.slots) {
		r.resize(s)
	}
}

func (r *rib6) copy() rib {
	c := *r
	c.slots = slices.Clone(r.slots)
	return &c
}

func (r *rib6) len() int         { return r.n }
func (r *rib6) lengths() []int32 { return r.lens[:] }

func (r *rib6) each(fn func(key, uint32)) {
	for i := range r.slots {
		if s := &r.slots[i]; s.tag != 0 {
			fn(s.key(), s.set())
		}
	}
}

func (r *rib6) sorted() []entry {
	out := make([]entry, 0, r.n)
	r.each(func(k key, set uint32) { out = append(out, entry{k, set}) })
	slices.SortFunc(out, func(a, b entry) int { return a.key.compare(b.key) })
	return out
}
