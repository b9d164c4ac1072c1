package tx

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"gorouter/internal/inet"
	"gorouter/internal/stat"
	"gorouter/mmio"
	"gorouter/skb"
)

// E1000Config is what an 8254x transmit ring is made of.
type E1000Config struct {
	Name     string // for counters and reports, such as "p0 tx"
	Arena    *skb.Arena
	Cache    *skb.Cache // of the worker that will send
	Regs     mmio.Registers
	Tail     uint32 // offset of the transmit tail register
	MaxFrame int    // longest frame in bytes without FCS that the device sends
	// FirstMax, unless 0, is the most bytes that a frame's first descriptor
	// may hold, and SplitEven forbids descriptors that end in an even
	// doubleword: see splitter.
	FirstMax  int
	SplitEven bool
	// Delayed has the device delay the interrupts of finished descriptors by
	// its TIDV register, which must not be 0 then.
	Delayed bool
	Options Options
}

// E1000 is a transmit ring of legacy descriptors, one a frame unless the chip
// needs more.
//
//	clean ... sent, perhaps not yet freed ... bell ... written, not shown ... next ... free
//
// Status is reported on every Nth descriptor only (RS), and completion is
// read from those descriptors (DD), in order: a later one done implies the
// earlier ones. The last descriptor before the ring idles must report too, or
// its buffer would stay captive. A descriptor cannot be changed once the
// device may see it, so while more frames are to be expected the last one is
// held back from the doorbell, until either the next frame or Flush decides
// whether it reports.
type E1000 struct {
	desc  unsafe.Pointer
	slots []skb.Handle // a frame's is at its last descriptor
	n     uint32
	next  uint32 // slot to write next
	bell  uint32 // tail register's value
	clean uint32 // oldest slot not yet freed
	used  uint32 // slots from clean to next

	report  []uint32 // circular: slots that ask for a report, oldest first
	rHead   uint32
	rLen    uint32
	every   uint32 // RS interval
	since   uint32 // descriptors since the last RS
	each    bool   // doorbell after every frame
	full    bool   // ran full and not yet above the wake watermark
	wake    uint32
	maxLen  uint32
	cmd     uint64 // of every frame's last descriptor
	split   splitter
	reclaim reclaimer
	ring    doorbell

	arena *skb.Arena
	cache *skb.Cache
	regs  mmio.Registers
	tail  uint32
	mem   skb.Ring
	name  string
	opts  Options

	stats *stat.Page[Counters]
}

// NewE1000 cuts the descriptor ring.
func NewE1000(c E1000Config) (*E1000, error) {
	if errs := OptionTable.Check(&c.Options); len(errs) > 0 {
		return nil, fmt.Errorf("%s: %w", c.Name, errs[0])
	}
	if c.MaxFrame < inet.EthMinLen {
		return nil, fmt.Errorf("%s: longest frame is %d bytes, expected at least %d", c.Name, c.MaxFrame, inet.EthMinLen)
	}
	n := uint32(c.Options.Ring)
	mem, err := c.Arena.AllocRing(int(n) * descSize)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Name, err)
	}
	r := &E1000{
		desc: mem.Base, slots: make([]skb.Handle, n), report: make([]uint32, n), n: n,
		maxLen: uint32(min(c.MaxFrame, MaxLegacy)), cmd: DescCmdEOP | DescCmdIFCS,
		split: newSplitter(c.FirstMax, c.SplitEven),
		arena: c.Arena, cache: c.Cache, regs: c.Regs, tail: c.Tail, mem: mem, name: c.Name,
		stats: stat.New[Counters](),
	}
	if c.Delayed {
		r.cmd |= DescCmdIDE
	}
	for i := range r.slots {
		r.slots[i] = skb.None
	}
	r.Configure(c.Options)
	return r, nil
}

// Memory is the descriptor ring, for the device's base and length registers.
func (r *E1000) Memory() skb.Ring { return r.mem }

// Options is what is in force.
func (r *E1000) Options() Options { return r.opts }

// SetMaxFrame changes the longest frame, in bytes without FCS, that is sent;
// longer ones are dropped as TxTooLong. Call it on the owning worker or while
// it stands still.
func (r *E1000) SetMaxFrame(n int) { r.maxLen = uint32(min(n, MaxLegacy)) }

// Configure applies options to a running ring; its size stays. Call it on the
// owning worker. Frames that wait for a doorbell are shown to the device.
func (r *E1000) Configure(o Options) {
	if r.waiting() > 0 {
		r.ringAll()
	}
	o.Ring = int(r.n)
	r.opts = o
	r.every = uint32(o.ReportEvery)
	r.wake = min(uint32(o.WakeAt), r.n-1)
	r.each = o.Doorbell == DoorbellFrame
	r.reclaim = lazyReclaim{at: min(uint32(o.ReclaimAt), r.n-1)}
	if o.Doorbell == DoorbellTimer {
		r.ring = &timerBell{interval: int64(o.DoorbellTimer)}
	} else {
		r.ring = batchBell{}
	}
}

func (r *E1000) at(i uint32) *descriptor {
	return (*descriptor)(unsafe.Add(r.desc, uintptr(i)*descSize))
}

// after is the slot that follows i.
func (r *E1000) after(i uint32) uint32 {
	if i++; i == r.n {
		return 0
	}
	return i
}

// waiting is the number of written descriptors the device does not see yet.
func (r *E1000) waiting() uint32 {
	if r.next >= r.bell {
		return r.next - r.bell
	}
	return r.next + r.n - r.bell
}

