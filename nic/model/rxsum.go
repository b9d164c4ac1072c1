package model

import (
	"encoding/binary"
	"math/bits"

	"gorouter/internal/inet"
	"gorouter/nic/e1000/regs"
)

// packetSum is the ones' complement sum of a frame's big-endian words, which
// the chip reports for every frame (3.2.3). Bytes are added in machine order;
// the sum does not mind, but for its two bytes being swapped.
func packetSum(b []byte) uint16 {
	le := binary.LittleEndian
	var s, c uint64
	for len(b) >= 32 {
		s, c = bits.Add64(s, le.Uint64(b), 0)
		s, c = bits.Add64(s, le.Uint64(b[8:]), c)
		s, c = bits.Add64(s, le.Uint64(b[16:]), c)
		s, c = bits.Add64(s, le.Uint64(b[24:]), c)
		s, c = bits.Add64(s, 0, c)
		s += c
		b = b[32:]
	}
	s = s&0xFFFFFFFF + s>>32
	for len(b) >= 4 {
		s += uint64(le.Uint32(b))
		b = b[4:]
	}
	if len(b) >= 2 {
		s += uint64(le.Uint16(b))
		b = b[2:]
	}
	if len(b) == 1 {
		s += uint64(b[0])
	}
	return bits.ReverseBytes16(inet.Fold(s))
}

// offload checks the sums of an IPv4 frame as RXCSUM asks for, and says in the
// descriptor what was checked and what was wrong (3.2.9).
func (c *Chip) offload(f []byte, word uint64) uint64 {
	word &^= rxIXSM
	const l3 = inet.EthHeaderLen
	if len(f) < l3+20 || binary.BigEndian.Uint16(f[12:]) != inet.EtherIPv4 || f[l3]>>4 != 4 {
		return word
	}
	header := int(f[l3]&15) * 4
	total := int(binary.BigEndian.Uint16(f[l3+2:]))
	if header < 20 || total < header || l3+total > len(f) {
		return word
	}
	v := c.raw[regs.RXCSUM/4]
	if v&regs.RxcsumIPOFLD != 0 {
		word |= rxIPCS
		if inet.Checksum(f[l3:l3+header]) != 0 {
			word |= rxIPE
		}
	}
	fragment := binary.BigEndian.Uint16(f[l3+6:])&0x3FFF != 0
	proto, segment := f[l3+9], f[l3+header:l3+total]
	if v&regs.RxcsumTUOFLD == 0 || fragment || proto != inet.ProtoTCP && proto != inet.ProtoUDP {
		return word
	}
	if proto == inet.ProtoUDP && (len(segment) < 8 || binary.BigEndian.Uint16(segment[6:]) == 0) {
		return word // no checksum was sent
	}
	word |= rxTCPCS
	pseudo := inet.Pseudo4([4]byte(f[l3+12:]), [4]byte(f[l3+16:]), proto, len(segment))
	if inet.Fold(inet.Sum(segment, pseudo)) != 0xFFFF {
		word |= rxTCPE
	}
	return word
}
