package dataplane

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"gorouter/clock"
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

	ifs *ifaceSet
	now int64 // the round's time
	gen uint64

	in    skb.Batch
	ip    [skb.BatchSize]skb.Handle
	dst   [skb.BatchSize]uint32
	res   [skb.BatchSize]uint32
	held  holdTable
	icmp  bucket4
	trips uint64
	timed bool
	lap   int64
	idle  int // rounds in a row without work

	stats *stat.Page[counts]

	mailMu sync.Mutex
	mail   []func()
	mailed atomic.Bool
}

func newWorker(a *skb.Arena, f *fib.FIB, c *clock.Clock, id int) *Worker {
	w := &Worker{
		CPU: -1, id: id, arena: a, clk: c,
		cache:  a.NewCache(fmt.Sprintf("worker %d", id)),
		reader: f.NewReader(),
		stats:  stat.New[counts](),
	}
	w.held.init()
	return w
}

// Cache is the worker's buffer cache, for opening the queues it will own.
func (w *Worker) Cache() *skb.Cache { return w.cache }

// attach gives the worker an output to every port.
func (w *Worker) attach(r *Router, o Options) {
	w.r = r
	w.opts = o
	w.icmp = bucket4{rate: icmpRate, burst: icmpBurst, tokens: icmpBurst}
	w.ifs = r.ifaces.Load()
	w.outs = make([]output, len(r.ports))
	for i, p := range r.ports {
		o := &w.outs[i]
		o.port = p
		if own := r.owner[i]; own == w {
			o.tx = p.Tx[0]
		} else {
			o.hand = own.handoffFrom(w)
		}
	}
}

// handoffFrom is the ring through which a worker hands frames to w.
func (w *Worker) handoffFrom(from *Worker) *handoff {
	for _, h := range w.inbox {
		if h.from == from.id {
			return h
		}
	}
	h := &handoff{from: from.id, to: w.id}
	w.inbox = append(w.inbox, h)
	return h
}

// adopt puts a port's receive queues on the poll list.
func (w *Worker) adopt(p *port.Port) {
	for _, q := range p.Rx {
		w.queues = append(w.queues, &pollQueue{rx: q, port: p.Index})
	}
	if p.Step != nil {
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

// SetOptions changes the poll loop's options. Owner only: call it in Do.
func (w *Worker) SetOptions(o Options) error {
	if errs := OptionTable.Check(&o); len(errs) > 0 {
		return errs[0]
	}
	w.opts = o
	return nil
}

// Do has f run by the worker between two rounds. Safe for concurrent use; it
// does not wait.
func (w *Worker) Do(f func()) {
	w.mailMu.Lock()
	w.mail = append(w.mail, f)
	w.mailMu.Unlock()
	w.mailed.Store(true)
}

func (w *Worker) readMail() {
	if !w.mailed.Load() {
		return
	}
	w.mailed.Store(false)
	w.mailMu.Lock()
	fs := w.mail
	w.mail = nil
	w.mailMu.Unlock()
	for _, f := range fs {
		f()
	}
}

// run is the worker's goroutine.
func (w *Worker) run(ready chan<- error) {
	runtime.LockOSThread()
	// The thread is not unlocked when it was pinned: the runtime then ends
	// it, and no other goroutine inherits the affinity.
	if w.CPU >= 0 {
		var set unix.CPUSet
		set.Set(w.CPU)
		if err := unix.SchedSetaffinity(0, &set); err != nil {
			ready <- fmt.Errorf("worker %d: pin to cpu %d: %w (use cpu: auto)", w.id, w.CPU, err)
			return
		}
	} else {
		defer runtime.UnlockOSThread()
	}
	ready <- nil
	w.reader.Online()
	for !w.r.stop.Load() {
		if w.Round() {
			w.idle = 0
		} else {
			w.rest()
		}
	}
	w.finish()
}

// rest is what an idle worker does.
func (w *Worker) rest() {
	w.idle++
	if w.opts.Idle == IdleSpin || w.idle < 16 {
		// Other goroutines may have no processor of their own.
		if w.idle%256 == 0 || (w.opts.Idle != IdleSpin && w.idle > 4) {
			runtime.Gosched()
		}
		return
	}
	nap := min(time.Microsecond<<min(w.idle-16, 20), w.opts.IdleMax)
	w.stats.Live.Naps++
	w.stats.Publish()
	w.reader.Offline()
	w.clk.Sleep(nap)
	w.reader.Online()
}

// drainTime is how long a stopping worker waits for its transmit rings.
const drainTime = 100 * time.Millisecond

// finish empties what the worker holds: handed-over frames are sent, held
// ones dropped, and the transmit rings get a moment to drain.
func (w *Worker) finish() {
	w.now = w.clk.Now()
	w.takeInbox()
	w.held.clear(func(h skb.Handle) { w.drop(h, skb.Shutdown) })
	w.sendAll(false)
	w.flushAll()
	end := w.clk.Now() + int64(drainTime)
	for pending := 1; pending > 0 && w.clk.Now() < end; {
		now := w.clk.Now()
		for _, step := range w.steps {
			step(now)
		}
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
	w.readMail()
	w.publish()
	w.reader.Offline()
}

// publish shows the worker's and its queues' counters to readers.
func (w *Worker) publish() {
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
