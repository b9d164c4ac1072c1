package pktgen

import (
	"encoding/binary"

	"gorouter/internal/inet"
)

// parsed is what a sink wants to know of an IP packet.
type parsed struct {
	ttl     uint8
	damaged bool   // checks were asked for and failed
	flow    uint32 // hash of addresses and ports
	payload []byte // of UDP; nil for anything else
}

// ipv4 reads a packet, Ethernet padding behind it allowed.
func (p *parsed) ipv4(b []byte, verify bool) {
	if len(b) < inet.IPv4HeaderLen || b[0]>>4 != 4 {
		p.damaged = verify
		return
	}
	hl, total := int(b[0]&15)*4, int(binary.BigEndian.Uint16(b[2:]))
	if hl < inet.IPv4HeaderLen || total < hl || total > len(b) {
		p.damaged = verify
		return
	}
	b = b[:total]
	if verify && inet.Checksum(b[:hl]) != 0 {
		p.damaged = true
	}
	p.ttl = b[8]
	// More fragments, or an offset: what follows is no whole datagram.
	if b[9] != inet.ProtoUDP || binary.BigEndian.Uint16(b[6:])&0x3fff != 0 {
		return
	}
	addrs := binary.BigEndian.Uint64(b[12:])
	var pseudo uint64
	if verify {
		pseudo = inet.Pseudo4([4]byte(b[12:]), [4]byte(b[16:]), inet.ProtoUDP, total-hl)
	}
	p.udp(b[hl:], mix(addrs), pseudo, verify, true)
}

// ipv6 reads a packet without extension headers.
func (p *parsed) ipv6(b []byte, verify bool) {
	if len(b) < inet.IPv6HeaderLen || b[0]>>4 != 6 {
		p.damaged = verify
		return
	}
	n := int(binary.BigEndian.Uint16(b[4:]))
	if n > len(b)-inet.IPv6HeaderLen {
		p.damaged = verify
		return
	}
	p.ttl = b[7]
	if b[6] != inet.ProtoUDP {
		return
	}
	h := uint64(0)
	for i := 8; i < inet.IPv6HeaderLen; i += 8 {
		h = mix(h ^ binary.BigEndian.Uint64(b[i:]))
	}
	var pseudo uint64
	if verify {
		pseudo = inet.Pseudo6([16]byte(b[8:]), [16]byte(b[24:]), inet.ProtoUDP, n)
	}
	p.udp(b[inet.IPv6HeaderLen:inet.IPv6HeaderLen+n], h, pseudo, verify, false)
}

// udp reads a whole datagram. Without a checksum it passes over IPv4 only
// (RFC 8200 section 8.1).
func (p *parsed) udp(b []byte, hash, pseudo uint64, verify, v4 bool) {
	if len(b) < inet.UDPHeaderLen || int(binary.BigEndian.Uint16(b[4:])) != len(b) {
		p.damaged = p.damaged || verify
		return
	}
	if verify {
		none := binary.BigEndian.Uint16(b[6:]) == 0
		if none && !v4 || !none && inet.Fold(inet.Sum(b, pseudo)) != 0xffff {
			p.damaged = true
		}
	}
	p.flow = uint32(mix(hash ^ uint64(binary.BigEndian.Uint32(b))))
	p.payload = b[inet.UDPHeaderLen:]
}
