// Package inet has the Internet checksum and the few header constants that
// the dataplane, the packet generator and the devices share.
package inet

import "encoding/binary"

// Sum adds the 16-bit big-endian words of b to the partial sum start (an odd
// last byte counts as the high half of a word). The result is not folded.
func Sum(b []byte, start uint64) uint64 {
	s := start
	for len(b) >= 8 {
		v := binary.BigEndian.Uint64(b)
		s += v>>48 + v>>32&0xffff + v>>16&0xffff + v&0xffff
		b = b[8:]
	}
	for len(b) >= 2 {
		s += uint64(binary.BigEndian.Uint16(b))
		b = b[2:]
	}
	if len(b) == 1 {
		s += uint64(b[0]) << 8
	}
	return s
}

// Fold brings a sum to 16 bits with end-around carry.
func Fold(s uint64) uint16 {
	s = s&0xffffffff + s>>32
	s = s&0xffffffff + s>>32
	s = s&0xffff + s>>16
	s = s&0xffff + s>>16
	return uint16(s)
}

// Checksum is the Internet checksum of b (RFC 1071).
func Checksum(b []byte) uint16 { return ^Fold(Sum(b, 0)) }

// Update is RFC 1624 equation 3: the checksum hc of a header after one of its
// 16-bit words went from old to new. For a header whose words are not all zero
// it gives exactly what a full computation gives.
func Update(hc, old, new uint16) uint16 {
	s := uint32(^hc) + uint32(^old) + uint32(new)
	s = s&0xffff + s>>16
	s = s&0xffff + s>>16
	return ^uint16(s)
}

// Pseudo4 is the unfolded sum of the IPv4 pseudo header for a transport
// segment of n bytes.
func Pseudo4(src, dst [4]byte, proto uint8, n int) uint64 {
	return Sum(src[:], Sum(dst[:], uint64(proto)+uint64(n)))
}

// Pseudo6 is the same for IPv6.
func Pseudo6(src, dst [16]byte, proto uint8, n int) uint64 {
	return Sum(src[:], Sum(dst[:], uint64(proto)+uint64(n)))
}
