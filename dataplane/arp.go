package dataplane

import (
	"encoding/binary"

	"gorouter/dataplane/neigh"
	"gorouter/internal/inet"
	"gorouter/skb"
)

// Offsets in an Ethernet frame with an ARP packet (RFC 826).
const (
	arpHardware = 14
	arpOp       = 20
	arpSHA      = 22
	arpSPA      = 28
	arpTHA      = 32
	arpTPA      = 38
	arpEnd      = 42

	arpRequest = 1
	arpReply   = 2
)

// arpFixed is the constant first part: Ethernet, IPv4, lengths 6 and 4.
var arpFixed = [6]byte{0, 1, inet.EtherIPv4 >> 8, inet.EtherIPv4 & 0xff, 6, 4}

// arp answers requests for the port's addresses and learns from what it hears.
func (w *Worker) arp(h skb.Handle, m *skb.Meta, f *frame, portIndex uint16) {
	ifc := &w.ifs.ifs[portIndex]
	op := binary.BigEndian.Uint16(f[arpOp:])
	sha := inet.MAC(f[arpSHA:arpSPA])
	spa := binary.BigEndian.Uint32(f[arpSPA:])
	tpa := binary.BigEndian.Uint32(f[arpTPA:])
	if m.Len < arpEnd || [6]byte(f[arpHardware:arpOp]) != arpFixed || (op != arpRequest && op != arpReply) ||
		sha.IsMulticast() || sha == (inet.MAC{}) || sha == ifc.hw || spa>>28 == 0xe || spa == 0xffffffff {
		w.drop(h, skb.ArpInvalid)
		return
	}
	forUs := ifc.has(tpa)
	switch {
	case ifc.has(spa):
		// Somebody else uses our address (RFC 5227). The request is still
		// answered, as a defence.
		w.r.conflict(portIndex, spa, sha)
	case spa == 0:
		w.r.probed(portIndex, tpa, sha, w.now)
	case !w.ifs.isOwn(spa) && !ifc.onBroadcast(spa):
		heard := neigh.Heard{Port: portIndex, Addr: from4(spa), MAC: sha, Reply: op == arpReply, Gratuitous: spa == tpa}
		if heard.Reply {
			// A question about a gateway outside the port's networks may have
			// gone out with another port's address.
			heard.ForUs = m.Flags&skb.FlagLinkMulticast == 0 && w.ifs.isOwn(tpa)
		} else {
			heard.ForUs = forUs && ifc.onLink(spa)
		}
		w.r.neigh.Hear(heard, w.now)
	}
	if op != arpRequest {
		w.drop(h, skb.ArpConsumed)
		return
	}
	if !forUs {
		w.drop(h, skb.ArpNotForUs)
		return
	}
	// The request's buffer becomes the answer.
	copy(f[0:6], sha[:])
	copy(f[6:12], ifc.hw[:])
	binary.BigEndian.PutUint16(f[arpOp:], arpReply)
	copy(f[arpTHA:arpTPA], f[arpSHA:arpSPA])
	binary.BigEndian.PutUint32(f[arpTPA:], spa)
	copy(f[arpSHA:arpSPA], ifc.hw[:])
	binary.BigEndian.PutUint32(f[arpSPA:], tpa)
	m.Len = arpEnd
	w.stats.Live.Answered++
	w.emit(portIndex, h)
}

// sendRequest asks for a neighbour's address.
func (w *Worker) sendRequest(q neigh.Question) {
	dst := addr4(q.Addr)
	w.sendARP(q.Port, q.To, w.r.ifaces.Load().sourceFor(q.Port, dst), dst)
}

// sendARP sends a request that says spa is ours and asks who has tpa. Owner of
// the port's transmit queue or not: emit finds the way.
func (w *Worker) sendARP(portIndex uint16, to inet.MAC, spa, tpa uint32) {
	h := w.cache.Alloc()
	if h == skb.None {
		return // asked again when the answer does not come
	}
	ifc := &w.r.ifaces.Load().ifs[portIndex]
	b := w.arena.Put(h, arpEnd)
	m := w.arena.Meta(h)
	m.Flags = skb.FlagLocal
	copy(b[0:6], to[:])
	copy(b[6:12], ifc.hw[:])
	binary.BigEndian.PutUint16(b[12:], inet.EtherARP)
	copy(b[arpHardware:], arpFixed[:])
	binary.BigEndian.PutUint16(b[arpOp:], arpRequest)
	copy(b[arpSHA:], ifc.hw[:])
	binary.BigEndian.PutUint32(b[arpSPA:], spa)
	clear(b[arpTHA:arpTPA])
	binary.BigEndian.PutUint32(b[arpTPA:], tpa)
	w.stats.Live.Originated++
	w.emit(portIndex, h)
}
