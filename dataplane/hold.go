package dataplane

import (
	"net/netip"

	"gorouter/dataplane/neigh"
	"gorouter/fib"
	"gorouter/skb"
)

const (
	holdQueues = 256 // neighbours a worker can hold packets for
	// holdShare is the part of all buffers that the workers together may hold
	// for neighbours, as a divisor: whoever scans a silent network must not
	// take the buffers away from the rings.
	holdShare = 8
)

// holdQueue is the packets that wait for one neighbour. It holds no reference
// to the adjacency, so what the index stands for is compared every time: the
// index may have become another neighbour's since.
type holdQueue struct {
	adj  uint32 // 0 = free: that adjacency never waits
	port uint16
	next netip.Addr
	n    int
	head int
	pkts [neigh.MaxHold]skb.Handle
}

// holdTable is a worker's packets that wait for neighbours, bounded in every
// direction so that a silent neighbour cannot eat the buffers of the live
// ones. It is an open-addressed table of adjacencies.
type holdTable struct {
	queues [holdQueues]holdQueue
	depth  int // packets held for one neighbour; the newest win
	used   int // queues in use
	total  int // packets in them
	limit  int // most packets in them
}

// setDepth says how many packets may wait for one neighbour.
func (t *holdTable) setDepth(n int) {
	t.depth = n
	t.limit = max(t.limit, n)
}

// reset empties the table; it does not free what was in it.
func (t *holdTable) reset() {
	clear(t.queues[:])
	t.used, t.total = 0, 0
}

// slot finds the queue of a neighbour, or a free one for it; nil when the
// table is full.
func (t *holdTable) slot(adj uint32, port uint16, next netip.Addr) *holdQueue {
	i := adj * 0x9e3779b1 >> 24
	for range holdQueues {
		q := &t.queues[i%holdQueues]
		if q.adj == 0 || q.adj == adj && q.port == port && q.next == next {
			return q
		}
		i++
	}
	return nil
}

// hold keeps a packet until its neighbour is known. A full queue pushes out
// its oldest packet; in a full table there is no room for one more.
//
// No wake-up is lost: a worker that saw the adjacency unresolved saw it before
// the table's generation was raised, and it compares the generation after
// every round.
func (w *Worker) hold(h skb.Handle, adj uint32, port uint16, next netip.Addr) {
	t := &w.held
	q := t.slot(adj, port, next)
	if q == nil || (t.total >= t.limit && q.n == 0) {
		w.drop(h, skb.NeighQueueFull)
		return
	}
	if q.adj == 0 {
		q.adj, q.port, q.next = adj, port, next
		t.used++
	}
	if q.n == t.depth || t.total >= t.limit {
		w.drop(q.pkts[q.head], skb.NeighQueueFull)
		q.head = (q.head + 1) % neigh.MaxHold
		q.n--
		t.total--
	}
	q.pkts[(q.head+q.n)%neigh.MaxHold] = h
	q.n++
	t.total++
	if skb.Debug {
		w.arena.SetOwner(h, "neighbour queue")
	}
}

// releaseHeld looks at every queue after a neighbour changed: packets for one
// that answered go out, those for one that failed are refused.
func (w *Worker) releaseHeld() {
	if !w.heldMoved() {
		return
	}
	// Refusing a packet may hold the ICMP error, so the old table is put
	// aside; queues that still wait come back first.
	old := w.held.queues
	w.held.reset()
	for i := range old {
		if q := &old[i]; q.adj != 0 && q.state(w.reader.Adjacency(q.adj)) == fib.Incomplete {
			*w.held.slot(q.adj, q.port, q.next) = *q
			w.held.used++
			w.held.total += q.n
			q.adj = 0
		}
	}
	for i := range old {
		if q := &old[i]; q.adj != 0 {
			w.release(q)
		}
	}
}

// heldMoved reports whether any queue's wait is over. While somebody scans a
// silent network, neighbours fail all the time, and hardly one of them has
// packets here.
func (w *Worker) heldMoved() bool {
	if w.held.used == 0 {
		return false
	}
	for i := range w.held.queues {
		q := &w.held.queues[i]
		if q.adj != 0 && q.state(w.reader.Adjacency(q.adj)) != fib.Incomplete {
			return true
		}
	}
	return false
}

// noNeighbour is why there is no entry for a new neighbour.
func (w *Worker) noNeighbour() skb.Reason {
	if w.r.neigh.Busy(w.now) {
		return skb.NeighRequestRate
	}
	return skb.NeighTableFull
}

// state is what is known of the neighbour a queue waits for; a is the present
// record of its adjacency.
func (q *holdQueue) state(a *fib.Adjacency) fib.State {
	if a.Port != q.port || a.NextHop != q.next {
		// The neighbour was forgotten and its adjacency is another's now.
		return fib.Failed
	}
	return a.State
}

// release ends the wait of a queue's packets.
func (w *Worker) release(q *holdQueue) {
	a := w.reader.Adjacency(q.adj)
	state := q.state(a)
	for k := range q.n {
		h := q.pkts[(q.head+k)%neigh.MaxHold]
		switch state {
		case fib.Stale:
			w.uses.Note(q.adj)
			w.leave(h, w.arena.Meta(h), a)
		case fib.Reachable:
			w.leave(h, w.arena.Meta(h), a)
		case fib.Incomplete:
			w.hold(h, q.adj, q.port, q.next) // asked for anew this very moment
		default:
			w.refuse(h, skb.NeighFailed, icmpUnreachable, codeHostUnreachable)
		}
	}
}

func (t *holdTable) each(f func(skb.Handle)) {
	for i := range t.queues {
		q := &t.queues[i]
		for k := range q.n {
			f(q.pkts[(q.head+k)%neigh.MaxHold])
		}
	}
}

// clear empties the table through f.
func (t *holdTable) clear(f func(skb.Handle)) {
	t.each(f)
	t.reset()
}
