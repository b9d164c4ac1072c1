package dataplane

import "sync/atomic"

// Drained asks every worker, between two rounds, and reports whether no frame
// is under way in the router: the receive rings hold none, nor do the rings
// between workers, and what was sent has left the transmit rings. Packets that
// wait for a neighbour do not count. Frames may come in again at once; whoever
// wants an empty router first stops what sends, and asks until two answers in
// a row are yes. It must not be called before Start.
func (r *Router) Drained() bool {
	var busy atomic.Bool
	r.Do(func(w *Worker) {
		if !w.drained() {
			busy.Store(true)
		}
	})
	return !busy.Load()
}

func (w *Worker) drained() bool {
	for _, q := range w.queues {
		if q.rx.Ready() {
			return false
		}
	}
	for _, h := range w.inbox {
		if h.len() > 0 {
			return false
		}
	}
	for i := range w.outs {
		if o := &w.outs[i]; o.tx != nil {
			if o.tx.Reclaim(); o.tx.Pending() > 0 {
				return false
			}
		}
	}
	return true
}
