package dataplane

import (
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"gorouter/port"
)

const (
	// idleRounds is how many rounds without work go by before a worker naps or
	// sleeps: arming costs register accesses, and traffic comes in bursts.
	idleRounds = 16

	// sleepMax is the longest sleep. What nobody reports is looked at that
	// often: the link, the watchdog, an interrupt that was lost.
	sleepMax = 100 * time.Millisecond

	// yieldAfter is how long a worker runs before it lets other goroutines
	// run, on a machine where they have no processor of their own.
	yieldAfter = int64(100 * time.Microsecond)
)

// idler is what a worker needs for its idle time.
type idler struct {
	idle    int   // rounds in a row without work
	pending int   // sleeps in a row that a port's unreported frames forbade
	stalled bool  // the last round left frames on receive rings, for want of room at another worker
	woken   bool  // out of a sleep by an event, and no round since
	began   int64 // when the first round began
	yielded int64 // when others were let run last
	crowded bool  // there are not more processors than workers

	sleeper   *port.Sleeper // nil with a virtual clock, and before Start
	listening bool          // the sleeper has the sources of all the worker's ports
	waits     func() bool   // Worker.waiting, made once
	holding   atomic.Bool   // asleep with packets that wait for a neighbour
	troubled  bool          // an error of the sleeper was logged
}

// rest is what an idle worker does.
func (w *Worker) rest() {
	w.idle++
	switch {
	case w.opts.Idle == IdleSpin:
		if w.idle%256 == 0 {
			runtime.Gosched()
		}
		w.yield()
	case w.idle < idleRounds:
		if w.idle > 4 {
			runtime.Gosched()
		}
	case w.stalled:
		w.awaitRoom()
		w.nap(w.idle - idleRounds)
	case w.listening:
		w.sleep()
	default:
		w.nap(w.idle - idleRounds)
	}
}

// yield lets other goroutines run when workers take all processors. Without it
// they would wait for the runtime to take one away, 10 ms each time.
func (w *Worker) yield() {
	if w.crowded && w.now-w.yielded > yieldAfter {
		w.yielded = w.now
		runtime.Gosched()
	}
}

// nap does nothing for a while, longer each time up to Options.IdleMax.
func (w *Worker) nap(times int) {
	d := min(time.Microsecond<<min(times, 20), w.opts.IdleMax)
	w.stats.Live.Naps++
	w.stats.Publish()
	w.reader.Offline()
	if w.sleeper == nil {
		w.clk.Sleep(d)
	} else if _, err := w.sleeper.Nap(d, w.waits); err != nil {
		w.report(err)
		w.clk.Sleep(d)
	}
	w.reader.Online()
	// The system call keeps this worker's processor for a while, from others
	// that may be waiting.
	runtime.Gosched()
}

// sleep waits for the event sources of all ports. Round has gone through all
// queues and reclaimed before; what is still on a transmit ring is either
// reported by the source or makes Arm say pending, so nothing stays captive.
func (w *Worker) sleep() {
	c := &w.stats.Live
	w.holding.Store(w.held.total > 0)
	w.stats.Publish()
	w.reader.Offline()
	start := w.clk.Now()
	slept, err := w.sleeper.Sleep(w.r.sleepMax, w.waits)
	took := w.clk.Now() - start
	w.reader.Online()
	switch {
	case err != nil:
		w.report(err)
		w.nap(w.idle - idleRounds)
	case slept:
		w.pending = 0
		c.Sleeps++
		if took < int64(w.r.sleepMax) {
			c.Wakeups++
			w.woken = true
		}
	case w.waiting():
		// Work from inside the router.
	default:
		// Frames may have come in since the last poll, so the first time is
		// for another round. If that found nothing, a port holds what nobody
		// will report, and this is backoff.
		c.Pendings++
		if w.pending++; w.pending > 1 {
			w.nap(w.pending - 2)
		}
	}
}

// waiting reports whether there is work that no port reports: the sleeper's
// second look.
func (w *Worker) waiting() bool {
	if w.mailed.Load() || w.r.stop.Load() || w.r.neigh.Generation() != w.gen {
		return true
	}
	for _, k := range w.inbox {
		if k.len() > 0 {
			return true
		}
	}
	return w.stalled && !w.clogged()
}

// wake ends the worker's sleep or nap. The work must have been published. For
// other workers of the router while they run, and for who holds mailMu and saw
// that the mail is open: later the sleeper may be closed.
func (w *Worker) wake() {
	if w.sleeper != nil {
		w.sleeper.Wake()
	}
}

// poke is wake for everybody else.
func (w *Worker) poke() {
	w.mailMu.Lock()
	defer w.mailMu.Unlock()
	if !w.closed {
		w.wake()
	}
}

// wakeHolders wakes the workers that sleep with packets which wait for a
// neighbour, after the table's generation was raised. The caller is the worker
// that saw it.
func (r *Router) wakeHolders(caller *Worker) {
	for _, w := range r.workers {
		if w != caller && w.holding.Load() {
			w.wake()
		}
	}
}

// report logs the first error of a sleeper.
func (w *Worker) report(err error) {
	if !w.troubled {
		w.troubled = true
		w.r.log.Error("the worker cannot sleep and naps instead", "worker", w.id, "err", err)
	}
}

// openSleepers is before the workers' goroutines start.
func (r *Router) openSleepers() error {
	for _, w := range r.workers {
		w.crowded = len(r.workers) >= runtime.GOMAXPROCS(0)
		if r.clk.IsVirtual() {
			continue
		}
		s, err := port.NewSleeper()
		if err != nil {
			return err
		}
		w.mailMu.Lock()
		w.sleeper = s
		w.mailMu.Unlock()
	}
	return nil
}

// closeSleepers is after the workers' goroutines ended and their mail was
// closed.
func (r *Router) closeSleepers() {
	for _, w := range r.workers {
		if w.sleeper != nil {
			_ = w.sleeper.Close()
		}
	}
}

// sources are the event sources of the worker's ports, and the names of the
// ports that cannot wake it: they have none, or it belongs to several workers.
func (w *Worker) sources() (events []port.Notifier, mute []string) {
	for i, p := range w.r.ports {
		owners := slices.Concat(w.r.rxOwner[i], w.r.txOwner[i])
		if !slices.Contains(owners, w) {
			continue
		}
		alone := !slices.ContainsFunc(owners, func(o *Worker) bool { return o != w })
		if p.Events == nil || !alone {
			mute = append(mute, p.Name)
		} else {
			events = append(events, p.Events)
		}
	}
	return events, mute
}

// listen follows Options.Idle: the sleeper has the ports' sources while the
// worker is to sleep on them. On the worker's goroutine.
func (w *Worker) listen() {
	events, mute := w.sources()
	want := w.sleeper != nil && w.opts.Idle == IdleInterrupt && len(mute) == 0
	if want == w.listening {
		return
	}
	w.listening = want
	for _, e := range events {
		if want {
			w.sleeper.Add(e)
		} else {
			w.sleeper.Remove(e)
		}
	}
}

// explainIdle says once which workers will nap although they should sleep.
func (r *Router) explainIdle() {
	for _, w := range r.workers {
		if _, mute := w.sources(); len(mute) > 0 {
			r.log.Info("the worker naps (idle: backoff), as not all its ports can wake it", "worker", w.id, "ports", mute)
		}
	}
}
