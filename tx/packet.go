package tx

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"gorouter/internal/inet"
	"gorouter/internal/stat"
	"gorouter/internal/tpacket"
	"gorouter/skb"
)

// PacketConfig is what an AF_PACKET transmit ring is made of.
type PacketConfig struct {
	Name     string         // for counters and reports, such as "p0 tx"
	Cache    *skb.Cache     // of the worker that will send
	Ring     []byte         // the kernel's mapping; stays valid until Close
	Shape    tpacket.Layout // of the mapping
	MaxFrame int            // longest untagged frame in bytes, without FCS
	Options  Options
	// Kick is the doorbell: one send system call that does not wait, after
	// which the kernel has taken what it could.
	Kick func() unix.Errno
}

// Packet is the transmit half of a TPACKET_V2 ring. Frames are copied into
// the slots, so their buffers are free at once; what is reclaimed are slots.
//
//	head ... the kernel's or sent ... sent ... written, not taken ... tail ... free
//
// The kernel works on the ring only inside Kick; only the completion of what
// it took may come later. What it could not take (no memory, a queue full, the
// link down) stays asked for, and is tried again by every later Send, Reclaim
// and Tick.
type Packet struct {
	base     unsafe.Pointer
	slotSize uint32
	n        uint32
	head     uint32 // oldest slot not yet reclaimed
	sent     uint32 // first slot that the kernel has not taken
	tail     uint32 // slot to write next
	used     uint32 // slots from head to tail
	unsent   uint32 // slots from sent to tail

	limit   atomic.Int64 // longest untagged frame
	each    bool
	timed   bool
	at      uint32
	wake    uint32
	full    bool
	down    bool   // the last kick found the interface down or gone
	stalled bool   // the last kick left frames behind
	streak  uint32 // calls to leave out before the next retry
	wait    uint32 // of these, still to come
	due     int64  // when a timed doorbell is due; 0: no frame waits

	kick func() unix.Errno
	errs PacketErrors

	arena *skb.Arena
	cache *skb.Cache
	name  string
	opts  Options

	stats *stat.Page[Counters]
}

// PacketErrors counts what the kernel answered to kicks. All but WrongFormat
// and Other are passing conditions. Safe for concurrent use.
type PacketErrors struct {
	Again       atomic.Uint64 // EAGAIN, or taken in part: no room in the socket's send buffer
	NoBufs      atomic.Uint64 // ENOBUFS: the device's queue is full or its carrier is off
	NetDown     atomic.Uint64 // ENETDOWN, ENXIO: interface down or gone
	WrongFormat atomic.Uint64 // frames refused for good (TP_STATUS_WRONG_FORMAT)
	Other       atomic.Uint64
}

// NewPacket makes the half.
func NewPacket(c PacketConfig) (*Packet, error) {
	if errs := OptionTable.Check(&c.Options); len(errs) > 0 {
		return nil, fmt.Errorf("%s: %w", c.Name, errs[0])
	}
	if len(c.Ring) < c.Shape.Size() || c.Shape.Slots != c.Options.Ring ||
		c.Shape.SlotSize < tpacket.TxOverhead+max(c.MaxFrame+inet.VLANTagLen, inet.EthMinLen) {
		return nil, fmt.Errorf("%s: mapping of %d bytes for %d slots of %d bytes, ring is %d, longest frame %d bytes",
			c.Name, len(c.Ring), c.Shape.Slots, c.Shape.SlotSize, c.Options.Ring, c.MaxFrame)
	}
	q := &Packet{
		base: unsafe.Pointer(unsafe.SliceData(c.Ring)), slotSize: uint32(c.Shape.SlotSize), n: uint32(c.Shape.Slots),
		kick: c.Kick, arena: c.Cache.Arena(), cache: c.Cache, name: c.Name, stats: stat.New[Counters](),
	}
	q.limit.Store(int64(c.MaxFrame))
	q.Configure(c.Options)
	return q, nil
}

// Options is what is in force.
func (q *Packet) Options() Options { return q.opts }

// Configure applies options to a running ring; its size stays. Call it on the
// owning worker. Frames that wait for a doorbell are shown to the kernel.
func (q *Packet) Configure(o Options) {
	if q.unsent > 0 {
		q.bell()
	}
	o.Ring = int(q.n)
	q.opts = o
	q.each = o.Doorbell == DoorbellFrame
	q.timed = o.Doorbell == DoorbellTimer
	q.at = min(uint32(o.ReclaimAt), q.n-1)
	q.wake = min(uint32(o.WakeAt), q.n-1)
	q.due = 0
}

