package fib

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"unsafe"

	"gorouter/internal/mem"
)

// results numbers the result words that paths have, for DIR-24-8 entries, which
// are too narrow for the words. Number 0 is no result. The array that readers
// see is made with the first table that needs it and never moves.
type results struct {
	number map[uint32]uint32 // by word
	word   []uint32          // by number
	refs   []uint32          // paths, by number
	free   []uint32
	region *mem.Region
	limit  int
}

func (rs *results) init(limit int) {
	*rs = results{number: make(map[uint32]uint32), word: make([]uint32, 1), refs: make([]uint32, 1), limit: limit}
}

// refResult gives new paths the number of their result.
func (f *FIB) refResult(word uint32) (uint32, error) {
	rs := &f.results
	if n, ok := rs.number[word]; ok {
		rs.refs[n]++
		return n, nil
	}
	var n uint32
	switch k := len(rs.free); {
	case k > 0:
		n = rs.free[k-1]
		rs.free = rs.free[:k-1]
	case len(rs.word) >= rs.limit:
		return 0, fmt.Errorf("%w: all %d result numbers are in use: remove routes", ErrFull, rs.limit)
	default:
		n = uint32(len(rs.word))
		rs.word = append(rs.word, 0)
		rs.refs = append(rs.refs, 0)
	}
	rs.number[word] = n
	rs.word[n] = word
	rs.refs[n] = 1
	if rs.region != nil {
		atomic.StoreUint32(rs.cell(n), word)
	}
	return n, nil
}

func (f *FIB) unrefResult(n uint32) {
	rs := &f.results
	if rs.refs[n]--; rs.refs[n] == 0 {
		delete(rs.number, rs.word[n])
		f.retire(rs, uint64(n))
	}
}

// reuse implements retiree: the readers are done with the number.
func (rs *results) reuse(n uint64) { rs.free = append(rs.free, uint32(n)) }

func (rs *results) cell(n uint32) *uint32 {
	return (*uint32)(unsafe.Add(rs.region.Base(), uintptr(n)*4))
}

// array returns the words by number, for readers.
func (f *FIB) resultArray() (unsafe.Pointer, error) {
	rs := &f.results
	if rs.region == nil {
		region, err := mem.Alloc(mem.Options{Size: rs.limit * 4, Lazy: true})
		if err != nil {
			return nil, fmt.Errorf("result numbers of the fib: %w", err)
		}
		rs.region = region
		runtime.AddCleanup(f, func(r *mem.Region) { _ = r.Free() }, region)
		for n, w := range rs.word {
			atomic.StoreUint32(rs.cell(uint32(n)), w)
		}
	}
	return rs.region.Base(), nil
}
