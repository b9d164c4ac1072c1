package pktgen

import (
	"encoding/binary"

	"gorouter/internal/inet"
)

// What lies in the UDP payload of every frame with room for it. All numbers
// are big-endian. The magic number and the sequence number lie where the
// kernel's pktgen has them, so that protocol analysers find them.
const (
	// Magic is the first word of a payload.
	Magic = 0xbe9be955

	tagSeq    = 4  // 32 bits: number of the frame in its stream
	tagStamp  = 8  // 64 bits: nanoseconds of the sender's clock
	tagStream = 16 // 16 bits: number of the stream, the top bit set for clones
	tagLen    = 18 // the whole payload of a 60-byte IPv4 frame

	cloneBit = 1 << 15
)

// frame is one stream's frame, kept complete at all times: what changes from
// one frame to the next is patched in, and the checksums follow by RFC 1624.
type frame struct {
	b   []byte
	v4  bool
	ip  uint16 // header checksum (IPv4)
	udp uint16 // UDP checksum as computed, so 0 where 0xffff is written

	dst    int // offset of the destination address
	l4     int // offset of the UDP header
	pay    int // offset of the payload
	tagged bool
	port   uint16
}

func newFrame(s *Stream) frame {
	f := frame{b: make([]byte, s.Size), v4: s.Src.Is4(), port: uint16(s.SrcPort)}
	b := f.b
	copy(b, s.DstMAC[:])
	copy(b[6:], s.SrcMAC[:])
	ip := b[inet.EthHeaderLen:]
	src := s.Src.AsSlice()
	if f.v4 {
		binary.BigEndian.PutUint16(b[12:], inet.EtherIPv4)
		ip[0] = 0x45
		binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)))
		// Atomic datagrams: may not be fragmented, need no identification (RFC 6864).
		ip[6] = 0x40
		ip[8], ip[9] = uint8(s.TTL), inet.ProtoUDP
		copy(ip[12:], src)
		f.dst = inet.EthHeaderLen + 16
		f.l4 = inet.EthHeaderLen + inet.IPv4HeaderLen
	} else {
		binary.BigEndian.PutUint16(b[12:], inet.EtherIPv6)
		ip[0] = 0x60
		binary.BigEndian.PutUint16(ip[4:], uint16(len(ip)-inet.IPv6HeaderLen))
		ip[6], ip[7] = inet.ProtoUDP, uint8(s.TTL)
		copy(ip[8:], src)
		f.dst = inet.EthHeaderLen + 24
		f.l4 = inet.EthHeaderLen + inet.IPv6HeaderLen
	}
	f.pay = f.l4 + inet.UDPHeaderLen
	udp := b[f.l4:]
	binary.BigEndian.PutUint16(udp[0:], f.port)
	binary.BigEndian.PutUint16(udp[2:], uint16(s.DstPort))
	binary.BigEndian.PutUint16(udp[4:], uint16(len(udp)))
	if p := b[f.pay:]; len(p) >= tagLen {
		f.tagged = true
		binary.BigEndian.PutUint32(p, Magic)
		id := s.Number()
		if s.Clone > 1 {
			id |= cloneBit
		}
		binary.BigEndian.PutUint16(p[tagStream:], id)
		for i := tagLen; i < len(p); i++ {
			p[i] = byte(i)
		}
	}
	if f.v4 {
		f.ip = inet.Checksum(ip[:inet.IPv4HeaderLen])
		f.udp = ^inet.Fold(inet.Sum(udp, inet.Pseudo4([4]byte(ip[12:]), [4]byte(ip[16:]), inet.ProtoUDP, len(udp))))
	} else {
		f.udp = ^inet.Fold(inet.Sum(udp, inet.Pseudo6([16]byte(ip[8:]), [16]byte(ip[24:]), inet.ProtoUDP, len(udp))))
	}
	f.seal()
	return f
}

// next patches in what belongs to the next frame: the destination (for IPv4
// the low half of lo), the flow, and the tag where there is room for one.
func (f *frame) next(hi, lo uint64, flow int, seq uint32, stamp int64) {
	if f.v4 {
		f.address(f.dst, uint16(lo>>16))
		f.address(f.dst+2, uint16(lo))
	} else {
		f.word64(f.dst, hi)
		f.word64(f.dst+8, lo)
	}
	f.word(f.l4, f.port+uint16(flow))
	if f.tagged {
		f.word(f.pay+tagSeq, uint16(seq>>16))
		f.word(f.pay+tagSeq+2, uint16(seq))
		f.word64(f.pay+tagStamp, uint64(stamp))
	}
	f.seal()
}

// word writes 16 bits that the UDP checksum covers.
func (f *frame) word(off int, v uint16) {
	p := f.b[off : off+2 : off+2]
	if old := binary.BigEndian.Uint16(p); old != v {
		f.udp = inet.Update(f.udp, old, v)
		binary.BigEndian.PutUint16(p, v)
	}
}

func (f *frame) word64(off int, v uint64) {
	f.word(off, uint16(v>>48))
	f.word(off+2, uint16(v>>32))
	f.word(off+4, uint16(v>>16))
	f.word(off+6, uint16(v))
}

// address writes 16 bits that both IPv4 checksums cover.
func (f *frame) address(off int, v uint16) {
	f.ip = inet.Update(f.ip, binary.BigEndian.Uint16(f.b[off:]), v)
	f.word(off, v)
}

// seal writes the checksums.
func (f *frame) seal() {
	if f.v4 {
		binary.BigEndian.PutUint16(f.b[inet.EthHeaderLen+10:], f.ip)
	}
	c := f.udp
	if c == 0 {
		// Zero on the wire means "no checksum" (RFC 768).
		c = 0xffff
	}
	binary.BigEndian.PutUint16(f.b[f.l4+6:], c)
}
