package pktgen

import (
	"testing"

	"gorouter/internal/stat"
	"gorouter/rx"
	"gorouter/skb"
	"gorouter/tx"
)

// wire is a transmit and a receive queue in memory: what is sent stays pending
// until the owner reclaims, and its bytes can be received at the other side.
type wire struct {
	t       testing.TB
	cache   *skb.Cache
	ring    int
	limit   int // frames that the device finishes in one reclaim, 0 = all
	held    []skb.Handle
	frames  [][]byte // as sent, when kept
	keep    bool
	back    bool // what is sent can be received
	queue   [][]byte
	sends   []int
	flushed bool
	down    bool
	tx      *stat.Page[tx.Counters]
	rx      *stat.Page[rx.Counters]
}

func newWire(t testing.TB, cache *skb.Cache, ring int) *wire {
	return &wire{t: t, cache: cache, ring: ring, tx: stat.New[tx.Counters](), rx: stat.New[rx.Counters]()}
}

func (w *wire) HolderName() string { return "p0 tx" }
func (w *wire) EachHeld(f func(skb.Handle)) {
	for _, h := range w.held {
		f(h)
	}
}
func (w *wire) Send(b *skb.Batch, _ bool) int {
	if b.N > w.Room() {
		w.t.Errorf("%d frames for a ring with room for %d", b.N, w.Room())
	}
	a := w.cache.Arena()
	n := b.N
	w.sends = append(w.sends[:0:cap(w.sends)], n)
	for _, h := range b.Handles() {
		if w.down {
			w.tx.Live.Drops[skb.TxLinkDown]++
			w.cache.Free(h)
			continue
		}
		if w.keep {
			w.frames = append(w.frames, append([]byte(nil), a.Bytes(h)...))
		}
		if w.back {
			w.queue = append(w.queue, append([]byte(nil), a.Bytes(h)...))
		}
		w.held = append(w.held, h)
		w.tx.Live.Packets++
	}
	b.Reset()
	w.flushed = false
	if w.down {
		return 0
	}
	return n
}
func (w *wire) Flush()     { w.flushed = true }
func (w *wire) Tick(int64) {}
func (w *wire) Reclaim() int {
	n := len(w.held)
	if w.limit > 0 {
		n = min(n, w.limit)
	}
	w.cache.FreeBatch(w.held[:n])
	w.held = append(w.held[:0], w.held[n:]...)
	return n
}
func (w *wire) Pending() int                      { return len(w.held) }
func (w *wire) Room() int                         { return w.ring - len(w.held) }
func (w *wire) Counters() *stat.Page[tx.Counters] { return w.tx }
func (w *wire) Close()                            { w.Reclaim() }

// rxWire is the receive side of a wire.
type rxWire struct{ *wire }

func (w rxWire) HolderName() string        { return "p0 rx" }
func (w rxWire) EachHeld(func(skb.Handle)) {}
func (w rxWire) Poll(b *skb.Batch, most int, now int64) int {
	n := 0
	for n < most && !b.Full() && len(w.queue) > 0 {
		h := w.cache.Alloc()
		copy(w.cache.Arena().Put(h, len(w.queue[0])), w.queue[0])
		w.queue = w.queue[1:]
		b.Add(h)
		n++
	}
	w.rx.Live.Packets += uint64(n)
	return n
}
func (w rxWire) Replenish()                        {}
func (w rxWire) EndTurn(bool)                      {}
func (w rxWire) Ready() bool                       { return len(w.queue) > 0 }
func (w rxWire) Counters() *stat.Page[rx.Counters] { return w.wire.rx }

func newCache(t testing.TB, o skb.Options) *skb.Cache {
	t.Helper()
	a, err := skb.NewArena(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return a.NewCache("w0")
}
