package fib

import (
	"math/bits"
	"sync/atomic"
)

// presence holds one bit for each possible IPv4 prefix up to /24. The binary
// tree of prefixes is cut into blocks of six levels, a word each, so that the
// way from a /24 to the root is five words; node s of level j of a block is bit
// 1<<j + s. The last level has a bitmap of its own.
//
//	level 0-5    1 word          bit 0 is not used
//	level 6-11   64 words
//	level 12-17  4,096 words
//	level 18-23  262,144 words
//	level 24     262,144 words   one bit each, beside the block above
type presence struct {
	words []uint64
}

// presBase is where the blocks of each six levels begin.
var presBase = [5]uint32{0, 1, 1 + 64, 1 + 64 + 4096, 1 + 64 + 4096 + 1<<18}

const presWords = 1 + 64 + 4096 + 2<<18

func newPresence() *presence { return &presence{words: make([]uint64, presWords)} }

// place returns the word and bit of a prefix.
func place(addr uint32, n int) (word uint32, bit uint) {
	if n == 24 {
		return presBase[4] + addr>>14, uint(addr>>8) & 63
	}
	k, j := n/6, n%6
	block := uint32(uint64(addr) >> (32 - 6*k))
	in := uint(uint64(addr)>>(32-n)) & (1<<j - 1)
	return presBase[k] + block, 1<<j + in
}

// warm begins to load the words at the end of the way to a prefix.
func (p *presence) warm(k key) {
	atomic.LoadUint64(&p.words[presBase[3]+uint32(k.hi>>46)])
	atomic.LoadUint64(&p.words[presBase[4]+uint32(k.hi>>46)])
}

func (p *presence) set(k key) {
	if k.bits <= 24 {
		w, b := place(uint32(k.hi>>32), int(k.bits))
		p.words[w] |= 1 << b
	}
}

func (p *presence) clear(k key) {
	if k.bits <= 24 {
		w, b := place(uint32(k.hi>>32), int(k.bits))
		p.words[w] &^= 1 << b
	}
}

// longest returns the length of the longest prefix of at most n bits that
// contains the address, or -1.
func (p *presence) longest(addr uint32, n int) int {
	if n >= 24 {
		if w, b := place(addr, 24); p.words[w]>>b&1 != 0 {
			return 24
		}
		n = 23
	}
	for k := n / 6; k >= 0; k-- {
		w := p.words[presBase[k]+uint32(uint64(addr)>>(32-6*k))]
		path := uint64(addr)>>(26-6*k)&63 | 64 // the way through the block
		for j := min(5, n-6*k); w != 0 && j >= 0; j-- {
			if w>>(path>>(6-j))&1 != 0 {
				return 6*k + j
			}
		}
	}
	return -1
}

// uncovered calls fn for all /24s within a prefix that no longer prefix of at
// most 24 bits covers: the number of the first of 64 /24s, and a bit for each.
func (p *presence) uncovered(addr uint32, n int, fn func(first uint32, free uint64)) {
	if n == 24 {
		fn(addr>>14<<6, 1<<(addr>>8&63))
		return
	}
	k, j := n/6, n%6
	p.descend(k, uint32(uint64(addr)>>(32-6*k)), 1<<j+uint32(uint64(addr)>>(32-n))&(1<<j-1), fn)
}

// descend handles what is below one node of a block.
func (p *presence) descend(k int, block, node uint32, fn func(uint32, uint64)) {
	covered := below(p.words[presBase[k]+block], node)
	if k == 3 {
		if free := ^(covered | p.words[presBase[4]+block]) & span(node); free != 0 {
			fn(block<<6, free)
		}
		return
	}
	for free := ^covered & span(node); free != 0; free &= free - 1 {
		p.child(k+1, block<<6+uint32(bits.TrailingZeros64(free)), fn)
	}
}

// child handles a whole block, whose root may be a prefix itself.
func (p *presence) child(k int, block uint32, fn func(uint32, uint64)) {
	if p.words[presBase[k]+block]>>1&1 == 0 {
		p.descend(k, block, 1, fn)
	}
}

// span returns the exits of a block that lie below a node.
func span(node uint32) uint64 {
	j := bits.Len32(node) - 1
	n := 64 >> j
	return (^uint64(0) >> (64 - n)) << (uint(node-1<<j) * uint(n))
}

// below returns the exits of a block that are covered by prefixes below a node.
func below(word uint64, node uint32) uint64 {
	j := uint(bits.Len32(node) - 1)
	word &^= 1<<(2<<j) - 1 // levels up to the node's
	if word == 0 {
		return 0
	}
	covered := uint64(0)
	for j++; j < 6; j++ {
		covered = double(covered) | word>>(1<<j)&(1<<(1<<j)-1)
	}
	return double(covered)
}

// double repeats each of the lower 32 bits.
func double(x uint64) uint64 {
	x = (x | x<<16) & 0x0000ffff0000ffff
	x = (x | x<<8) & 0x00ff00ff00ff00ff
	x = (x | x<<4) & 0x0f0f0f0f0f0f0f0f
	x = (x | x<<2) & 0x3333333333333333
	x = (x | x<<1) & 0x5555555555555555
	return x | x<<1
}
