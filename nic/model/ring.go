package model

import (
	"math/bits"
	"sync/atomic"
	"unsafe"

	"gorouter/nic/e1000/regs"
)

// maxRing is the most descriptors of a ring: 64 KiB of them.
const maxRing = 4096

// ring is a descriptor ring seen from the chip. desc and size stay while the
// ring is on. The driver's goroutine moves tail and fills shadow behind it;
// the stepping goroutine moves head and clean. Each publishes its own.
//
//	clean ... done, not yet written back ... head ... owned, not done ... tail
type ring struct {
	name  string
	on    atomic.Bool
	desc  []desc
	size  uint32
	tail  uint32 // published by the driver's goroutine
	clean uint32 // published by the stepping goroutine
	head  uint32

	mid    bool     // the driver's: a frame's end has not been handed over
	shadow []desc   // each owned descriptor as it was handed over
	sum    []uint64 // and its buffer's content, where that is watched
}

func (r *ring) init(name string, content bool) {
	r.name = name
	r.shadow = make([]desc, maxRing)
	if content {
		r.sum = make([]uint64, maxRing)
	}
}

// dist is the number of slots from a forward to b.
func (r *ring) dist(a, b uint32) uint32 {
	if b >= a {
		return b - a
	}
	return b + r.size - a
}

func (r *ring) after(i uint32) uint32 {
	if i++; i == r.size {
		return 0
	}
	return i
}

// owned is the number of descriptors that are the chip's.
func (r *ring) owned() uint32 {
	return r.dist(atomic.LoadUint32(&r.clean), atomic.LoadUint32(&r.tail))
}

// enable takes the ring registers and, when they are sound, everything from
// head to tail. base is RDBAL or TDBAL.
func (c *Chip) enable(r *ring, base uint32) {
	addr := uint64(c.raw[base/4+1])<<32 | uint64(c.raw[base/4])
	length := c.raw[(base+8)/4]
	if length == 0 || length > maxRing*descBytes || length%regs.RingAlign != 0 {
		if c.breachReg(RuleRingLength, base+8, "enabled with %d bytes", length) {
			return
		}
		if length &= regs.RingLenMask; length == 0 || length > maxRing*descBytes {
			return
		}
	}
	if addr%regs.RingBaseAlign != 0 {
		if c.breachReg(RuleRingBase, base, "enabled at %#x", addr) {
			return
		}
		addr &^= regs.RingBaseAlign - 1
	}
	mem := c.arena.DMA(addr, int(length))
	_, _, inBuffer := c.arena.BufferAt(addr + uint64(length) - 1)
	if mem == nil || inBuffer {
		if c.breachReg(RuleRingMemory, base, "%d bytes at %#x", length, addr) || mem == nil {
			return
		}
	}
	if c.info.Boundary64K && crosses64K(addr, length) && c.breachReg(RuleBoundary64K, base, "%d bytes at %#x", length, addr) {
		return
	}
	n := length / descBytes
	r.desc = unsafe.Slice((*desc)(unsafe.Pointer(unsafe.SliceData(mem))), n)
	r.size = n
	r.mid = false
	tail := atomic.LoadUint32(&r.tail)
	if r.head >= n || tail >= n {
		if c.breachReg(RuleIndexRange, base+0x10, "head %d and tail %d of %d descriptors", r.head, tail, n) {
			return
		}
		r.head, tail = r.head%n, tail%n
		c.publish32(&r.tail, tail)
	}
	c.publish32(&r.clean, r.head)
	if c.strict && r.head != tail && !c.handOver(r, r.head, tail) {
		return
	}
	r.on.Store(true)
}

// doorbell is a tail write while the ring is on, on the driver's goroutine and
// without the lock. It looks at what is handed over and remembers it.
func (c *Chip) doorbell(r *ring, v uint32) {
	if v >= r.size {
		off := uint32(regs.RDT)
		if r == &c.tx {
			off = regs.TDT
		}
		// What hardware makes of it is not defined; here it is ignored.
		c.breachReg(RuleTailRange, off, "%d of %d descriptors", v, r.size)
		return
	}
	if c.strict {
		old := atomic.LoadUint32(&r.tail)
		n, owned := r.dist(old, v), r.owned()
		if n+owned >= r.size {
			rule := RuleTailPastHead
			if n+owned == r.size {
				rule = RuleFullRing
			}
			if c.breachRing(rule, r, v, "%d handed over while %d of %d are the device's", n, owned, r.size) {
				return
			}
		}
		if !c.handOver(r, old, v) {
			return
		}
	}
	c.publish32(&r.tail, v)
}

// handOver checks the descriptors from first up to last and remembers them. It
// reports false when the chip stopped over one.
func (c *Chip) handOver(r *ring, first, last uint32) bool {
	if r == &c.rx {
		return c.handOverRx(first, last)
	}
	return c.handOverTx(first, last)
}

// fetch compares a descriptor with what was handed over and returns what the
// chip works with. Without strictness memory is all there is to know.
func (c *Chip) fetch(r *ring, i uint32) (desc, bool) {
	d := r.desc[i].load()
	if !c.strict {
		r.shadow[i] = d
		return d, true
	}
	if s := r.shadow[i]; d != s {
		if c.breachRing(RuleDescriptorChanged, r, i, "handed over as %016x %016x, now %016x %016x", s.addr, s.word, d.addr, d.word) {
			return d, false
		}
		r.shadow[i] = d
	}
	return d, true
}

// checkBuffer looks at the n bytes at a bus address that the device may use.
// It reports false when the chip stopped.
func (c *Chip) checkBuffer(r *ring, i uint32, addr uint64, n uint32) bool {
	h, room, ok := c.arena.BufferAt(addr)
	if ok && uint32(room) >= n && c.arena.RefsAt(h) != 0 && (!c.info.Boundary64K || !crosses64K(addr, n)) {
		return true
	}
	return c.suspectBuffer(r, i, addr, n)
}

func crosses64K(addr uint64, n uint32) bool { return addr>>16 != (addr+uint64(n)-1)>>16 }

// suspectBuffer finds out what is wrong with a buffer, if anything.
//
//go:noinline
func (c *Chip) suspectBuffer(r *ring, i uint32, addr uint64, n uint32) bool {
	h, room, ok := c.arena.BufferAt(addr)
	if !ok {
		return !c.breachRing(RuleOutsideMemory, r, i, "%d bytes at %#x", n, addr)
	}
	if uint32(room) < n && c.breachRing(RuleBufferOverrun, r, i, "%d bytes at %#x, %d before the end of buffer %d", n, addr, room, h) {
		return false
	}
	if c.arena.RefsAt(h) == 0 && c.breachRing(RuleBufferFreed, r, i, "buffer %d is free", h) {
		return false
	}
	return !c.info.Boundary64K || !crosses64K(addr, n) ||
		!c.breachRing(RuleBoundary64K, r, i, "%d bytes at %#x", n, addr)
}

// digest is a cheap fingerprint of a buffer's bytes; nil when they are not
// there.
func digest(b []byte) uint64 {
	const k = 0x9E3779B97F4A7C15
	h := uint64(len(b)) * k
	for len(b) >= 8 {
		v := uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
			uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
		h = bits.RotateLeft64((h^v)*k, 29)
		b = b[8:]
	}
	for _, x := range b {
		h = bits.RotateLeft64((h^uint64(x))*k, 29)
	}
	return h
}
