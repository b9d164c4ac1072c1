package fib

import "sync/atomic"

const (
	slotBits  = 10
	slotMask  = 1<<slotBits - 1
	chunkBits = 10
	chunkMask = 1<<chunkBits - 1

	// maxSlots is the number of indices of one kind.
	maxSlots = 1 << (slotBits + chunkBits)
)

type chunk[T any] [1 << slotBits]atomic.Pointer[T]

// slots maps an index to an immutable record, for readers without locks. It
// grows by chunks, so no reader ever sees a moved slot. Every slot, also in
// chunks not yet there, holds at least the filler: get never returns nil.
type slots[T any] struct {
	chunks [1 << chunkBits]atomic.Pointer[chunk[T]]

	// The rest is the writer's, away from the line readers load.
	_       [128]byte
	filler  *T
	unborn  *chunk[T] // stands in for all chunks not yet made
	next    uint32
	free    []uint32
	waiting int // retired, not yet free
}

func (s *slots[T]) init(filler *T) {
	s.filler = filler
	s.unborn = s.newChunk()
	for i := range s.chunks {
		s.chunks[i].Store(s.unborn)
	}
}

func (s *slots[T]) newChunk() *chunk[T] {
	c := new(chunk[T])
	for i := range c {
		c[i].Store(s.filler)
	}
	return c
}

// get returns the record of index i. The masks make every index safe.
func (s *slots[T]) get(i uint32) *T {
	return s.chunks[i>>slotBits&chunkMask].Load()[i&slotMask].Load()
}

// alloc returns an index whose slot holds the filler; false when all are used.
func (s *slots[T]) alloc() (uint32, bool) {
	if n := len(s.free); n > 0 {
		i := s.free[n-1]
		s.free = s.free[:n-1]
		return i, true
	}
	if s.next == maxSlots {
		return 0, false
	}
	i := s.next
	s.next++
	if c := &s.chunks[i>>slotBits]; c.Load() == s.unborn {
		c.Store(s.newChunk())
	}
	return i, true
}

func (s *slots[T]) set(i uint32, v *T) {
	s.chunks[i>>slotBits].Load()[i&slotMask].Store(v)
}

// reuse implements retiree: the readers are done with the index.
func (s *slots[T]) reuse(i uint64) {
	s.set(uint32(i), s.filler)
	s.free = append(s.free, uint32(i))
	s.waiting--
}

// live returns the number of indices in use.
func (s *slots[T]) live() int { return int(s.next) - len(s.free) - s.waiting }
