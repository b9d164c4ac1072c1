package dataplane

import (
	"encoding/binary"

	"gorouter/fib"
	"gorouter/internal/inet"
	"gorouter/skb"
)

// redirect tells the sender of a packet that there is a shorter way, when the
// packet leaves by the port it came in and its next hop is on a network that
// the sender is on, too (RFC 1812 section 5.2.7.2). Only host redirects exist:
// a host cannot know how long our prefixes are.
func (w *Worker) redirect(h skb.Handle, m *skb.Meta, f *frame, a *fib.Adjacency) {
	if !w.ip4.Redirects || m.Port != a.Port {
		return
	}
	next := binary.BigEndian.Uint32(f[30:34])
	if a.Kind != fib.Connected {
		if !a.NextHop.Is4() {
			return
		}
		next = addr4(a.NextHop)
	}
	if w.ifs.ifs[a.Port].together(binary.BigEndian.Uint32(f[26:30]), next) {
		w.sendError(&w.redirects, h, icmpRedirect, codeRedirectHost, next)
	}
}

// broadcast handles a packet to the network or broadcast address of a's
// network. The older form, the network's address, is never sent on.
func (w *Worker) broadcast(h skb.Handle, m *skb.Meta, f *frame, a *fib.Adjacency) {
	ifc := &w.ifs.ifs[a.Port]
	if !w.ip4.DirectedBroadcast || m.Port == a.Port || !ifc.isLast(binary.BigEndian.Uint32(f[30:34])) {
		w.drop(h, skb.IP4DirectedBroadcast)
		return
	}
	if f[22] <= 1 {
		w.drop(h, skb.IP4TTL)
		return
	}
	all := *a
	copy(all.Rewrite[0:6], inet.Broadcast[:])
	copy(all.Rewrite[6:12], ifc.hw[:])
	binary.BigEndian.PutUint16(all.Rewrite[12:], inet.EtherIPv4)
	w.leave(h, m, &all)
}
