package model

import (
	"fmt"
	"math/rand/v2"
	"time"

	"gorouter/internal/option"
)

// Impairment is what a cable does to the frames of one direction. Chances are
// per million frames and independent of each other; the zero value does
// nothing.
type Impairment struct {
	Loss      int           // chance to be lost
	Corrupt   int           // chance of flipped bits: the frame fails its check sequence
	Duplicate int           // chance to come twice
	Reorder   int           // chance to be held up by ReorderBy, and so overtaken
	ReorderBy time.Duration // 0: 100 us
	Delay     time.Duration // every frame takes so long
	Jitter    time.Duration // and up to so much longer; order is kept
	Limit     int           // frames under way; what comes then is lost. 0: 4096
}

const (
	perMillion       = 1_000_000
	defaultReorderBy = 100 * time.Microsecond
	defaultLimit     = 4096
	maxImpairDelay   = 10 * 1000 * 1000 // us
	maxImpairLimit   = 1 << 20
)

// ImpairmentTable lists the impairments for the configuration.
var ImpairmentTable = option.Table[Impairment]{
	{Name: "loss", Unit: "frames in a million", Max: perMillion,
		Help: "frames that are lost", Int: func(o *Impairment) *int { return &o.Loss }},
	{Name: "corrupt", Unit: "frames in a million", Max: perMillion,
		Help: "frames with flipped bits, which the receiving chip counts and drops (CRCERRS)", Int: func(o *Impairment) *int { return &o.Corrupt }},
	{Name: "duplicate", Unit: "frames in a million", Max: perMillion,
		Help: "frames that come twice", Int: func(o *Impairment) *int { return &o.Duplicate }},
	{Name: "reorder", Unit: "frames in a million", Max: perMillion,
		Help: "frames that are held up by reorder_by and overtaken by others", Int: func(o *Impairment) *int { return &o.Reorder }},
	{Name: "reorder_by", Max: maxImpairDelay, DefDur: defaultReorderBy,
		Help: "how long a frame is held up for reordering", Dur: func(o *Impairment) *time.Duration { return &o.ReorderBy }},
	{Name: "delay", Max: maxImpairDelay,
		Help: "time that every frame takes", Dur: func(o *Impairment) *time.Duration { return &o.Delay }},
	{Name: "jitter", Max: maxImpairDelay,
		Help: "longest extra time of a frame, drawn evenly; the order is kept", Dur: func(o *Impairment) *time.Duration { return &o.Jitter }},
	{Name: "limit", Unit: "frames", Max: maxImpairLimit, DefInt: defaultLimit,
		Help: "most frames under way; more are lost", Int: func(o *Impairment) *int { return &o.Limit }},
}

// active reports whether there is anything to do.
func (o *Impairment) active() bool {
	return o.Loss|o.Corrupt|o.Duplicate|o.Reorder != 0 || o.Delay != 0 || o.Jitter != 0
}

// WireStats counts the frames of one direction. Every frame is accounted for:
// Sent + Duplicated = Delivered + Refused + Lost + LinkDown + Overflow + InFlight.
type WireStats struct {
	Sent       uint64 // taken from the source
	Duplicated uint64 // copies that the cable made
	Delivered  uint64
	Refused    uint64 // the receiving end did not take it and counts it
	Lost       uint64 // by Impairment.Loss
	LinkDown   uint64 // under way when the cable was pulled out
	Overflow   uint64 // beyond Impairment.Limit
	InFlight   uint64

	Corrupted uint64 // with flipped bits; in Refused too, if the end minds
	HeldUp    uint64 // by Impairment.Reorder
	Reordered uint64 // came after a frame that was sent later
}

// Unaccounted is what the identity of WireStats leaves over: always 0.
func (s *WireStats) Unaccounted() int64 {
	return int64(s.Sent + s.Duplicated - s.Delivered - s.Refused - s.Lost - s.LinkDown - s.Overflow - s.InFlight)
}

// flying is a frame under way.
type flying struct {
	due  int64
	seq  uint64
	data []byte
	bad  FrameError
}

// wire is one direction of a cable. Frames under way are in a heap by due
// time, then by the order in which they were sent.
type wire struct {
	opts    Impairment
	on      bool
	rng     *rand.Rand
	stats   WireStats
	heap    []flying
	spare   [][]byte
	seq     uint64
	latest  int64  // due time of the last frame that was not held up
	arrived uint64 // highest seq delivered, plus one
}

