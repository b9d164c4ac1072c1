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
	// AToB and BToA are what the cable does to frames.
	AToB, BToA Impairment
	// Seed decides what happens by chance; a run with the same seed and the
	// same steps repeats itself.
	Seed uint64
	// Flaps are schedules of pulling the cable out.
	Flaps []Flap
	// Clock is used by Start only; default is the machine's.
	Clock *clock.Clock
}

// CableStats counts the frames of a cable by direction: those that were taken
// from the source, and those that were not and will not be delivered. Wires
// has it in detail.
type CableStats struct {
	AToB, LostAToB uint64
	BToA, LostBToA uint64
}

// Cable joins two endpoints. One goroutine at a time steps it; the rest is
// safe for concurrent use.
type Cable struct {
	a, b end
	opts CableOptions
	up   atomic.Bool
	mu   sync.Mutex // guards wires; taken after a chip's
	ab   wire
	ba   wire

	linkMu  sync.Mutex  // orders changes of the link; taken before a chip's
	pulled  atomic.Bool // by SetLink
	flapped atomic.Bool // by the schedule
	told    atomic.Bool // that an end is gone
	flaps   atomic.Uint64
	stepped bool
	begun   int64 // time of the first step

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
	var err error
	if c.ab, err = newWire(o.AToB, o.Seed, 0); err != nil {
		return nil, err
	}
	if c.ba, err = newWire(o.BToA, o.Seed, 1); err != nil {
		return nil, err
	}
	for i := range o.Flaps {
		if err := o.Flaps[i].check(); err != nil {
			return nil, err
		}
	}
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

// Stats is what went over the cable. Safe for concurrent use.
func (c *Cable) Stats() CableStats {
	ab, ba := c.Wires()
	return CableStats{AToB: ab.Sent, LostAToB: ab.Sent + ab.Duplicated - ab.Delivered - ab.InFlight,
		BToA: ba.Sent, LostBToA: ba.Sent + ba.Duplicated - ba.Delivered - ba.InFlight}
}

// Wires is the same in detail. Safe for concurrent use.
func (c *Cable) Wires() (ab, ba WireStats) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ab, ba = c.ab.stats, c.ba.stats
	ab.InFlight, ba.InFlight = uint64(len(c.ab.heap)), uint64(len(c.ba.heap))
	return ab, ba
}

// Step moves up to max frames each way and lets the chips at the ends do what
// is due by now (nanoseconds). It returns how many frames moved.
func (c *Cable) Step(now int64, max int) int {
	if len(c.opts.Flaps) > 0 {
		c.flap(now)
	}
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
	c.mu.Lock()
	if c.up.Load() {
		moved = c.move(&c.a, &c.b, &c.ab, now, max) + c.move(&c.b, &c.a, &c.ba, now, max)
	} else {
		c.ab.cut()
		c.ba.cut()
	}
	c.mu.Unlock()
	callA, callB, gone := false, false, false
	if b != nil {
		b.end()
		gone = b.gone
		callB = b.irq.take()
		b.mu.Unlock()
	}
	if a != nil {
		a.end()
		gone = gone || a.gone
		callA = a.irq.take()
		a.mu.Unlock()
	}
	if callA {
		a.cfg.Interrupt()
	}
	if callB {
		b.cfg.Interrupt()
	}
	if gone != c.told.Load() {
		c.tellLink()
	}
	return moved
}

// move takes frames from one end to the other and returns how many were
// taken or delivered.
func (c *Cable) move(from, to *end, w *wire, now int64, max int) int {
	if w.on {
		return c.moveSlowly(from, to, w, now, max)
	}
	if c.opts.Lossless {
		max = min(max, to.free(max))
	}
	n := 0
	for n < max {
		f, bad := from.next(now)
		if f == nil {
			break
		}
		n++
		w.count(to.deliver(f, bad))
	}
	w.stats.Sent += uint64(n)
	return n
}

// moveSlowly is move with impairments: into the wire, and out of it what is
// due. Without loss there is room at the end for all that is under way.
func (c *Cable) moveSlowly(from, to *end, w *wire, now int64, max int) int {
	in := max
	room := to.free(max + len(w.heap))
	if c.opts.Lossless {
		in = min(max, min(room, w.opts.Limit)-len(w.heap))
	}
	n := 0
	for ; n < in; n++ {
		f, bad := from.next(now)
		if f == nil {
			break
		}
		w.stats.Sent++
		w.enter(f, bad, now)
	}
	for out := 0; out < max; out++ {
		if c.opts.Lossless && to.free(1) == 0 {
			break
		}
		f, ok := w.leave(now)
		if !ok {
			break
		}
		w.delivered(f, to.deliver(f.data, f.bad))
		n++
	}
	return n
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
