package tx

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"gorouter/internal/tpacket"
	"gorouter/skb"
)

// packetKernel plays the kernel's side of a transmit ring, after tpacket_snd:
// it takes slots in order from its own index on, stops at the first that is
// not asked for, and stops without moving at one that it refuses.
type packetKernel struct {
	ring   []byte
	shape  tpacket.Layout
	head   int
	taken  [][]byte
	busy   []int // slots that were taken and are not yet completed
	budget int   // frames that it takes before it answers errno
	errno  unix.Errno
	refuse func([]byte) bool
}

func (k *packetKernel) slot(i int) (status *uint32, frame []byte) {
	s := k.ring[i*k.shape.SlotSize:]
	n := binary.NativeEndian.Uint32(s[4:])
	return statusWord(s), s[tpacket.TxOverhead : tpacket.TxOverhead+n]
}

func (k *packetKernel) kick() unix.Errno {
	for budget := k.budget; ; budget-- {
		status, frame := k.slot(k.head)
		if atomic.LoadUint32(status) != unix.TP_STATUS_SEND_REQUEST && atomic.LoadUint32(status) != unix.TP_STATUS_WRONG_FORMAT {
			return 0
		}
		if k.refuse != nil && k.refuse(frame) {
			atomic.StoreUint32(status, unix.TP_STATUS_WRONG_FORMAT)
			return unix.EMSGSIZE
		}
		if budget == 0 {
			return k.errno
		}
		k.taken = append(k.taken, bytes.Clone(frame))
		atomic.StoreUint32(status, unix.TP_STATUS_SENDING)
		k.busy = append(k.busy, k.head)
		k.head = (k.head + 1) % k.shape.Slots
	}
}

// complete ends the n oldest transmissions.
func (k *packetKernel) complete(n int) {
	for _, i := range k.busy[:n] {
		status, _ := k.slot(i)
		atomic.StoreUint32(status, unix.TP_STATUS_AVAILABLE)
	}
	k.busy = k.busy[n:]
}

// fataler is a test or a property.
type fataler interface {
	Helper()
	Fatal(...any)
}

func newPacketKernel(t fataler, o Options) (*packetKernel, *Packet, *skb.Cache) {
	t.Helper()
	a, err := skb.NewArena(skb.Options{Buffers: 512})
	if err != nil {
		t.Fatal(err)
	}
	k := &packetKernel{shape: tpacket.NewLayout(o.Ring, tpacket.TxOverhead+1518), budget: 1 << 20}
	// Words of eight bytes, so that status words are aligned.
	k.ring = wordAligned(k.shape.Size())
	c := a.NewCache("test")
	q, err := NewPacket(PacketConfig{Name: "p tx", Cache: c, Ring: k.ring, Shape: k.shape, MaxFrame: 1514, Options: o, Kick: k.kick})
	if err != nil {
		t.Fatal(err)
	}
	return k, q, c
}

func packetOptions(ring int) Options {
	o := OptionTable.Defaults()
	o.Ring = ring
	return o
}

func sendNumbers(t fataler, q *Packet, c *skb.Cache, numbers ...int) int {
	t.Helper()
	var b skb.Batch
	for _, n := range numbers {
		h := c.Alloc()
		if h == skb.None {
			t.Fatal("out of buffers")
		}
		binary.BigEndian.PutUint32(c.Arena().Put(h, 60), uint32(n))
		b.Add(h)
	}
	return q.Send(&b, false)
}

func numbersFrom(first, n int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = first + i
	}
	return s
}

func TestPacketFullRing(t *testing.T) {
	k, q, c := newPacketKernel(t, packetOptions(80))
	k.budget, k.errno = 50, unix.ENOBUFS
	sent := sendNumbers(t, q, c, numbersFrom(0, 64)...)
	sent += sendNumbers(t, q, c, numbersFrom(64, 64)...)
	live := &q.Counters().Live
	if sent != 79 || live.Drops[skb.TxRingFull] != 49 || live.Stops != 1 || q.Room() != 0 {
		t.Fatalf("sent %d, room %d, %+v", sent, q.Room(), live)
	}
	if len(k.taken) != 79 || live.Packets != 79 {
		t.Fatalf("kernel took %d, counted %d", len(k.taken), live.Packets)
	}
	k.complete(79)
	if n := q.Reclaim(); n != 79 || live.Wakes != 1 || q.Room() != 79 {
		t.Errorf("reclaimed %d, room %d, wakes %d", n, q.Room(), live.Wakes)
	}
}

