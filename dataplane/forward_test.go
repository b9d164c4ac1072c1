package dataplane

import (
	"bytes"
	"encoding/binary"
	"maps"
	"net/netip"
	"testing"

	"github.com/google/gopacket/layers"

	"gorouter/fib"
	"gorouter/internal/inet"
	"gorouter/internal/inlinetest"
	"gorouter/skb"
)

func TestForwardsToGatewayAndToHost(t *testing.T) {
	l := newLab(t)
	l.via("10.0.0.0/8", 1, "198.51.100.2")
	for _, c := range []struct {
		dst  string
		port int
		mac  inet.MAC
	}{
		{"10.1.2.3", 1, hostMAC[1]},
		{"198.51.100.2", 1, hostMAC[1]},
		{"203.0.113.0", 2, hostMAC[2]}, // a /31 has no network address
	} {
		in := udp("192.0.2.2", c.dst).bytes(t)
		l.run(in)
		out := l.out(c.port)
		if len(out) != 1 {
			t.Fatalf("%s: %d frames out, drops %v", c.dst, len(out), l.drops())
		}
		eth, ip, _ := decode(t, out[0])
		if inet.MAC(eth.DstMAC) != c.mac || inet.MAC(eth.SrcMAC) != routerMAC[c.port] {
			t.Errorf("%s: link header %v -> %v", c.dst, eth.SrcMAC, eth.DstMAC)
		}
		if ip.TTL != 63 {
			t.Errorf("%s: ttl %d", c.dst, ip.TTL)
		}
		if n := int(ip.Length) + 14; len(out[0]) != n || !bytes.Equal(out[0][34:], in[34:n]) {
			t.Errorf("%s: payload changed or padding kept: %d bytes", c.dst, len(out[0]))
		}
	}
	if d := l.drops(); len(d) != 0 {
		t.Errorf("drops %v", d)
	}
}

