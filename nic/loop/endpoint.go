package loop

import (
	"errors"
	"sync/atomic"
	"time"

	"gorouter/internal/inet"
	"gorouter/rx"
)

// EndpointConfig describes a capture file as the end of a cable.
type EndpointConfig struct {
	File   string // frames that it sends; empty: none
	Output string // where the frames go that it is given; empty: they are only counted
	Loop   bool   // send the file's frames again and again
}

// Endpoint is a capture file at the end of a cable. It sends as fast as the
// cable takes frames. Deliver, Next and Close are for one goroutine, Counts
// for any.
type Endpoint struct {
	frames []rx.PcapFrame
	next   int
	loop   bool
	out    *writer
	due    int64 // when what has come in is written out

	sent, taken, refused atomic.Uint64
}

// What is delivered waits for one write to the file: until so many bytes have
// come, or until so many nanoseconds have passed.
const (
	flushAt    = 1 << 16
	flushEvery = 10_000_000
)

// NewEndpoint reads the file into memory and creates the output.
func NewEndpoint(c EndpointConfig) (*Endpoint, error) {
	if c.File == "" && c.Output == "" {
		return nil, errors.New("a pcap cable end needs a file, an output or both")
	}
	frames, out, err := open(c.File, c.Output)
	if err != nil {
		return nil, err
	}
	e := &Endpoint{loop: c.Loop, out: out}
	for _, f := range frames {
		// A cable cannot carry half a frame or less than a header.
		if f.Len > len(f.Data) || len(f.Data) < inet.EthHeaderLen {
			e.refused.Add(1)
			continue
		}
		e.frames = append(e.frames, f)
	}
	return e, nil
}

// Deliver takes a frame in; it is copied. It reports whether the frame was
// stored or, without an output, counted.
func (e *Endpoint) Deliver(frame []byte) bool {
	e.taken.Add(1)
	if e.out == nil {
		return true
	}
	e.out.add(frame, time.Now())
	if len(e.out.buf) >= flushAt {
		e.out.flush()
	}
	return e.out.err == nil
}

// Next is the file's next frame, nil after the last. It must not be changed.
// What has come in is written out every few milliseconds.
func (e *Endpoint) Next(now int64) []byte {
	if e.out != nil {
		if now >= e.due {
			e.due = now + flushEvery
			e.out.flush()
		}
	}
	if e.next == len(e.frames) {
		if !e.loop || e.next == 0 {
			return nil
		}
		e.next = 0
	}
	f := e.frames[e.next].Data
	e.next++
	e.sent.Add(1)
	return f
}

// Counts are the frames sent, taken in, and left out of the file because they
// are cut short. Safe for concurrent use.
func (e *Endpoint) Counts() (sent, taken, refused uint64) {
	return e.sent.Load(), e.taken.Load(), e.refused.Load()
}

// Close completes the output and reports the first error that it met, with
// the number of frames lost by it. It is idempotent.
func (e *Endpoint) Close() error {
	if e.out == nil {
		return nil
	}
	if e.out.f == nil {
		return e.out.err
	}
	return e.out.close()
}
