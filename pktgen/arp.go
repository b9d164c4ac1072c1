package pktgen

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"gorouter/internal/inet"
)

// ARP fields, as offsets from the start of the frame (RFC 826).
const (
	arpOp       = inet.EthHeaderLen + 6
	arpSrcMAC   = inet.EthHeaderLen + 8
	arpSrcIP    = inet.EthHeaderLen + 14
	arpDstMAC   = inet.EthHeaderLen + 18
	arpDstIP    = inet.EthHeaderLen + 24
	arpEnd      = inet.EthHeaderLen + inet.ARPLen
	arpQueueLen = 64
)

// arpFixed is what every ARP packet for IPv4 over Ethernet begins with:
// hardware type, protocol type, the two address lengths.
const arpFixed = 0x0001_0800_0604

// responder answers ARP requests for its addresses. Answers wait in a ring
// until the cable takes them.
type responder struct {
	mac   inet.MAC
	addrs []netip.Prefix
	not   []netip.Addr // the router's, within addrs
	queue [arpQueueLen][inet.EthMinLen]byte
	head  int
	n     int

	answered, dropped uint64
}

// request takes an ARP frame in. It reports whether it was a proper request
// for one of its addresses.
func (r *responder) request(f []byte) bool {
	if len(f) < arpEnd || binary.BigEndian.Uint64(f[inet.EthHeaderLen:])>>16 != arpFixed ||
		binary.BigEndian.Uint16(f[arpOp:]) != 1 {
		return false
	}
	sender := inet.MAC(f[arpSrcMAC:])
	target := [4]byte(f[arpDstIP:])
	// Who asks for the address that it has itself announces it (RFC 5227).
	if sender.IsMulticast() || target == [4]byte(f[arpSrcIP:]) || !r.owns(netip.AddrFrom4(target)) {
		return false
	}
	if r.n == arpQueueLen {
		r.dropped++
		return true
	}
	a := r.queue[(r.head+r.n)%arpQueueLen][:]
	r.n++
	copy(a, sender[:])
	copy(a[6:], r.mac[:])
	binary.BigEndian.PutUint16(a[12:], inet.EtherARP)
	copy(a[inet.EthHeaderLen:arpOp], f[inet.EthHeaderLen:arpOp])
	binary.BigEndian.PutUint16(a[arpOp:], 2)
	copy(a[arpSrcMAC:], r.mac[:])
	copy(a[arpSrcIP:], target[:])
	copy(a[arpDstMAC:], f[arpSrcMAC:arpDstMAC]) // MAC and IP of the asker
	r.answered++
	return true
}

func (r *responder) owns(a netip.Addr) bool {
	if slices.Contains(r.not, a) {
		return false
	}
	for _, p := range r.addrs {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// next is the oldest answer that waits, or nil.
func (r *responder) next() []byte {
	if r.n == 0 {
		return nil
	}
	b := r.queue[r.head][:]
	r.head = (r.head + 1) % arpQueueLen
	r.n--
	return b
}
