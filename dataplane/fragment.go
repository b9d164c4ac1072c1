package dataplane

import (
	"encoding/binary"

	"gorouter/internal/inet"
	"gorouter/skb"
)

const (
	flagDF     = 0x40   // don't fragment, in the header's seventh byte
	moreFlag   = 0x2000 // more fragments, in flags and offset as one word
	offsetMask = 0x1fff
	// minMTU is the shortest MTU a link may have (RFC 791 section 3.2): room
	// for the longest header and the eight bytes that a fragment has at least.
	minMTU = 68
)

// fragment sends a packet by a port in pieces of frames of at most limit bytes
// (RFC 791 section 3.2): in order, each in a fresh buffer, the link header as
// in the packet's own. It reports whether all are on their way. When buffers
// run out the rest is dropped; whoever waits for the datagram loses it.
func (w *Worker) fragment(h skb.Handle, m *skb.Meta, port uint16, limit uint32) bool {
	p := w.arena.Bytes(h)
	head := inet.EthHeaderLen + int(p[inet.EthHeaderLen]&15)*4
	room := (int(max(limit, minMTU+inet.EthHeaderLen)) - head) &^ 7
	data := p[head:]
	word := binary.BigEndian.Uint16(p[20:])
	if int(word&offsetMask)*8+head-inet.EthHeaderLen+len(data) > 0xffff {
		// It reaches beyond the longest datagram: nobody could put it together.
		w.drop(h, skb.IP4TooBig)
		return false
	}
	c := &w.stats.Live
	made := uint64(0)
	for at := 0; at < len(data); at += room {
		n := min(room, len(data)-at)
		e := w.cache.Alloc()
		if e == skb.None {
			c.Originated += made
			w.drop(h, skb.IP4FragmentNoBuffer)
			return false
		}
		b := w.arena.Put(e, head+n)
		copy(b, p[:head])
		copy(b[head:], data[at:at+n])
		binary.BigEndian.PutUint16(b[16:], uint16(head-inet.EthHeaderLen+n))
		piece := word + uint16(at/8)
		if at+n < len(data) {
			piece |= moreFlag
		}
		binary.BigEndian.PutUint16(b[20:], piece)
		b[24], b[25] = 0, 0
		binary.BigEndian.PutUint16(b[24:], inet.Checksum(b[inet.EthHeaderLen:head]))
		em := w.arena.Meta(e)
		em.Port, em.Flags, em.L3 = m.Port, m.Flags, em.Data+inet.EthHeaderLen
		w.emit(port, e)
		made++
		if at == 0 {
			hideOptions(p[inet.EthHeaderLen+inet.IPv4HeaderLen : head])
		}
	}
	w.cache.Free(h)
	c.Fragmented++
	c.Fragments += made
	// One packet came and several frames go: the others were made here.
	c.Originated += made - 1
	return true
}
