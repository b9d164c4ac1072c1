// Package mmio reads and writes device registers with the memory order that
// devices need. It knows no device.
//
// A register is never written through sync/atomic: on amd64 that compiles to
// an exchange, a locked read-modify-write on device memory, which stalls the
// bus and reads a register whose reads may have side effects. The stores here
// are assembly stubs: a plain 32-bit move on amd64 (stores are ordered, and
// device memory is uncached), a store barrier and a plain store on arm64.
package mmio

import "unsafe"

// Registers is a device's register space. Offsets are in bytes and multiples
// of four. Real devices and software devices both implement it; a driver
// takes one and holds it for the device's life.
//
// Write makes every earlier store to descriptors visible to the device before
// the register changes. Posted writes may be delayed on a real bus until a
// Read of the same device.
type Registers interface {
	Read(off uint32) uint32
	Write(off uint32, v uint32)
}

// Store32 writes a device register at p: all earlier stores become visible
// to the device first.
//
//go:noescape
func Store32(p unsafe.Pointer, v uint32)

// Load32 reads a device register at p.
//
//go:noescape
func Load32(p unsafe.Pointer) uint32

// Window is a mapped register space (a PCI memory BAR). It must not outlive
// the mapping. Reads and writes outside panic, since they are driver bugs.
type Window struct {
	base unsafe.Pointer
	size uint32
}

// NewWindow makes a window of size bytes at base.
func NewWindow(base unsafe.Pointer, size int) *Window {
	return &Window{base: base, size: uint32(size)}
}

// Read reads a register.
func (w *Window) Read(off uint32) uint32 {
	w.check(off)
	return Load32(unsafe.Add(w.base, off))
}

// Write writes a register.
func (w *Window) Write(off uint32, v uint32) {
	w.check(off)
	Store32(unsafe.Add(w.base, off), v)
}

func (w *Window) check(off uint32) {
	if off&3 != 0 || w.size < 4 || off > w.size-4 {
		panic("mmio: register offset unaligned or outside the window")
	}
}

// Counted counts accesses on their way to Next: what a register access costs
// depends on the bus, how many there are depends on the driver.
// The counts belong to the goroutine that drives the device.
type Counted struct {
	Next          Registers
	Reads, Writes uint64
}

// Read counts and reads.
func (c *Counted) Read(off uint32) uint32 { c.Reads++; return c.Next.Read(off) }

// Write counts and writes.
func (c *Counted) Write(off uint32, v uint32) { c.Writes++; c.Next.Write(off, v) }
