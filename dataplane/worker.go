package dataplane

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"gorouter/clock"
	"gorouter/dataplane/neigh"
	"gorouter/fib"
	"gorouter/internal/stat"
	"gorouter/port"
	"gorouter/skb"
)

// timedEvery is how many trips pass between two whose stages are timed.
const timedEvery = 16

// Worker is one poll loop. What it holds belongs to its goroutine; Do is the
// way in for others.
type Worker struct {
	// CPU is the processor to run on, or -1 for any. Set before Start.
	CPU int

	id     int
	r      *Router
	arena  *skb.Arena
	cache  *skb.Cache
	clk    *clock.Clock
	reader *fib.Reader
	opts   Options

	queues []*pollQueue // its receive queues
	list   []*pollQueue // circular poll list
	head   int
	length int
	steps  []func(now int64) // ports whose device runs inline
	outs   []output          // by port
	dirty  []uint16          // ports with frames in their output batch
	open   []uint16          // ports owed a Flush
	inbox  []*handoff        // from other workers
	hands  []*handoff        // to other workers

	ifs *ifaceSet
	now int64 // the round's time
	gen uint64

	in   skb.Batch
	ip   [skb.BatchSize]skb.Handle
	dst  [skb.BatchSize]uint32
	res  [skb.BatchSize]uint32
	held holdTable
	uses neigh.Uses
	icmp tokenBucket
	worker4
	trips uint64
	timed bool
	lap   int64
	idler

	stats *stat.Page[counts]

	mailMu sync.Mutex
	mail   []func()
	closed bool // it stopped; nothing in mail will run
	mailed atomic.Bool
}

func newWorker(a *skb.Arena, f *fib.FIB, c *clock.Clock, id int) *Worker {
	w := &Worker{
		CPU: -1, id: id, arena: a, clk: c,
		cache:  a.NewCache(fmt.Sprintf("worker %d", id)),
		reader: f.NewReader(),
		stats:  stat.New[counts](),
	}
	return w
}

// Cache is the worker's buffer cache, for opening the queues it will own.
func (w *Worker) Cache() *skb.Cache { return w.cache }

// attach gives the worker an output to every port.
func (w *Worker) attach(r *Router, o Options) {
	w.r = r
	w.opts = o
	w.ident = uint16(w.id)
	w.held.limit = w.arena.Count() / holdShare / len(r.workers)
	w.ifs = r.ifaces.Load()
	w.outs = make([]output, len(r.ports))
	w.waits = w.waiting
	for i, p := range r.ports {
		o := &w.outs[i]
		o.port = p
		if k := slices.Index(r.txOwner[i], w); k >= 0 {
			o.tx = p.Tx[k]
		} else {
			// Workers without a queue of their own spread over those of others.
			own := r.txOwner[i]
			o.hand = own[w.id%len(own)].handoffFrom(w)
		}
	}
}

// handoffFrom is the ring through which a worker hands frames to w.
func (w *Worker) handoffFrom(from *Worker) *handoff {
	for _, h := range w.inbox {
		if h.from == from {
			return h
		}
	}
	h := &handoff{from: from, to: w}
	w.inbox = append(w.inbox, h)
	from.hands = append(from.hands, h)
	return h
}

// adopt puts those receive queues of a port that are the worker's on the poll
// list.
func (w *Worker) adopt(p *port.Port, owners []*Worker) {
	for k, q := range p.Rx {
		if owners[k] == w {
			w.queues = append(w.queues, &pollQueue{rx: q, port: p.Index})
		}
	}
	if p.Step != nil && owners[0] == w {
		w.steps = append(w.steps, p.Step)
	}
	w.list = make([]*pollQueue, len(w.queues)+1)
	w.head, w.length = 0, 0
	for _, q := range w.queues {
		w.enlist(q)
	}
}

// Options is what is in force. Owner only.
func (w *Worker) Options() Options { return w.opts }

// Do has f run by the worker between two rounds. Safe for concurrent use; it
// does not wait. A worker that has stopped runs nothing any more.
func (w *Worker) Do(f func()) { w.post(f) }

// post is Do; it reports whether f will be run.
func (w *Worker) post(f func()) bool {
	w.mailMu.Lock()
	defer w.mailMu.Unlock()
	if w.closed {
		return false
	}
	w.mail = append(w.mail, f)
	w.mailed.Store(true)
	w.wake()
	return true
}

// readMail runs what was posted; it reports whether there was anything.
func (w *Worker) readMail() bool {
	if !w.mailed.Load() {
		return false
	}
	w.mailMu.Lock()
	w.mailed.Store(false)
	fs := w.mail
	w.mail = nil
	w.mailMu.Unlock()
	for _, f := range fs {
		f()
	}
	return len(fs) > 0
}

