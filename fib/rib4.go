package fib

import "slices"

// rib4 is an open hash of words: address 32 bits, length 8 bits, number of the
// candidate set 24 bits. A word of 0 is a free slot.
type rib4 struct {
	slots []uint64
	n     int
	lens  [33]int32
	hint  int // slot of the last search: a change searches for its prefix twice
}

const (
	setBits = 24
	setMask = 1<<setBits - 1
)

func word4(k key) uint64 { return k.hi | uint64(k.bits)<<setBits }

func key4(w uint64) key { return key{hi: w >> 32 << 32, bits: uint8(w >> setBits)} }

func (r *rib4) home(w uint64) int { return home(fold(w>>setBits^mix2, mix1), len(r.slots)) }

// find returns the slot of a prefix, or the free slot where it belongs.
func (r *rib4) find(w uint64) int {
	if i := r.hint; i < len(r.slots) && r.slots[i] != 0 && (r.slots[i]^w)>>setBits == 0 {
		return i
	}
	i := r.home(w)
	for r.slots[i] != 0 && (r.slots[i]^w)>>setBits != 0 {
		if i++; i == len(r.slots) {
			i = 0
		}
	}
	r.hint = i
	return i
}

func (r *rib4) get(k key) uint32 {
	if r.n == 0 {
		return 0
	}
	return uint32(r.slots[r.find(word4(k))] & setMask)
}

func (r *rib4) put(k key, set uint32) uint32 {
	w := word4(k)
	if len(r.slots) == 0 {
		r.resize(minSlots)
	}
	i := r.find(w)
	if old := uint32(r.slots[i] & setMask); old != 0 {
		r.slots[i] = w | uint64(set)
		return old
	}
	if r.n >= len(r.slots)*fullNum/fullDen {
		r.resize(len(r.slots) * growNum / growDen)
		i = r.find(w)
	}
	r.slots[i] = w | uint64(set)
	r.n++
	r.lens[k.bits]++
	return 0
}

func (r *rib4) del(k key) uint32 {
	if r.n == 0 {
		return 0
	}
	hole := r.find(word4(k))
	old := uint32(r.slots[hole] & setMask)
	if old == 0 {
		return 0
	}
	for j := hole; ; {
		if j++; j == len(r.slots) {
			j = 0
		}
		if r.slots[j] == 0 {
			break
		}
		if follows(r.home(r.slots[j]), hole, j, len(r.slots)) {
			r.slots[hole] = r.slots[j]
			hole = j
		}
	}
	r.slots[hole] = 0
	r.n--
	r.lens[k.bits]--
	if n := slotsFor(r.n) * 2; n*2 < len(r.slots) {
		r.resize(n)
	}
	return old
}

func (r *rib4) resize(slots int) {
	old := r.slots
	r.slots = make([]uint64, slots)
	for _, w := range old {
		if w != 0 {
			r.slots[r.find(w)] = w
		}
	}
}

func (r *rib4) grow(n int) {
	if s := slotsFor(n); s > len(r.slots) {
		r.resize(s)
	}
}

func (r *rib4) copy() rib {
	c := *r
	c.slots = slices.Clone(r.slots)
	return &c
}

func (r *rib4) len() int         { return r.n }
func (r *rib4) lengths() []int32 { return r.lens[:] }

func (r *rib4) each(fn func(key, uint32)) {
	for _, w := range r.slots {
		if w != 0 {
			fn(key4(w), uint32(w&setMask))
		}
	}
}

// words returns all entries as they are stored. Their numerical order is the
// order of address and length.
func (r *rib4) words() []uint64 {
	out := make([]uint64, 0, r.n)
	for _, w := range r.slots {
		if w != 0 {
			out = append(out, w)
		}
	}
	return out
}

func (r *rib4) sorted() []entry {
	words := r.words()
	slices.Sort(words)
	out := make([]entry, len(words))
	for i, w := range words {
		out[i] = entry{key4(w), uint32(w & setMask)}
	}
	return out
}
