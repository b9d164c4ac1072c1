// Package fibtest generates routing tables that look like the Internet's, for
// tests and benchmarks. Tables are made from a seed and are the same on every
// machine and with every Go version.
package fibtest

import (
	"encoding/binary"
	"net/netip"
	"slices"
)

// Hist4 is the number of prefixes of each length in a full IPv4 table of 901,899
// routes, without a default route.
var Hist4 = [33]int{
	8: 16, 9: 13, 10: 38, 11: 103, 12: 299, 13: 581, 14: 1203, 15: 2100,
	16: 13490, 17: 8235, 18: 13798, 19: 24870, 20: 42611, 21: 50750, 22: 108623, 23: 96510,
	24: 537698, 25: 20, 26: 3, 27: 11, 28: 18, 29: 17, 30: 3, 31: 3, 32: 886,
}

// Hist6 is the same for a full IPv6 table of 160,147 routes.
var Hist6 = [129]int{
	16: 1, 19: 1, 20: 16, 21: 3, 22: 7, 23: 8, 24: 30, 25: 8, 26: 15, 27: 20, 28: 193,
	29: 4371, 30: 650, 31: 284, 32: 22548, 33: 2926, 34: 2603, 35: 1043, 36: 5996, 37: 880,
	38: 1617, 39: 1377, 40: 13418, 41: 903, 42: 2301, 43: 1001, 44: 14365, 45: 1553, 46: 3039,
	47: 3153, 48: 75488, 49: 11, 50: 3, 52: 1, 55: 1, 56: 24, 58: 20, 60: 2, 64: 184, 112: 2,
	122: 1, 124: 4, 125: 9, 126: 19, 127: 42, 128: 6,
}

// Full4 and Full6 are the sizes of the tables the histograms were taken from.
const (
	Full4 = 901899
	Full6 = 160147
)

// Table4 returns n different IPv4 prefixes in random order. Lengths follow Hist4
// (to within one prefix per length, as far as the address space goes), more
// specific prefixes lie inside shorter ones and beside each other about as often
// as in the real table, and all are unicast addresses outside 0/8, 10/8 and 127/8.
func Table4(n int, seed uint64) []netip.Prefix {
	g := &generator{rng: rng{seed}, family: 32, root: root4, seen: make(map[prefix]struct{}, n)}
	return g.table(Hist4[:], n)
}

// Table6 returns n different IPv6 prefixes in random order, with the lengths of
// Hist6, all within 2000::/3. See Table4.
func Table6(n int, seed uint64) []netip.Prefix {
	g := &generator{rng: rng{seed}, family: 128, root: root6, seen: make(map[prefix]struct{}, n)}
	return g.table(Hist6[:], n)
}

// prefix holds the address left-aligned in 128 bits.
type prefix struct {
	hi, lo uint64
	bits   uint8
}

type generator struct {
	rng
	family int
	root   func(*rng) prefix // a random block that prefixes without a parent lie in
	seen   map[prefix]struct{}
	all    []prefix // in order of length
}

// scale shares n out by the histogram with the largest-remainder method.
func scale(hist []int, n int) []int {
	total := 0
	for _, h := range hist {
		total += h
	}
	type rest struct{ length, r int }
	out := make([]int, len(hist))
	var rests []rest
	left := n
	for l, h := range hist {
		out[l] = h * n / total
		left -= out[l]
		if h > 0 {
			rests = append(rests, rest{l, h * n % total})
		}
	}
	slices.SortStableFunc(rests, func(a, b rest) int { return b.r - a.r })
	for i := 0; left > 0; i, left = i+1, left-1 {
		out[rests[i%len(rests)].length]++
	}
	return out
}

func (g *generator) table(hist []int, n int) []netip.Prefix {
	spare := 0 // what did not fit at its own length goes to the next
	for l, want := range scale(hist, n) {
		want += spare
		spare = g.length(uint8(l), want)
	}
	out := make([]netip.Prefix, len(g.all))
	for i, p := range g.all {
		out[i] = g.netip(p)
	}
	for i := len(out) - 1; i > 0; i-- {
		j := int(g.next() % uint64(i+1))
		out[i], out[j] = out[j], out[i]
	}
	return out
}

// length adds up to want prefixes of one length and returns how many are
// missing because the space is used up.
func (g *generator) length(bits uint8, want int) int {
	shorter := len(g.all)
	var last prefix
	for failed := 0; want > 0 && failed < 10000; {
		var p prefix
		switch pick := g.next() % 100; {
		case pick < 50 && last.bits == bits:
			p = last.sibling()
		case pick < 80 && shorter > 0:
			p = g.inside(g.all[g.next()%uint64(shorter)], bits)
		default:
			p = g.inside(g.root(&g.rng), bits)
		}
		if _, dup := g.seen[p]; dup || !g.usable(p) {
			failed++
			continue
		}
		failed = 0
		g.seen[p] = struct{}{}
		g.all = append(g.all, p)
		last = p
		want--
	}
	return want
}

// inside returns a random prefix of the length within p. A p that is longer is
// cut.
func (g *generator) inside(p prefix, bits uint8) prefix {
	hiMask, loMask := mask(p.bits)
	q := prefix{hi: p.hi&hiMask | g.next()&^hiMask, lo: p.lo&loMask | g.next()&^loMask, bits: bits}
	hiMask, loMask = mask(bits)
	q.hi &= hiMask
	q.lo &= loMask
	return q
}

// sibling returns the next prefix of the same length.
func (p prefix) sibling() prefix {
	switch {
	case p.bits <= 64:
		p.hi += 1 << (64 - p.bits)
	default:
		old := p.lo
		if p.lo += 1 << (128 - p.bits); p.lo < old {
			p.hi++
		}
	}
	return p
}

// mask returns the network mask of a length.
func mask(bits uint8) (hi, lo uint64) {
	if bits <= 64 {
		return ^(^uint64(0) >> bits), 0
	}
	return ^uint64(0), ^(^uint64(0) >> (bits - 64))
}

func (g *generator) usable(p prefix) bool {
	if g.family == 128 {
		return p.hi>>61 == 1
	}
	first := p.hi >> 56
	return first >= 1 && first <= 223 && first != 10 && first != 127
}

func (g *generator) netip(p prefix) netip.Prefix {
	if g.family == 32 {
		var b [4]byte
		binary.BigEndian.PutUint32(b[:], uint32(p.hi>>32))
		return netip.PrefixFrom(netip.AddrFrom4(b), int(p.bits))
	}
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], p.hi)
	binary.BigEndian.PutUint64(b[8:], p.lo)
	return netip.PrefixFrom(netip.AddrFrom16(b), int(p.bits))
}

func root4(r *rng) prefix {
	return prefix{hi: (1 + r.next()%223) << 56, bits: 8}
}

// root6 draws one of the registries' large blocks, or any of 2000::/3.
func root6(r *rng) prefix {
	blocks := [...]uint64{0x2001, 0x2400, 0x2600, 0x2800, 0x2a00, 0x2a00, 0x2c00}
	i := r.next() % uint64(len(blocks)+1)
	if i == uint64(len(blocks)) {
		return prefix{hi: 1 << 61, bits: 3}
	}
	return prefix{hi: blocks[i] << 48, bits: 12}
}

// rng is SplitMix64: the standard library does not promise that its random
// integers stay the same.
type rng struct{ state uint64 }

func (r *rng) next() uint64 {
	r.state += 0x9e3779b97f4a7c15
	x := r.state
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
