package dataplane

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"pgregory.net/rapid"

	"gorouter/internal/inet"
	"gorouter/skb"
)

var (
	martianNets = []netip.Prefix{
		netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("240.0.0.0/4"),
	}
	multicastNet = netip.MustParsePrefix("224.0.0.0/4")
	limited      = netip.MustParseAddr("255.255.255.255")
)

// plainVerdict is RFC 1812's view of a packet, step by step: section 5.2.2 for
// the header, 5.3.7 for the source, 5.3.4 and 5.3.5 for the rest. networks are
// the addresses of our ports.
func plainVerdict(frame []byte, group bool, networks []netip.Prefix) skb.Reason {
	p := frame[14:]
	if len(p) < 20 {
		return skb.IP4Short
	}
	if p[0]>>4 != 4 {
		return skb.IP4Version
	}
	hl := int(p[0]%16) * 4
	if hl < 20 || hl > len(p) {
		return skb.IP4HeaderLength
	}
	if total := int(p[2])*256 + int(p[3]); total < hl || total > len(p) {
		return skb.IP4TotalLength
	}
	sum := 0
	for i := 0; i < hl; i += 2 {
		sum += int(p[i])*256 + int(p[i+1])
	}
	for sum > 0xffff {
		sum = sum%65536 + sum/65536
	}
	if sum != 0xffff {
		return skb.IP4Checksum
	}
	src, dst := netip.AddrFrom4([4]byte(p[12:16])), netip.AddrFrom4([4]byte(p[16:20]))
	broadcastOf := func(a netip.Addr) bool {
		for _, n := range networks {
			if n.Bits() > 30 || !n.Contains(a) {
				continue
			}
			// The first and the last address: one step further is outside.
			if !n.Contains(a.Prev()) || !n.Contains(a.Next()) {
				return true
			}
		}
		return false
	}
	in := func(a netip.Addr, nets ...netip.Prefix) bool {
		for _, n := range nets {
			if n.Contains(a) {
				return true
			}
		}
		return false
	}
	// Link-local addresses are not forwarded, but may speak to us.
	here, linkLocal := false, netip.MustParsePrefix("169.254.0.0/16")
	for _, n := range networks {
		here = here || n.Addr() == dst
	}
	martian := func(a netip.Addr) bool { return in(a, martianNets...) && !(here && in(a, linkLocal)) }
	switch {
	case martian(src), in(src, multicastNet):
		return skb.IP4MartianSource
	}
	for _, n := range networks {
		if n.Addr() == src {
			return skb.IP4OwnSource
		}
	}
	switch {
	case broadcastOf(src):
		return skb.IP4MartianSource
	case dst == limited:
		return skb.IP4Broadcast
	case in(dst, multicastNet):
		return skb.IP4Multicast
	case martian(dst):
		return skb.IP4MartianDestination
	case group && broadcastOf(dst):
		return skb.IP4DirectedBroadcast
	case group:
		return skb.IP4LinkMulticast
	}
	return skb.ReasonNone
}

// verdict is what ip4Input says to a frame that came to port 0.
func (l *lab) verdict(frame []byte, group bool) (why skb.Reason, length int) {
	w := l.r.workers[0]
	h := w.cache.Alloc()
	copy(w.arena.Put(h, len(frame)), frame)
	if group {
		w.arena.Meta(h).Flags |= skb.FlagLinkMulticast
	}
	before := w.stats.Live.Drops
	w.ip[0] = h
	if w.ip4Input(1) == 1 {
		length = int(w.arena.Meta(h).Len)
		w.cache.Free(h)
		return skb.ReasonNone, length
	}
	for r, n := range w.stats.Live.Drops {
		if n != before[r] {
			why = skb.Reason(r)
		}
	}
	return why, 0
}

var verdictNets = []string{"10.3.3.1/24", "10.7.255.1/17", "10.8.0.130/25", "10.9.9.9/32", "172.16.1.1/30"}

