package dataplane

import (
	"encoding/binary"

	"gorouter/fib"
	"gorouter/internal/inet"
	"gorouter/skb"
)

// ICMP types and codes (RFC 792, RFC 1812 section 5.2.7).
const (
	icmpEchoReply        = 0
	icmpUnreachable      = 3
	icmpSourceQuench     = 4
	icmpRedirect         = 5
	icmpEcho             = 8
	icmpTimeExceeded     = 11
	icmpParameterProblem = 12

	codeNetUnreachable  = 0
	codeHostUnreachable = 1
	codeProtocol        = 2
	codePort            = 3
	codeFragNeeded      = 4
	codeAdminProhibited = 13

	codeRedirectHost = 1
)

const (
	// icmpQuote bounds the error as a whole (RFC 1812 section 4.3.2.3).
	icmpQuote = 576
	icmpTTL   = 64
	// icmpPrecedence is internetwork control, and tosBits what an error takes
	// over from its cause (RFC 1812 section 4.3.2.5): the type of service
	// without the two bits that are for congestion now (RFC 3168).
	icmpPrecedence = 0xc0
	tosBits        = 0x1c
)

// tokenBucket limits a rate over the worker's time.
type tokenBucket struct {
	rate, burst int64 // tokens a second, most tokens kept
	tokens      int64
	last        int64 // nanoseconds up to which tokens were given
}

// take takes one token at time now.
func (b *tokenBucket) take(now int64) bool {
	if now-b.last >= b.burst*1e9/b.rate {
		// Also keeps the product below from overflowing after a long rest.
		b.tokens, b.last = b.burst, now
	} else if n := (now - b.last) * b.rate / 1e9; n > 0 {
		b.tokens = min(b.burst, b.tokens+n)
		b.last += n * 1e9 / b.rate // what is left of a token counts next time
	}
	if b.tokens == 0 {
		return false
	}
	b.tokens--
	return true
}

// refuse drops a packet and tells its sender why, where that is allowed.
func (w *Worker) refuse(h skb.Handle, why skb.Reason, typ, code uint8) {
	w.icmpError(h, typ, code, 0)
	w.drop(h, why)
}

// tooBig handles a packet that is longer than the way out takes and must not
// be fragmented.
func (w *Worker) tooBig(h skb.Handle, a *fib.Adjacency) {
	w.icmpError(h, icmpUnreachable, codeFragNeeded, w.frameMTU(a)-inet.EthHeaderLen)
	w.drop(h, skb.IP4TooBig)
}

// mayAnswer says whether an ICMP error may be sent about a packet (RFC 1812
// section 4.3.2.7).
func (w *Worker) mayAnswer(m *skb.Meta, p []byte) bool {
	src := binary.BigEndian.Uint32(p[12:])
	dst := binary.BigEndian.Uint32(p[16:])
	switch {
	case m.Flags&(skb.FlagLinkMulticast|skb.FlagLocal) != 0,
		dst>>24 >= 224, // multicast, class E and limited broadcast
		binary.BigEndian.Uint16(p[6:])&0x1fff != 0,
		src>>24 == 0, src>>24 == 127, src>>24 >= 224, w.ifs.isOwn(src),
		w.ifs.isBroadcast(dst),
		len(w.ifs.own) == 0: // nobody to speak as
		return false
	}
	if p[9] == inet.ProtoICMP {
		// An error about an error could go round for ever. A packet too
		// short to tell counts as one.
		hl := int(p[0]&15) * 4
		if len(p) <= hl {
			return false
		}
		switch p[hl] {
		case icmpUnreachable, icmpSourceQuench, icmpRedirect, icmpTimeExceeded, icmpParameterProblem:
			return false
		}
	}
	return true
}

// icmpError sends an ICMP error about the packet in h, which stays the
// caller's. rest is the second word: the next hop's MTU for fragmentation
// needed, the pointer in the top byte for a parameter problem, else 0.
func (w *Worker) icmpError(h skb.Handle, typ, code uint8, rest uint32) {
	w.sendError(&w.icmp, h, typ, code, rest)
}

