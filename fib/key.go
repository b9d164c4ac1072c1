package fib

import (
	"cmp"
	"encoding/binary"
	"net/netip"
)

// key is a prefix of either family, its address left-aligned in 128 bits. The
// family is known from where the key is.
type key struct {
	hi, lo uint64
	bits   uint8
}

// keyOf returns the key of a valid prefix without host bits.
func keyOf(p netip.Prefix) key {
	hi, lo := addrWords(p.Addr())
	return key{hi: hi, lo: lo, bits: uint8(p.Bits())}
}

// addrWords returns an address left-aligned in 128 bits.
func addrWords(a netip.Addr) (hi, lo uint64) {
	if a.Is4() {
		b := a.As4()
		return uint64(binary.BigEndian.Uint32(b[:])) << 32, 0
	}
	b := a.As16()
	return binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])
}

// prefix is the inverse of keyOf.
func (k key) prefix(f Family) netip.Prefix {
	if f == IPv4 {
		var b [4]byte
		binary.BigEndian.PutUint32(b[:], uint32(k.hi>>32))
		return netip.PrefixFrom(netip.AddrFrom4(b), int(k.bits))
	}
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], k.hi)
	binary.BigEndian.PutUint64(b[8:], k.lo)
	return netip.PrefixFrom(netip.AddrFrom16(b), int(k.bits))
}

// cut returns the prefix of the length that contains k.
func (k key) cut(bits uint8) key {
	if bits <= 64 {
		return key{hi: k.hi &^ (^uint64(0) >> bits), bits: bits}
	}
	return key{hi: k.hi, lo: k.lo &^ (^uint64(0) >> (bits - 64)), bits: bits}
}

// contains says whether o is k or lies inside k.
func (k key) contains(o key) bool {
	return k.bits <= o.bits && o.cut(k.bits) == k
}

// compare orders by address, then length.
func (k key) compare(o key) int {
	if k.hi != o.hi {
		return cmp.Compare(k.hi, o.hi)
	}
	return cmp.Or(cmp.Compare(k.lo, o.lo), cmp.Compare(k.bits, o.bits))
}

// digit returns the byte of the address that begins at bit d, a multiple of 8.
func (k key) digit(d uint8) uint8 {
	if d < 64 {
		return uint8(k.hi >> (56 - d))
	}
	return uint8(k.lo >> (120 - d))
}
