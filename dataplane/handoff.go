package dataplane

import (
	"sync/atomic"

	"gorouter/skb"
)

const handoffSize = 1024

// handoff is a single-producer single-consumer ring of frames on their way to
// the worker that owns their way out. The producer publishes once per batch,
// and each side keeps a copy of the other's index, so that the shared lines
// move only when a side runs out.
type handoff struct {
	ring [handoffSize]skb.Handle

	_    [128]byte
	tail atomic.Uint32 // written by the producer
	seen uint32        // producer's copy of head
	_    [128]byte
	head atomic.Uint32 // written by the consumer
	_    [128]byte

	waited atomic.Bool // the producer naps until there is room
	from   *Worker     // the producer
	to     *Worker     // the consumer
}

// push appends the batch's frames as far as there is room and returns how
// many. Producer only.
func (h *handoff) push(hs []skb.Handle) int {
	t := h.tail.Load()
	if handoffSize-int(t-h.seen) < len(hs) {
		h.seen = h.head.Load()
	}
	n := min(handoffSize-int(t-h.seen), len(hs))
	for i := range n {
		h.ring[(t+uint32(i))%handoffSize] = hs[i]
	}
	h.tail.Store(t + uint32(n))
	return n
}

// room is how many frames can be pushed. Producer only.
func (h *handoff) room() int {
	t := h.tail.Load()
	if handoffSize-int(t-h.seen) < skb.BatchSize {
		h.seen = h.head.Load()
	}
	return handoffSize - int(t-h.seen)
}

// relieve wakes a producer that naps for want of room, once half of the ring
// is free. Consumer only, after pop.
func (h *handoff) relieve() {
	if h.waited.Load() && h.len() <= handoffSize/2 {
		h.waited.Store(false)
		h.from.wake()
	}
}

// pop takes up to len(dst) frames. Consumer only.
func (h *handoff) pop(dst []skb.Handle) int {
	head := h.head.Load()
	n := min(int(h.tail.Load()-head), len(dst))
	for i := range n {
		dst[i] = h.ring[(head+uint32(i))%handoffSize]
	}
	h.head.Store(head + uint32(n))
	return n
}

// len is the number of frames in the ring.
func (h *handoff) len() int { return int(h.tail.Load() - h.head.Load()) }
