package tx

import (
	"encoding/binary"
	"testing"

	"gorouter/skb"
	"pgregory.net/rapid"
)

// TestAgainstASlowModel drives a ring with random frames, clones, calls and
// a device that sends when it likes, and compares with a plain list.
func TestAgainstASlowModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, err := skb.NewArena(skb.Options{Buffers: 512, CacheSize: 16, AllocOrder: rapid.SampledFrom([]string{skb.OrderLIFO, skb.OrderFIFO}).Draw(t, "order")})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = a.Close() }()
		o := drawOptions(t)
		m := &model{rig: newRigOn(t, a, o), o: o}
		t.Repeat(map[string]func(*rapid.T){
			"send":      m.send,
			"device":    m.device,
			"flush":     func(*rapid.T) { m.Flush() },
			"tick":      m.tick,
			"reclaim":   m.idle,
			"settle":    m.settle,
			"configure": m.configure,
			"reset":     m.reset,
			"release":   m.release,
			"":          m.check,
		})
		m.settle(t)
	})
}

func drawOptions(t *rapid.T) Options {
	o := defaults()
	o.Ring = MinRing + RingStep*rapid.IntRange(0, 6).Draw(t, "ring")
	o.ReclaimAt = rapid.IntRange(1, 200).Draw(t, "reclaim_at")
	o.ReportEvery = rapid.OneOf(rapid.IntRange(1, 20), rapid.IntRange(1, 256)).Draw(t, "report_every")
	o.Doorbell = rapid.SampledFrom([]string{DoorbellFrame, DoorbellBatch, DoorbellTimer}).Draw(t, "doorbell")
	o.WakeAt = rapid.IntRange(1, 200).Draw(t, "wake_at")
	return o
}

// entry is a frame on the ring.
type entry struct {
	seq            uint64
	length         int // on the wire
	done, reported bool
}

type model struct {
	*rig
	o     Options
	now   int64
	queue []entry      // on the ring, oldest first
	held  []skb.Handle // clones that the test keeps
	seen  int          // of dev.sent
	want  skb.DropCounts
	bytes uint64
	sent  uint64
}

func (m *model) room() int { return m.o.Ring - 1 - len(m.queue) }

// freeReported takes out the frames up to the last that the device reported.
func (m *model) freeReported() int {
	n := 0
	for i, e := range m.queue {
		if e.done && e.reported {
			n = i + 1
		}
	}
	m.queue = m.queue[n:]
	return n
}

func (m *model) send(t *rapid.T) {
	n := rapid.IntRange(0, skb.BatchSize).Draw(t, "n")
	clones := rapid.IntRange(0, 9).Draw(t, "clones") == 0
	length := rapid.IntRange(8, 1518).Draw(t, "length")
	odd := rapid.IntRange(1, 100).Draw(t, "tooLong") // every so many frames is too long
	more := rapid.Bool().Draw(t, "more")
	var lengths []int
	first := m.seq
	for i := range n {
		l := length
		if i%odd == odd-1 {
			l = 1600
		}
		h := m.c.Alloc()
		if h == skb.None { // the test hoards clones
			n = i
			break
		}
		binary.LittleEndian.PutUint64(m.a.Put(h, l), m.seq)
		m.seq++
		m.b.Add(h)
		if clones && i%7 == 0 {
			m.held = append(m.held, m.a.Clone(h))
		}
		lengths = append(lengths, l)
	}
	if n > 0 && len(m.queue)+n > min(m.o.ReclaimAt, m.o.Ring-1) {
		m.freeReported()
	}
	queued := 0
	for i, l := range lengths {
		if m.room() == 0 {
			m.want[skb.TxRingFull] += uint64(n - i)
			break
		}
		if l > 1518 {
			m.want[skb.TxTooLong]++
			continue
		}
		queued++
		m.queue = append(m.queue, entry{seq: first + uint64(i), length: max(60, l)})
		m.bytes += uint64(max(60, l))
	}
	m.sent += uint64(queued)
	if got := m.Send(&m.b, more); got != queued || m.b.N != 0 {
		t.Fatalf("Send queued %d of %d and left %d, want %d", got, n, m.b.N, queued)
	}
}

// device lets some frames go and looks at them on the wire.
func (m *model) device(t *rapid.T) { m.goes(t, rapid.IntRange(1, 200).Draw(t, "frames")) }

func (m *model) goes(t *rapid.T, k int) {
	m.dev.send(k)
	i := 0
	for ; m.seen < len(m.dev.sent); m.seen++ {
		for m.queue[i].done {
			i++
		}
		e, b := &m.queue[i], m.dev.sent[m.seen]
		if len(b) != e.length || binary.LittleEndian.Uint64(b) != e.seq {
			t.Fatalf("on the wire %d bytes with number %d, want %+v", len(b), binary.LittleEndian.Uint64(b), *e)
		}
		e.done, e.reported = true, m.dev.reports[m.seen]
	}
}

func (m *model) tick(t *rapid.T) {
	m.now += int64(rapid.IntRange(1, 2_000_000).Draw(t, "ns"))
	m.Tick(m.now)
}

func (m *model) idle(t *rapid.T) {
	want := m.freeReported()
	if got := m.Reclaim(); got != want {
		t.Fatalf("Reclaim freed %d, want %d", got, want)
	}
}

// settle is what a worker does before it sleeps: afterwards nothing may be
// captive, whatever the policies.
func (m *model) settle(t *rapid.T) {
	m.Flush()
	for range 2 {
		m.now += int64(m.o.DoorbellTimer)
		m.Tick(m.now)
	}
	m.goes(t, m.o.Ring)
	m.idle(t)
	if m.Pending() != 0 || len(m.queue) != 0 {
		t.Fatalf("%d frames captive with %+v", m.Pending(), m.o)
	}
}

func (m *model) configure(t *rapid.T) {
	ring := m.o.Ring
	m.o = drawOptions(t)
	m.o.Ring = ring
	m.Configure(m.o)
}

func (m *model) reset(t *rapid.T) {
	if rapid.IntRange(0, 3).Draw(t, "dice") > 0 {
		t.Skip("rarely")
	}
	m.freeReported()
	m.want[skb.TxAborted] += uint64(len(m.queue))
	m.sent -= uint64(len(m.queue))
	for _, e := range m.queue {
		m.bytes -= uint64(e.length)
	}
	m.queue = nil
	m.dev.head, m.dev.tail, m.dev.shown = 0, 0, nil
	m.Reset()
}

func (m *model) release(t *rapid.T) {
	n := rapid.IntRange(0, len(m.held)).Draw(t, "n")
	m.c.FreeBatch(m.held[:n])
	m.held = append([]skb.Handle(nil), m.held[n:]...)
}

func (m *model) check(t *rapid.T) {
	m.audit(t, m.held...)
	if m.Pending() != len(m.queue) || m.Room() != m.room() {
		t.Fatalf("%d pending and room for %d, want %d and %d", m.Pending(), m.Room(), len(m.queue), m.room())
	}
	c := &m.Counters().Live
	if c.Drops != m.want || c.Packets != m.sent || c.Bytes != m.bytes || c.Doorbells != uint64(m.dev.doorbells) {
		t.Fatalf("counters %+v, want %d packets, %d bytes, drops %v", *c, m.sent, m.bytes, m.want.Map())
	}
	if c.Packets+c.Drops.Total() != m.seq {
		t.Fatalf("%d frames in, %d out, %d dropped", m.seq, c.Packets, c.Drops.Total())
	}
	if c.Wakes > c.Stops {
		t.Fatalf("%d stops and %d wakes", c.Stops, c.Wakes)
	}
}