// What the stages refuse: each frame meets its reason and only that, and is
// answered only where it should be. Package test/reasons has every reason.
func TestEachDropReasonHasItsFrame(t *testing.T) {
	good := func() []byte { return udp("192.0.2.2", "10.1.1.1").bytes(t) }
	edit := func(f func([]byte) []byte) []byte { return f(good()) }
	to := func(dst string) []byte { return udp("192.0.2.2", dst).bytes(t) }
	from := func(src string) []byte { return udp(src, "10.1.1.1").bytes(t) }
	tests := []struct {
		name  string
		why   skb.Reason
		frame []byte
		icmp  int // answers expected on port 0
	}{
		{"13 bytes", skb.EthShort, good()[:13], 0},
		{"broadcast source MAC", skb.EthGroupSource, edit(func(f []byte) []byte { copy(f[6:12], inet.Broadcast[:]); return f }), 0},
		{"multicast source MAC", skb.EthGroupSource, edit(func(f []byte) []byte { f[6] |= 1; return f }), 0},
		{"broadcast frame from a group address", skb.EthGroupSource, edit(func(f []byte) []byte { copy(f, inet.Broadcast[:]); f[6] |= 1; return f }), 0},
		{"other host's MAC, group source", skb.EthOtherHost, edit(func(f []byte) []byte { f[5]++; f[6] |= 1; return f }), 0},
		{"other host's MAC", skb.EthOtherHost, edit(func(f []byte) []byte { f[5]++; return f }), 0},
		{"unknown ethertype", skb.EthUnknownType, edit(func(f []byte) []byte { f[12], f[13] = 0x88, 0xcc; return f }), 0},
		{"802.3 length", skb.EthUnknownType, edit(func(f []byte) []byte { f[12], f[13] = 0, 46; return f }), 0},
		{"VLAN tag", skb.EthVLAN, edit(func(f []byte) []byte { f[12], f[13] = 0x81, 0; return f }), 0},
		{"QinQ tag", skb.EthVLAN, edit(func(f []byte) []byte { f[12], f[13] = 0x88, 0xa8; return f }), 0},
		{"IPv6", skb.IP6Unsupported, edit(func(f []byte) []byte { f[12], f[13] = 0x86, 0xdd; return f }), 0},
		{"ARP with wrong hardware type", skb.ArpInvalid, func() []byte {
			f := arpFrame(1, inet.Broadcast, hostMAC[0], "192.0.2.2", inet.MAC{}, "192.0.2.1")
			f[15] = 6
			return f
		}(), 0},
		{"ARP cut short", skb.ArpInvalid, arpFrame(1, inet.Broadcast, hostMAC[0], "192.0.2.2", inet.MAC{}, "192.0.2.1")[:41], 0},
		{"ARP for a group address", skb.ArpInvalid, func() []byte {
			f := arpFrame(1, inet.Broadcast, inet.Broadcast, "192.0.2.2", inet.MAC{}, "192.0.2.1")
			copy(f[6:12], hostMAC[0][:])
			return f
		}(), 0},
		{"ARP for another host", skb.ArpNotForUs, arpFrame(1, inet.Broadcast, hostMAC[0], "192.0.2.2", inet.MAC{}, "192.0.2.77"), 0},
		{"ARP answer nobody asked for", skb.ArpConsumed, arpFrame(2, routerMAC[0], hostMAC[0], "192.0.2.66", routerMAC[0], "192.0.2.1"), 0},
		{"33 bytes", skb.IP4Short, good()[:33], 0},
		{"14 bytes", skb.IP4Short, good()[:14], 0},
		{"version 5", skb.IP4Version, edit(func(f []byte) []byte { f[14] = 0x55; return resum(f) }), 0},
		{"header length 16", skb.IP4HeaderLength, edit(func(f []byte) []byte { f[14] = 0x44; return f }), 0},
		{"header beyond the frame", skb.IP4HeaderLength, edit(func(f []byte) []byte { f[14] = 0x4f; return f[:60] }), 0},
		{"total length beyond the frame", skb.IP4TotalLength, edit(func(f []byte) []byte { f[16], f[17] = 5, 0; return resum(f) }), 0},
		{"total length under the header", skb.IP4TotalLength, edit(func(f []byte) []byte { f[16], f[17] = 0, 19; return resum(f) }), 0},
		{"wrong checksum", skb.IP4Checksum, edit(func(f []byte) []byte { f[25]++; return f }), 0},
		{"total length beyond the frame, options", skb.IP4TotalLength, func() []byte {
			f := withOptions(t, udp("192.0.2.2", "10.1.1.1"), 1, 1, 1, 1)
			f[16], f[17] = 5, 0
			return resum(f)
		}(), 0},
		{"wrong checksum, options", skb.IP4Checksum, func() []byte {
			f := withOptions(t, udp("192.0.2.2", "10.1.1.1"), 1, 1, 1, 1)
			f[34] = 0
			return f
		}(), 0},
		{"source 0.0.0.0", skb.IP4MartianSource, from("0.0.0.0"), 0},
		{"source 127.0.0.1", skb.IP4MartianSource, from("127.0.0.1"), 0},
		{"source multicast", skb.IP4MartianSource, from("224.0.0.5"), 0},
		{"source class E", skb.IP4MartianSource, from("240.1.2.3"), 0},
		{"source broadcast", skb.IP4MartianSource, from("255.255.255.255"), 0},
		{"source link-local", skb.IP4MartianSource, from("169.254.1.1"), 0},
		{"source our subnet's broadcast", skb.IP4MartianSource, from("192.0.2.255"), 0},
		{"source is our own address", skb.IP4OwnSource, from("198.51.100.1"), 0},
		{"destination 127.0.0.1", skb.IP4MartianDestination, to("127.0.0.1"), 0},
		{"destination 0.1.2.3", skb.IP4MartianDestination, to("0.1.2.3"), 0},
		{"destination class E", skb.IP4MartianDestination, to("250.1.1.1"), 0},
		{"destination link-local", skb.IP4MartianDestination, to("169.254.1.1"), 0},
		{"limited broadcast", skb.IP4Broadcast, to("255.255.255.255"), 0},
		{"directed broadcast", skb.IP4DirectedBroadcast, to("198.51.100.255"), 0},
		{"directed broadcast, old form", skb.IP4DirectedBroadcast, to("198.51.100.0"), 0},
		{"multicast", skb.IP4Multicast, to("224.0.0.5"), 0},
		{"unicast in a broadcast frame", skb.IP4LinkMulticast, edit(func(f []byte) []byte { copy(f, inet.Broadcast[:]); return f }), 0},
		{"ttl 1", skb.IP4TTL, edit(func(f []byte) []byte { f[22] = 1; return resum(f) }), 1},
		{"ttl 0", skb.IP4TTL, edit(func(f []byte) []byte { f[22] = 0; return resum(f) }), 1},
		{"no route", skb.IP4NoRoute, to("11.0.0.1"), 1},
		{"blackhole", skb.IP4Blackhole, to("10.9.0.1"), 0},
		{"unreachable", skb.IP4Unreachable, to("10.8.0.1"), 1},
		{"prohibit", skb.IP4Prohibit, to("10.7.0.1"), 1},
		{"UDP for us", skb.IP4LocalPort, to("192.0.2.1"), 1},
		{"TCP for us", skb.IP4LocalProtocol, pkt{dstMAC: routerMAC[0], srcMAC: hostMAC[0], src: "192.0.2.2", dst: "192.0.2.1",
			ttl: 9, proto: layers.IPProtocolTCP, payload: make([]byte, 20)}.bytes(t), 1},
		{"fragment for us", skb.IP4LocalFragment, func() []byte { p := udp("192.0.2.2", "192.0.2.1"); p.mf = true; return p.bytes(t) }(), 0},
		{"echo reply for us", skb.IP4LocalConsumed, func() []byte {
			p := echo("192.0.2.2", "192.0.2.1")
			p.transport = &layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(0, 0)}
			return p.bytes(t)
		}(), 0},
		{"timestamp request for us", skb.IP4LocalICMP, func() []byte {
			p := echo("192.0.2.2", "192.0.2.1")
			p.transport = &layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(13, 0)}
			p.payload = make([]byte, 12)
			return p.bytes(t)
		}(), 0},
		{"malformed option", skb.IP4Options, withOptions(t, udp("192.0.2.2", "10.1.1.1"), 7, 2, 4, 0), 1},
		{"loose source route", skb.IP4SourceRoute, withOptions(t, udp("192.0.2.2", "10.1.1.1"), 131, 7, 4, 10, 0, 0, 1, 0), 0},
		{"strict source route", skb.IP4SourceRoute, withOptions(t, udp("192.0.2.2", "10.1.1.1"), 137, 7, 4, 10, 0, 0, 1, 0), 0},
		{"too big, don't fragment", skb.IP4TooBig, func() []byte {
			p := udp("192.0.2.2", "10.1.1.1")
			p.payload, p.df = make([]byte, 1473), true
			return p.bytes(t)
		}(), 1},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t)
			l.via("10.0.0.0/8", 1, "198.51.100.2")
			for p, k := range map[string]fib.Kind{"10.9.0.0/16": fib.Blackhole, "10.8.0.0/16": fib.Unreachable, "10.7.0.0/16": fib.Prohibit} {
				l.route(fib.Route{Prefix: netip.MustParsePrefix(p), Kind: k})
			}
			l.run(c.frame)
			if want := map[string]uint64{c.why.String(): 1}; !maps.Equal(l.drops(), want) {
				t.Errorf("drops %v, want %v", l.drops(), want)
			}
			if n := len(l.out(1)) + len(l.out(2)); n != 0 {
				t.Errorf("%d frames were forwarded", n)
			}
			if n := len(l.out(0)); n != c.icmp {
				t.Errorf("%d answers, want %d", n, c.icmp)
			}
		})
	}
}

