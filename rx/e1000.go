package rx

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"gorouter/internal/inet"
	"gorouter/internal/stat"
	"gorouter/mmio"
	"gorouter/skb"
)

// E1000Config is what an 8254x receive ring is made of.
type E1000Config struct {
	Name  string // for counters and reports, such as "p0 rx"
	Port  uint16 // index noted in each frame's metadata
	Arena *skb.Arena
	Cache *skb.Cache // of the worker that will poll
	Regs  mmio.Registers
	Tail  uint32 // offset of the receive tail register
	// KeepsFCS says that the device counts the frame check sequence in the
	// length (RCTL.SECRC off), so that software has to strip it.
	KeepsFCS bool
	Options  Options
}

// E1000 is a receive ring of legacy descriptors. Every slot holds a buffer at
// all times: a frame is taken out only against a fresh buffer, so a shortage
// of buffers costs frames but never shrinks the ring. The slots from fill to
// next are software's: their buffers are not yet given back to the device. The
// slots from next to fill are the device's. One slot stays software's for
// good, so that tail never meets head on a full ring.
type E1000 struct {
	desc  unsafe.Pointer
	slots []skb.Handle // the buffer of each slot
	n     uint32       // ring size
	next  uint32       // slot that the device fills next
	fill  uint32       // first slot to give to the device; the tail register's value
	free  uint32       // slots that are software's, the gap not counted

	batch   uint32 // replenish when so many slots are free
	atEnd   bool
	strip   uint32 // bytes of FCS to take off
	span    uint32 // longest frame that a buffer holds, less an Ethernet header
	copy    uint32 // copybreak
	port    uint16
	discard bool // inside a frame of several descriptors

	// The good frames of one Poll and the buffers that replace them.
	good  [skb.BatchSize]arrival
	fresh [skb.BatchSize]skb.Handle

	arena *skb.Arena
	cache *skb.Cache
	regs  mmio.Registers
	tail  uint32
	mem   skb.Ring
	name  string
	opts  Options

	stats *stat.Page[Counters]
}

// arrival is a good frame: its slot and its length in bytes without FCS.
type arrival struct{ slot, length uint32 }

// NewE1000 cuts the descriptor ring and fills it with buffers. The device does
// not see them until Start.
func NewE1000(c E1000Config) (*E1000, error) {
	if errs := OptionTable.Check(&c.Options); len(errs) > 0 {
		return nil, fmt.Errorf("%s: %w", c.Name, errs[0])
	}
	n := uint32(c.Options.Ring)
	mem, err := c.Arena.AllocRing(int(n) * descSize)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Name, err)
	}
	r := &E1000{
		desc: mem.Base, slots: make([]skb.Handle, n), n: n, port: c.Port,
		arena: c.Arena, cache: c.Cache, regs: c.Regs, tail: c.Tail, mem: mem, name: c.Name,
		stats: stat.New[Counters](),
	}
	if c.KeepsFCS {
		r.strip = inet.FCSLen
	}
	r.span = uint32(r.arena.Stride()-r.arena.Headroom()) - inet.EthHeaderLen
	r.Configure(c.Options)
	for i := range r.slots {
		r.slots[i] = skb.None
	}
	for i := range n {
		h := r.cache.Alloc()
		if h == skb.None {
			r.Close()
			return nil, fmt.Errorf("%s: %d buffers for the ring, only %d are free (raise buffers count or lower the ring)", c.Name, n, i)
		}
		r.arena.SetOwner(h, r.name)
		r.slots[i] = h
	}
	r.free = n - 1
	return r, nil
}

// Memory is the descriptor ring, for the device's base and length registers.
func (r *E1000) Memory() skb.Ring { return r.mem }

// Options is what is in force.
func (r *E1000) Options() Options { return r.opts }

// Configure applies options to a running ring; its size stays. Call it on the
// owning worker.
func (r *E1000) Configure(o Options) {
	o.Ring = int(r.n)
	r.opts = o
	// A batch of the whole ring would never be reached: one slot stays free.
	r.batch = max(1, min(uint32(o.Replenish), r.n-1))
	r.atEnd = o.ReplenishAt == ReplenishEnd
	r.copy = uint32(o.Copybreak)
}

// Reset starts over at slot 0, keeping the buffers, for a device that has just
// been reset and is quiet. Frames that were not yet polled are counted under
// RxAborted, those with an error under that. Start rewrites the descriptors.
func (r *E1000) Reset() { r.startOver(skb.RxAborted) }

// startOver gives up what the device delivered, for the reason named. It looks
// at every descriptor of the device's: one may lack its report while later
// ones have theirs.
func (r *E1000) startOver(why skb.Reason) {
	i := r.next
	for range r.Owned() {
		if w := atomic.LoadUint64(&r.at(i).word); w&DescStatusDD != 0 {
			if !r.bad(w) {
				r.stats.Live.Drops[why]++
			} else {
				r.refuse(w)
			}
		}
		if i++; i == r.n {
			i = 0
		}
	}
	r.next, r.fill, r.free, r.discard = 0, 0, r.n-1, false
}

// Start gives all buffers to the device. The device's head and tail registers
// must be zero and its receiver enabled.
func (r *E1000) Start() { r.refill() }

func (r *E1000) at(i uint32) *descriptor {
	return (*descriptor)(unsafe.Add(r.desc, uintptr(i)*descSize))
}

