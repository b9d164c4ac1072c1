// Package skb has the router's packet buffers: one arena of equal buffers off
// the Go heap, cut at a stride; handles instead of pointers; one cache line of
// metadata a buffer; reference counts for clones; worker-local caches before a
// shared free list; and the named reasons for which a frame may be dropped.
//
// Descriptor rings are cut from the same mapping, so that one DMA map covers
// everything a device may touch.
//
// Conservation holds at every moment: the buffers with no reference are those
// in the shared list and in the caches, and the references to the others add
// up to the places that hold them (Audit checks it).
//
// Built with the tag skbdebug, the package catches double frees, uses after
// free, writes after free and leaks, and names the owner.
package skb

import (
	"fmt"
	"math/bits"
	"sync"
	"unsafe"

	"gorouter/internal/mem"
)

// Options of an arena. Zero values are replaced by the defaults of
// OptionTable; see there for ranges.
type Options struct {
	Buffers    int    // how many buffers
	Stride     int    // bytes from one buffer to the next, a power of two
	Headroom   int    // bytes kept free before a received frame
	DeviceMax  int    // the most bytes a device can store in one buffer; checked against the stride
	RingBytes  int    // room for descriptor rings in the same mapping
	AllocOrder string // "lifo" or "fifo"
	CacheSize  int    // handles a worker cache exchanges at once
	HugePages  bool   // try 2 MiB pages
	Lock       bool   // pin the memory (ports that do DMA)
	Shared     bool   // kernel or hardware touches the memory
	BusBase    uint64 // bus address of the first byte of the mapping
}

// Arena is a pool of buffers. The accessors that take a handle are safe for
// concurrent use as long as each buffer has one owner; making and closing the
// arena are not.
type Arena struct {
	buf   unsafe.Pointer // first buffer
	meta  unsafe.Pointer // first Meta
	shift uint
	count uint32

	opts    Options
	region  *mem.Region // rings, then buffers
	metas   *mem.Region
	bufOff  int // offset of the first buffer in region
	ringMu  sync.Mutex
	ringOff int // next free byte of the ring area

	mu       sync.Mutex // guards what follows, taken once per batch of handles
	free     []Handle   // circular
	freeHead int
	freeLen  int
	caches   []*Cache

	debug debugState
}

// DefaultBusBase is where the arena lies in the address space of software
// devices: below 4 GiB, as an 8254x on a 32-bit bus needs, and not at zero, so
// that a null address never resolves.
const DefaultBusBase = 0x1000_0000

// busAlign is the alignment of the first bus address: the boundary that no
// ring may cross (see AllocRing).
const busAlign = 64 << 10