func TestPaddingIsNotForwardedAndNotQuoted(t *testing.T) {
	l := newLab(t)
	l.via("10.0.0.0/8", 1, "198.51.100.2")
	p := pkt{dstMAC: routerMAC[0], srcMAC: hostMAC[0], src: "192.0.2.2", dst: "10.0.0.1", ttl: 64,
		proto: layers.IPProtocolTCP, payload: make([]byte, 20)}
	f := p.bytes(t)
	for i := 54; i < len(f); i++ {
		f[i] = 0xee // what a sender's driver left behind a 40-byte packet
	}
	expired := resum(append([]byte(nil), f...))
	expired[22] = 1
	l.run(f, resum(expired))
	out := l.out(1)
	if len(out) != 1 || len(out[0]) != 54 {
		t.Fatalf("forwarded %d frames, first %d bytes, want one of 54", len(out), len(out[0]))
	}
	icmp := l.out(0)
	if len(icmp) != 1 || bytes.IndexByte(icmp[0], 0xee) >= 0 || len(icmp[0]) != 14+20+8+40 {
		t.Errorf("time exceeded quotes the padding or is missing: %x", icmp)
	}
}

// A packet that ends right behind its header has nothing else to look at.
func TestHeaderOnlyPacketIsForwarded(t *testing.T) {
	l := newLab(t)
	l.via("0.0.0.0/0", 1, "198.51.100.2")
	for _, proto := range []layers.IPProtocol{layers.IPProtocolTCP, layers.IPProtocolICMPv4, 255} {
		p := pkt{dstMAC: routerMAC[0], srcMAC: hostMAC[0], src: "192.0.2.2", dst: "10.0.0.1", ttl: 2, proto: proto}
		l.run(p.bytes(t)[:34])
	}
	if n := len(l.out(1)); n != 3 {
		t.Errorf("%d of 3 forwarded, drops %v", n, l.drops())
	}
}

