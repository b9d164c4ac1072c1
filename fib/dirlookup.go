package fib

import (
	"runtime"
	"sync/atomic"
	"unsafe"
)

// width is the size of the entries of a DIR-24-8 table.
type width interface{ uint16 | uint32 }

// dir is a DIR-24-8 table as readers see it: an entry for each /24, whose top
// bit says that the rest is the number of a group of 256 entries, one for each
// address; otherwise it is the number of a result. Entry 0 is no route, which
// means the default route.
type dir[W width] struct {
	slots   unsafe.Pointer // 1<<24 entries
	groups  unsafe.Pointer // groups of 256 entries
	results unsafe.Pointer // 32-bit words by number, shared by all tables
	def     atomic.Uint32  // word of the default route
	f       *FIB           // keeps results
	fallbackVersion
	_ [128]byte
}

// extended returns the bit of an entry that marks a group.
func extended[W width]() W { return ^W(0) ^ ^W(0)>>1 }

// loadEntry loads entry i. Narrow entries are halves of 32-bit words, because
// there is no 16-bit atomic load; the lower half has the even index on every
// machine.
func loadEntry[W width](base unsafe.Pointer, i uint32) W {
	if unsafe.Sizeof(W(0)) == 4 {
		return W(load32(base, i))
	}
	return W(load32(base, i>>1) >> (i & 1 * 16 & 31))
}

func (d *dir[W]) lookup(dst uint32) uint32 {
	for {
		version := d.version.Load()
		e := loadEntry[W](d.slots, dst>>8)
		if e&extended[W]() != 0 {
			e = loadEntry[W](d.groups, uint32(e&^extended[W]())<<8|dst&0xff)
		}
		w := load32(d.results, uint32(e))
		if e == 0 {
			w = d.def.Load()
		}
		if d.version.Load() == version {
			runtime.KeepAlive(d)
			return w
		}
	}
}

// batch looks up all of dst into out, which is at least as long.
func (d *dir[W]) batch(dst, out []uint32) {
	version := d.version.Load()
	slots, groups, results, def := d.slots, d.groups, d.results, d.def.Load()
	out = out[:len(dst)]
	for i, a := range dst {
		e := loadEntry[W](slots, a>>8)
		if e&extended[W]() != 0 {
			e = loadEntry[W](groups, uint32(e&^extended[W]())<<8|a&0xff)
		}
		w := load32(results, uint32(e))
		if e == 0 {
			w = def
		}
		out[i] = w
	}
	if d.version.Load() != version {
		for i, a := range dst {
			out[i] = d.lookup(a)
		}
	}
	runtime.KeepAlive(d)
}