// NewArena maps and cuts an arena. The error of a layout that would let a
// device write past its buffer names the three numbers.
func NewArena(o Options) (*Arena, error) {
	o.fillDefaults()
	if errs := OptionTable.Check(&o); len(errs) > 0 {
		return nil, fmt.Errorf("buffers: %w", errs[0])
	}
	if o.Stride&(o.Stride-1) != 0 {
		return nil, fmt.Errorf("buffers: stride %d is not a power of two", o.Stride)
	}
	if o.DeviceMax < 0 || o.RingBytes < 0 {
		return nil, fmt.Errorf("buffers: device buffer of %d bytes and ring memory of %d bytes, expected positive sizes", o.DeviceMax, o.RingBytes)
	}
	if o.Headroom+o.DeviceMax > o.Stride {
		return nil, fmt.Errorf("buffers: headroom %d + device buffer %d exceed the stride %d: a device could write into the next buffer (raise stride or lower headroom)",
			o.Headroom, o.DeviceMax, o.Stride)
	}
	// Rings are aligned by their offset; the bus address has to follow.
	if o.BusBase%busAlign != 0 {
		return nil, fmt.Errorf("buffers: bus address %#x is not a multiple of %#x", o.BusBase, uint64(busAlign))
	}
	if o.RingBytes > 1<<32 {
		return nil, fmt.Errorf("buffers: ring memory of %d bytes, expected at most 4 GiB", o.RingBytes)
	}
	ring := (o.RingBytes + mem.HugePageSize - 1) &^ (mem.HugePageSize - 1)
	size := ring + o.Buffers*o.Stride
	if o.BusBase > 1<<32 || uint64(size) > 1<<32-o.BusBase {
		return nil, fmt.Errorf("buffers: %d bytes at bus address %#x reach above 4 GiB, beyond a 32-bit PCI device (lower buffers or stride)", size, o.BusBase)
	}
	region, err := mem.Alloc(mem.Options{Size: size, Huge: o.HugePages, Lock: o.Lock, Shared: o.Shared})
	if err != nil {
		return nil, fmt.Errorf("buffers: %w", err)
	}
	metas, err := mem.Alloc(mem.Options{Size: o.Buffers * MetaSize})
	if err != nil {
		_ = region.Free()
		return nil, fmt.Errorf("buffer metadata: %w", err)
	}
	a := &Arena{
		buf: unsafe.Add(region.Base(), ring), meta: metas.Base(),
		shift: uint(bits.TrailingZeros(uint(o.Stride))), count: uint32(o.Buffers),
		opts: o, region: region, metas: metas, bufOff: ring,
		free: make([]Handle, o.Buffers),
	}
	// The first allocation order is ascending for both policies.
	for i := range a.free {
		if o.AllocOrder == OrderLIFO {
			a.free[i] = Handle(o.Buffers - 1 - i)
		} else {
			a.free[i] = Handle(i)
		}
	}
	a.freeLen = o.Buffers
	a.debug.init(o.Buffers)
	return a, nil
}

// Close unmaps the arena. Nothing may use it or any ring cut from it
// afterwards; devices must have been stopped. It is idempotent.
func (a *Arena) Close() error {
	err := a.region.Free()
	if err2 := a.metas.Free(); err == nil {
		err = err2
	}
	a.buf, a.meta, a.count, a.bufOff = nil, nil, 0, 0
	return err
}

// Count is the number of buffers.
func (a *Arena) Count() int { return int(a.count) }

// Stride is the distance between buffers in bytes.
func (a *Arena) Stride() int { return 1 << a.shift }

// Headroom is the offset at which a device stores a frame.
func (a *Arena) Headroom() int { return a.opts.Headroom }

// Options is what the arena was made with, defaults filled in.
func (a *Arena) Options() Options { return a.opts }

// Huge reports whether the arena lies in huge pages.
func (a *Arena) Huge() bool { return a.region.Huge() }

// Meta is the metadata of a buffer. The handle must be valid.
func (a *Arena) Meta(h Handle) *Meta {
	if debugEnabled {
		a.debugUse(h)
	}
	return (*Meta)(unsafe.Add(a.meta, uintptr(h)*MetaSize))
}

// Start is the first byte of a buffer, headroom included.
func (a *Arena) Start(h Handle) unsafe.Pointer {
	return unsafe.Add(a.buf, uintptr(h)<<a.shift)
}

// Head is the first byte of the frame in a buffer.
func (a *Arena) Head(h Handle) unsafe.Pointer {
	return unsafe.Add(a.buf, uintptr(h)<<a.shift+uintptr(a.Meta(h).Data))
}

// Bytes is the frame in a buffer. The slice may be used as long as the caller
// owns the buffer.
func (a *Arena) Bytes(h Handle) []byte {
	m := a.Meta(h)
	return unsafe.Slice((*byte)(unsafe.Add(a.buf, uintptr(h)<<a.shift+uintptr(m.Data))), int(m.Len))
}

// HeadOf is Head for a caller that has the metadata at hand.
func (a *Arena) HeadOf(h Handle, m *Meta) unsafe.Pointer {
	return unsafe.Add(a.buf, uintptr(h)<<a.shift+uintptr(m.Data))
}