// sendError is icmpError with tokens from the given bucket.
func (w *Worker) sendError(bucket *tokenBucket, h skb.Handle, typ, code uint8, rest uint32) {
	m := w.arena.Meta(h)
	p := w.arena.Bytes(h)[inet.EthHeaderLen:]
	if !w.mayAnswer(m, p) {
		w.stats.Live.Forbidden++
		return
	}
	// The bucket is asked before anything is built.
	if !bucket.take(w.now) {
		w.stats.Live.Suppressed++
		return
	}
	e := w.cache.Alloc()
	if e == skb.None {
		w.stats.Live.Suppressed++
		return
	}
	quote := min(len(p), icmpQuote-inet.IPv4HeaderLen-8)
	b := w.arena.Put(e, inet.EthHeaderLen+inet.IPv4HeaderLen+8+quote)
	ic := b[inet.EthHeaderLen+inet.IPv4HeaderLen:]
	ic[0], ic[1], ic[2], ic[3] = typ, code, 0, 0
	binary.BigEndian.PutUint32(ic[4:], rest)
	copy(ic[8:], p[:quote])
	binary.BigEndian.PutUint16(ic[2:], inet.Checksum(ic))
	w.originate(e, m.Port, inet.ProtoICMP, icmpPrecedence|p[1]&tosBits, 0, binary.BigEndian.Uint32(p[12:]), m.Port)
}

// originate completes the IPv4 header of a packet made here (its buffer has
// room for the link header in front) and sends it to dst. src 0 takes the
// address of the port it leaves by.
func (w *Worker) originate(h skb.Handle, in uint16, proto, tos uint8, src, dst uint32, table uint16) {
	m := w.arena.Meta(h)
	m.Port = in
	m.Flags = skb.FlagLocal
	p := w.arena.Bytes(h)[inet.EthHeaderLen:]
	clear(p[:inet.IPv4HeaderLen])
	p[0] = 0x45
	p[1] = tos
	binary.BigEndian.PutUint16(p[2:], uint16(len(p)))
	binary.BigEndian.PutUint16(p[4:], w.identification())
	p[8], p[9] = icmpTTL, proto
	binary.BigEndian.PutUint32(p[12:], src)
	binary.BigEndian.PutUint32(p[16:], dst)
	w.stats.Live.Originated++
	w.route(h, m, dst, table, src == 0)
}

// route sends a packet that this router speaks for: its header is final but
// for the checksum and, when pick is set, the source address.
func (w *Worker) route(h skb.Handle, m *skb.Meta, dst uint32, table uint16, pick bool) {
	d := [1]uint32{dst}
	var res [1]uint32
	w.reader.Lookup4Batch(w.ifs.ifs[table].table, d[:], res[:])
	idx := res[0]
	f := w.frame(h, m)
	if idx&fib.GroupFlag != 0 {
		idx = w.reader.Pick(idx, w.flowHash(f))
	}
	a := w.reader.Adjacency(idx)
	switch a.Kind {
	case fib.Forward, fib.Connected:
	case fib.Blackhole:
		w.drop(h, skb.IP4Blackhole)
		return
	case fib.Prohibit:
		w.drop(h, skb.IP4Prohibit)
		return
	case fib.Unreachable:
		w.drop(h, skb.IP4Unreachable)
		return
	case fib.Local:
		w.drop(h, skb.IP4LocalConsumed)
		return
	default:
		w.drop(h, skb.IP4NoRoute)
		return
	}
	if pick {
		src := w.ifs.sourceFor(a.Port, dst)
		binary.BigEndian.PutUint32(f[26:], src)
	}
	hdr := w.headerOf(h)
	hdr[10], hdr[11] = 0, 0
	binary.BigEndian.PutUint16(hdr[10:], inet.Checksum(hdr))
	w.resolve(h, m, dst, a)
}

// identification is the next number for a packet made here. The workers'
// numbers do not meet, for fragments of two packets with one number would be
// mixed up.
func (w *Worker) identification() uint16 {
	w.ident += uint16(len(w.r.workers))
	return w.ident
}
