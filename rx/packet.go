package rx

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"gorouter/internal/inet"
	"gorouter/internal/stat"
	"gorouter/internal/tpacket"
	"gorouter/skb"
)

// PacketConfig is what an AF_PACKET receive ring is made of.
type PacketConfig struct {
	Name  string         // for counters and reports, such as "p0 rx"
	Port  uint16         // index noted in each frame's metadata
	Cache *skb.Cache     // of the worker that will poll
	Ring  []byte         // the kernel's mapping; stays valid until Close
	Shape tpacket.Layout // of the mapping
	// MaxFrame is the longest untagged frame in bytes, without FCS, that is
	// taken; longer ones are dropped as RxTooLong. Each VLAN tag may add four.
	MaxFrame int
	// Segment cuts super-frames into what their sender would have sent;
	// without it they are dropped as RxSuperFrame.
	Segment bool
	Options Options
}

// Packet is the receive half of a TPACKET_V2 ring whose frames carry a virtio
// header (PACKET_VNET_HDR). A frame is copied out, so that the slot could go
// back to the kernel at once; it goes back by the replenish batch all the
// same, as on every other ring. The slots from back to next are held; all
// others are the kernel's, or filled and not yet looked at.
type Packet struct {
	base     unsafe.Pointer
	slotSize uint32
	n        uint32 // ring size
	next     uint32 // slot that the kernel fills next
	back     uint32 // oldest slot held
	held     uint32 // slots taken and not given back

	batch   uint32
	atEnd   bool
	segment bool
	cut     segmenter // the super-frame in slot next that is being cut
	port    uint16
	max     int

	arena *skb.Arena
	cache *skb.Cache
	name  string
	opts  Options

	stats *stat.Page[Counters]
}

// NewPacket makes the half. The kernel must not fill the ring before.
func NewPacket(c PacketConfig) (*Packet, error) {
	if errs := OptionTable.Check(&c.Options); len(errs) > 0 {
		return nil, fmt.Errorf("%s: %w", c.Name, errs[0])
	}
	if len(c.Ring) < c.Shape.Size() || c.Shape.Slots != c.Options.Ring {
		return nil, fmt.Errorf("%s: mapping of %d bytes for %d slots of %d bytes, ring is %d",
			c.Name, len(c.Ring), c.Shape.Slots, c.Shape.SlotSize, c.Options.Ring)
	}
	a := c.Cache.Arena()
	if longest := c.MaxFrame + maxTags*inet.VLANTagLen; a.Headroom()+longest > a.Stride() {
		return nil, fmt.Errorf("%s: frames of %d bytes do not fit into buffers of %d with headroom %d (raise the buffers' stride or lower the MTU)",
			c.Name, longest, a.Stride(), a.Headroom())
	}
	p := &Packet{
		base: unsafe.Pointer(unsafe.SliceData(c.Ring)), slotSize: uint32(c.Shape.SlotSize), n: uint32(c.Shape.Slots),
		port: c.Port, max: c.MaxFrame, segment: c.Segment,
		arena: a, cache: c.Cache, name: c.Name, stats: stat.New[Counters](),
	}
	p.Configure(c.Options)
	return p, nil
}

// Options is what is in force.
func (p *Packet) Options() Options { return p.opts }

// Configure applies options to a running ring; its size stays. Call it on the
// owning worker. Copybreak has no meaning here: every frame is copied.
func (p *Packet) Configure(o Options) {
	o.Ring = int(p.n)
	p.opts = o
	p.batch = min(uint32(o.Replenish), p.n)
	p.atEnd = o.ReplenishAt == ReplenishEnd
}

func (p *Packet) header(i uint32) *tpacket.Header {
	return (*tpacket.Header)(unsafe.Add(p.base, uintptr(i)*uintptr(p.slotSize)))
}

// Poll implements Queue. A super-frame that is cut counts as so many frames
// as it gave, and as one slot.
func (p *Packet) Poll(b *skb.Batch, max int, now int64) int {
	c := &p.stats.Live
	c.Polls++
	max = min(max, skb.BatchSize-b.N)
	taken := 0
	for taken < max && p.base != nil && p.held < p.n {
		if p.cut.active {
			p.nextSegment(b, now)
			taken++
			continue
		}
		h := p.header(p.next)
		// The load orders the reads of the slot after the kernel's writes.
		status := atomic.LoadUint32(&h.Status)
		if status&unix.TP_STATUS_USER == 0 {
			break
		}
		c.Descriptors++
		taken++
		if p.begin(h, status, b, now) {
			taken-- // its segments count
		}
	}
	if taken == 0 {
		c.Empty++
	}
	return taken
}

