package pktgen

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
	"net/netip"
)

// spread walks through the destinations and source ports of a stream. It is
// deterministic: the same stream gives the same sequence everywhere.
type spread struct {
	dst   []prefixWalk
	turn  int      // which of dst, or of order, is next
	order []uint32 // which of dst follow each other; nil: all in turn

	flow, flows int
	// Stepping both by one would never pair some destinations with some ports
	// when their numbers share a factor; one extra step each time the pairs
	// begin to repeat reaches them all.
	beat, period int // period 0: not needed
}

// prefixWalk visits every host address of a prefix once before any twice, in
// steps of about the golden ratio of their number, so that consecutive
// addresses lie far apart.
type prefixWalk struct {
	hi, lo     uint64 // address with the walked bits zero
	shift      uint   // of the walked number within the address
	first      uint64 // added to the walked number
	span       uint64
	step, next uint64
}

func newSpread(s *Stream) spread {
	sp := spread{flows: s.Flows}
	if g := gcd(len(s.Dst), s.Flows); g > 1 {
		sp.period = len(s.Dst) / g * s.Flows
	}
	for i, p := range s.Dst {
		sp.dst = append(sp.dst, newPrefixWalk(p, mix(s.Seed+uint64(i))))
	}
	sp.order = drawOrder(s.Order, len(s.Dst), s.Seed)
	return sp
}

// draws is how many draws are made beforehand: drawing by Zipf's law costs
// more than building a frame.
const draws = 1 << 20

// zipfExponent is what measured traffic to Internet prefixes is near.
const zipfExponent = 1.1

// drawOrder draws from n destinations; nil for destinations in turn. The same
// seed gives the same draws.
func drawOrder(order string, n int, seed uint64) []uint32 {
	if n == 0 || order != OrderRandom && order != OrderZipf {
		return nil
	}
	r := rand.New(rand.NewPCG(seed, uint64(n)))
	list := make([]uint32, draws)
	if order == OrderRandom {
		for i := range list {
			list[i] = r.Uint32N(uint32(n))
		}
		return list
	}
	// Which destination is popular must not follow from its place in the list.
	rank := r.Perm(n)
	z := rand.NewZipf(r, zipfExponent, 1, uint64(n-1))
	for i := range list {
		list[i] = uint32(rank[z.Uint64()])
	}
	return list
}

func newPrefixWalk(p netip.Prefix, seed uint64) prefixWalk {
	p = p.Masked()
	a := p.Addr().As16()
	w := prefixWalk{hi: binary.BigEndian.Uint64(a[:8]), lo: binary.BigEndian.Uint64(a[8:])}
	host := p.Addr().BitLen() - p.Bits()
	switch {
	case p.Addr().Is4() && host >= 2:
		// The network and the broadcast address are no hosts; a /31 and a /32
		// have neither (RFC 3021).
		w.first, w.span = 1, 1<<host-2
	case !p.Addr().Is4() && host >= 2 && host <= 62:
		// Interface identifier zero is every router's (RFC 4291 section 2.6.1).
		w.first, w.span = 1, 1<<host-1
	case host > 62:
		// Only the upper bits are walked, so that the sub-prefixes differ.
		w.shift, w.span = uint(host-62), 1<<62
		w.lo |= 1
	default:
		w.span = 1 << host
	}
	w.next = seed % w.span
	if w.span > 1 {
		w.step, _ = bits.Mul64(w.span, 0x9e3779b97f4a7c15)
		w.step = max(w.step, 1)
		for gcd(w.step, w.span) != 1 {
			w.step++
		}
	}
	return w
}

// take returns the next address as two words and moves on.
func (w *prefixWalk) take() (hi, lo uint64) {
	v := w.next + w.first
	w.next += w.step
	if w.next >= w.span {
		w.next -= w.span
	}
	hi, lo = w.hi, w.lo
	switch {
	case w.shift == 0:
		return hi, lo | v
	case w.shift < 64:
		return hi | v>>(64-w.shift), lo | v<<w.shift
	}
	return hi | v<<(w.shift-64), lo
}

// take returns the destination and the flow number of the next frame.
func (sp *spread) take() (hi, lo uint64, flow int) {
	if sp.order == nil {
		hi, lo = sp.dst[sp.turn].take()
		if sp.turn++; sp.turn == len(sp.dst) {
			sp.turn = 0
		}
	} else {
		hi, lo = sp.dst[sp.order[sp.turn]].take()
		if sp.turn++; sp.turn == len(sp.order) {
			sp.turn = 0
		}
	}
	flow = sp.flow
	sp.flow++
	if sp.beat++; sp.beat == sp.period {
		sp.beat = 0
		sp.flow++
	}
	for sp.flow >= sp.flows {
		sp.flow -= sp.flows
	}
	return hi, lo, flow
}

func gcd[T int | uint64](a, b T) T {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// mix is the finaliser of splitmix64.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
