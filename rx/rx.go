// Package rx is the receive half of a port: a budgeted poll that takes frames
// from a ring and a batched replenish that gives buffers back to it. It knows
// nothing of forwarding.
//
// One worker owns a queue; none of its methods may be called from two
// goroutines at once, the readers of published counters excepted.
package rx

import (
	"gorouter/internal/stat"
	"gorouter/skb"
)

// Queue is what a worker polls. The calls come in this order, once per trip
// and once per turn, never per frame:
//
//	Poll, (stages, send), Replenish, Poll, …, EndTurn
type Queue interface {
	skb.Holder

	// Poll appends at most max received frames to b, and at most what still
	// fits in it. It returns how many frames it took off the ring, those it
	// dropped (and counted by reason) included; a return below max means that
	// the ring is empty, when b had room for max. The frames belong to the caller, with Data, Len,
	// Port, Flags, L3 unset, and Stamp set from now (nanoseconds).
	Poll(b *skb.Batch, max int, now int64) int

	// Replenish is called after each trip. It gives buffers back to the device
	// when at least the replenish batch of slots is free, unless the queue is
	// set to replenish at the end of the turn only.
	Replenish()

	// EndTurn is called once when the queue's turn is over. idle says that the
	// ring was found empty; then all free slots are given back.
	EndTurn(idle bool)

	// Ready reports whether a frame waits: the check-again after a queue's
	// event source was armed.
	Ready() bool

	// Counters is the page of this queue's counts.
	Counters() *stat.Page[Counters]

	// Close gives every buffer of the ring back to the cache. The device must
	// be quiet. It is idempotent.
	Close()
}

// Counters of a receive queue. Bytes count frames without FCS.
type Counters struct {
	Packets     uint64 // frames handed to the worker
	Bytes       uint64
	Polls       uint64 // calls of Poll
	Empty       uint64 // polls that found nothing
	Replenishes uint64 // times that buffers were given back
	Replenished uint64 // buffers given back
	Doorbells   uint64 // tail register writes, or wake-ups of the kernel
	NoBuffer    uint64 // allocations that failed
	Copied      uint64 // frames copied by copybreak or because the driver always copies
	Descriptors uint64 // descriptors taken off the ring
	Drops       skb.DropCounts
}

// Add adds other to c.
func (c *Counters) Add(other *Counters) {
	c.Packets += other.Packets
	c.Bytes += other.Bytes
	c.Polls += other.Polls
	c.Empty += other.Empty
	c.Replenishes += other.Replenishes
	c.Replenished += other.Replenished
	c.Doorbells += other.Doorbells
	c.NoBuffer += other.NoBuffer
	c.Copied += other.Copied
	c.Descriptors += other.Descriptors
	c.Drops.Add(&other.Drops)
}