// begin handles the filled slot p.next. It reports true when the slot holds a
// super-frame whose segments are now to be taken; else it is done with.
func (p *Packet) begin(h *tpacket.Header, status uint32, b *skb.Batch, now int64) bool {
	c := &p.stats.Live
	if *(*uint8)(unsafe.Add(unsafe.Pointer(h), tpacket.PacketTypeOffset)) == unix.PACKET_OUTGOING {
		// Our own frame, on a kernel without PACKET_IGNORE_OUTGOING.
		p.done()
		return false
	}
	f, reason := p.view(h, status)
	if reason == skb.ReasonNone && f.gso != unix.VIRTIO_NET_HDR_GSO_NONE {
		if p.cut.start(f, p.max) {
			return true
		}
		reason = skb.RxSuperFrame
	}
	if reason == skb.ReasonNone {
		reason = p.take(f, b, now)
	}
	p.done()
	if reason != skb.ReasonNone {
		c.Drops[reason]++
	}
	if reason == skb.RxNoBuffer {
		// Whoever is short of buffers should at least not be short of slots.
		p.giveBack()
	}
	return false
}

// view describes the frame in a filled slot.
func (p *Packet) view(h *tpacket.Header, status uint32) (frame, skb.Reason) {
	mac, n := uint32(h.Mac), h.Snaplen
	if mac < tpacket.HeaderSize+tpacket.VnetSize || n > p.slotSize || mac+n > p.slotSize {
		return frame{}, skb.RxTruncated
	}
	vnet := unsafe.Add(unsafe.Pointer(h), mac-tpacket.VnetSize)
	return parseFrame(rawFrame{
		vnet: unsafe.Slice((*byte)(vnet), tpacket.VnetSize),
		data: unsafe.Slice((*byte)(unsafe.Add(vnet, tpacket.VnetSize)), n),
		wire: h.Len, status: status, tci: h.Vlan_tci, tpid: h.Vlan_tpid,
	}, p.max, p.segment)
}

// take copies one frame out of its slot. It returns why the frame had to be
// dropped, if it had.
func (p *Packet) take(f frame, b *skb.Batch, now int64) skb.Reason {
	h := p.cache.Alloc()
	if h == skb.None {
		p.stats.Live.NoBuffer++
		return skb.RxNoBuffer
	}
	dst := p.arena.Put(h, len(f.data)+f.tagLen)
	f.copyTo(dst)
	if f.partial && !completeChecksum(dst, f.csumStart+f.tagLen, f.csumOffset) {
		p.cache.Free(h)
		return skb.RxData
	}
	p.deliver(h, len(dst), b, now)
	return skb.ReasonNone
}

// nextSegment takes one segment of the super-frame in slot p.next.
func (p *Packet) nextSegment(b *skb.Batch, now int64) {
	h := p.cache.Alloc()
	if h == skb.None {
		p.stats.Live.NoBuffer++
		p.stats.Live.Drops[skb.RxNoBuffer]++
		p.cut.skip()
	} else {
		dst := p.arena.Put(h, p.cut.size())
		p.cut.write(dst)
		p.deliver(h, len(dst), b, now)
	}
	if !p.cut.active {
		p.done()
	}
}

func (p *Packet) deliver(h skb.Handle, n int, b *skb.Batch, now int64) {
	m := p.arena.Meta(h)
	m.Port = p.port
	m.Stamp = now
	c := &p.stats.Live
	c.Packets++
	c.Bytes += uint64(n)
	c.Copied++
	b.Add(h)
}

// done moves on to the next slot; the one before is held.
func (p *Packet) done() {
	if p.next++; p.next == p.n {
		p.next = 0
	}
	p.held++
}

// Replenish implements Queue.
func (p *Packet) Replenish() {
	if !p.atEnd && p.held >= p.batch {
		p.giveBack()
	}
}

// EndTurn implements Queue.
func (p *Packet) EndTurn(idle bool) {
	if idle || p.atEnd || p.held >= p.batch {
		p.giveBack()
	}
}

// giveBack hands every held slot to the kernel, oldest first. No system call
// is needed for it.
func (p *Packet) giveBack() {
	if p.held == 0 || p.base == nil {
		return
	}
	c := &p.stats.Live
	c.Replenishes++
	c.Replenished += uint64(p.held)
	for ; p.held > 0; p.held-- {
		atomic.StoreUint32(&p.header(p.back).Status, unix.TP_STATUS_KERNEL)
		if p.back++; p.back == p.n {
			p.back = 0
		}
	}
}

// Ready implements Queue.
func (p *Packet) Ready() bool {
	if p.base == nil || p.held == p.n {
		return false
	}
	return p.cut.active || atomic.LoadUint32(&p.header(p.next).Status)&unix.TP_STATUS_USER != 0
}

// Counters implements Queue.
func (p *Packet) Counters() *stat.Page[Counters] { return p.stats }

// HolderName implements skb.Holder.
func (p *Packet) HolderName() string { return p.name }

// EachHeld implements skb.Holder: the slots are the kernel's memory, no buffer
// is ever held.
func (p *Packet) EachHeld(func(skb.Handle)) {}

// Close implements Queue. The mapping may be undone afterwards.
func (p *Packet) Close() {
	p.base = nil
	p.cut = segmenter{}
}
