package rx

import (
	"testing"

	"gorouter/skb"
	"pgregory.net/rapid"
)

// outcome is what must become of a frame that the device took from the wire.
type outcome struct {
	seq    uint64
	length int
	reason skb.Reason // ReasonNone: delivered
	end    int        // descriptors finished when it was complete
}

// TestAgainstASlowModel drives a ring with random traffic, calls and
// shortages of buffers and compares with a list of what must come out.
func TestAgainstASlowModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := Options{
			Ring:        MinRing + RingStep*rapid.IntRange(0, 8).Draw(t, "ring"),
			Replenish:   rapid.IntRange(1, 200).Draw(t, "replenish"),
			ReplenishAt: rapid.SampledFrom([]string{ReplenishTurn, ReplenishEnd}).Draw(t, "at"),
			Copybreak:   rapid.SampledFrom([]int{0, 60, 128, 1514}).Draw(t, "copybreak"),
		}
		keepsFCS := rapid.Bool().Draw(t, "fcs")
		a, err := skb.NewArena(skb.Options{Buffers: 256, CacheSize: 16, AllocOrder: rapid.SampledFrom([]string{skb.OrderLIFO, skb.OrderFIFO}).Draw(t, "order")})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = a.Close() }()
		r := newRigOn(t, a, o, keepsFCS)
		m := &model{rig: r, o: o}
		if keepsFCS {
			m.fcs = 4
		}
		t.Repeat(map[string]func(*rapid.T){
			"burst":     m.burst,
			"long":      m.long,
			"bad":       m.bad,
			"poll":      m.poll,
			"replenish": m.replenish,
			"endTurn":   m.endTurn,
			"release":   m.release,
			"hoard":     m.hoard,
			"configure": m.configure,
			"reset":     m.reset,
			"":          m.check,
		})
	})
}

type model struct {
	*rig
	o       Options
	fcs     int
	seq     uint64
	pending []outcome // complete frames on the ring, oldest first
	open    bool      // the device is inside a frame of several descriptors
	held    []skb.Handle
	want    skb.DropCounts
	packets uint64

	// Descriptors since the last reset: finished by the device, polled, given
	// back to the device.
	written, polled, given int
}

func (m *model) write(data []byte, length int, status uint64) bool {
	if !m.dev.write(data, length, status) {
		return false
	}
	m.written++
	return true
}

// end notes the frame whose last descriptor was just written.
func (m *model) end(o outcome) {
	if m.open {
		o = outcome{reason: skb.RxMultiDescriptor}
	}
	m.open = false
	o.end = m.written
	m.pending = append(m.pending, o)
}

func (m *model) burst(t *rapid.T) {
	length := rapid.IntRange(16, 1518).Draw(t, "length")
	for range rapid.IntRange(1, 100).Draw(t, "n") {
		m.seq++
		frame := append(numbered(make([]byte, length), m.seq), make([]byte, m.fcs)...)
		if !m.write(frame, len(frame), word0) {
			return
		}
		m.end(outcome{seq: m.seq, length: length})
	}
}

func (m *model) long(t *rapid.T) {
	for range rapid.IntRange(1, 90).Draw(t, "pieces") {
		if !m.write(nil, 1522, DescStatusDD) {
			return
		}
		m.open = true
	}
	if rapid.Bool().Draw(t, "ends") && m.write(nil, 64, word0) {
		m.end(outcome{})
	}
}

func (m *model) bad(t *rapid.T) {
	type kind struct {
		length int
		status uint64
		reason skb.Reason
	}
	k := rapid.SampledFrom([]kind{
		{64, DescErrorCE, skb.RxCRC}, {64, DescErrorSE, skb.RxSymbol}, {64, DescErrorSEQ, skb.RxSequence},
		{64, DescErrorCXE, skb.RxCarrier}, {64, DescErrorRXE, skb.RxData}, {13, 0, skb.RxRunt}, {0, 0, skb.RxRunt},
		{2048, 0, skb.RxMultiDescriptor},
	}).Draw(t, "kind")
	if m.write(nil, k.length, word0|k.status) {
		m.end(outcome{reason: k.reason})
	}
}

