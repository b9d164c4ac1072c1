package model

import (
	"errors"
	"sync"
	"sync/atomic"

	"gorouter/clock"
)

// DefaultBurst is the most frames that one step of a chip moves each way.
const DefaultBurst = 64

// Roomer is an Endpoint that knows how many frames it can take. A lossless
// cable asks it.
type Roomer interface{ Room() int }

// ErrorSource is an Endpoint whose frames may be damaged. Errors is about the
// frame that Next gave last.
type ErrorSource interface{ Errors() FrameError }

// ErrorSink is an Endpoint that wants to see damaged frames. Others lose them.
type ErrorSink interface {
	DeliverBad(frame []byte, e FrameError) bool
}

// CableOptions say how a cable behaves.
type CableOptions struct {
	// Lossless makes a frame wait at its source while the other end has no
	// room, as 802.3x pause frames would.
	Lossless bool
	// Clock is used by Start only; default is the machine's.
	Clock *clock.Clock
}

// CableStats counts the frames of a cable by direction. Lost are those that
// the receiving end did not take.
type CableStats struct {
	AToB, LostAToB uint64
	BToA, LostBToA uint64
}

// Cable joins two endpoints. One goroutine at a time steps it; the rest is
// safe for concurrent use.
type Cable struct {
	a, b  end
	opts  CableOptions
	up    atomic.Bool
	mu    sync.Mutex // guards stats; taken after a chip's
	stats CableStats

	threadMu sync.Mutex // guards thread; taken before a chip's
	thread   *Thread
}

// end is an endpoint with what it can do besides. Chips are called directly:
// their lock is taken once a step.
type end struct {
	ep   Endpoint
	chip *Chip
	room Roomer
	src  ErrorSource
	sink ErrorSink
}

func newEnd(e Endpoint) end {
	n := end{ep: e}
	n.chip, _ = e.(*Chip)
	n.room, _ = e.(Roomer)
	n.src, _ = e.(ErrorSource)
	n.sink, _ = e.(ErrorSink)
	return n
}

// NewCable plugs both ends in, for good; the link comes up on chips that want
// it up. Chips must not be stepped meanwhile.
func NewCable(a, b Endpoint, o CableOptions) (*Cable, error) {
	if a == nil || b == nil {
		return nil, errors.New("cable: an end is missing")
	}
	if a == b {
		return nil, errors.New("cable: both ends are the same")
	}
	if o.Clock == nil {
		o.Clock = clock.Machine()
	}
	c := &Cable{a: newEnd(a), b: newEnd(b), opts: o}
	for _, e := range []end{c.a, c.b} {
		if e.chip == nil {
			continue
		}
		e.chip.mu.Lock()
		taken := e.chip.cable != nil
		e.chip.mu.Unlock()
		if taken {
			return nil, errors.New("cable: " + e.chip.cfg.Name + " has a cable already")
		}
	}
	for _, e := range []end{c.a, c.b} {
		if e.chip != nil {
			e.chip.mu.Lock()
			e.chip.cable = c
			e.chip.mu.Unlock()
		}
	}
	c.SetLink(true)
	return c, nil
}

// SetLink pulls the cable out or plugs it in again. Frames do not move while
// it is out; chips see it in STATUS.LU and ICR.LSC. Safe for concurrent use.
func (c *Cable) SetLink(up bool) {
	c.up.Store(up)
	for _, e := range []end{c.a, c.b} {
		if e.chip != nil {
			e.chip.plug(up)
		}
	}
}

// Stats is what went over the cable. Safe for concurrent use.
func (c *Cable) Stats() CableStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stats
}

// Step moves up to max frames each way and lets the chips at the ends do what
// is due by now (nanoseconds). It returns how many frames moved.
func (c *Cable) Step(now int64, max int) int {
	a, b := c.a.chip, c.b.chip
	if a != nil {
		a.mu.Lock()
		a.begin(now)
	}
	if b != nil {
		b.mu.Lock()
		b.begin(now)
	}
	moved := 0
	if c.up.Load() {
		c.mu.Lock()
		n, lost := c.move(&c.a, &c.b, now, max)
		c.stats.AToB += uint64(n)
		c.stats.LostAToB += uint64(lost)
		m, lost := c.move(&c.b, &c.a, now, max)
		c.stats.BToA += uint64(m)
		c.stats.LostBToA += uint64(lost)
		moved = n + m
		c.mu.Unlock()
	}
	callA, callB := false, false
	if b != nil {
		b.end()
		callB = b.irq.take()
		b.mu.Unlock()
	}
	if a != nil {
		a.end()
		callA = a.irq.take()
		a.mu.Unlock()
	}
	if callA {
		a.cfg.Interrupt()
	}
	if callB {
		b.cfg.Interrupt()
	}
	return moved
}

// move takes frames from one end to the other.
func (c *Cable) move(from, to *end, now int64, max int) (n, lost int) {
	if c.opts.Lossless {
		max = min(max, to.free(max))
	}
	for n < max {
		f, bad := from.next(now)
		if f == nil {
			break
		}
		n++
		if !to.deliver(f, bad) {
			lost++
		}
	}
	return n, lost
}

func (e *end) free(max int) int {
	if e.chip != nil {
		return e.chip.room()
	}
	if e.room != nil {
		return e.room.Room()
	}
	return max
}

func (e *end) next(now int64) ([]byte, FrameError) {
	if e.chip != nil {
		return e.chip.next(), e.chip.txState.bad
	}
	f := e.ep.Next(now)
	if f != nil && e.src != nil {
		return f, e.src.Errors()
	}
	return f, 0
}

func (e *end) deliver(f []byte, bad FrameError) bool {
	if e.chip != nil {
		return e.chip.deliver(f, bad)
	}
	if bad == 0 {
		return e.ep.Deliver(f)
	}
	return e.sink != nil && e.sink.DeliverBad(f, bad)
}
