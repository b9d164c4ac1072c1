// Package mem is the one allocator for memory that lives off the Go heap:
// the buffer arena with its descriptor rings, and the words of the FIB.
//
// Off-heap memory is never scanned or moved by the collector and can be given
// to a device. Its price is that the race detector sees nothing in it, and
// reports false races across it. Therefore a race build returns page-aligned
// Go-heap memory for every region that neither the kernel nor hardware
// touches (Options.Shared false), so that the detector watches the same code
// that runs in production.
package mem

import (
	"fmt"
	"unsafe"
)

// PageSize is the alignment, in bytes, that every region has at least.
const PageSize = 4096

// HugePageSize is the size in bytes of the huge pages that are tried.
const HugePageSize = 2 << 20

// Options say what a region is for.
type Options struct {
	// Size in bytes; rounded up to whole pages.
	Size int
	// Huge asks for 2 MiB pages. Where the system has none the region falls
	// back to ordinary pages and Region.Huge reports false.
	Huge bool
	// Lock pins the pages (mlock). Needed when a device does DMA to them.
	Lock bool
	// Lazy leaves pages without memory until they are first written. For
	// large regions of which only parts are used.
	Lazy bool
	// Shared says that the kernel or hardware reads or writes the region, so
	// that it must be mapped memory even in a race build.
	Shared bool
}

// Region is one piece of memory. It must stay referenced by its owner for as
// long as any pointer into it is used; Free invalidates them all.
// A Region is safe for concurrent use apart from Free.
type Region struct {
	base   unsafe.Pointer
	size   int
	mapped []byte // the whole mapping, nil when the region is on the Go heap
	heap   []byte // keeps a heap region alive
	huge   bool
}

// Alloc returns a zeroed region. The error names the size and, where the lock
// limit is the reason, the remedy.
func Alloc(o Options) (*Region, error) {
	if o.Size <= 0 {
		return nil, fmt.Errorf("allocate off-heap memory: size %d is not positive", o.Size)
	}
	size := (o.Size + PageSize - 1) &^ (PageSize - 1)
	if raceEnabled && !o.Shared {
		raw := make([]byte, size+PageSize)
		off := int(-uintptr(unsafe.Pointer(unsafe.SliceData(raw))) & (PageSize - 1))
		return &Region{base: unsafe.Pointer(&raw[off]), size: size, heap: raw}, nil
	}
	return mapRegion(size, o)
}

// Base is the address of the first byte.
func (r *Region) Base() unsafe.Pointer { return r.base }

// Size is the usable size in bytes.
func (r *Region) Size() int { return r.size }

// Huge reports whether the region really lies in huge pages.
func (r *Region) Huge() bool { return r.huge }

// OnHeap reports whether the region is Go-heap memory (race builds only).
func (r *Region) OnHeap() bool { return r.heap != nil }

// Bytes is the whole region as a slice.
func (r *Region) Bytes() []byte { return unsafe.Slice((*byte)(r.base), r.size) }

// Free gives the memory back. It is idempotent. No pointer into the region
// may be used afterwards, by anybody.
func (r *Region) Free() error {
	m := r.mapped
	r.base, r.size, r.mapped, r.heap = nil, 0, nil, nil
	if m == nil {
		return nil
	}
	return unmap(m)
}
