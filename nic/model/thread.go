package model

import (
	"errors"
	"runtime"
	"sync"
	"time"

	"gorouter/clock"
)

// Stepper is a chip or anything else that works in steps.
type Stepper interface{ Step(now int64) int }

// Back-off of an idle thread.
const (
	idleSpins = 200
	napMin    = 20 * time.Microsecond
	napMax    = time.Millisecond
)

// Thread steps a set of steppers on a goroutine of its own. When none has
// work it first yields and then sleeps, longer each time up to a millisecond.
type Thread struct {
	clock *clock.Clock
	work  []Stepper
	stop  chan struct{}
	once  sync.Once
	done  sync.WaitGroup
}

// StartThread starts to step. The chips among the steppers must have been made
// with Config.Threaded, and the clock must be a machine's.
func StartThread(clk *clock.Clock, work ...Stepper) (*Thread, error) {
	if clk.IsVirtual() {
		return nil, errors.New("model thread: a virtual clock stands still between steps; step inline")
	}
	for _, w := range work {
		if c, ok := w.(*Chip); ok {
			if err := c.canThread(); err != nil {
				return nil, err
			}
		}
	}
	t := &Thread{clock: clk, work: work, stop: make(chan struct{})}
	t.done.Add(1)
	go t.run()
	return t, nil
}

// Stop ends the thread and waits for it. It is idempotent.
func (t *Thread) Stop() {
	t.once.Do(func() { close(t.stop) })
	t.done.Wait()
}

func (t *Thread) run() {
	defer t.done.Done()
	idle, nap := 0, napMin
	for {
		select {
		case <-t.stop:
			return
		default:
		}
		n := 0
		for _, w := range t.work {
			n += w.Step(t.clock.Now())
		}
		switch {
		case n > 0:
			idle, nap = 0, napMin
		case idle < idleSpins:
			idle++
			runtime.Gosched()
		default:
			t.clock.Sleep(nap)
			nap = min(2*nap, napMax)
		}
	}
}

// canThread tells whether another goroutine may step the chip.
func (c *Chip) canThread() error {
	if !c.threaded {
		return errors.New("model " + c.cfg.Name + ": not made to be stepped by another goroutine (set Threaded)")
	}
	c.mu.Lock()
	cable := c.cable
	c.mu.Unlock()
	if cable == nil {
		return nil
	}
	for _, e := range []end{cable.a, cable.b} {
		if e.chip != nil && !e.chip.threaded {
			return errors.New("model " + e.chip.cfg.Name + ": not made to be stepped by another goroutine (set Threaded)")
		}
	}
	return nil
}

// Start steps the chip, and the cable it is plugged into, on a thread of its
// own. Of two chips on one cable only one may be started; it serves both.
func (c *Chip) Start() error {
	c.mu.Lock()
	running, cable := c.thread != nil, c.cable
	c.mu.Unlock()
	if running {
		return errors.New("model " + c.cfg.Name + ": already started")
	}
	if cable != nil {
		cable.threadMu.Lock()
		defer cable.threadMu.Unlock()
		if cable.thread != nil {
			return errors.New("model " + c.cfg.Name + ": the chip at the other end of the cable already steps it")
		}
	}
	t, err := StartThread(c.cfg.Clock, c)
	if err != nil {
		return err
	}
	if cable != nil {
		cable.thread = t
	}
	c.mu.Lock()
	c.thread = t
	c.mu.Unlock()
	return nil
}

// Stop ends the thread of Start. It is idempotent; a chip that was not
// started is left alone.
func (c *Chip) Stop() {
	c.mu.Lock()
	t, cable := c.thread, c.cable
	c.thread = nil
	c.mu.Unlock()
	if t == nil {
		return
	}
	t.Stop()
	if cable != nil {
		cable.threadMu.Lock()
		cable.thread = nil
		cable.threadMu.Unlock()
	}
}