// closeMail runs what is left and refuses what comes later.
func (w *Worker) closeMail() {
	w.mailMu.Lock()
	w.closed = true
	w.mailMu.Unlock()
	w.readMail()
}

// run is the worker's goroutine.
func (w *Worker) run(ready chan<- error) {
	runtime.LockOSThread()
	whole := false
	defer func() {
		// The panic goes on, with the stack where it began.
		if !whole && w.r.onPanic != nil {
			w.r.onPanic()
		}
	}()
	// The thread is not unlocked when it was pinned: the runtime then ends
	// it, and no other goroutine inherits the affinity.
	if w.CPU >= 0 {
		var set unix.CPUSet
		set.Set(w.CPU)
		if err := unix.SchedSetaffinity(0, &set); err != nil {
			w.closeMail()
			ready <- fmt.Errorf("worker %d: pin to cpu %d: %w (use cpu: auto)", w.id, w.CPU, err)
			whole = true
			return
		}
	} else {
		defer runtime.UnlockOSThread()
	}
	w.reader.Online()
	w.r.live.Add(1)
	w.listen()
	ready <- nil
	for !w.r.stop.Load() {
		if w.Round() {
			w.idle, w.pending = 0, 0
			w.yield()
		} else {
			w.rest()
		}
	}
	w.finish()
	whole = true
}

// step runs the devices that have no thread of their own.
func (w *Worker) step(now int64) {
	for _, step := range w.steps {
		step(now)
	}
}

// drainTime is how long a stopping worker waits for its transmit rings.
const drainTime = 100 * time.Millisecond

// finish empties what the worker holds: handed-over frames are sent, held
// ones dropped, and the transmit rings get a moment to drain.
func (w *Worker) finish() {
	w.now = w.clk.Now()
	w.closeMail()
	w.sendAll(false)
	w.flushAll()
	// Others hand frames over until their last round ends.
	w.r.live.Add(-1)
	for w.r.live.Load() > 0 {
		if w.takeInbox(true) == 0 {
			runtime.Gosched()
		}
	}
	for w.takeInbox(true) > 0 {
		w.step(w.clk.Now())
	}
	w.held.clear(func(h skb.Handle) { w.drop(h, skb.Shutdown) })
	end := w.clk.Now() + int64(drainTime)
	for pending := 1; pending > 0 && w.clk.Now() < end; {
		now := w.clk.Now()
		w.step(now)
		pending = 0
		for i := range w.outs {
			if q := w.outs[i].tx; q != nil {
				q.Tick(now)
				q.Reclaim()
				pending += q.Pending()
			}
		}
		if pending > 0 {
			w.clk.Sleep(50 * time.Microsecond)
		}
	}
	w.publish()
	w.reader.Offline()
}

// abandon drops what a worker that never ran still holds, and takes it out of
// the FIB's readers, which would wait for it for ever. Its goroutine must have
// ended.
func (w *Worker) abandon() {
	w.closeMail()
	var hs [skb.BatchSize]skb.Handle
	for _, k := range w.inbox {
		for n := k.pop(hs[:]); n > 0; n = k.pop(hs[:]) {
			for _, h := range hs[:n] {
				w.drop(h, skb.Shutdown)
			}
		}
	}
	w.held.clear(func(h skb.Handle) { w.drop(h, skb.Shutdown) })
	for i := range w.outs {
		w.dropAll(&w.outs[i].batch, skb.Shutdown)
		w.outs[i].dirty = false
	}
	w.dirty = w.dirty[:0]
	w.publish()
	w.reader.Offline()
}

// publish shows the worker's and its queues' counters to readers.
func (w *Worker) publish() {
	w.stats.Live.RunNs = uint64(w.now - w.began)
	w.stats.Publish()
	for _, q := range w.queues {
		q.rx.Counters().Publish()
	}
	for i := range w.outs {
		if q := w.outs[i].tx; q != nil {
			q.Counters().Publish()
		}
	}
}

// HolderName implements skb.Holder for the frames inside the router.
func (w *Worker) HolderName() string { return fmt.Sprintf("worker %d", w.id) }

// EachHeld implements skb.Holder.
func (w *Worker) EachHeld(f func(skb.Handle)) {
	w.held.each(f)
	for i := range w.outs {
		for _, h := range w.outs[i].batch.Handles() {
			f(h)
		}
	}
	for _, k := range w.inbox {
		for i := k.head.Load(); i != k.tail.Load(); i++ {
			f(k.ring[i%handoffSize])
		}
	}
}