// SetMaxFrame says what the interface's MTU allows now; it cannot go above
// what the slots were made for. Safe for concurrent use.
func (q *Packet) SetMaxFrame(n int) {
	q.limit.Store(min(int64(n), int64(q.slotSize-tpacket.TxOverhead-inet.VLANTagLen)))
}

// Errors is what the kernel answered so far.
func (q *Packet) Errors() *PacketErrors { return &q.errs }

func (q *Packet) header(i uint32) *tpacket.Header {
	return (*tpacket.Header)(unsafe.Add(q.base, uintptr(i)*uintptr(q.slotSize)))
}

func (q *Packet) slot(i uint32) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(q.base, uintptr(i)*uintptr(q.slotSize)+tpacket.TxOverhead)), q.slotSize-tpacket.TxOverhead)
}

func (q *Packet) after(i uint32) uint32 {
	if i++; i == q.n {
		return 0
	}
	return i
}

// Send implements Queue.
func (q *Packet) Send(b *skb.Batch, more bool) int {
	if b.N == 0 {
		return 0
	}
	c := &q.stats.Live
	c.Sends++
	if q.used+uint32(b.N) > q.at {
		q.reclaim()
	}
	limit := int(q.limit.Load())
	queued, kicked := 0, false
	for _, h := range b.Handles() {
		frame := q.arena.Bytes(h)
		reason := skb.ReasonNone
		switch {
		case q.base == nil:
			reason = skb.TxAborted
		case len(frame) > limit && !(tagged(frame) && len(frame) <= limit+inet.VLANTagLen):
			reason = skb.TxTooLong
		case q.used == q.n-1:
			if !kicked {
				kicked = true
				q.makeRoom()
			}
			if q.used == q.n-1 {
				reason = skb.TxRingFull
				if q.down {
					reason = skb.TxLinkDown
				}
			}
		}
		if reason != skb.ReasonNone {
			c.Drops[reason]++
		} else {
			q.write(frame)
			queued++
			if q.each {
				q.bell()
			}
		}
		q.cache.Free(h)
	}
	b.Reset()
	// A timed doorbell that waited longer would only drop frames.
	if q.unsent > 0 && (!q.timed || q.unsent >= q.n/2) && !q.each {
		q.bell()
	}
	return queued
}

// tagged reports whether the kernel allows the frame four bytes more.
func tagged(frame []byte) bool {
	const at = 2 * len(inet.MAC{})
	return len(frame) >= inet.EthHeaderLen && binary.BigEndian.Uint16(frame[at:]) == inet.EtherVLAN
}

// write copies a frame into slot tail and asks for it to be sent.
func (q *Packet) write(frame []byte) {
	dst := q.slot(q.tail)
	n := copy(dst, frame)
	if n < inet.EthMinLen {
		clear(dst[n:inet.EthMinLen])
		n = inet.EthMinLen
	}
	h := q.header(q.tail)
	h.Len = uint32(n)
	// The store orders the frame before the request.
	atomic.StoreUint32(&h.Status, unix.TP_STATUS_SEND_REQUEST)
	q.tail = q.after(q.tail)
	q.used++
	q.unsent++
	c := &q.stats.Live
	c.Descriptors++
	c.Copied++
}

// makeRoom does what can be done about a full ring, once a Send.
func (q *Packet) makeRoom() {
	if q.unsent > 0 {
		q.bell()
	}
	q.reclaim()
	if q.used == q.n-1 && !q.full {
		q.full = true
		q.stats.Live.Stops++
	}
}

// bell has the kernel take what waits, and counts what it took.
func (q *Packet) bell() {
	for again := true; again; {
		again = false
		q.stats.Live.Doorbells++
		errno := q.kick()
		q.down = errno == unix.ENETDOWN || errno == unix.ENXIO
		if q.taken() {
			// The kernel stops at a frame that it refuses; without it, it can
			// go on.
			q.refuse()
			again = q.unsent > 0
		} else {
			q.count(errno)
		}
	}
	q.due = 0
	q.stalled = q.unsent > 0
	if !q.stalled {
		q.streak, q.wait = 0, 0
	}
}

