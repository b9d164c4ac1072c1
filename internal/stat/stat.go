// Package stat publishes counters from the one goroutine that writes them to
// any number of readers.
//
// The writer counts in plain words that nobody else touches and copies them
// into atomics now and then; readers look only at the copies, so that they
// never take the writer's cache line away.
package stat

import (
	"sync/atomic"
	"unsafe"
)

// Page holds the counters of one writer. T must be a struct or array of
// uint64 words only; New checks its size. Live belongs to the writer.
type Page[T any] struct {
	Live T
	_    [128]byte // keeps the writer's words off the readers' line
	pub  []atomic.Uint64
}

// New returns a page of zeros. It panics when T is not made of whole 64-bit
// words, which is a programming error.
func New[T any]() *Page[T] {
	var t T
	n := unsafe.Sizeof(t)
	if n == 0 || n%8 != 0 {
		panic("stat: counters must be 64-bit words")
	}
	return &Page[T]{pub: make([]atomic.Uint64, n/8)}
}

// Publish copies the live words for readers. Only the writer may call it.
func (p *Page[T]) Publish() {
	w := unsafe.Slice((*uint64)(unsafe.Pointer(&p.Live)), len(p.pub))
	for i := range p.pub {
		// A plain compare spares the store for the many that stand still.
		if p.pub[i].Load() != w[i] {
			p.pub[i].Store(w[i])
		}
	}
}

// Read returns the words as last published; each word is whole, but two words
// may come from two publications. Any goroutine may call it.
func (p *Page[T]) Read() T {
	var t T
	w := unsafe.Slice((*uint64)(unsafe.Pointer(&t)), len(p.pub))
	for i := range p.pub {
		w[i] = p.pub[i].Load()
	}
	return t
}
