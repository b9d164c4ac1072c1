package reasons

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
	"unsafe"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"
	"golang.org/x/sys/unix"

	"gorouter/internal/tpacket"
	"gorouter/nic/loop"
	"gorouter/rx"
	"gorouter/skb"
)

// shortQueue hands out one frame besides those of the queue it stands for: no
// ring lets a frame without a whole Ethernet header through.
type shortQueue struct {
	rx.Queue
	frame []byte
	cache *skb.Cache
}

func (q *shortQueue) Poll(b *skb.Batch, max int, now int64) int {
	n := q.Queue.Poll(b, max, now)
	if q.frame == nil || n == max {
		return n
	}
	h := q.cache.Alloc()
	copy(q.cache.Arena().Put(h, len(q.frame)), q.frame)
	q.frame = nil
	b.Add(h)
	return n + 1
}

// poll takes everything off a queue, and closes it. Whatever it drops, the
// buffers must be there.
func poll(t *testing.T, q rx.Queue, cache *skb.Cache) skb.DropCounts {
	t.Helper()
	var b skb.Batch
	for q.Poll(&b, skb.BatchSize, 1) > 0 {
		q.Replenish()
	}
	q.EndTurn(true)
	if b.N != 0 {
		t.Errorf("%d frames were received", b.N)
	}
	cache.FreeBatch(b.Handles())
	if _, err := cache.Arena().Audit(q); err != nil {
		t.Error(err)
	}
	q.Close()
	if c, err := cache.Arena().Audit(); err != nil || c.Free+c.Cached != c.Total {
		t.Errorf("%d of %d buffers are free at the end, %v", c.Free+c.Cached, c.Total, err)
	}
	return q.Counters().Live.Drops
}

func newCache(t *testing.T) *skb.Cache {
	t.Helper()
	a, err := skb.NewArena(skb.Options{Buffers: 512})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	return a.NewCache("test")
}

// capture is a port that reads a file with one frame of so many bytes, of so
// many on the wire.
func capture(stored, wire int) func(t *testing.T) skb.DropCounts {
	return func(t *testing.T) skb.DropCounts {
		var b bytes.Buffer
		w := pcapgo.NewWriter(&b)
		if err := w.WriteFileHeader(uint32(stored), layers.LinkTypeEthernet); err != nil {
			t.Fatal(err)
		}
		if err := w.WritePacket(gopacket.CaptureInfo{CaptureLength: stored, Length: wire}, make([]byte, stored)); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "one.pcap")
		if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		cache := newCache(t)
		p, err := loop.Open(loop.Config{File: file, Name: "p", Arena: cache.Arena(), Cache: cache})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Device.Start(); err != nil {
			t.Fatal(err)
		}
		d := poll(t, p.Rx[0], cache)
		if err := p.Device.Close(); err != nil {
			t.Error(err)
		}
		return d
	}
}

// segments is the virtio header of TCP segments in one frame.
func segments(size uint16) []byte {
	v := make([]byte, tpacket.VnetSize)
	v[1] = unix.VIRTIO_NET_HDR_GSO_TCPV4
	binary.NativeEndian.PutUint16(v[4:], size)
	return v
}

// plain is the virtio header of a frame as it is on the wire.
var plain = make([]byte, tpacket.VnetSize)

// needsChecksum is that of a frame with a checksum to be finished at an offset.
func needsChecksum(start uint16) []byte {
	v := make([]byte, tpacket.VnetSize)
	v[0] = unix.VIRTIO_NET_HDR_F_NEEDS_CSUM
	binary.NativeEndian.PutUint16(v[6:], start)
	binary.NativeEndian.PutUint16(v[8:], 6)
	return v
}

// slot is a packet ring with a frame in it as the kernel would leave it: so
// many bytes of so many on the wire.
func slot(vnet, data []byte, wire int) func(t *testing.T) skb.DropCounts {
	return func(t *testing.T) skb.DropCounts {
		o := rx.OptionTable.Defaults()
		o.Ring = rx.MinRing
		shape := tpacket.NewLayout(o.Ring, 2048)
		words := make([]uint64, shape.Size()/8) // aligned, as the kernel's mapping is
		mem := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), shape.Size())
		cache := newCache(t)
		q, err := rx.NewPacket(rx.PacketConfig{Name: "p rx", Cache: cache, Ring: mem, Shape: shape, MaxFrame: 1514, Options: o})
		if err != nil {
			t.Fatal(err)
		}
		const at = 80
		h := (*tpacket.Header)(unsafe.Pointer(unsafe.SliceData(mem)))
		copy(mem[at-tpacket.VnetSize:], vnet)
		h.Snaplen = uint32(copy(mem[at:shape.SlotSize], data))
		h.Len, h.Mac, h.Status = uint32(wire), at, unix.TP_STATUS_USER
		return poll(t, q, cache)
	}
}