// taken moves sent past the slots that the kernel has taken. It reports
// whether it came to one that the kernel refused.
func (q *Packet) taken() (refused bool) {
	c := &q.stats.Live
	for q.unsent > 0 {
		h := q.header(q.sent)
		status := atomic.LoadUint32(&h.Status)
		if status&unix.TP_STATUS_SEND_REQUEST != 0 {
			return false
		}
		if status&unix.TP_STATUS_WRONG_FORMAT != 0 {
			return true
		}
		c.Packets++
		c.Bytes += uint64(h.Len)
		q.sent = q.after(q.sent)
		q.unsent--
	}
	return false
}

// refuse takes the refused frame in slot sent out of the ring by moving up
// those behind it: the kernel's own index stays at that slot until there is a
// frame in it which it can send.
func (q *Packet) refuse() {
	q.errs.WrongFormat.Add(1)
	q.stats.Live.Drops[skb.TxTooLong]++
	i := q.sent
	for range q.unsent - 1 {
		j := q.after(i)
		n := q.header(j).Len
		copy(q.slot(i), q.slot(j)[:n])
		q.header(i).Len = n
		atomic.StoreUint32(&q.header(i).Status, unix.TP_STATUS_SEND_REQUEST)
		i = j
	}
	atomic.StoreUint32(&q.header(i).Status, unix.TP_STATUS_AVAILABLE)
	q.tail = i
	q.used--
	q.unsent--
}

// count files the answer to a kick.
func (q *Packet) count(errno unix.Errno) {
	switch {
	case errno == 0 && q.unsent == 0, errno == unix.EINTR:
	case errno == 0, errno == unix.EAGAIN:
		q.errs.Again.Add(1)
	case errno == unix.ENOBUFS:
		q.errs.NoBufs.Add(1)
	case q.down:
		q.errs.NetDown.Add(1)
	default:
		q.errs.Other.Add(1)
	}
}

// retry kicks again for frames that were left behind. The longer that is in
// vain, the more calls it lets pass in between.
func (q *Packet) retry() {
	if !q.stalled {
		return
	}
	if q.wait > 0 {
		q.wait--
		return
	}
	q.bell()
	if q.stalled {
		q.streak = min(2*q.streak+1, 255)
		q.wait = q.streak
	}
}

// reclaim counts the slots that the kernel is done with.
func (q *Packet) reclaim() int {
	c := &q.stats.Live
	c.Reclaims++
	n := 0
	for q.used > q.unsent && q.base != nil {
		// Time stamp bits may be set beside these.
		if atomic.LoadUint32(&q.header(q.head).Status)&(unix.TP_STATUS_SENDING|unix.TP_STATUS_SEND_REQUEST) != 0 {
			break
		}
		q.head = q.after(q.head)
		q.used--
		n++
	}
	c.Reclaimed += uint64(n)
	if q.full && q.n-1-q.used >= q.wake {
		q.full = false
		c.Wakes++
	}
	return n
}

// Flush implements Queue.
func (q *Packet) Flush() {
	if q.unsent > 0 && !q.timed && !q.stalled {
		q.bell()
	}
}

// Tick implements Queue.
func (q *Packet) Tick(now int64) {
	switch {
	case q.stalled:
		q.retry()
	case !q.timed || q.unsent == 0:
		q.due = 0
	case q.due == 0:
		q.due = now + int64(q.opts.DoorbellTimer)
	case now >= q.due:
		q.bell()
	}
}

// Reclaim implements Queue.
func (q *Packet) Reclaim() int {
	q.retry()
	return q.reclaim()
}

// Pending implements Queue. Frames are slots here.
func (q *Packet) Pending() int { return int(q.used) }

// Room implements Queue.
func (q *Packet) Room() int { return int(q.n - 1 - q.used) }

// Counters implements Queue.
func (q *Packet) Counters() *stat.Page[Counters] { return q.stats }

// HolderName implements skb.Holder.
func (q *Packet) HolderName() string { return q.name }

// EachHeld implements skb.Holder: frames are copied, no buffer is ever held.
func (q *Packet) EachHeld(func(skb.Handle)) {}

// Close implements Queue. The mapping may be undone afterwards.
func (q *Packet) Close() {
	if q.base == nil {
		return
	}
	q.stats.Live.Drops[skb.TxAborted] += uint64(q.unsent)
	q.base, q.used, q.unsent, q.stalled = nil, 0, 0, false
}
