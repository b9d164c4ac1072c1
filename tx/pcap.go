package tx

import (
	"sync/atomic"
	"unsafe"

	"gorouter/internal/inet"
	"gorouter/internal/stat"
	"gorouter/skb"
)

// PcapConfig is what a queue that writes frames away is made of.
type PcapConfig struct {
	Name  string // for counters and reports, such as "p0 tx"
	Cache *skb.Cache
	// MaxFrame is the longest frame, in bytes without FCS, that is sent.
	MaxFrame int
	// Write stores the frames of one batch and returns how many of them were
	// stored; the rest count as aborted. It must not keep them. nil: the frames
	// are only counted.
	Write func(frames [][]byte) int
}

// Pcap is a transmit queue that hands each batch to a function and frees it at
// once: there is no ring, nothing is ever pending. Frames flow from Start to
// Stop.
type Pcap struct {
	name  string
	cache *skb.Cache
	arena *skb.Arena
	max   int
	write func([][]byte) int
	run   atomic.Bool
	out   [skb.BatchSize][]byte
	page  *stat.Page[Counters]
}

// NewPcap makes a queue.
func NewPcap(c PcapConfig) *Pcap {
	return &Pcap{
		name: c.Name, cache: c.Cache, arena: c.Cache.Arena(), max: c.MaxFrame, write: c.Write,
		page: stat.New[Counters](),
	}
}

// Start lets frames flow. Safe for concurrent use.
func (q *Pcap) Start() { q.run.Store(true) }

// Stop ends the flow: what is sent afterwards is dropped. Safe for concurrent
// use; a Send that has begun ends as it would have.
func (q *Pcap) Stop() { q.run.Store(false) }

// Send implements Queue.
func (q *Pcap) Send(b *skb.Batch, _ bool) int {
	if b.N == 0 {
		return 0
	}
	c := &q.page.Live
	c.Sends++
	n := 0
	if !q.run.Load() {
		c.Drops[skb.TxAborted] += uint64(b.N)
	} else {
		for _, h := range b.Handles() {
			if int(q.arena.Meta(h).Len) > q.max {
				c.Drops[skb.TxTooLong]++
				continue
			}
			size := q.arena.Pad(h, inet.EthMinLen)
			q.out[n] = unsafe.Slice((*byte)(q.arena.Head(h)), size)
			n++
		}
		n = q.store(n)
	}
	q.cache.FreeBatch(b.Handles())
	b.Reset()
	return n
}

// store writes the first n frames away and returns how many that did.
func (q *Pcap) store(n int) int {
	c := &q.page.Live
	stored := n
	if q.write != nil && n > 0 {
		stored = q.write(q.out[:n])
		c.Doorbells++
		c.Copied += uint64(stored)
	}
	for _, f := range q.out[:stored] {
		c.Bytes += uint64(len(f))
	}
	c.Packets += uint64(stored)
	c.Descriptors += uint64(stored)
	c.Drops[skb.TxAborted] += uint64(n - stored)
	return stored
}

// Flush implements Queue; nothing waits.
func (q *Pcap) Flush() {}

// Tick implements Queue; nothing waits.
func (q *Pcap) Tick(int64) {}

// Reclaim implements Queue; buffers were freed by Send.
func (q *Pcap) Reclaim() int { return 0 }

// Pending implements Queue.
func (q *Pcap) Pending() int { return 0 }

// Room implements Queue: a whole batch always fits.
func (q *Pcap) Room() int { return skb.BatchSize }

// Counters implements Queue.
func (q *Pcap) Counters() *stat.Page[Counters] { return q.page }

// HolderName implements skb.Holder.
func (q *Pcap) HolderName() string { return q.name }

// EachHeld implements skb.Holder: none is held.
func (q *Pcap) EachHeld(func(skb.Handle)) {}

// Close implements Queue. No frame is sent afterwards.
func (q *Pcap) Close() { q.Stop() }
