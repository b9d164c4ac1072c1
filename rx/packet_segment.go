package rx

import (
	"encoding/binary"

	"golang.org/x/sys/unix"

	"gorouter/internal/inet"
)

// segmenter cuts a super-frame, which a sender on this machine left to a
// segmenting device, into the frames which that device would have sent. The
// super-frame stays in its slot meanwhile.
type segmenter struct {
	active bool
	f      frame
	v6     bool
	tcp    bool
	l3, l4 int // offsets in f.data
	pos    int // first payload byte not yet sent, in f.data
	head   int // length of all headers
	index  int
}

// TCP flags (RFC 9293 section 3.1).
const (
	tcpFIN = 0x01
	tcpPSH = 0x08
	tcpCWR = 0x80
)

// start takes a super-frame up. It reports false when the frame is not a whole
// TCP or UDP packet directly over IP, or when even its segments are longer
// than max, the longest untagged frame.
func (s *segmenter) start(f frame, max int) bool {
	l3 := inet.EthHeaderLen + f.inlineTags()*inet.VLANTagLen
	d := f.data
	if len(d) < l3+inet.IPv4HeaderLen || !f.partial || f.gsoSize == 0 {
		return false
	}
	n := segmenter{f: f, l3: l3, l4: f.csumStart}
	var proto uint8
	switch binary.BigEndian.Uint16(d[l3-2:]) {
	case inet.EtherIPv4:
		ihl := int(d[l3]&15) * 4
		if d[l3]>>4 != 4 || ihl < inet.IPv4HeaderLen || n.l4 != l3+ihl {
			return false
		}
		proto = d[l3+9]
	case inet.EtherIPv6:
		if d[l3]>>4 != 6 || n.l4 != l3+inet.IPv6HeaderLen {
			return false
		}
		n.v6, proto = true, d[l3+6]
	default:
		return false
	}
	switch {
	case proto == inet.ProtoTCP && (f.gso == unix.VIRTIO_NET_HDR_GSO_TCPV4 && !n.v6 || f.gso == unix.VIRTIO_NET_HDR_GSO_TCPV6 && n.v6):
		const tcpMin = 20
		if len(d) < n.l4+tcpMin {
			return false
		}
		doff := int(d[n.l4+12]>>4) * 4
		if doff < tcpMin {
			return false
		}
		n.tcp, n.head = true, n.l4+doff
	case proto == inet.ProtoUDP && f.gso == unix.VIRTIO_NET_HDR_GSO_UDP_L4:
		n.head = n.l4 + inet.UDPHeaderLen
	default:
		return false
	}
	if len(d) <= n.head || min(n.head+f.gsoSize, len(d)) > f.limit(max) {
		return false
	}
	n.pos, n.active = n.head, true
	*s = n
	return true
}

// payload is the number of payload bytes of the next segment.
func (s *segmenter) payload() int { return min(s.f.gsoSize, len(s.f.data)-s.pos) }

// size is the length of the next segment's frame.
func (s *segmenter) size() int { return s.f.tagLen + s.head + s.payload() }

// skip leaves the next segment out.
func (s *segmenter) skip() {
	s.pos += s.payload()
	s.index++
	s.active = s.pos < len(s.f.data)
}

// write puts the next segment into dst, which is size() long.
func (s *segmenter) write(dst []byte) {
	n := s.payload()
	s.f.copyPart(dst, s.head)
	b := dst[s.f.tagLen:] // so that the offsets of data hold behind the addresses
	copy(b[s.head:], s.f.data[s.pos:s.pos+n])
	last := s.pos+n == len(s.f.data)

	l4 := b[s.l4 : s.head+n]
	var proto uint8 = inet.ProtoUDP
	field := csumOffsetUDP
	if s.tcp {
		proto, field = inet.ProtoTCP, 16
		seq := binary.BigEndian.Uint32(l4[4:])
		binary.BigEndian.PutUint32(l4[4:], seq+uint32(s.pos-s.head))
		if !last {
			l4[13] &^= tcpFIN | tcpPSH
		}
		if s.index > 0 {
			l4[13] &^= tcpCWR
		}
	} else {
		binary.BigEndian.PutUint16(l4[4:], uint16(len(l4)))
	}
	binary.BigEndian.PutUint16(l4[field:], 0)

	var pseudo uint64
	ip := b[s.l3:s.l4]
	if s.v6 {
		binary.BigEndian.PutUint16(ip[4:], uint16(len(l4)))
		pseudo = inet.Pseudo6([16]byte(ip[8:24]), [16]byte(ip[24:40]), proto, len(l4))
	} else {
		binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)+len(l4)))
		id := binary.BigEndian.Uint16(ip[4:])
		binary.BigEndian.PutUint16(ip[4:], id+uint16(s.index))
		binary.BigEndian.PutUint16(ip[10:], 0)
		binary.BigEndian.PutUint16(ip[10:], inet.Checksum(ip))
		pseudo = inet.Pseudo4([4]byte(ip[12:16]), [4]byte(ip[16:20]), proto, len(l4))
	}
	sum := ^inet.Fold(inet.Sum(l4, pseudo))
	if sum == 0 && !s.tcp {
		sum = 0xffff
	}
	binary.BigEndian.PutUint16(l4[field:], sum)
	s.skip()
}
