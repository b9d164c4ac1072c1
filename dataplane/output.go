package dataplane

import (
	"gorouter/port"
	"gorouter/skb"
	"gorouter/tx"
)

// output is a worker's way to one port: its own transmit queue, or the ring to
// the worker that owns it.
type output struct {
	batch skb.Batch
	tx    tx.Queue // nil when another worker owns the queue
	hand  *handoff
	port  *port.Port
	dirty bool // it is on the worker's list of ports to send by
	open  bool // the queue is owed a Flush
}

// emit puts a finished frame on its way to a port.
func (w *Worker) emit(portIndex uint16, h skb.Handle) {
	o := &w.outs[portIndex]
	if o.batch.Full() {
		// What was made here came on top of a full vector, or packets that
		// waited come in numbers.
		n := o.batch.N
		w.send(o, portIndex, true)
		w.done(stageTx, n)
	}
	if !o.dirty {
		o.dirty = true
		w.dirty = append(w.dirty, portIndex)
	}
	o.batch.Add(h)
}

// sendAll sends every output batch.
func (w *Worker) sendAll(more bool) {
	if len(w.dirty) == 0 {
		return
	}
	n := 0
	for _, p := range w.dirty {
		o := &w.outs[p]
		o.dirty = false
		n += o.batch.N
		w.send(o, p, more)
	}
	w.dirty = w.dirty[:0]
	w.done(stageTx, n)
}

func (w *Worker) send(o *output, portIndex uint16, more bool) {
	switch {
	case !o.port.Up():
		w.dropAll(&o.batch, skb.TxLinkDown)
	case o.tx != nil:
		o.tx.Send(&o.batch, more)
		if more && !o.open {
			o.open = true
			w.open = append(w.open, portIndex)
		}
	default:
		hs := o.batch.Handles()
		for _, h := range hs {
			// The owner only needs to know where to send the frame.
			w.arena.Meta(h).Adj = uint32(portIndex)
		}
		k := o.hand.push(hs)
		w.stats.Live.Handed += uint64(k)
		if k > 0 {
			o.hand.to.wake()
		}
		for _, h := range hs[k:] {
			w.drop(h, skb.HandoffFull)
		}
		o.batch.Reset()
	}
}

// flushAll ends the run of Sends of every queue that was told more would come.
func (w *Worker) flushAll() {
	for _, p := range w.open {
		w.outs[p].open = false
		w.outs[p].tx.Flush()
	}
	w.open = w.open[:0]
}

// takeInbox sends what other workers handed over; it returns how many frames.
func (w *Worker) takeInbox() int {
	total := 0
	for _, k := range w.inbox {
		for {
			n := k.pop(w.in.H[:])
			if n == 0 {
				break
			}
			total += n
			for _, h := range w.in.H[:n] {
				w.emit(uint16(w.arena.Meta(h).Adj), h)
			}
			w.sendAll(n == skb.BatchSize)
			if total >= handoffSize {
				break
			}
		}
	}
	w.flushAll()
	return total
}

// drop frees a frame and counts it under its reason.
func (w *Worker) drop(h skb.Handle, why skb.Reason) {
	w.stats.Live.Drops[why]++
	w.cache.Free(h)
}

func (w *Worker) dropAll(b *skb.Batch, why skb.Reason) {
	w.stats.Live.Drops[why] += uint64(b.N)
	w.cache.FreeBatch(b.Handles())
	b.Reset()
}