func TestPacketKernelErrorsAreRetried(t *testing.T) {
	for _, errno := range []unix.Errno{0, unix.EAGAIN, unix.ENOBUFS, unix.ENETDOWN, unix.ENXIO, unix.EINTR, unix.EIO} {
		for name, again := range map[string]func(q *Packet){
			"reclaim": func(q *Packet) { q.Reclaim() },
			"tick":    func(q *Packet) { q.Tick(0) },
		} {
			t.Run(fmt.Sprint(name, " ", int(errno)), func(t *testing.T) {
				k, q, c := newPacketKernel(t, packetOptions(80))
				k.budget, k.errno = 0, errno
				if n := sendNumbers(t, q, c, 0, 1, 2); n != 3 {
					t.Fatalf("queued %d", n)
				}
				bells := q.Counters().Live.Doorbells
				for range 3000 {
					again(q)
				}
				if len(k.taken) != 0 || q.Pending() != 3 {
					t.Fatalf("taken %d, pending %d", len(k.taken), q.Pending())
				}
				// In vain, so ever more seldom.
				if tried := q.Counters().Live.Doorbells - bells; tried < 10 || tried > 25 {
					t.Errorf("%d of 3000 calls kicked", tried)
				}
				k.budget = 100
				for range 256 {
					again(q)
				}
				k.complete(len(k.taken))
				if q.Reclaim(); len(k.taken) != 3 || q.Pending() != 0 {
					t.Errorf("taken %d, pending %d", len(k.taken), q.Pending())
				}
				e := q.Errors()
				sum := e.Again.Load() + e.NoBufs.Load() + e.NetDown.Load() + e.Other.Load()
				if (sum == 0) != (errno == unix.EINTR) {
					t.Errorf("%d errors counted", sum)
				}
			})
		}
	}
}

// Whatever the kernel does, frames leave in order and once, and each is sent,
// on the ring, or counted under one reason.
func TestPacketRandomKernel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := packetOptions(rapid.SampledFrom([]int{80, 88, 128}).Draw(t, "ring"))
		o.Doorbell = rapid.SampledFrom([]string{DoorbellFrame, DoorbellBatch, DoorbellTimer}).Draw(t, "doorbell")
		o.ReclaimAt = rapid.IntRange(1, o.Ring).Draw(t, "reclaim at")
		o.DoorbellTimer = time.Microsecond
		k, q, c := newPacketKernel(t, o)
		defer func() { _ = c.Arena().Close() }()
		bad := rapid.IntRange(2, 50).Draw(t, "refuse each")
		k.refuse = func(f []byte) bool { return int(binary.BigEndian.Uint32(f))%bad == 1 }
		next, queued, now := 0, 0, int64(0)
		t.Repeat(map[string]func(*rapid.T){
			"send": func(t *rapid.T) {
				n := rapid.IntRange(1, 64).Draw(t, "n")
				queued += sendNumbers(t, q, c, numbersFrom(next, n)...)
				next += n
			},
			"kernel": func(t *rapid.T) {
				k.budget = rapid.IntRange(0, 100).Draw(t, "budget")
				k.errno = rapid.SampledFrom([]unix.Errno{0, unix.EAGAIN, unix.ENOBUFS, unix.ENETDOWN}).Draw(t, "errno")
			},
			"complete": func(t *rapid.T) { k.complete(rapid.IntRange(0, len(k.busy)).Draw(t, "n")) },
			"flush":    func(*rapid.T) { q.Flush() },
			"reclaim":  func(*rapid.T) { q.Reclaim() },
			"tick": func(t *rapid.T) {
				now += int64(rapid.IntRange(0, 2000).Draw(t, "ns"))
				q.Tick(now)
			},
			"": func(t *rapid.T) {
				live := &q.Counters().Live
				last := -1
				for _, f := range k.taken {
					n := int(binary.BigEndian.Uint32(f))
					if n <= last || n%bad == 1 {
						t.Fatalf("frame %d after %d, refused: %v", n, last, n%bad == 1)
					}
					last = n
				}
				full := live.Drops[skb.TxRingFull] + live.Drops[skb.TxLinkDown]
				if uint64(len(k.taken)) != live.Packets || uint64(queued)+full != uint64(next) {
					t.Fatalf("taken %d, queued %d of %d, %+v", len(k.taken), queued, next, live)
				}
				if uint64(queued) != live.Packets+live.Drops[skb.TxTooLong]+uint64(q.unsent) {
					t.Fatalf("queued %d, unsent %d, %+v", queued, q.unsent, live)
				}
				if q.Pending() > o.Ring-1 || q.Pending() != int(live.Packets-live.Reclaimed)+int(q.unsent) {
					t.Fatalf("pending %d, unsent %d, %+v", q.Pending(), q.unsent, live)
				}
				if _, err := c.Arena().Audit(q); err != nil {
					t.Fatal(err)
				}
			},
		})
		unsent := q.unsent
		q.Close()
		q.Close()
		if live := &q.Counters().Live; live.Drops[skb.TxAborted] != uint64(unsent) {
			t.Fatalf("aborted %d of %d", live.Drops[skb.TxAborted], unsent)
		}
	})
}

