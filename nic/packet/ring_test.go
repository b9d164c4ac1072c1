package packet

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"gorouter/internal/inet"
	"gorouter/rx"
	"gorouter/skb"
	"gorouter/tx"
)

func TestFramesArriveUnchangedBothWays(t *testing.T) {
	r := newCable(t)
	r.listen()
	r.open()
	for _, n := range []int{14, 18, 59, 60, 61, 512, 1513, 1514} {
		f := plain(n, n)
		r.fromPeer(f)
		if got := r.receive(1)[0]; !bytes.Equal(got, f) {
			t.Errorf("received, %d bytes: %s", n, cmp.Diff(f, got))
		}
		if sent := r.port.Tx[0].Send(r.batch(f), false); sent != 1 {
			t.Fatalf("%d bytes: sent %d", n, sent)
		}
		want := append(bytes.Clone(f), make([]byte, max(0, inet.EthMinLen-n))...)
		if got := r.atPeer(); !bytes.Equal(got, want) {
			t.Errorf("sent, %d bytes: %s", n, cmp.Diff(want, got))
		}
	}
	c := r.txq().Counters().Live
	if c.Packets != 8 || c.Bytes != 60*4+61+512+1513+1514 || c.Doorbells != 8 {
		t.Errorf("counters: %+v", c)
	}
	if r.port.Tx[0].Reclaim(); r.port.Tx[0].Pending() != 0 {
		t.Errorf("%d frames pending", r.port.Tx[0].Pending())
	}
}

// Old content of a slot must not follow a short frame.
func TestPaddingIsZero(t *testing.T) {
	r := newCable(t)
	r.listen()
	r.open(func(c *Config) { c.Tx.Ring = tx.MinRing })
	for i := range tx.MinRing {
		r.port.Tx[0].Send(r.batch(plain(1514, i)), false)
		r.atPeer()
	}
	for i := range tx.MinRing {
		r.port.Tx[0].Send(r.batch(plain(20, i)), false)
		if got, want := r.atPeer(), append(plain(20, i), make([]byte, 40)...); !bytes.Equal(got, want) {
			t.Fatal(cmp.Diff(want, got))
		}
	}
}

func TestOwnFramesAreNotReceived(t *testing.T) {
	r := newCable(t)
	r.listen()
	r.open()
	r.port.Tx[0].Send(r.batch(plain(60, 1), plain(60, 2)), false)
	r.atPeer()
	r.atPeer()
	r.fromPeer(plain(60, 3))
	if got := numberOf(r.receive(1)[0]); got != 3 {
		t.Errorf("received frame %d", got)
	}
	if n := r.rxq().Counters().Live.Descriptors; n != 1 {
		t.Errorf("%d slots used, want 1", n)
	}
}

// The same on a kernel that cannot ignore outgoing frames.
func TestEchoIsToldByItsPacketType(t *testing.T) {
	r := newCable(t)
	r.listen()
	r.open()
	if err := unix.SetsockoptInt(r.port.Device.(*Device).rx.fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 0); err != nil {
		t.Fatal(err)
	}
	// Without the bypass the frame passes the taps on its way out.
	if err := unix.SetsockoptInt(r.port.Device.(*Device).tx.fd, unix.SOL_PACKET, unix.PACKET_QDISC_BYPASS, 0); err != nil {
		t.Fatal(err)
	}
	r.port.Tx[0].Send(r.batch(plain(60, 1)), false)
	r.atPeer()
	r.fromPeer(plain(60, 2))
	if got := numberOf(r.receive(1)[0]); got != 2 {
		t.Errorf("received frame %d", got)
	}
	if n := r.rxq().Counters().Live.Descriptors; n != 2 {
		t.Errorf("%d slots used, want the echo's and the frame's", n)
	}
}

