package neigh

import "sync/atomic"

// useSlots is how many stale neighbours a worker can report between two looks.
const useSlots = 256

// Uses is where one worker notes to which stale adjacencies it sent. It is a
// small direct-mapped set: two adjacencies that share a slot push each other
// out, and the one left out is noted again by a later packet, when the other is
// no longer stale. The zero value is ready; one goroutine may Note and another
// Take at the same time.
type Uses struct {
	slots [useSlots]atomic.Uint32 // 0 = free: that adjacency is never stale
	any   atomic.Bool
}

// Note records a use. A note that is there already costs one load, so a flood
// to one stale neighbour writes nothing.
func (u *Uses) Note(adj uint32) {
	s := &u.slots[adj*0x9e3779b1>>24]
	if s.Load() == adj {
		return
	}
	s.Store(adj)
	u.any.Store(true)
}

// Take hands out all notes and forgets them.
func (u *Uses) Take(f func(adj uint32)) {
	if !u.any.Swap(false) {
		return
	}
	for i := range u.slots {
		if u.slots[i].Load() == 0 {
			continue
		}
		if adj := u.slots[i].Swap(0); adj != 0 {
			f(adj)
		}
	}
}