func TestPacketSendAfterClose(t *testing.T) {
	_, q, c := newPacketKernel(t, packetOptions(80))
	q.Close()
	if n := sendNumbers(t, q, c, 1, 2); n != 0 || q.Counters().Live.Drops[skb.TxAborted] != 2 {
		t.Errorf("queued %d, %+v", n, q.Counters().Live)
	}
	if q.Reclaim(); q.Pending() != 0 {
		t.Error("frames pending")
	}
	if _, err := c.Arena().Audit(q); err != nil {
		t.Error(err)
	}
}

func TestPacketConfigureShowsWhatWaits(t *testing.T) {
	o := packetOptions(80)
	o.Doorbell = DoorbellTimer
	k, q, c := newPacketKernel(t, o)
	sendNumbers(t, q, c, 1)
	o.Doorbell, o.Ring = DoorbellBatch, 4096
	q.Configure(o)
	if len(k.taken) != 1 || q.Options().Ring != 80 {
		t.Errorf("taken %d, ring %d", len(k.taken), q.Options().Ring)
	}
}

func TestPacketRefusesMisfits(t *testing.T) {
	a, err := skb.NewArena(skb.Options{Buffers: 256})
	if err != nil {
		t.Fatal(err)
	}
	shape := tpacket.NewLayout(80, 2000)
	good := PacketConfig{Name: "p tx", Cache: a.NewCache("t"), Ring: make([]byte, shape.Size()), Shape: shape, MaxFrame: 1514, Options: packetOptions(80)}
	if _, err := NewPacket(good); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*PacketConfig){
		"option":  func(c *PacketConfig) { c.Options.Ring = 81 },
		"mapping": func(c *PacketConfig) { c.Ring = c.Ring[:len(c.Ring)-1] },
		"slots":   func(c *PacketConfig) { c.Options.Ring = 88 },
		"frame":   func(c *PacketConfig) { c.MaxFrame = 9014 },
	} {
		c := good
		change(&c)
		if _, err := NewPacket(c); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// wordAligned is zeroed memory whose 32-bit words are aligned.
func wordAligned(n int) []byte {
	words := make([]uint64, (n+7)/8)
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), n)
}

// statusWord is the status of the slot that begins there.
func statusWord(slot []byte) *uint32 { return (*uint32)(unsafe.Pointer(unsafe.SliceData(slot))) }
