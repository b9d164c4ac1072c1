package rx

import (
	"sync/atomic"

	"gorouter/internal/inet"
	"gorouter/internal/stat"
	"gorouter/skb"
)

// PcapFrame is one frame of a capture.
type PcapFrame struct {
	Data []byte
	Len  int // on the wire; above len(Data) when the capture cut the frame short
}

// PcapConfig is what a queue over captured frames is made of.
type PcapConfig struct {
	Name   string // for counters and reports, such as "p0 rx"
	Port   uint16 // ingress port of its frames
	Frames []PcapFrame
	Loop   bool // begin again after the last frame, without end
	Cache  *skb.Cache
	// MaxFrame is the longest frame, in bytes without FCS, that is received;
	// 0 is what a buffer holds, which is never exceeded.
	MaxFrame int
}

// Pcap is a receive queue over frames in memory. Each frame is copied into a
// fresh buffer. A frame for which there is none waits, as nothing drives it
// on. Frames flow from Start to Stop.
type Pcap struct {
	name   string
	port   uint16
	frames []PcapFrame
	next   int
	loop   bool
	max    int
	cache  *skb.Cache
	arena  *skb.Arena
	run    atomic.Bool
	page   *stat.Page[Counters]
}

// NewPcap makes a queue. The frames are not copied and must not change.
func NewPcap(c PcapConfig) *Pcap {
	a := c.Cache.Arena()
	most := a.Stride() - a.Headroom()
	if c.MaxFrame > 0 {
		most = min(most, c.MaxFrame)
	}
	return &Pcap{
		name: c.Name, port: c.Port, frames: c.Frames, loop: c.Loop && len(c.Frames) > 0,
		cache: c.Cache, arena: a, max: most, page: stat.New[Counters](),
	}
}

// Start lets frames flow. Safe for concurrent use.
func (q *Pcap) Start() { q.run.Store(true) }

// Stop ends the flow. Safe for concurrent use; a poll that has begun ends as
// it would have.
func (q *Pcap) Stop() { q.run.Store(false) }

// Poll implements Queue.
func (q *Pcap) Poll(b *skb.Batch, most int, now int64) int {
	c := &q.page.Live
	c.Polls++
	n := 0
	if q.run.Load() {
		for n < most && !b.Full() && q.next < len(q.frames) {
			f := &q.frames[q.next]
			if r := q.refuse(f); r != skb.ReasonNone {
				c.Drops[r]++
			} else {
				h := q.cache.Alloc()
				if h == skb.None {
					c.NoBuffer++
					break
				}
				copy(q.arena.Put(h, len(f.Data)), f.Data)
				m := q.arena.Meta(h)
				m.Port = q.port
				m.Stamp = now
				b.Add(h)
				c.Packets++
				c.Bytes += uint64(len(f.Data))
				c.Copied++
			}
			n++
			if q.next++; q.next == len(q.frames) && q.loop {
				q.next = 0
			}
		}
	}
	c.Descriptors += uint64(n)
	if n == 0 {
		c.Empty++
	}
	return n
}

// refuse says why a frame cannot be received.
func (q *Pcap) refuse(f *PcapFrame) skb.Reason {
	switch {
	case f.Len > len(f.Data):
		return skb.RxTruncated
	case len(f.Data) < inet.EthHeaderLen:
		return skb.RxRunt
	case len(f.Data) > q.max:
		return skb.RxTooLong
	}
	return skb.ReasonNone
}

// Replenish implements Queue; there is no ring to fill.
func (q *Pcap) Replenish() {}

// EndTurn implements Queue; there is no ring to fill.
func (q *Pcap) EndTurn(bool) {}

// Ready implements Queue.
func (q *Pcap) Ready() bool { return q.run.Load() && q.next < len(q.frames) }

// Counters implements Queue.
func (q *Pcap) Counters() *stat.Page[Counters] { return q.page }

// HolderName implements skb.Holder.
func (q *Pcap) HolderName() string { return q.name }

// EachHeld implements skb.Holder: buffers are taken only when a frame is
// handed over, so none is held.
func (q *Pcap) EachHeld(func(skb.Handle)) {}

// Close implements Queue. No frame is received afterwards.
func (q *Pcap) Close() {
	q.Stop()
	q.frames, q.next = nil, 0
}
