package dataplane

import (
	"encoding/binary"

	"gorouter/internal/inet"
	"gorouter/skb"
)

// local takes in a packet for one of the router's own addresses. Its time to
// live does not matter here: the packet has arrived.
func (w *Worker) local(h skb.Handle, m *skb.Meta, f *frame) {
	p := w.arena.Bytes(h)[inet.EthHeaderLen:]
	hl := int(p[0]&15) * 4
	switch {
	case binary.BigEndian.Uint16(p[6:])&0x3fff != 0:
		w.drop(h, skb.IP4LocalFragment)
	case p[9] == inet.ProtoICMP:
		w.localICMP(h, m, f, p[hl:], hl)
	case p[9] == inet.ProtoUDP:
		w.refuse(h, skb.IP4LocalPort, icmpUnreachable, codePort)
	default:
		w.refuse(h, skb.IP4LocalProtocol, icmpUnreachable, codeProtocol)
	}
}

// localICMP answers an echo request in its own buffer and takes in the rest.
// An answer carries no IP options, whatever the request had: options are not
// obeyed here, and a copied source route would be.
func (w *Worker) localICMP(h skb.Handle, m *skb.Meta, f *frame, ic []byte, hl int) {
	if len(ic) < 8 || inet.Checksum(ic) != 0 || ic[0] != icmpEcho {
		w.drop(h, skb.IP4LocalConsumed)
		return
	}
	if hl > inet.IPv4HeaderLen {
		f = w.cutOptions(h, m, f, hl)
	}
	src := binary.BigEndian.Uint32(f[26:30])
	dst := binary.BigEndian.Uint32(f[30:34])
	// Not by update: a reply may be all zeros, for which RFC 1624 does not hold.
	ic[0], ic[2], ic[3] = icmpEchoReply, 0, 0
	binary.BigEndian.PutUint16(ic[2:], inet.Checksum(ic))
	binary.BigEndian.PutUint32(f[26:], dst)
	binary.BigEndian.PutUint32(f[30:], src)
	f[22] = icmpTTL
	m.Flags |= skb.FlagLocal
	w.stats.Live.Answered++
	w.route(h, m, src, m.Port, false)
}

// cutOptions moves the fixed part of a header of hl bytes up to its payload,
// so that the options are gone, and returns the frame that now starts further
// on. The link header is written when the packet leaves.
func (w *Worker) cutOptions(h skb.Handle, m *skb.Meta, f *frame, hl int) *frame {
	var fixed [inet.IPv4HeaderLen]byte
	copy(fixed[:], f[inet.EthHeaderLen:])
	cut := uint16(hl - inet.IPv4HeaderLen)
	m.Data += cut
	m.Len -= cut
	m.L3 += cut
	f = w.frame(h, m)
	copy(f[inet.EthHeaderLen:], fixed[:])
	f[14] = 0x45
	binary.BigEndian.PutUint16(f[16:], m.Len-inet.EthHeaderLen)
	return f
}
