package fib

import (
	"errors"
	"math/bits"
	"runtime"
	"unsafe"

	"gorouter/internal/mem"
)

// errTooNarrow says that a table needs wider entries or more groups.
var errTooNarrow = errors.New("table is too narrow")

const (
	slots24   = 1 << 24
	maxGroups = 1 << 23
)

// dirTable is the writer's side of a DIR-24-8 table.
type dirTable[W width] struct {
	f        *FIB
	d        *dir[W]
	slots    *mem.Region
	groups   *mem.Region
	limit    uint32 // groups there is room for
	numbers  uint32 // result numbers there is room for
	next     uint32
	free     []uint32
	lens     [][256]uint8 // owners of the entries of each group; 0 for up to /24
	cleanups []runtime.Cleanup
	fresh    bool // no reader sees it yet
}

// dirForm is a dirTable of either width.
type dirForm interface {
	retiree
	view() *view
	setDefault(word uint32)
	// assign gives all addresses of k that no longer prefix owns to the prefix
	// of length owner, whose result has this number. It fails with errTooNarrow
	// before it changes anything.
	assign(k key, number uint32, owner uint8, pres *presence) error
	// warm begins to load what a change of k will need.
	warm(k key)
	// load fills an empty table.
	load(words []uint64, sets []*candset) error
	groupsUsed() int
}

func newDir[W width](f *FIB, groups, numbers int) (*dirTable[W], error) {
	results, err := f.resultArray()
	if err != nil {
		return nil, err
	}
	t := &dirTable[W]{f: f, limit: uint32(groups), numbers: uint32(numbers), fresh: true}
	entry := int(unsafe.Sizeof(W(0)))
	if t.slots, err = mem.Alloc(mem.Options{Size: slots24 * entry, Lazy: true}); err != nil {
		return nil, err
	}
	if t.groups, err = mem.Alloc(mem.Options{Size: groups * 256 * entry, Lazy: true}); err != nil {
		_ = t.slots.Free()
		return nil, err
	}
	t.d = &dir[W]{slots: t.slots.Base(), groups: t.groups.Base(), results: results, f: f}
	t.cleanups = freeWith(t.d, t.slots, t.groups)
	return t, nil
}

// wholeDir is the item that stands for the table itself; others are groups.
const wholeDir = 1 << 63

// reuse implements retiree.
func (t *dirTable[W]) reuse(item uint64) {
	if item == wholeDir {
		t.release()
		return
	}
	t.free = append(t.free, uint32(item))
}

func (t *dirTable[W]) release() {
	for _, c := range t.cleanups {
		c.Stop()
	}
	runtime.KeepAlive(t.d)
	_ = t.slots.Free()
	_ = t.groups.Free()
}

func (t *dirTable[W]) setDefault(word uint32) {
	t.d.version.Add(1)
	t.d.def.Store(word)
	t.d.version.Add(1)
}

func (t *dirTable[W]) groupsUsed() int { return int(t.next) - len(t.free) }

func (t *dirTable[W]) view() *view {
	if d, ok := any(t.d).(*dir[uint16]); ok {
		return &view{narrow: d}
	}
	return &view{wide: any(t.d).(*dir[uint32])}
}

// storeEntry stores entry i. The writer is alone, so that it may take the other
// half of the word from memory.
func storeEntry[W width](base unsafe.Pointer, i uint32, e W) {
	if unsafe.Sizeof(e) == 4 {
		store32(base, i, uint32(e))
		return
	}
	shift := i & 1 * 16 & 31
	store32(base, i>>1, load32(base, i>>1)&^(0xffff<<shift)|uint32(e)<<shift)
}

// fillEntries stores n entries from i on.
func fillEntries[W width](base unsafe.Pointer, i, n uint32, e W) {
	end := i + n
	if unsafe.Sizeof(e) == 2 {
		if i < end && i&1 != 0 {
			storeEntry(base, i, e)
			i++
		}
		for pair := uint32(e) | uint32(e)<<16; i+1 < end; i += 2 {
			store32(base, i>>1, pair)
		}
	}
	for ; i < end; i++ {
		storeEntry(base, i, e)
	}
}

func (t *dirTable[W]) warm(k key) { loadEntry[W](t.d.slots, uint32(k.hi>>40)) }

func (t *dirTable[W]) assign(k key, number uint32, owner uint8, pres *presence) error {
	if number >= t.numbers {
		return errTooNarrow
	}
	addr := uint32(k.hi >> 32)
	if k.bits > 24 {
		return t.assignLong(addr, k.bits, W(number), owner)
	}
	pres.uncovered(addr, int(k.bits), func(first uint32, free uint64) { t.assignSlots(first, free, W(number)) })
	return nil
}