// verdictLab is a lab with networks whose broadcast addresses are not all .255.
func verdictLab(t testing.TB) (*lab, []netip.Prefix) {
	l := newLab(t)
	nets := []netip.Prefix{netip.MustParsePrefix("192.0.2.1/24"), netip.MustParsePrefix("198.51.100.1/24"), netip.MustParsePrefix("203.0.113.1/31")}
	for i, s := range verdictNets {
		p := netip.MustParsePrefix(s)
		if err := l.r.AddAddress(uint16(i%3), p); err != nil {
			t.Fatal(err)
		}
		nets = append(nets, p)
	}
	l.r.workers[0].ifs = l.r.ifaces.Load()
	return l, nets
}

func checkVerdict(t interface {
	Fatalf(string, ...any)
}, l *lab, nets []netip.Prefix, frame []byte, group bool) {
	why, length := l.verdict(frame, group)
	want := plainVerdict(frame, group, nets)
	if why != want {
		t.Fatalf("%x (group %v): %v, want %v", frame, group, why, want)
	}
	if want == skb.ReasonNone && length != 14+int(binary.BigEndian.Uint16(frame[16:])) {
		t.Fatalf("%x: length %d after the check", frame, length)
	}
}

func TestInputChecksAgainstAPlainReading(t *testing.T) {
	l, nets := verdictLab(t)
	// Addresses at the edges of everything that is special.
	var edges []netip.Addr
	for _, p := range append(append([]netip.Prefix{multicastNet}, martianNets...), nets...) {
		first, last := from4(addr4(p.Masked().Addr())), from4(addr4(p.Masked().Addr())|uint32(1<<(32-p.Bits())-1))
		for _, a := range []netip.Addr{first.Prev(), first, first.Next(), p.Addr(), p.Addr().Next(), last.Prev(), last, last.Next()} {
			if a.IsValid() {
				edges = append(edges, a)
			}
		}
	}
	seen := map[skb.Reason]int{}
	rapid.Check(t, func(rt *rapid.T) {
		addr := rapid.OneOf(rapid.SampledFrom(edges), rapid.Map(rapid.Uint32(), from4))
		hl := 20
		if rapid.IntRange(0, 3).Draw(rt, "options") == 0 {
			hl = 4 * rapid.IntRange(0, 15).Draw(rt, "ihl")
		}
		n := rapid.SampledFrom([]int{0, 1, 19, 20, 21, 24, 40, 46, 60, 61, 100}).Draw(rt, "bytes")
		f := make([]byte, 14+n)
		for i := range f {
			f[i] = byte(i * 37)
		}
		put := make([]byte, 20)
		put[0] = 0x40 | byte(hl/4)
		if rapid.IntRange(0, 9).Draw(rt, "version") == 0 {
			put[0] = byte(rapid.IntRange(0, 255).Draw(rt, "first byte"))
		}
		total := n
		if rapid.IntRange(0, 2).Draw(rt, "length") == 0 {
			total = rapid.SampledFrom([]int{0, 19, 20, 21, hl - 1, hl, n - 1, n + 1, 65535}).Draw(rt, "total")
		}
		binary.BigEndian.PutUint16(put[2:], uint16(total))
		put[8], put[9] = 64, inet.ProtoUDP
		copy(put[12:], addr.Draw(rt, "src").AsSlice())
		copy(put[16:], addr.Draw(rt, "dst").AsSlice())
		copy(f[14:], put)
		if h := int(f[14%len(f)]&15) * 4; n >= 20 && h >= 20 && h <= n {
			f[24], f[25] = 0, 0
			binary.BigEndian.PutUint16(f[24:], inet.Checksum(f[14:14+h])+uint16(rapid.SampledFrom([]int{0, 0, 0, 0, 0, 1, 0xffff}).Draw(rt, "wrong by")))
		}
		group := rapid.IntRange(0, 4).Draw(rt, "group") == 0
		checkVerdict(rt, l, nets, f, group)
		seen[plainVerdict(f, group, nets)]++
	})
	// Every pair of edges, with an otherwise perfect header.
	for _, src := range edges {
		for _, dst := range edges {
			for _, group := range []bool{false, true} {
				p := udp(src.String(), dst.String())
				f := p.bytes(t)
				checkVerdict(t, l, nets, f, group)
				seen[plainVerdict(f, group, nets)]++
			}
		}
	}
	for _, r := range []skb.Reason{skb.ReasonNone, skb.IP4Short, skb.IP4Version, skb.IP4HeaderLength, skb.IP4TotalLength, skb.IP4Checksum, skb.IP4MartianSource,
		skb.IP4MartianDestination, skb.IP4OwnSource, skb.IP4Broadcast, skb.IP4DirectedBroadcast, skb.IP4Multicast, skb.IP4LinkMulticast} {
		if seen[r] == 0 {
			t.Errorf("no example met %v", r)
		}
	}
}

