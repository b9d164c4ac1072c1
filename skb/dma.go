package skb

import (
	"fmt"
	"unsafe"
)

// Ring is memory for one descriptor ring, cut from the arena's mapping.
type Ring struct {
	Base unsafe.Pointer
	Bus  uint64 // address of Base as a device sees it
	Size int    // bytes
}

// AllocRing cuts size bytes for a descriptor ring, aligned to its size rounded
// up to a power of two and to 4 KiB, so that no ring of up to 64 KiB crosses a
// 64 KiB boundary (82545/82546 erratum 23). Rings live as long as the arena.
// Safe for concurrent use.
func (a *Arena) AllocRing(size int) (Ring, error) {
	a.ringMu.Lock()
	defer a.ringMu.Unlock()
	left := a.bufOff - a.ringOff
	short := func() (Ring, error) {
		return Ring{}, fmt.Errorf("descriptor ring of %d bytes: %d of %d bytes of ring memory are left (raise RingBytes)", size, left, a.bufOff)
	}
	if size <= 0 || size > left {
		return short()
	}
	align := 4096
	for align < size {
		align <<= 1
	}
	off := (a.ringOff + align - 1) &^ (align - 1)
	if off+size > a.bufOff {
		return short()
	}
	a.ringOff = off + size
	r := Ring{Base: unsafe.Add(a.region.Base(), off), Bus: a.opts.BusBase + uint64(off), Size: size}
	return r, nil
}

// Bus is the bus address of the first byte of the frame in a buffer.
func (a *Arena) Bus(h Handle) uint64 {
	return a.BusAt(h, int(a.Meta(h).Data))
}

// BusAt is the bus address of the byte at offset off of a buffer.
func (a *Arena) BusAt(h Handle, off int) uint64 {
	return a.opts.BusBase + uint64(a.bufOff) + uint64(h)<<a.shift + uint64(off)
}

// DMA is the n bytes at a bus address, for a software device; nil when any of
// them lies outside the arena.
func (a *Arena) DMA(bus uint64, n int) []byte {
	off := bus - a.opts.BusBase
	// Huge pages may map a little more than the arena uses.
	if size := uint64(a.bufOff) + uint64(a.count)<<a.shift; n < 0 || off > size || uint64(n) > size-off {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Add(a.region.Base(), uintptr(off))), n)
}

// BufferAt tells which buffer holds a bus address and how many bytes follow
// the address in it. ok is false for addresses outside the buffers.
func (a *Arena) BufferAt(bus uint64) (h Handle, room int, ok bool) {
	off := bus - a.opts.BusBase - uint64(a.bufOff)
	if off >= uint64(a.count)<<a.shift {
		return None, 0, false
	}
	h = Handle(off >> a.shift)
	return h, a.Stride() - int(off&uint64(a.Stride()-1)), true
}

// RefsAt is the reference count of a buffer without the checks of the debug
// build: a strict software device asks it whether the buffer it was given is
// still alive.
func (a *Arena) RefsAt(h Handle) uint32 {
	return (*Meta)(unsafe.Add(a.meta, uintptr(h)*MetaSize)).Refs()
}
