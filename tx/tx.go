// Package tx is the transmit half of a port: enqueue, doorbell policy and
// reclaim policy. It knows nothing of forwarding.
//
// One worker owns a queue; none of its methods may be called from two
// goroutines at once, the readers of published counters excepted.
package tx

import (
	"gorouter/internal/stat"
	"gorouter/skb"
)

// Queue is what a worker sends through. The calls come once per trip or once
// per round, never per frame.
type Queue interface {
	skb.Holder

	// Send takes every frame of b, whose references it owns from then on, and
	// empties b. Frames that cannot be queued are freed and counted by reason.
	// more says that another Send will probably follow within this turn; a
	// queue that got more=true must see Flush before its worker does anything
	// else. It returns how many frames were queued.
	Send(b *skb.Batch, more bool) int

	// Flush ends a run of Sends: the last descriptor reports its status and
	// the doorbell is rung as the policy says.
	Flush()

	// Tick does what is due by time (nanoseconds): a timed doorbell, a timed
	// reclaim. Once a round.
	Tick(now int64)

	// Reclaim frees what the device has sent. The worker calls it when it has
	// nothing else to do. It returns the number of frames freed.
	Reclaim() int

	// Pending is the number of frames queued and not yet freed.
	Pending() int

	// Room is the number of frames that could be queued now.
	Room() int

	// Counters is the page of this queue's counts.
	Counters() *stat.Page[Counters]

	// Close frees every frame still on the ring, counting those that were not
	// sent under TxAborted. The device must be quiet. It is idempotent.
	Close()
}

// Counters of a transmit queue. Packets and bytes are counted when a frame is
// queued for the device, and taken back when it ends as TxAborted; Bytes is the
// length on the wire without FCS, padding included.
type Counters struct {
	Packets     uint64
	Bytes       uint64
	Sends       uint64 // calls of Send with at least one frame
	Doorbells   uint64 // tail register writes, or system calls that kick the kernel
	Reclaims    uint64 // passes that looked for finished descriptors
	Reclaimed   uint64 // frames freed by them
	Descriptors uint64 // descriptors written
	Reports     uint64 // descriptors that asked for a status report
	Stops       uint64 // times the ring ran full
	Wakes       uint64 // times it had room again above the wake watermark
	Copied      uint64 // frames copied because the driver copies
	Drops       skb.DropCounts
}

// Add adds other to c.
func (c *Counters) Add(other *Counters) {
	c.Packets += other.Packets
	c.Bytes += other.Bytes
	c.Sends += other.Sends
	c.Doorbells += other.Doorbells
	c.Reclaims += other.Reclaims
	c.Reclaimed += other.Reclaimed
	c.Descriptors += other.Descriptors
	c.Reports += other.Reports
	c.Stops += other.Stops
	c.Wakes += other.Wakes
	c.Copied += other.Copied
	c.Drops.Add(&other.Drops)
}
