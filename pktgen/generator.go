package pktgen

import (
	"fmt"
	"math"

	"gorouter/internal/inet"
	"gorouter/skb"
	"gorouter/tx"
)

// Generator sends streams through a transmit queue, with buffers that come
// from the router's allocator and go back to it by the queue's reclaim. One
// goroutine, the owner of queue and cache, may use it; Results may be called
// by any.
type Generator struct {
	name  string
	q     tx.Queue
	cache *skb.Cache
	src   []*source
	held  []skb.Handle // by stream: the buffer that is being cloned, or None
	turn  int
	batch skb.Batch
}

// GeneratorConfig says what a generator sends where.
type GeneratorConfig struct {
	Name    string // as holder of buffers, such as "p0 pktgen"
	Streams []*Stream
	Queue   tx.Queue
	Cache   *skb.Cache
	// SrcMAC and DstMAC stand in for streams that leave theirs out.
	SrcMAC, DstMAC inet.MAC
}

// NewGenerator prepares every stream. Its errors name the stream.
func NewGenerator(c GeneratorConfig) (*Generator, error) {
	src, err := newSources(c.Streams, c.SrcMAC, c.DstMAC)
	if err != nil {
		return nil, err
	}
	a := c.Cache.Arena()
	g := &Generator{name: c.Name, q: c.Queue, cache: c.Cache, src: src}
	for _, s := range src {
		if room := a.Stride() - a.Headroom(); s.stream.Size > room {
			return nil, fmt.Errorf("pktgen: stream %q: size %d does not fit the %d bytes of a buffer (raise the buffers' stride)", s.stream.Name, s.stream.Size, room)
		}
		g.held = append(g.held, skb.None)
	}
	return g, nil
}

// Run sends what is due at now (nanoseconds), stream by stream in bursts, and
// at most max frames; it never gives the queue more than it has room for. It
// returns how many frames it handed over.
func (g *Generator) Run(max int, now int64) int {
	sent := 0
	for barren := 0; sent < max && barren < len(g.src); {
		i := g.turn
		if g.turn++; g.turn == len(g.src) {
			g.turn = 0
		}
		n := g.burst(i, max-sent, now)
		sent += n
		barren++
		if n > 0 {
			barren = 0
		}
	}
	publish(g.src)
	return sent
}

// burst sends at most one burst of a stream.
func (g *Generator) burst(i, most int, now int64) int {
	s := g.src[i]
	n := min(s.due(now), most, skb.BatchSize)
	if n == 0 {
		return 0
	}
	room := g.q.Room()
	if room < n {
		g.q.Reclaim()
		room = g.q.Room()
	}
	b := &g.batch
	b.Reset()
	for range min(n, room) {
		h := g.buffer(i, now)
		if h == skb.None {
			s.page.Live.NoBuffer++
			break
		}
		b.Add(h)
	}
	built := b.N
	if built == 0 {
		return 0
	}
	queued := g.q.Send(b, false)
	live := &s.page.Live
	live.Sent += uint64(queued)
	live.Bytes += uint64(queued * s.stream.Size)
	live.Errors += uint64(built - queued)
	if s.done && g.held[i] != skb.None {
		g.cache.Free(g.held[i])
		g.held[i] = skb.None
	}
	return built
}

// buffer is the stream's next frame in a buffer of its own, or one more
// reference to the buffer that is being cloned.
func (g *Generator) buffer(i int, now int64) skb.Handle {
	s := g.src[i]
	a := g.cache.Arena()
	if h := g.held[i]; h != skb.None {
		s.take(now)
		if s.copy == 0 {
			g.held[i] = skb.None
			return h // with the reference that was held
		}
		return a.Clone(h)
	}
	h := g.cache.Alloc()
	if h == skb.None {
		return h
	}
	seq := uint32(s.built)
	frame, _ := s.take(now)
	copy(a.Put(h, len(frame)), frame)
	m := a.Meta(h)
	m.Seq = seq
	m.Flags = skb.FlagLocal
	if s.copy > 0 {
		g.held[i] = h
		return a.Clone(h)
	}
	return h
}

// Done reports whether every stream has sent its count.
func (g *Generator) Done() bool { return allDone(g.src) }

// Due is when the next frame is due, in nanoseconds; math.MaxInt64 when no
// more will be.
func (g *Generator) Due() int64 {
	due := int64(math.MaxInt64)
	for _, s := range g.src {
		if !s.done {
			due = min(due, s.pace.next)
		}
	}
	return due
}

// Finish notes now as the end of what has finished; call it once after the
// last Run.
func (g *Generator) Finish(now int64) {
	for _, s := range g.src {
		if s.done {
			s.due(max(now, s.last+1))
		}
	}
	publish(g.src)
}

// Results is what each stream has sent, as of the last Run. Safe for
// concurrent use.
func (g *Generator) Results() []Result { return results(g.src) }

// HolderName implements skb.Holder.
func (g *Generator) HolderName() string { return g.name }

// EachHeld implements skb.Holder: the buffers that are being cloned.
func (g *Generator) EachHeld(f func(skb.Handle)) {
	for _, h := range g.held {
		if h != skb.None {
			f(h)
		}
	}
}

// Close gives the buffers back that were being cloned. It is idempotent.
func (g *Generator) Close() {
	for i, h := range g.held {
		if h != skb.None {
			g.cache.Free(h)
			g.held[i] = skb.None
			g.src[i].copy = 0
		}
	}
}