func FuzzInputChecks(f *testing.F) {
	f.Add(udp("192.0.2.2", "10.0.0.1").bytes(f), false, true)
	f.Add(udp("10.3.3.255", "10.7.255.255").bytes(f), true, true)
	f.Add(udp("192.0.2.2", "10.0.0.1").bytes(f)[:34], false, false)
	l, nets := verdictLab(f)
	f.Fuzz(func(t *testing.T, frame []byte, group, mend bool) {
		if len(frame) < 14 || len(frame) > 1514 {
			return
		}
		if hl := 14 + 4*int(byteAt(frame, 14)&15); mend && hl >= 34 && hl <= len(frame) {
			resum(frame)
		}
		checkVerdict(t, l, nets, frame, group)
	})
}

// A /31 and a /32 have no broadcast address: all of theirs are hosts.
func TestPointToPointNetworksHaveNoBroadcast(t *testing.T) {
	l := newLab(t)
	if err := l.r.AddAddress(1, netip.MustParsePrefix("10.100.100.192/31")); err != nil {
		t.Fatal(err)
	}
	if err := l.r.AddAddress(1, netip.MustParsePrefix("10.5.5.255/32")); err != nil {
		t.Fatal(err)
	}
	// Our own are answered, the other one is asked for and is a good source.
	for _, dst := range []string{"10.100.100.192", "10.5.5.255", "203.0.113.1"} {
		l.run(echo("192.0.2.2", dst).bytes(t))
		if n := len(l.out(0)); n != 1 {
			t.Errorf("%s: %d answers, drops %v", dst, n, l.drops())
		}
	}
	l.run(numbered(t, "10.100.100.193", 1))
	if n := requests(l.out(1)); n != 1 {
		t.Errorf("%d requests for the peer", n)
	}
	p := udp("10.100.100.193", "192.0.2.2")
	p.dstMAC = routerMAC[1]
	l.runAt(1, p.bytes(t))
	if n := len(l.out(0)); n != 1 {
		t.Errorf("a packet from the peer: drops %v", l.drops())
	}
}

// RFC 1812 sections 4.2.2.3, 5.2.5 and 5.3.3.3: reserved bits and precedence
// change nothing and are not changed.
func TestReservedBitsAndPrecedencePass(t *testing.T) {
	l := newLab(t)
	l.via("10.0.0.0/8", 1, "198.51.100.2")
	for tos := range 256 {
		f := udp("192.0.2.2", "10.0.0.1").bytes(t)
		f[15], f[20] = byte(tos), f[20]|0x80
		l.run(resum(f))
		out := l.out(1)
		if len(out) != 1 || out[0][15] != byte(tos) || out[0][20] != 0x80 {
			t.Fatalf("tos %#02x: %x, drops %v", tos, out, l.drops())
		}
	}
}