func newWire(o Impairment, seed, direction uint64) (wire, error) {
	if errs := ImpairmentTable.Check(&o); len(errs) > 0 {
		return wire{}, fmt.Errorf("cable: %w", errs[0])
	}
	if o.ReorderBy == 0 {
		o.ReorderBy = defaultReorderBy
	}
	if o.Limit == 0 {
		o.Limit = defaultLimit
	}
	w := wire{opts: o, on: o.active()}
	if w.on {
		w.rng = rand.New(rand.NewPCG(seed, direction))
	}
	return w, nil
}

// chance draws; a chance of zero draws nothing, so that options do not change
// each other's luck more than they have to.
func (w *wire) chance(perMillionFrames int) bool {
	return perMillionFrames > 0 && w.rng.IntN(perMillion) < perMillionFrames
}

// enter takes a frame from its source.
func (w *wire) enter(f []byte, bad FrameError, now int64) {
	o := &w.opts
	if w.chance(o.Loss) {
		w.stats.Lost++
		return
	}
	corrupt, twice, held := w.chance(o.Corrupt), w.chance(o.Duplicate), w.chance(o.Reorder)
	due := now + int64(o.Delay)
	if o.Jitter > 0 {
		due += w.rng.Int64N(int64(o.Jitter) + 1)
	}
	due = max(due, w.latest)
	if held {
		w.stats.HeldUp++
		due += int64(o.ReorderBy)
	} else {
		w.latest = due
	}
	if w.add(f, bad, corrupt, due) && twice {
		w.stats.Duplicated++
		w.add(f, bad, corrupt, due)
	}
}

// add puts a copy under way.
func (w *wire) add(f []byte, bad FrameError, corrupt bool, due int64) bool {
	if len(w.heap) >= w.opts.Limit {
		w.stats.Overflow++
		return false
	}
	var b []byte
	if n := len(w.spare); n > 0 {
		b, w.spare = w.spare[n-1], w.spare[:n-1]
	}
	b = append(b[:0], f...)
	if corrupt && len(b) > 0 {
		w.stats.Corrupted++
		bad |= ErrCRC
		for range 1 + w.rng.IntN(3) {
			b[w.rng.IntN(len(b))] ^= 1 << w.rng.IntN(8)
		}
	}
	w.seq++
	w.push(flying{due: due, seq: w.seq, data: b, bad: bad})
	return true
}

// leave gives the next frame that is due, and false when there is none.
func (w *wire) leave(now int64) (flying, bool) {
	if len(w.heap) == 0 || w.heap[0].due > now {
		return flying{}, false
	}
	return w.pop(), true
}

// delivered notes what became of a frame that left, and takes its memory back.
func (w *wire) delivered(f flying, taken bool) {
	w.count(taken)
	if f.seq < w.arrived {
		w.stats.Reordered++
	} else {
		w.arrived = f.seq
	}
	w.spare = append(w.spare, f.data)
}

func (w *wire) count(taken bool) {
	if taken {
		w.stats.Delivered++
	} else {
		w.stats.Refused++
	}
}

// cut loses what is under way.
func (w *wire) cut() {
	w.stats.LinkDown += uint64(len(w.heap))
	for _, f := range w.heap {
		w.spare = append(w.spare, f.data)
	}
	w.heap = w.heap[:0]
}

func (w *wire) before(i, j int) bool {
	a, b := &w.heap[i], &w.heap[j]
	return a.due < b.due || a.due == b.due && a.seq < b.seq
}

func (w *wire) push(f flying) {
	w.heap = append(w.heap, f)
	for i := len(w.heap) - 1; i > 0; {
		up := (i - 1) / 2
		if !w.before(i, up) {
			break
		}
		w.heap[i], w.heap[up] = w.heap[up], w.heap[i]
		i = up
	}
}

func (w *wire) pop() flying {
	f, n := w.heap[0], len(w.heap)-1
	w.heap[0] = w.heap[n]
	w.heap[n] = flying{}
	w.heap = w.heap[:n]
	for i := 0; ; {
		down := 2*i + 1
		if down >= n {
			break
		}
		if down+1 < n && w.before(down+1, down) {
			down++
		}
		if !w.before(down, i) {
			break
		}
		w.heap[i], w.heap[down] = w.heap[down], w.heap[i]
		i = down
	}
	return f
}
