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
		w.r.neigh.Counts.Conflicts.Add(1)
	case spa != 0 && ifc.onLink(spa) && !ifc.onBroadcast(spa):
		w.r.neigh.Hear(neigh.Heard{Port: portIndex, Addr: from4(spa), MAC: sha,
			Reply: op == arpReply, ForUs: forUs && op == arpRequest}, w.now)
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

// sendRequest asks for a neighbour's address. Owner of the port's transmit
// queue or not: emit finds the way.
func (w *Worker) sendRequest(q neigh.Question) {
	h := w.cache.Alloc()
	if h == skb.None {
		return // asked again when the answer does not come
	}
	ifc := &w.r.ifaces.Load().ifs[q.Port]
	b := w.arena.Put(h, arpEnd)
	m := w.arena.Meta(h)
	m.Flags = skb.FlagLocal
	dst := addr4(q.Addr)
	copy(b[0:6], q.To[:])
	copy(b[6:12], ifc.hw[:])
	binary.BigEndian.PutUint16(b[12:], inet.EtherARP)
	copy(b[arpHardware:], arpFixed[:])
	binary.BigEndian.PutUint16(b[arpOp:], arpRequest)
	copy(b[arpSHA:], ifc.hw[:])
	binary.BigEndian.PutUint32(b[arpSPA:], w.r.ifaces.Load().sourceFor(q.Port, dst))
	clear(b[arpTHA:arpTPA])
	binary.BigEndian.PutUint32(b[arpTPA:], dst)
	w.stats.Live.Originated++
	w.emit(q.Port, h)
}
