package fib

import "math/bits"

// rib maps the prefixes of one family of a table to numbers of candidate sets,
// which are never 0. It is the writer's alone.
type rib interface {
	// get returns the number of a prefix, or 0.
	get(k key) uint32
	// put gives a prefix a number and returns the one it had.
	put(k key, set uint32) uint32
	// del removes a prefix and returns the number it had.
	del(k key) uint32
	// len returns the number of prefixes.
	len() int
	// grow makes room for n prefixes.
	grow(n int)
	// lengths returns the number of prefixes of each length, by length.
	lengths() []int32
	// each calls fn for every prefix, in no order.
	each(fn func(key, uint32))
	// copy returns a RIB with the same contents.
	copy() rib
	// sorted returns all prefixes in order of address, then length.
	sorted() []entry
}

// entry is a prefix with the number of its candidate set.
type entry struct {
	key
	set uint32
}

// The slots of a hash are between these parts full, so that a search ends after
// a line or two.
const (
	fullNum, fullDen = 3, 4
	growNum, growDen = 5, 4
	minSlots         = 8
)

// slotsFor returns the slots that n prefixes need.
func slotsFor(n int) int { return max(minSlots, n*fullDen/fullNum+1) }

// home reduces a hash to a slot.
func home(hash uint64, slots int) int {
	i, _ := bits.Mul64(hash, uint64(slots))
	return int(i)
}

// follows says whether the entry whose home is h may move from slot j back to
// the hole at slot i without getting lost.
func follows(h, i, j, slots int) bool {
	return (j-h+slots)%slots >= (j-i+slots)%slots
}