func TestTagsStayOnTheFrame(t *testing.T) {
	tag := func(f []byte, tags ...byte) []byte {
		out := append(bytes.Clone(f[:12]), tags...)
		return append(out, f[12:]...)
	}
	r := newCable(t)
	r.listen()
	r.open()
	for name, f := range map[string][]byte{
		"vid 5":         tag(plain(60, 1), 0x81, 0x00, 0x00, 0x05),
		"priority":      tag(plain(60, 2), 0x81, 0x00, 0xa0, 0x00),
		"service":       tag(plain(60, 3), 0x88, 0xa8, 0x2f, 0xff),
		"two tags":      tag(plain(60, 4), 0x88, 0xa8, 0x00, 0x07, 0x81, 0x00, 0x00, 0x09),
		"longest":       tag(plain(1514, 5), 0x81, 0x00, 0x00, 0x05),
		"longest, two":  tag(plain(1510, 6), 0x81, 0x00, 0x00, 0x05, 0x81, 0x00, 0x00, 0x06),
		"hardly more":   tag(plain(16, 7), 0x81, 0x00, 0x00, 0x05),
		"three, in all": tag(plain(64, 8), 0x81, 0, 0, 1, 0x81, 0, 0, 2, 0x81, 0, 0, 3),
	} {
		r.fromPeer(f)
		if got := r.receive(1)[0]; !bytes.Equal(got, f) {
			t.Errorf("%s: %s", name, cmp.Diff(f, got))
		}
	}
	// And out: four bytes more than untagged are allowed.
	f := tag(plain(1514, 5), 0x81, 0x00, 0x00, 0x05)
	if n := r.port.Tx[0].Send(r.batch(f), false); n != 1 {
		t.Fatalf("sent %d", n)
	}
	if n := len(r.atPeer()); n < 1514 {
		t.Errorf("%d bytes arrived", n)
	}
}

func TestTooLongIsNamed(t *testing.T) {
	r := newCable(t)
	r.listen()
	r.open()
	if n := r.port.Tx[0].Send(r.batch(plain(1515, 1), plain(60, 2), plain(1519, 3)), false); n != 1 {
		t.Errorf("sent %d", n)
	}
	if got := numberOf(r.atPeer()); got != 2 {
		t.Errorf("frame %d arrived", got)
	}
	if d := r.txq().Counters().Live.Drops.Map(); d["tx_too_long"] != 2 || len(d) != 1 {
		t.Errorf("drops: %v", d)
	}
}

// The ring is run round several times with every way of giving slots back;
// nothing may be lost, doubled or out of order.
func TestRingWraps(t *testing.T) {
	const ring = rx.MinRing
	for _, at := range []string{rx.ReplenishTurn, rx.ReplenishEnd} {
		for _, batch := range []int{1, 2, 7, 16, ring / 2, ring - 1, ring, rx.MaxRing} {
			t.Run(fmt.Sprintf("%s %d", at, batch), func(t *testing.T) {
				r := newCable(t)
				r.listen()
				r.open(func(c *Config) {
					c.Rx.Ring, c.Rx.Replenish, c.Rx.ReplenishAt = ring, batch, at
					c.Tx.Ring = ring
					c.SuperFrames = SuperFramesDrop
				})
				const total = 3*ring + 29
				for sent := 0; sent < total; {
					n := min(20, total-sent)
					for i := range n {
						r.fromPeer(plain(100, sent+i))
					}
					for i, f := range r.receive(n) {
						if !bytes.Equal(f, plain(100, sent+i)) {
							t.Fatalf("frame %d: %x", sent+i, f)
						}
					}
					out := r.batch()
					for i := range n {
						out.Add(r.batch(plain(100, sent+i)).H[0])
					}
					if got := r.port.Tx[0].Send(out, true); got != n {
						t.Fatalf("sent %d of %d", got, n)
					}
					r.port.Tx[0].Flush()
					for i := range n {
						if f := r.atPeer(); !bytes.Equal(f, plain(100, sent+i)) {
							t.Fatalf("at the far end, frame %d: %x", sent+i, f)
						}
					}
					sent += n
				}
				c := r.rxq().Counters().Live
				if c.Packets != total || c.Descriptors != total || c.Replenished != total || c.Drops.Total() != 0 {
					t.Errorf("counters: %+v", c)
				}
				if s := r.port.Device.Stats(); s["rx_missed"] != 0 || s["rx_received"] != total {
					t.Errorf("device: %v", s)
				}
			})
		}
	}
}

