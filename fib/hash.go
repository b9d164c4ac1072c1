package fib

import "math/bits"

// Hasher computes flow hashes. Its seed belongs to one router, so that two
// routers in a row spread the same flows differently. It is a value without
// state and safe to copy and share.
type Hasher struct{ a, b uint64 }

// NewHasher returns the hasher of a seed.
func NewHasher(seed uint64) Hasher {
	return Hasher{a: splitmix(seed), b: splitmix(seed + 1)}
}

// splitmix is the finaliser of the SplitMix64 generator: it turns nearby seeds
// into unrelated words.
func splitmix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// fold multiplies to 128 bits and folds the halves, one of the cheapest ways
// to let every input bit reach every output bit.
func fold(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

// Odd constants without structure.
const (
	mix1 = 0xd6e8feb86659fd93
	mix2 = 0xa0761d6478bd642f
)

// Hash4 hashes an IPv4 flow. Addresses are in host order; ports is source port
// << 16 | destination port for unfragmented TCP, UDP and the like, and 0 for
// every fragment, the first too, and for all other protocols.
func (h Hasher) Hash4(src, dst uint32, proto uint8, ports uint32) uint32 {
	x := fold(uint64(src)<<32|uint64(dst)^h.a, uint64(ports)<<8|uint64(proto)^h.b)
	return uint32(fold(x^h.b, mix1) >> 32)
}

// Hash6 hashes an IPv6 flow. Addresses are given as their upper and lower 64
// bits in host order. ports is as for Hash4; a caller that cannot see the
// transport header gives the flow label, or 0, provided it does so for all
// packets of the flow.
func (h Hasher) Hash6(srcHi, srcLo, dstHi, dstLo uint64, proto uint8, ports uint32) uint32 {
	x := fold(srcHi^h.a, srcLo^h.b)
	x ^= fold(dstHi^h.b, dstLo^mix2^h.a)
	x = fold(x, uint64(ports)<<8|uint64(proto)^h.a)
	return uint32(fold(x^h.b, mix1) >> 32)
}
