package fib

import (
	"sync/atomic"
	"unsafe"
)

// This file and those of the lookups are all that readers execute. Indices are
// not checked: that they are in bounds is what the writer maintains and what
// the fuzz targets of the structures test.

// view is what readers see of one family of a table. The pointers never change,
// the words behind them do; a structure that must move gets another view.
type view struct {
	narrow *dir[uint16] // at most one of narrow and wide is set, IPv4 only
	wide   *dir[uint32]
	trie   *trieView // set if neither is
}

// tableViews is the published side of a table.
type tableViews struct {
	v4, v6 atomic.Pointer[view]
	_      [112]byte // changes of the writer's fields must not disturb readers
}

// fallbackVersion counts the beginnings and ends of changes to what a lookup
// falls back to when the first word it looks at says nothing: the default route
// and, in a table with a direct table, all below the root. A reader that finds
// nothing and then falls back has looked at two words. If another number says
// that the second may have changed since before the first was loaded, it looks
// again: two changes together could make an answer that was never right. While
// one change is under way, the first word does not change, so an answer with the
// same odd number twice is good too.
type fallbackVersion struct{ version atomic.Uint32 }

// noViews find nothing.
var noViews = func() *tableViews {
	t := new(tableViews)
	v := &view{trie: new(trieView)}
	t.v4.Store(v)
	t.v6.Store(v)
	return t
}()

// lookup4 looks up one IPv4 address in host order.
func (v *view) lookup4(dst uint32) uint32 {
	switch {
	case v.narrow != nil:
		return v.narrow.lookup(dst)
	case v.wide != nil:
		return v.wide.lookup(dst)
	}
	return v.trie.lookup(uint64(dst)<<32, 0)
}

func load32(base unsafe.Pointer, i uint32) uint32 {
	return atomic.LoadUint32((*uint32)(unsafe.Add(base, uintptr(i)*4)))
}

func store32(base unsafe.Pointer, i, v uint32) {
	atomic.StoreUint32((*uint32)(unsafe.Add(base, uintptr(i)*4)), v)
}
