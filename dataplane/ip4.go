package dataplane

import (
	"encoding/binary"

	"gorouter/internal/inet"
	"gorouter/skb"
)

// Classes of IPv4 addresses by their first byte, for a test of one load each.
const (
	badSource = 1 << iota
	badDestination
)

// addrClass marks first bytes that need a closer look or are never routed:
// 0/8, 127/8, 169.254/16 and everything from 224/4 up (RFC 1812 sections
// 4.2.2.11 and 5.3.7, RFC 3927 section 2.7).
var addrClass = func() (c [256]uint8) {
	c[0] = badSource | badDestination
	c[127] = badSource | badDestination
	c[169] = badSource | badDestination
	for i := 224; i < 256; i++ {
		c[i] = badSource | badDestination
	}
	return c
}()

// ip4Input checks the n packets of w.ip as RFC 1812 section 5.2.2 asks. Those
// that are fit to be forwarded stay in w.ip, trimmed to their total length,
// their destinations in w.dst. It returns how many.
func (w *Worker) ip4Input(n int) int {
	k := 0
	for _, h := range w.ip[:n&(2*skb.BatchSize-1)] {
		m := w.arena.Meta(h)
		f := w.frame(h, m)
		length := uint32(m.Len) - inet.EthHeaderLen
		total := uint32(binary.BigEndian.Uint16(f[16:18]))
		src := binary.BigEndian.Uint32(f[26:30])
		dst := binary.BigEndian.Uint32(f[30:34])
		why := skb.ReasonNone
		if f[14] != 0x45 || length < inet.IPv4HeaderLen {
			why = w.ip4Header(h)
		} else if total < inet.IPv4HeaderLen || total > length {
			why = skb.IP4TotalLength
		} else if !headerSumOK(f) {
			why = skb.IP4Checksum
		}
		if why == skb.ReasonNone &&
			(addrClass[src>>24]&badSource|addrClass[dst>>24]&badDestination != 0 ||
				m.Flags&skb.FlagLinkMulticast != 0 || w.ifs.watched(src)) {
			why = w.martian(m, src, dst)
		}
		if why != skb.ReasonNone {
			w.drop(h, why)
			continue
		}
		// What follows the packet is padding of the link.
		m.Len = uint16(total + inet.EthHeaderLen)
		m.L3 = m.Data + inet.EthHeaderLen
		w.ip[k&(skb.BatchSize-1)] = h
		w.dst[k&(skb.BatchSize-1)] = dst
		k++
	}
	w.done(stageIP4Input, n)
	return k
}

// headerSumOK verifies the checksum of a header without options: the words
// add up to all ones. The sum does not depend on the byte order it is taken
// in, so the native loads of a little-endian machine do.
func headerSumOK(f *frame) bool {
	a := binary.LittleEndian.Uint64(f[14:22])
	b := binary.LittleEndian.Uint64(f[22:30])
	s := a>>32 + a&0xffffffff + b>>32 + b&0xffffffff + uint64(binary.LittleEndian.Uint32(f[30:34]))
	s = s>>32 + s&0xffffffff
	s = s>>16 + s&0xffff
	s = s>>16 + s&0xffff
	return s == 0xffff
}

// ip4Header checks a header that is not version 4 with 20 bytes.
func (w *Worker) ip4Header(h skb.Handle) skb.Reason {
	p := w.arena.Bytes(h)[inet.EthHeaderLen:]
	if len(p) < inet.IPv4HeaderLen {
		return skb.IP4Short
	}
	if p[0]>>4 != 4 {
		return skb.IP4Version
	}
	hl := int(p[0]&15) * 4
	if hl < inet.IPv4HeaderLen || hl > len(p) {
		return skb.IP4HeaderLength
	}
	total := int(binary.BigEndian.Uint16(p[2:4]))
	if total < hl || total > len(p) {
		return skb.IP4TotalLength
	}
	if inet.Checksum(p[:hl]) != 0 {
		return skb.IP4Checksum
	}
	return skb.ReasonNone
}

func isLinkLocal(a uint32) bool { return a>>16 == 169<<8|254 }

// martian looks closer at addresses that the fast check did not let pass.
func (w *Worker) martian(m *skb.Meta, src, dst uint32) skb.Reason {
	// RFC 3927 section 2.7 forbids to forward link-local addresses; a router
	// that has one may be spoken to.
	here := w.ifs.isOwn(dst)
	switch top := src >> 24; {
	case top == 0, top == 127, top >= 224, isLinkLocal(src) && !here:
		return skb.IP4MartianSource
	case w.ifs.isOwn(src):
		return skb.IP4OwnSource
	case w.ifs.isBroadcast(src):
		return skb.IP4MartianSource
	}
	switch top := dst >> 24; {
	case dst == 0xffffffff:
		return skb.IP4Broadcast
	case top >= 224 && top < 240:
		return skb.IP4Multicast
	case top == 0, top == 127, top >= 240, isLinkLocal(dst) && !here:
		return skb.IP4MartianDestination
	case m.Flags&skb.FlagLinkMulticast != 0:
		// RFC 1812 section 5.3.4: a unicast packet in a broadcast frame.
		if w.ifs.isBroadcast(dst) {
			return skb.IP4DirectedBroadcast
		}
		return skb.IP4LinkMulticast
	}
	return skb.ReasonNone
}
