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
// Timestamp and address mask requests are not answered: the first need not be
// (RFC 1812 section 4.3.3.8), the second are abolished (RFC 6918).
func (w *Worker) localICMP(h skb.Handle, m *skb.Meta, f *frame, ic []byte, hl int) {
	if len(ic) < 8 || inet.Checksum(ic) != 0 {
		w.drop(h, skb.IP4LocalICMP)
		return
	}
	switch ic[0] {
	case icmpEcho:
	case icmpEchoReply, icmpUnreachable, icmpSourceQuench, icmpRedirect, icmpTimeExceeded, icmpParameterProblem:
		// A router does not follow redirects (RFC 1812 section 5.2.7.2).
		w.drop(h, skb.IP4LocalConsumed)
		return
	default:
		w.drop(h, skb.IP4LocalICMP)
		return
	}
	src := binary.BigEndian.Uint32(f[26:30])
	dst := binary.BigEndian.Uint32(f[30:34])
	// Not by update: a reply may be all zeros, for which RFC 1624 does not hold.
	ic[0], ic[2], ic[3] = icmpEchoReply, 0, 0
	binary.BigEndian.PutUint16(ic[2:], inet.Checksum(ic))
	if hl > inet.IPv4HeaderLen {
		f = w.turnOptions(h, m, hl, dst)
	}
	binary.BigEndian.PutUint16(f[18:], w.identification())
	// A reply is free to be fragmented: nobody here would hear that it was
	// too long. The reserved bit of the request is not ours to send.
	f[20], f[21] = 0, 0
	binary.BigEndian.PutUint32(f[26:], dst)
	binary.BigEndian.PutUint32(f[30:], src)
	f[22] = icmpTTL
	m.Flags |= skb.FlagLocal
	w.stats.Live.Answered++
	w.route(h, m, src, m.Port, false)
}

// turnOptions makes the options of a request of hl bytes of header those of
// its reply: record route and timestamp go back with our own entry in them,
// the rest is left out (RFC 1812 section 4.3.3.6). It returns the frame, which
// then starts further on; its link header is written when it leaves.
func (w *Worker) turnOptions(h skb.Handle, m *skb.Meta, hl int, own uint32) *frame {
	hdr := w.headerOf(h)
	keep := inet.IPv4HeaderLen + replyOptions(hdr[inet.IPv4HeaderLen:])
	hdr[0] = 0x40 | uint8(keep/4)
	w.stampOptions(hdr[:keep], own)
	cut := uint16(hl - keep)
	b := w.arena.Bytes(h)
	copy(b[inet.EthHeaderLen+cut:], b[inet.EthHeaderLen:inet.EthHeaderLen+keep])
	m.Data += cut
	m.Len -= cut
	m.L3 += cut
	f := w.frame(h, m)
	binary.BigEndian.PutUint16(f[16:], m.Len-inet.EthHeaderLen)
	return f
}