func TestMissedFramesAreCounted(t *testing.T) {
	r := newCable(t)
	r.listen()
	r.open(func(c *Config) { c.Rx.Ring = rx.MinRing })
	for i := range rx.MinRing + 11 {
		r.fromPeer(plain(60, i))
	}
	r.receive(rx.MinRing)
	if s := r.port.Device.Stats(); s["rx_missed"] != 11 || s["rx_received"] != rx.MinRing {
		t.Errorf("device: %v", s)
	}
	r.fromPeer(plain(60, 1000))
	if got := numberOf(r.receive(1)[0]); got != 1000 {
		t.Errorf("frame %d after the shortage", got)
	}
}

func TestShortageOfBuffersGivesSlotsBack(t *testing.T) {
	r := newCable(t)
	r.listen()
	r.open(func(c *Config) { c.Rx.ReplenishAt = rx.ReplenishEnd })
	var held []skb.Handle
	for h := r.cache.Alloc(); h != skb.None; h = r.cache.Alloc() {
		held = append(held, h)
	}
	for i := range 5 {
		r.fromPeer(plain(60, i))
	}
	q := r.rxq()
	var b skb.Batch
	taken := 0
	r.until("five frames", func() bool { taken += q.Poll(&b, 64, 0); return taken == 5 })
	c := q.Counters().Live
	if b.N != 0 || c.Drops[skb.RxNoBuffer] != 5 || c.NoBuffer != 5 || c.Replenished != 5 {
		t.Errorf("%d frames, counters %+v", b.N, c)
	}
	r.cache.FreeBatch(held)
	r.fromPeer(plain(60, 9))
	if got := numberOf(r.receive(1)[0]); got != 9 {
		t.Errorf("frame %d", got)
	}
}

func TestDoorbellPolicies(t *testing.T) {
	for policy, want := range map[string]uint64{tx.DoorbellFrame: 6, tx.DoorbellBatch: 2, tx.DoorbellTimer: 1} {
		t.Run(policy, func(t *testing.T) {
			r := newCable(t)
			r.listen()
			r.open(func(c *Config) { c.Tx.Doorbell, c.Tx.DoorbellTimer = policy, time.Millisecond })
			q := r.txq()
			for range 2 {
				q.Send(r.batch(plain(60, 0), plain(60, 1), plain(60, 2)), true)
			}
			q.Flush()
			q.Tick(5e6)
			q.Reclaim()
			q.Tick(5e6 + 999_999)
			if policy == tx.DoorbellTimer && q.Counters().Live.Packets != 0 {
				t.Error("sent before the time")
			}
			q.Tick(6e6)
			for range 6 {
				r.atPeer()
			}
			if c := q.Counters().Live; c.Doorbells != want || c.Packets != 6 {
				t.Errorf("%d doorbells, want %d; counters %+v", c.Doorbells, want, c)
			}
		})
	}
}

func TestNothingIsAllocatedPerFrame(t *testing.T) {
	r := newCable(t)
	r.listen()
	r.open()
	in, out := r.port.Rx[0], r.port.Tx[0]
	frame := plain(60, 1)
	var b, back skb.Batch
	n := testing.AllocsPerRun(100, func() {
		for range 8 {
			h := r.cache.Alloc()
			copy(r.arena.Put(h, len(frame)), frame)
			b.Add(h)
		}
		out.Send(&b, false)
		out.Reclaim()
		_, _ = unix.Write(r.wire, frame)
		in.Poll(&back, 64, 1)
		in.Replenish()
		in.EndTurn(true)
		r.cache.FreeBatch(back.Handles())
		back.Reset()
	})
	if n != 0 {
		t.Errorf("%v allocations a run", n)
	}
	if r.rxq().Counters().Live.Packets == 0 {
		t.Error("nothing was received")
	}
}