// Poll implements Queue.
func (r *E1000) Poll(b *skb.Batch, max int, now int64) int {
	c := &r.stats.Live
	c.Polls++
	max = min(max, skb.BatchSize-b.N)
	// One pass over the descriptors finds the good frames, so that their
	// replacements can be allocated together.
	owned := r.n - 1 - r.free
	taken, frames, good := uint32(0), 0, 0
	i := r.next
	for frames < max && taken < owned {
		w := atomic.LoadUint64(&r.at(i).word)
		if w&DescStatusDD == 0 {
			break
		}
		taken++
		if r.bad(w) {
			if r.refuse(w) {
				frames++
			}
		} else {
			r.good[good&(skb.BatchSize-1)] = arrival{slot: i, length: uint32(w&DescLengthMask) - r.strip}
			good++
			frames++
		}
		if i++; i == r.n {
			i = 0
		}
	}
	if taken == 0 {
		c.Empty++
		return 0
	}
	c.Descriptors += uint64(taken)
	r.next = i
	r.free += taken
	if good > 0 {
		r.handOut(b, r.good[:good], now)
	}
	return frames
}

// bad reports whether a descriptor reports anything but one whole good frame.
func (r *E1000) bad(w uint64) bool {
	n := uint32(w&DescLengthMask) - r.strip
	return r.discard || w&(DescStatusEOP|descErrorFrame) != DescStatusEOP || n-inet.EthHeaderLen > r.span
}

// refuse drops what a descriptor reports when it is not one whole good frame,
// and tells whether a frame ended with it. The buffer stays in its slot.
func (r *E1000) refuse(w uint64) bool {
	drops := &r.stats.Live.Drops
	eop := w&DescStatusEOP != 0
	switch {
	case r.discard || !eop:
		// Longer than one buffer: drop every piece, count the frame once.
		r.discard = !eop
		if eop {
			drops[skb.RxMultiDescriptor]++
		}
	case w&descErrorFrame != 0:
		drops[errorReason(w)]++
	case uint32(w&DescLengthMask) < inet.EthHeaderLen+r.strip:
		drops[skb.RxRunt]++
	default:
		// No device can store so much in a buffer; believing it would make a
		// frame of the neighbour's bytes.
		drops[skb.RxMultiDescriptor]++
	}
	return eop
}

// handOut takes good frames out of their slots against fresh buffers. When
// those run short, the later frames' buffers stay.
func (r *E1000) handOut(b *skb.Batch, good []arrival, now int64) {
	c := &r.stats.Live
	fresh := r.fresh[:len(good)]
	got := r.cache.AllocBatch(fresh)
	if short := uint64(len(good) - got); short > 0 {
		c.NoBuffer += short
		c.Drops[skb.RxNoBuffer] += short
	}
	for k, f := range fresh[:got] {
		slot := &r.slots[good[k].slot]
		n := good[k].length
		h := *slot
		if n <= r.copy {
			copy(unsafe.Slice((*byte)(r.arena.Head(f)), n), unsafe.Slice((*byte)(r.arena.Head(h)), n))
			h = f
			c.Copied++
		} else {
			*slot = f
			if skb.Debug {
				r.arena.SetOwner(f, r.name)
			}
		}
		m := r.arena.Meta(h)
		m.Len = uint16(n)
		m.Port = r.port
		m.Stamp = now
		b.Add(h)
		c.Bytes += uint64(n)
	}
	c.Packets += uint64(got)
}

func errorReason(w uint64) skb.Reason {
	switch {
	case w&DescErrorCE != 0:
		return skb.RxCRC
	case w&DescErrorSE != 0:
		return skb.RxSymbol
	case w&DescErrorSEQ != 0:
		return skb.RxSequence
	case w&DescErrorCXE != 0:
		return skb.RxCarrier
	}
	return skb.RxData
}

// Replenish implements Queue.
func (r *E1000) Replenish() {
	if !r.atEnd && r.free >= r.batch {
		r.refill()
	}
}

// EndTurn implements Queue.
func (r *E1000) EndTurn(idle bool) {
	if r.free > 0 && (idle || r.atEnd || r.free >= r.batch) {
		r.refill()
	}
}

// refill gives every free slot to the device with one tail write.
func (r *E1000) refill() {
	base, stride := r.arena.BusAt(0, r.arena.Headroom()), uint64(r.arena.Stride())
	i := r.fill
	for range r.free {
		d := r.at(i)
		d.addr = base + uint64(r.slots[i])*stride
		// A stale DD would be taken for a new frame. The word goes last and
		// whole: it is what hands the descriptor over.
		atomic.StoreUint64(&d.word, 0)
		if i++; i == r.n {
			i = 0
		}
	}
	c := &r.stats.Live
	c.Replenishes++
	c.Replenished += uint64(r.free)
	c.Doorbells++
	r.fill, r.free = i, 0
	r.regs.Write(r.tail, i)
}

// Ready implements Queue.
func (r *E1000) Ready() bool {
	return r.free < r.n-1 && atomic.LoadUint64(&r.at(r.next).word)&DescStatusDD != 0
}

// Owned is the number of descriptors that are the device's.
func (r *E1000) Owned() int { return int(r.n - 1 - r.free) }

// Counters implements Queue.
func (r *E1000) Counters() *stat.Page[Counters] { return r.stats }

// HolderName implements skb.Holder.
func (r *E1000) HolderName() string { return r.name }

// EachHeld implements skb.Holder.
func (r *E1000) EachHeld(f func(skb.Handle)) {
	for _, h := range r.slots {
		if h != skb.None {
			f(h)
		}
	}
}

// Close implements Queue. Frames that were not polled are counted under
// Shutdown.
func (r *E1000) Close() {
	r.startOver(skb.Shutdown)
	for i, h := range r.slots {
		if h != skb.None {
			r.cache.Free(h)
			r.slots[i] = skb.None
		}
	}
}
