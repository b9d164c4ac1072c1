package dataplane

import "gorouter/rx"

// publishEvery is how many rounds pass between two publications of counters.
const publishEvery = 64

// pollQueue is a receive queue on a worker's poll list.
type pollQueue struct {
	rx     rx.Queue
	port   uint16
	weight int // its own, or 0 for the worker's
	left   int // of a turn that the budget cut short
}

func (w *Worker) enlist(q *pollQueue) {
	w.list[(w.head+w.length)%len(w.list)] = q
	w.length++
}

// enlistFirst puts a queue back to the head.
func (w *Worker) enlistFirst(q *pollQueue) {
	w.head = (w.head + len(w.list) - 1) % len(w.list)
	w.list[w.head] = q
	w.length++
}

// weightOf is what a queue may use in one turn.
func (w *Worker) weightOf(q *pollQueue) int {
	if q.weight > 0 {
		return q.weight
	}
	return w.opts.Weight
}

func (w *Worker) delist() *pollQueue {
	q := w.list[w.head]
	w.head = (w.head + 1) % len(w.list)
	w.length--
	return q
}

// Round is one pass of the poll loop: devices that run inline, queues on the
// poll list until the list is empty or the budget or time is used up, then
// what comes between rounds. It reports whether there was any work.
//
// Round belongs to the worker's goroutine; tests and virtual time call it
// directly instead of Start.
func (w *Worker) Round() bool {
	c := &w.stats.Live
	w.now = w.clk.Now()
	if c.Rounds == 0 {
		w.began = w.now
	}
	w.ifs = w.r.ifaces.Load()
	w.step(w.now)
	work := w.takeInbox(true) > 0
	budget := w.opts.Budget
	deadline := w.now + int64(w.opts.Limit)
	now := w.now
	w.stalled = false
	complete := 0 // queues that are done for this round, at the list's tail
	for w.length > complete {
		if budget <= 0 || now >= deadline {
			c.Exhausted++
			break
		}
		if w.clogged() {
			w.stalled = true
			c.Stalled++
			break
		}
		q := w.delist()
		weight := w.weightOf(q)
		if q.left > 0 {
			weight = min(weight, q.left)
		}
		used, idle := w.turn(q, min(weight, budget))
		budget -= used
		q.left = 0
		if used > 0 {
			work = true
			now = w.clk.Now()
			w.takeInbox(false)
		}
		// A queue that used its whole weight goes behind the others. One
		// that did not is complete: in spin and backoff it is looked at
		// again in the next round. One that the budget stopped has the rest
		// of its weight first thing in the next round; else a budget which is
		// no multiple of the weight would favour some queues for ever.
		switch {
		case idle:
			w.enlist(q)
			complete++
		case used < weight:
			q.left = weight - used
			w.enlistFirst(q)
			complete = 0
		default:
			w.enlist(q)
			complete = 0
		}
	}
	w.between(work)
	if work {
		c.BusyNs += uint64(w.clk.Now() - w.now)
	}
	return work
}

// turn polls one queue for at most weight frames, in trips of the vector.
func (w *Worker) turn(q *pollQueue, weight int) (used int, idle bool) {
	c := &w.stats.Live
	c.Turns++
	for used < weight && !(used > 0 && w.clogged()) {
		v := min(w.opts.Vector, weight-used)
		w.trips++
		if w.timed = w.trips%timedEvery == 0; w.timed {
			w.lap = w.clk.Now()
		}
		w.in.Reset()
		n := q.rx.Poll(&w.in, v, w.now)
		used += n
		c.Taken += uint64(n)
		switch {
		case n == 0:
			c.Empty++
			idle = true
		case n < v:
			c.Short++
			idle = true
		default:
			c.Full++
		}
		if n == 0 {
			break
		}
		w.done(stageRx, w.in.N)
		w.process(q.port)
		w.sendAll(!idle && used < weight)
		q.rx.Replenish()
		if idle {
			break
		}
	}
	w.timed = false
	w.flushAll()
	q.rx.EndTurn(idle)
	return used, idle
}

// between is what a worker does after a round: timers, commands, packets that
// waited for a neighbour, reclaim when idle, and the quiescent point.
func (w *Worker) between(work bool) {
	c := &w.stats.Live
	c.Rounds++
	used := w.readMail() || work
	if g := w.r.neigh.Generation(); g != w.gen {
		w.gen = g
		w.releaseHeld()
		w.r.wakeHolders(w)
		used = true
	}
	w.sendAll(false)
	w.flushAll()
	for i := range w.outs {
		q := w.outs[i].tx
		if q == nil {
			continue
		}
		q.Tick(w.now)
		if !work && q.Reclaim() > 0 {
			used = true
		}
	}
	if w.woken {
		w.woken = false
		if !used {
			c.Spurious++
		}
	}
	w.reader.Quiescent()
	if !work || c.Rounds%publishEvery == 0 {
		w.publish()
	}
}
