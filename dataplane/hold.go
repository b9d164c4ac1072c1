package dataplane

import (
	"net/netip"

	"gorouter/fib"
	"gorouter/skb"
)

const (
	holdQueues = 256 // neighbours a worker can hold packets for
	holdDepth  = 8   // packets held for one neighbour; the newest win
)

// holdQueue is the packets that wait for one adjacency.
type holdQueue struct {
	adj  uint32 // 0 = free: that adjacency never waits
	port uint16
	next netip.Addr
	n    int
	head int
	pkts [holdDepth]skb.Handle
}

// holdTable is a worker's packets that wait for neighbours, bounded in every
// direction so that a silent neighbour cannot eat the buffers of the live
// ones. It is an open-addressed table of adjacencies.
type holdTable struct {
	queues [holdQueues]holdQueue
	used   int
}

func (t *holdTable) init() { *t = holdTable{} }

// slot finds the queue of an adjacency, or a free one for it; nil when the
// table is full.
func (t *holdTable) slot(adj uint32) *holdQueue {
	i := adj * 0x9e3779b1 >> 24
	for range holdQueues {
		q := &t.queues[i%holdQueues]
		if q.adj == adj || q.adj == 0 {
			return q
		}
		i++
	}
	return nil
}

// hold keeps a packet until its neighbour is known. A full queue pushes out
// its oldest packet.
func (w *Worker) hold(h skb.Handle, adj uint32, port uint16, next netip.Addr) {
	q := w.held.slot(adj)
	if q == nil {
		w.drop(h, skb.NeighQueueFull)
		return
	}
	if q.adj == 0 {
		q.adj, q.port, q.next = adj, port, next
		w.held.used++
		// The answer may have come between the look at the adjacency and
		// now; then nothing would ever wake this queue.
		w.gen = ^uint64(0)
	}
	if q.n == holdDepth {
		w.drop(q.pkts[q.head], skb.NeighQueueFull)
		q.head = (q.head + 1) % holdDepth
		q.n--
	}
	q.pkts[(q.head+q.n)%holdDepth] = h
	q.n++
	if skb.Debug {
		w.arena.SetOwner(h, "neighbour queue")
	}
}

// releaseHeld looks at every queue after a neighbour changed: packets for one
// that answered go out, those for one that failed are refused.
func (w *Worker) releaseHeld() {
	if w.held.used == 0 {
		return
	}
	old := w.held.queues
	w.held.init()
	for i := range old {
		q := &old[i]
		if q.adj == 0 {
			continue
		}
		a := w.reader.Adjacency(q.adj)
		state := a.State
		if a.Port != q.port || a.NextHop != q.next {
			// The neighbour was forgotten and its adjacency is another's now.
			state = fib.Failed
		}
		for k := range q.n {
			h := q.pkts[(q.head+k)%holdDepth]
			switch state {
			case fib.Reachable:
				m := w.arena.Meta(h)
				*(*[14]byte)(w.frame(h, m)[0:14]) = [14]byte(a.Rewrite[0:14])
				w.leave(h, m, a.Port)
			case fib.Incomplete:
				w.rehold(h, q)
			default:
				w.refuse(h, skb.NeighFailed, icmpUnreachable, codeHostUnreachable)
			}
		}
	}
}

// rehold puts a packet back that still waits.
func (w *Worker) rehold(h skb.Handle, q *holdQueue) {
	g := w.gen
	w.hold(h, q.adj, q.port, q.next)
	w.gen = g
}

func (t *holdTable) each(f func(skb.Handle)) {
	for i := range t.queues {
		q := &t.queues[i]
		for k := range q.n {
			f(q.pkts[(q.head+k)%holdDepth])
		}
	}
}

// clear empties the table through f.
func (t *holdTable) clear(f func(skb.Handle)) {
	t.each(f)
	t.init()
}
