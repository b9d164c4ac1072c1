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

// takeInbox sends what other workers handed over, of each as much as a receive
// queue has in a turn; it returns how many frames. It takes them as far as the
// transmit rings have room: what waits here stops the workers it comes from,
// and is not lost. A first trip that must is taken in any case, so that a ring
// which does not drain loses its own frames and holds nobody up for long.
func (w *Worker) takeInbox(must bool) int {
	total := 0
	for _, k := range w.inbox {
		for left := w.opts.Weight; left > 0; {
			if (!must || left < w.opts.Weight) && !w.roomy() {
				break
			}
			n := k.pop(w.in.H[:min(left, skb.BatchSize)])
			if n == 0 {
				break
			}
			k.relieve()
			left -= n
			total += n
			for _, h := range w.in.H[:n] {
				w.emit(uint16(w.arena.Meta(h).Adj), h)
			}
			w.sendAll(true)
		}
	}
	w.flushAll()
	return total
}

// roomy reports whether every transmit queue of the worker takes a batch.
func (w *Worker) roomy() bool {
	for i := range w.outs {
		o := &w.outs[i]
		if o.tx == nil || o.tx.Room() >= skb.BatchSize {
			continue
		}
		// A small ring has never more room than when it is empty.
		if o.tx.Reclaim(); o.tx.Room() < skb.BatchSize && o.tx.Pending() > 0 {
			return false
		}
	}
	return true
}

// clogged reports whether a ring to another worker could not take a batch.
// Nothing is received then: frames wait in the receive rings, where the device
// counts what it has to leave out, and not after all the work was done on them.
func (w *Worker) clogged() bool {
	for _, h := range w.hands {
		if h.room() < skb.BatchSize {
			return true
		}
	}
	return false
}

// awaitRoom has the owner of every ring that is full wake this worker.
func (w *Worker) awaitRoom() {
	for _, h := range w.hands {
		if h.room() < skb.BatchSize {
			h.waited.Store(true)
		}
	}
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
