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
func (w *Worker) localICMP(h skb.Handle, m *skb.Meta, f *frame, ic []byte, hl int) {
	if len(ic) < 8 || inet.Checksum(ic) != 0 || ic[0] != icmpEcho || hl != inet.IPv4HeaderLen {
		w.drop(h, skb.IP4LocalConsumed)
		return
	}
	src := binary.BigEndian.Uint32(f[26:30])
	dst := binary.BigEndian.Uint32(f[30:34])
	ic[0] = icmpEchoReply
	binary.BigEndian.PutUint16(ic[2:], inet.Update(binary.BigEndian.Uint16(ic[2:]), icmpEcho<<8, icmpEchoReply<<8))
	binary.BigEndian.PutUint32(f[26:], dst)
	binary.BigEndian.PutUint32(f[30:], src)
	f[22] = icmpTTL
	m.Flags |= skb.FlagLocal
	w.stats.Live.Originated++
	w.route(h, m, src, m.Port, false)
}
