package fib

import (
	"fmt"
	"runtime"
	"unsafe"

	"gorouter/internal/mem"
)

// arena hands out blocks of a trie's memory: leaves of one quarter, or nodes of
// one quarter. A free block holds the place of the next free one of its size.
type arena struct {
	region *mem.Region
	base   unsafe.Pointer
	size   uint32 // units
	next   uint32 // units from here on were never used
	used   uint32 // units in blocks that are not free
	free   [blockSizes]uint32
}

const (
	leafSizes  = 32 // a block of leaves has 1 to 32 units
	blockSizes = leafSizes + 64

	firstUnits = 4 * mem.PageSize / unit
	maxUnits   = nodeFlag - 1
)

// block is a place with its size.
type block struct {
	at   uint32
	size uint8 // see leafSize and nodeSize
}

func leafSize(leaves int) uint8 { return uint8((leaves+1)/2 - 1) }
func nodeSize(nodes int) uint8  { return uint8(leafSizes + nodes - 1) }

func unitsOf(size uint8) uint32 {
	if size < leafSizes {
		return uint32(size) + 1
	}
	return (uint32(size) - leafSizes + 1) * nodeUnits
}

// at returns the address of a place.
func (a *arena) at(place uint32) unsafe.Pointer {
	return unsafe.Add(a.base, uintptr(place)*unit)
}

// take returns the place of a free block, or false when the arena is full.
func (a *arena) take(size uint8) (uint32, bool) {
	n := unitsOf(size)
	if at := a.free[size]; at != 0 {
		a.free[size] = *(*uint32)(a.at(at))
		a.used += n
		return at, true
	}
	if a.size-a.next < n {
		return 0, false
	}
	at := a.next
	a.next += n
	a.used += n
	return at, true
}

// give takes a block back that no reader sees.
func (a *arena) give(b block) {
	*(*uint32)(a.at(b.at)) = a.free[b.size]
	a.free[b.size] = b.at
	a.used -= unitsOf(b.size)
}

// newArena returns an arena of at least that many units. Place 0 stays unused:
// it ends the lists of free blocks.
func newArena(units uint32) (arena, error) {
	region, err := mem.Alloc(mem.Options{Size: int(units) * unit, Lazy: true})
	if err != nil {
		return arena{}, fmt.Errorf("nodes of a route table: %w", err)
	}
	return arena{region: region, base: region.Base(), size: uint32(region.Size() / unit), next: 1}, nil
}

// moved returns a copy of the arena with at least twice the units. All places
// stay.
func (a *arena) moved() (arena, error) {
	if a.size > maxUnits/2 {
		return arena{}, fmt.Errorf("%w: the nodes of one table fill %d bytes: remove routes", ErrFull, uint64(a.size)*unit)
	}
	n, err := newArena(max(a.size*2, firstUnits))
	if err != nil {
		return arena{}, err
	}
	if a.region != nil {
		copy(n.region.Bytes(), a.region.Bytes()[:uint64(a.next)*unit])
		n.next, n.used, n.free = a.next, a.used, a.free
	}
	return n, nil
}

// freeWith frees regions when view, through which readers see them, is garbage:
// a FIB that is dropped as a whole retires nothing.
func freeWith[T any](view *T, regions ...*mem.Region) []runtime.Cleanup {
	var cleanups []runtime.Cleanup
	for _, r := range regions {
		if r != nil {
			cleanups = append(cleanups, runtime.AddCleanup(view, func(r *mem.Region) { _ = r.Free() }, r))
		}
	}
	return cleanups
}