func TestChecksumIsRightForEveryTTLAndCornerSum(t *testing.T) {
	l := newLab(t)
	l.via("10.0.0.0/8", 1, "198.51.100.2")
	for ttl := 2; ttl <= 255; ttl++ {
		var fs [][]byte
		for _, want := range []uint16{0x0000, 0xfeff, 0xffff, 0x0100, 0x00ff} {
			p := udp("192.0.2.2", "10.1.1.1")
			p.ttl = uint8(ttl)
			f := p.bytes(t)
			// Choose the identification so that the checksum before the
			// change is the corner value, where that value can occur.
			cur := binary.BigEndian.Uint16(f[24:])
			id := uint32(binary.BigEndian.Uint16(f[18:])) + uint32(cur) + uint32(^want)
			id = id&0xffff + id>>16
			binary.BigEndian.PutUint16(f[18:], uint16(id))
			fs = append(fs, resum(f))
		}
		l.run(fs...)
		for _, f := range l.out(1) {
			if _, ip, _ := decode(t, f); int(ip.TTL) != ttl-1 {
				t.Errorf("ttl %d became %d", ttl, ip.TTL)
			}
		}
	}
}

func TestFragmentsOfADatagramTakeOneLeg(t *testing.T) {
	l := newLab(t)
	l.route(fib.Route{Prefix: netip.MustParsePrefix("10.0.0.0/8"), Kind: fib.Forward, NextHops: []fib.NextHop{
		{Port: 1, Via: netip.MustParseAddr("198.51.100.2")}, {Port: 2, Via: netip.MustParseAddr("203.0.113.0")}}})
	legs := map[int]int{}
	for i := range 200 {
		src := netip.AddrFrom4([4]byte{192, 0, 2, byte(3 + i)}).String()
		first := udp(src, "10.1.1.1")
		first.mf, first.payload, first.sport = true, make([]byte, 32), uint16(i)
		later := pkt{dstMAC: routerMAC[0], srcMAC: hostMAC[0], src: src, dst: "10.1.1.1", ttl: 64, frag: 5, proto: layers.IPProtocolUDP, payload: make([]byte, 32)}
		l.run(first.bytes(t), later.bytes(t))
		a, b := len(l.out(1)), len(l.out(2))
		if a+b != 2 || (a != 0 && b != 0) {
			t.Fatalf("source %s: %d fragments by one leg, %d by the other", src, a, b)
		}
		legs[a]++
	}
	if legs[0] < 60 || legs[2] < 60 {
		t.Errorf("legs are used unevenly: %v", legs)
	}
}

func TestPacketPathDoesNotAllocate(t *testing.T) {
	if skb.Debug {
		t.Log("the debug build allocates on purpose; checked without the tag")
		return
	}
	l := newLab(t)
	l.via("10.0.0.0/8", 1, "198.51.100.2")
	l.wires[1].discard = true
	for range 256 {
		l.wires[0].in = append(l.wires[0].in, udp("192.0.2.2", "10.1.1.1").bytes(t))
	}
	l.wires[0].loop = true
	w := l.r.workers[0]
	for range 100 {
		w.Round()
	}
	if n := testing.AllocsPerRun(200, func() { w.Round() }); n != 0 {
		t.Errorf("%v allocations a round", n)
	}
	l.wires[0].loop = false
}

func TestHotFunctionsInline(t *testing.T) {
	inlinetest.Require(t, "gorouter/dataplane", "headerSumOK", "decrementTTL", "(*Worker).frame", "(*ifaceSet).watched", "(*Worker).frameMTU")
}