// assignSlots gives those of 64 slots whose bits are set to a prefix of at most
// 24 bits. Runs without groups are filled at once.
func (t *dirTable[W]) assignSlots(first uint32, free uint64, e W) {
	for free != 0 {
		i := uint32(bits.TrailingZeros64(free))
		run := uint32(bits.TrailingZeros64(^(free >> i)))
		free &^= (1<<run - 1) << i
		start := first + i
		for j := range run {
			old := loadEntry[W](t.d.slots, start+j)
			if old&extended[W]() == 0 {
				continue
			}
			fillEntries(t.d.slots, first+i, start+j-(first+i), e)
			t.assignShort(uint32(old&^extended[W]()), e)
			i = start + j + 1 - first
		}
		fillEntries(t.d.slots, first+i, start+run-(first+i), e)
	}
}

// assignShort gives the entries of a group that no prefix longer than 24 owns.
func (t *dirTable[W]) assignShort(group uint32, e W) {
	for i, n := range &t.lens[group] {
		if n == 0 {
			storeEntry(t.d.groups, group<<8|uint32(i), e)
		}
	}
}

// assignLong changes entries of one group, which is made or given up as needed.
func (t *dirTable[W]) assignLong(addr uint32, n uint8, e W, owner uint8) error {
	slot := addr >> 8
	old := loadEntry[W](t.d.slots, slot)
	group := uint32(old &^ extended[W]())
	if old&extended[W]() == 0 {
		if owner <= 24 {
			return nil
		}
		var ok bool
		if group, ok = t.newGroup(); !ok {
			return errTooNarrow
		}
		fillEntries(t.d.groups, group<<8, 256, old)
	}
	if owner <= 24 {
		owner = 0
	}
	lens := &t.lens[group]
	for i := addr & 0xff; i < addr&0xff+1<<(32-n); i++ {
		if lens[i] <= n {
			storeEntry(t.d.groups, group<<8|i, e)
			lens[i] = owner
		}
	}
	switch {
	case old&extended[W]() == 0:
		storeEntry(t.d.slots, slot, W(group)|extended[W]())
	case *lens == [256]uint8{}:
		storeEntry(t.d.slots, slot, loadEntry[W](t.d.groups, group<<8))
		if t.fresh {
			t.free = append(t.free, group)
		} else {
			t.f.retire(t, uint64(group))
		}
	}
	return nil
}

func (t *dirTable[W]) newGroup() (uint32, bool) {
	if n := len(t.free); n > 0 {
		g := t.free[n-1]
		t.free = t.free[:n-1]
		return g, true
	}
	if t.next == t.limit {
		return 0, false
	}
	t.next++
	t.lens = append(t.lens, [256]uint8{})
	return t.next - 1, true
}

// load paints the prefixes in order of length, shortest first.
func (t *dirTable[W]) load(words []uint64, sets []*candset) error {
	for _, w := range byLength(words) {
		s := sets[w&setMask]
		k := key4(w)
		if s.active == nil || k.bits == 0 {
			continue
		}
		if s.active.number >= t.numbers {
			return errTooNarrow
		}
		if e := W(s.active.number); k.bits > 24 {
			if err := t.assignLong(uint32(k.hi>>32), k.bits, e, k.bits); err != nil {
				return err
			}
		} else {
			paint(t.d.slots, uint32(k.hi>>40), 1<<(24-k.bits), e)
		}
	}
	return nil
}

// paint is fillEntries for memory that no reader sees, so that the race detector
// need not look at millions of stores.
//
//go:norace
func paint[W width](base unsafe.Pointer, i, n uint32, e W) {
	entries := unsafe.Slice((*W)(base), slots24)
	if hostOrder || unsafe.Sizeof(e) == 4 {
		entries = entries[i : i+n]
		for j := range entries {
			entries[j] = e
		}
		return
	}
	fillEntries(base, i, n, e)
}

// hostOrder says whether a 16-bit entry lies where a 16-bit store would put it.
var hostOrder = func() bool {
	one := uint32(1)
	return *(*uint16)(unsafe.Pointer(&one)) == 1
}()

// byLength sorts words of a rib4 by length, in linear time.
func byLength(words []uint64) []uint64 {
	var at [34]int
	for _, w := range words {
		at[uint8(w>>setBits)+1]++
	}
	for i := 1; i < len(at); i++ {
		at[i] += at[i-1]
	}
	out := make([]uint64, len(words))
	for _, w := range words {
		n := uint8(w >> setBits)
		out[at[n]] = w
		at[n]++
	}
	return out
}
