package dataplane

import (
	"encoding/binary"

	"gorouter/fib"
	"gorouter/internal/inet"
	"gorouter/skb"
)

// Types of IP options (RFC 791 section 3.1, RFC 2113).
const (
	optEnd         = 0
	optNop         = 1
	optRecordRoute = 7
	optTimestamp   = 68
	optLooseRoute  = 131
	optStrictRoute = 137
	optRouterAlert = 148

	optCopied = 0x80 // every fragment gets the option
)

// Flags of the timestamp option.
const (
	stampOnly      = 0
	stampAddress   = 1
	stampSpecified = 3
)

// stampRoom is the bytes that one entry of a timestamp option takes; 0 for a
// flag that is not known, whose option is left as it is.
func stampRoom(flags uint8) int {
	switch flags & 15 {
	case stampOnly:
		return 4
	case stampAddress, stampSpecified:
		return 8
	}
	return 0
}

// checkOptions looks at the options of a header, which is given at its whole
// length. A header that cannot go on has a reason: IP4SourceRoute, or
// IP4Options with the place of the octet at fault.
func checkOptions(hdr []byte) (why skb.Reason, at int) {
	var route, stamp bool
	for i := inet.IPv4HeaderLen; i < len(hdr); {
		o := hdr[i:]
		if o[0] == optEnd {
			break
		}
		if o[0] == optNop {
			i++
			continue
		}
		if len(o) < 2 {
			return skb.IP4Options, i
		}
		n := int(o[1])
		if n < 2 || n > len(o) {
			return skb.IP4Options, i + 1
		}
		bad := -1
		switch o[0] {
		case optLooseRoute, optStrictRoute:
			return skb.IP4SourceRoute, i
		case optRecordRoute:
			bad = checkRecordRoute(o[:n], route)
			route = true
		case optTimestamp:
			bad = checkTimestamp(o[:n], stamp)
			stamp = true
		case optRouterAlert:
			if n < 4 {
				bad = 1
			}
		}
		if bad >= 0 {
			return skb.IP4Options, i + bad
		}
		i += n
	}
	return skb.ReasonNone, 0
}

// checkRecordRoute gives the place of the octet at fault in a record route
// option, or -1. An option that has some room but not enough for an address is
// in error (RFC 791 section 3.1).
func checkRecordRoute(o []byte, again bool) int {
	switch n := len(o); {
	case again:
		return 0
	case n < 3:
		return 1
	case o[2] < 4, int(o[2]) <= n && int(o[2])+3 > n:
		return 2
	}
	return -1
}

// checkTimestamp is the same for a timestamp option. One that is full and has
// no room to count this router among those who found it full is in error, too.
func checkTimestamp(o []byte, again bool) int {
	switch n := len(o); {
	case again:
		return 0
	case n < 4:
		return 1
	case o[2] < 5:
		return 2
	case int(o[2]) <= n:
		if int(o[2])+stampRoom(o[3])-1 > n {
			return 2
		}
	case o[3]&15 != stampSpecified && o[3]>>4 == 15:
		return 3
	}
	return -1
}

// fillOptions makes this router's entries in the options of a header that
// checkOptions passed: addr as the address (0 when there is none to give), ms
// as the time, milliseconds since midnight UT.
func (s *ifaceSet) fillOptions(hdr []byte, addr, ms uint32) {
	for i := inet.IPv4HeaderLen; i+1 < len(hdr) && hdr[i] != optEnd; {
		if hdr[i] == optNop {
			i++
			continue
		}
		o := hdr[i : i+int(hdr[i+1])]
		switch o[0] {
		case optRecordRoute:
			if p := int(o[2]); p <= len(o) && addr != 0 {
				binary.BigEndian.PutUint32(o[p-1:], addr)
				o[2] += 4
			}
		case optTimestamp:
			s.fillTimestamp(o, addr, ms)
		}
		i += len(o)
	}
}

func (s *ifaceSet) fillTimestamp(o []byte, addr, ms uint32) {
	p, flags := int(o[2]), o[3]&15
	if p > len(o) {
		if flags == stampOnly || flags == stampAddress {
			o[3] += 0x10 // one more who found no room
		}
		return
	}
	switch flags {
	case stampOnly:
	case stampAddress:
		if addr == 0 {
			return
		}
		binary.BigEndian.PutUint32(o[p-1:], addr)
	case stampSpecified:
		if !s.isOwn(binary.BigEndian.Uint32(o[p-1:])) {
			return // another router's turn
		}
	default:
		return
	}
	n := stampRoom(flags)
	binary.BigEndian.PutUint32(o[p-1+n-4:], ms)
	o[2] += uint8(n)
}

// hideOptions makes no-operations of the options that only the first fragment
// of a datagram carries (RFC 791 section 3.1, the copied flag). opts is the
// part of the header behind its fixed part.
func hideOptions(opts []byte) {
	for i := 0; i < len(opts) && opts[i] != optEnd; {
		n := 1
		if opts[i] != optNop && i+1 < len(opts) {
			n = max(1, min(int(opts[i+1]), len(opts)-i))
		}
		if opts[i]&optCopied == 0 {
			for k := i; k < i+n; k++ {
				opts[k] = optNop
			}
		}
		i += n
	}
}

// headerOf is the IP header of a frame at its whole length.
func (w *Worker) headerOf(h skb.Handle) []byte {
	p := w.arena.Bytes(h)[inet.EthHeaderLen:]
	return p[:int(p[0]&15)*4]
}

// optionsPass checks the options of a packet and reports whether it may go on.
// One that may not is gone: a malformed option is reported to the sender, a
// source route is dropped without a word (RFC 7126 sections 4.3 and 4.4).
func (w *Worker) optionsPass(h skb.Handle) bool {
	why, at := checkOptions(w.headerOf(h))
	switch why {
	case skb.ReasonNone:
		return true
	case skb.IP4Options:
		w.icmpError(h, icmpParameterProblem, 0, uint32(at)<<24)
	}
	w.drop(h, why)
	return false
}

// passOptions makes this router's entries in the options of a packet that
// leaves by a, and the checksum right again.
func (w *Worker) passOptions(h skb.Handle, a *fib.Adjacency) {
	next := uint32(0)
	if a.NextHop.Is4() {
		next = addr4(a.NextHop)
	}
	w.stampOptions(w.headerOf(h), w.ifs.sourceFor(a.Port, next))
}

func (w *Worker) stampOptions(hdr []byte, addr uint32) {
	w.ifs.fillOptions(hdr, addr, w.clk.DayMillis())
	hdr[10], hdr[11] = 0, 0
	binary.BigEndian.PutUint16(hdr[10:], inet.Checksum(hdr))
}

// replyOptions puts the options that a reply gives back to the front of opts:
// record route and timestamp. It returns their length with padding, which is
// an end of list.
func replyOptions(opts []byte) int {
	k := 0
	for i := 0; i+1 < len(opts) && opts[i] != optEnd; {
		if opts[i] == optNop {
			i++
			continue
		}
		n := int(opts[i+1])
		if opts[i] == optRecordRoute || opts[i] == optTimestamp {
			copy(opts[k:], opts[i:i+n])
			k += n
		}
		i += n
	}
	for ; k%4 != 0; k++ {
		opts[k] = optEnd
	}
	return k
}