// Send implements Queue.
func (r *E1000) Send(b *skb.Batch, more bool) int {
	n := uint32(b.N)
	if n == 0 {
		return 0
	}
	c := &r.stats.Live
	c.Sends++
	r.reclaim.before(r, n)
	if n*r.split.most > r.n-1-r.used && r.waiting() > 1 {
		// Frames that wait for a timer would make others be dropped. A device
		// that sends inside the doorbell is done with them at once.
		r.ringAll()
		r.reclaimDone()
	}
	sent := 0
	for i, h := range b.Handles() {
		if r.n-1-r.used < r.split.most {
			r.overflow(b.H[i:b.N])
			break
		}
		if r.put(h) {
			sent++
		}
	}
	b.N = 0
	r.ring.sent(r, more)
	return sent
}

// put writes one descriptor. It reports false when the frame was dropped.
func (r *E1000) put(h skb.Handle) bool {
	c := &r.stats.Live
	m := r.arena.Meta(h)
	l := uint32(m.Len)
	if l < inet.EthMinLen {
		l = uint32(r.arena.Pad(h, inet.EthMinLen))
	}
	if l > r.maxLen {
		c.Drops[skb.TxTooLong]++
		r.cache.Free(h)
		return false
	}
	if r.each && r.waiting() > 0 {
		r.write(r.next)
	}
	addr, n := r.arena.BusAt(h, int(m.Data)), l
	if r.split.most > 1 {
		addr, n = r.spread(addr, n)
	}
	i := r.next
	word := uint64(n) | r.cmd
	if r.since++; r.since >= r.every {
		word |= DescCmdRS
		r.noteReport(i)
	}
	d := r.at(i)
	d.addr = addr
	atomic.StoreUint64(&d.word, word)
	r.slots[i] = h
	if skb.Debug {
		r.arena.SetOwner(h, r.name)
	}
	r.next = r.after(i)
	r.used++
	c.Packets++
	c.Bytes += uint64(l)
	c.Descriptors++
	return true
}

func (r *E1000) noteReport(i uint32) {
	k := r.rHead + r.rLen
	if k >= r.n {
		k -= r.n
	}
	r.report[k] = i
	r.rLen++
	r.since = 0
	r.stats.Live.Reports++
}

func (r *E1000) overflow(hs []skb.Handle) {
	c := &r.stats.Live
	if !r.full {
		r.full = true
		c.Stops++
	}
	c.Drops[skb.TxRingFull] += uint64(len(hs))
	r.cache.FreeBatch(hs)
}

// Flush implements Queue.
func (r *E1000) Flush() { r.ring.flush(r) }

// Tick implements Queue.
func (r *E1000) Tick(now int64) {
	r.ring.tick(r, now)
	r.reclaim.tick(r, now)
}

// Reclaim implements Queue.
func (r *E1000) Reclaim() int {
	if r.used == 0 {
		return 0
	}
	return r.reclaim.idle(r)
}

// reclaimDone frees every frame up to the last descriptor that the device
// reported, and returns how many.
func (r *E1000) reclaimDone() int {
	c := &r.stats.Live
	c.Reclaims++
	freed := 0
	for r.rLen > 0 {
		i := r.report[r.rHead]
		if atomic.LoadUint64(&r.at(i).word)&DescStatusDD == 0 {
			break
		}
		if r.rHead++; r.rHead == r.n {
			r.rHead = 0
		}
		r.rLen--
		freed += r.freeThrough(i)
	}
	c.Reclaimed += uint64(freed)
	if r.full && r.n-1-r.used >= r.wake {
		r.full = false
		c.Wakes++
	}
	return freed
}

// freeThrough frees the frames from clean to slot last and returns how many.
func (r *E1000) freeThrough(last uint32) int {
	n := 0
	if last < r.clean {
		n = r.freeSlots(r.slots[r.clean:])
		r.clean = 0
	}
	n += r.freeSlots(r.slots[r.clean : last+1])
	r.clean = r.after(last)
	return n
}

func (r *E1000) freeSlots(s []skb.Handle) int {
	r.used -= uint32(len(s))
	if r.split.most > 1 {
		return r.freeSparse(s)
	}
	r.cache.FreeBatch(s)
	for i := range s {
		s[i] = skb.None
	}
	return len(s)
}

// Pending implements Queue.
func (r *E1000) Pending() int { return int(r.used - r.split.extra) }

// Room implements Queue.
func (r *E1000) Room() int { return int((r.n - 1 - r.used) / r.split.most) }

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

// Reset frees every frame on the ring and starts over at slot 0, for a device
// that is being reset. The device must be quiet. Frames that it did not
// report as sent are counted under TxAborted.
func (r *E1000) Reset() {
	r.reclaimDone()
	c := &r.stats.Live
	frames := uint64(r.Pending())
	// Counted as sent when queued: every frame is counted once.
	c.Packets -= frames
	c.Drops[skb.TxAborted] += frames
	for i, k := r.clean, uint32(0); k < r.used; k++ {
		c.Bytes -= r.at(i).word & DescLengthMask
		i = r.after(i)
	}
	if r.used > 0 {
		r.freeThrough(r.last())
	}
	r.next, r.bell, r.clean, r.rHead, r.rLen, r.since, r.full = 0, 0, 0, 0, 0, 0, false
}

// Close implements Queue.
func (r *E1000) Close() { r.Reset() }