func (m *model) poll(t *rapid.T) {
	limit := rapid.IntRange(0, skb.BatchSize).Draw(t, "max")
	buffers := m.a.SharedFree() + m.c.Cached()
	got := m.rig.poll(limit)
	want := min(limit, len(m.pending))
	if got != want {
		t.Fatalf("Poll(%d) took %d frames of %d", limit, got, len(m.pending))
	}
	k := 0
	for _, o := range m.pending[:want] {
		switch {
		case o.reason != skb.ReasonNone:
			m.want[o.reason]++
		case buffers == 0:
			m.want[skb.RxNoBuffer]++
		default:
			buffers--
			b := m.a.Bytes(m.b.H[k])
			if len(b) != o.length || !isNumbered(b, o.seq) {
				t.Fatalf("frame %d of %d bytes came as %x", o.seq, o.length, b)
			}
			k++
			m.packets++
		}
		m.polled = o.end
	}
	if k != m.b.N {
		t.Fatalf("%d frames came, want %d", m.b.N, k)
	}
	m.pending = m.pending[want:]
	if got < limit { // it went on into a frame that is not complete
		m.polled = m.written
	}
	m.held = append(m.held, m.b.Handles()...)
}

func (m *model) giveIf(yes bool) {
	if yes {
		m.given = m.polled
	}
}

func (m *model) reached() bool {
	return m.polled-m.given >= min(m.o.Replenish, m.o.Ring-1)
}

func (m *model) replenish(*rapid.T) {
	m.Replenish()
	m.giveIf(m.o.ReplenishAt == ReplenishTurn && m.reached())
}

func (m *model) endTurn(t *rapid.T) {
	idle := rapid.Bool().Draw(t, "idle")
	m.EndTurn(idle)
	m.giveIf(idle || m.o.ReplenishAt == ReplenishEnd || m.reached())
}

// release frees some of the frames that the stages hold.
func (m *model) release(t *rapid.T) {
	n := rapid.IntRange(0, len(m.held)).Draw(t, "n")
	m.c.FreeBatch(m.held[:n])
	m.held = append([]skb.Handle(nil), m.held[n:]...)
}

// hoard takes buffers away, so that the ring runs short.
func (m *model) hoard(t *rapid.T) {
	hs := make([]skb.Handle, rapid.IntRange(1, 200).Draw(t, "n"))
	m.held = append(m.held, hs[:m.c.AllocBatch(hs)]...)
}

func (m *model) configure(t *rapid.T) {
	m.o.Replenish = rapid.IntRange(1, 200).Draw(t, "replenish")
	m.o.ReplenishAt = rapid.SampledFrom([]string{ReplenishTurn, ReplenishEnd}).Draw(t, "at")
	m.o.Copybreak = rapid.SampledFrom([]int{0, 60, 1514}).Draw(t, "copybreak")
	m.Configure(m.o)
}

func (m *model) reset(t *rapid.T) {
	if rapid.IntRange(0, 3).Draw(t, "dice") > 0 {
		t.Skip("rarely")
	}
	m.dev.head, m.dev.tail = 0, 0
	m.Reset()
	m.Start()
	for _, o := range m.pending {
		if o.reason == skb.ReasonNone {
			o.reason = skb.RxAborted
		}
		m.want[o.reason]++
	}
	m.pending, m.open = nil, false
	m.written, m.polled, m.given = 0, 0, 0
}

func (m *model) check(t *rapid.T) {
	m.audit(t, m.held...)
	if owned := m.o.Ring - 1 - (m.polled - m.given); m.Owned() != owned {
		t.Fatalf("%d descriptors are the device's, want %d", m.Owned(), owned)
	}
	if m.Ready() != (m.written > m.polled) {
		t.Fatalf("ready %v with %d descriptors finished and %d polled", m.Ready(), m.written, m.polled)
	}
	c := &m.Counters().Live
	if c.Drops != m.want || c.Packets != m.packets || c.Doorbells != uint64(m.dev.doorbells) {
		t.Fatalf("counters %+v, want %d packets, drops %v", *c, m.packets, m.want.Map())
	}
	if n := m.a.Census(m.E1000).Places[m.HolderName()]; n != m.o.Ring {
		t.Fatalf("the ring holds %d buffers", n)
	}
}
