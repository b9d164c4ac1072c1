package pktgen

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"pgregory.net/rapid"

	"gorouter/internal/inet"
)

var (
	macA = inet.MAC{2, 0, 0, 0, 0, 0xa}
	macB = inet.MAC{2, 0, 0, 0, 0, 0xb}
)

func testStream(edit func(*Stream)) *Stream {
	s := &Stream{
		Name: "s", StreamOptions: StreamTable.Defaults(), SrcMAC: macA, DstMAC: macB,
		Src: netip.MustParseAddr("192.0.2.1"), Dst: []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("203.0.113.7/32")},
	}
	if edit != nil {
		edit(s)
	}
	return s
}

func v6(s *Stream) {
	s.Src = netip.MustParseAddr("2001:db8::1")
	s.Dst = []netip.Prefix{netip.MustParsePrefix("2001:db8:1::/48"), netip.MustParsePrefix("2001:db8:2::9/128")}
}

func mustSource(t testing.TB, s *Stream) *source {
	t.Helper()
	src, err := newSources([]*Stream{s}, inet.MAC{}, inet.MAC{})
	if err != nil {
		t.Fatal(err)
	}
	return src[0]
}

// checkFrame decodes a frame with gopacket, has gopacket build the same packet
// with lengths and checksums of its own, and compares.
func checkFrame(t testing.TB, s *Stream, f []byte) (dst netip.Addr, udp *layers.UDP) {
	t.Helper()
	p := gopacket.NewPacket(f, layers.LayerTypeEthernet, gopacket.NoCopy)
	if e := p.ErrorLayer(); e != nil {
		t.Fatalf("size %d: %v", len(f), e.Error())
	}
	if len(f) != s.Size {
		t.Fatalf("frame of %d bytes, want %d", len(f), s.Size)
	}
	eth := p.Layer(layers.LayerTypeEthernet).(*layers.Ethernet)
	if !bytes.Equal(eth.SrcMAC, s.SrcMAC[:]) || !bytes.Equal(eth.DstMAC, s.DstMAC[:]) {
		t.Fatalf("MAC addresses %v > %v", eth.SrcMAC, eth.DstMAC)
	}
	udp = p.Layer(layers.LayerTypeUDP).(*layers.UDP)
	var ip gopacket.SerializableLayer
	if s.Src.Is4() {
		l := p.Layer(layers.LayerTypeIPv4).(*layers.IPv4)
		dst, _ = netip.AddrFromSlice(l.DstIP.To4())
		if int(l.TTL) != s.TTL || !bytes.Equal(l.SrcIP.To4(), s.Src.AsSlice()) {
			t.Fatalf("TTL %d, source %v", l.TTL, l.SrcIP)
		}
		ip = &layers.IPv4{Version: 4, TTL: l.TTL, Flags: l.Flags, Protocol: layers.IPProtocolUDP, SrcIP: l.SrcIP, DstIP: l.DstIP}
	} else {
		l := p.Layer(layers.LayerTypeIPv6).(*layers.IPv6)
		dst, _ = netip.AddrFromSlice(l.DstIP)
		if int(l.HopLimit) != s.TTL || !bytes.Equal(l.SrcIP, s.Src.AsSlice()) {
			t.Fatalf("hop limit %d, source %v", l.HopLimit, l.SrcIP)
		}
		ip = &layers.IPv6{Version: 6, HopLimit: l.HopLimit, NextHeader: layers.IPProtocolUDP, SrcIP: l.SrcIP, DstIP: l.DstIP}
	}
	again := &layers.UDP{SrcPort: udp.SrcPort, DstPort: udp.DstPort}
	if err := again.SetNetworkLayerForChecksum(ip.(gopacket.NetworkLayer)); err != nil {
		t.Fatal(err)
	}
	buf := gopacket.NewSerializeBuffer()
	err := gopacket.SerializeLayers(buf, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true},
		&layers.Ethernet{SrcMAC: eth.SrcMAC, DstMAC: eth.DstMAC, EthernetType: eth.EthernetType}, ip, again, gopacket.Payload(udp.Payload))
	if err != nil {
		t.Fatal(err)
	}
	want := buf.Bytes()
	if off := s.headerLen() - 2; binary.BigEndian.Uint16(want[off:]) == 0 {
		// The peer does not know RFC 768's rule for a sum of zero.
		binary.BigEndian.PutUint16(want[off:], 0xffff)
	}
	if !bytes.Equal(f, want) {
		t.Fatalf("size %d:\n got %x\nwant %x", len(f), f, want)
	}
	return dst, udp
}

func TestEveryFrameSizeDecodes(t *testing.T) {
	for _, c := range []struct {
		name string
		min  int
		edit func(*Stream)
	}{{"ipv4", 60, nil}, {"ipv6", 62, v6}} {
		t.Run(c.name, func(t *testing.T) {
			for size := c.min; size <= 9014; size++ {
				s := testStream(c.edit)
				s.Size, s.Flows = size, 3
				src := mustSource(t, s)
				for i := range 3 {
					f, _ := src.take(int64(i)<<40 + 77)
					dst, udp := checkFrame(t, s, f)
					if !s.Dst[i%2].Contains(dst) || int(udp.SrcPort) != s.SrcPort+i || int(udp.DstPort) != s.DstPort {
						t.Fatalf("frame %d: to %v, ports %d > %d", i, dst, udp.SrcPort, udp.DstPort)
					}
					if len(udp.Payload) < tagLen {
						continue
					}
					if binary.BigEndian.Uint32(udp.Payload) != Magic || binary.BigEndian.Uint32(udp.Payload[4:]) != uint32(i) ||
						binary.BigEndian.Uint64(udp.Payload[8:]) != uint64(i)<<40+77 || binary.BigEndian.Uint16(udp.Payload[16:]) != s.Number() {
						t.Fatalf("payload %x", udp.Payload[:tagLen])
					}
				}
			}
		})
	}
	if n := testStream(nil).Size - testStream(nil).headerLen(); n < tagLen {
		t.Errorf("the shortest IPv4 frame has no room for the tag: %d bytes", n)
	}
}

// Walking through all values of a word walks the checksum through all of its
// values, zero included, which must go out as 0xffff.
func TestUDPChecksumNeverZero(t *testing.T) {
	for _, edit := range []func(*Stream){nil, v6} {
		s := testStream(edit)
		s.Size = 80
		s.Dst = s.Dst[1:]
		src := mustSource(t, s)
		ones := 0
		for range 1 << 16 {
			f, _ := src.take(0)
			var sum uint64
			l4 := f[src.frame.l4:]
			if s.Src.Is4() {
				sum = inet.Pseudo4([4]byte(f[26:]), [4]byte(f[30:]), inet.ProtoUDP, len(l4))
			} else {
				sum = inet.Pseudo6([16]byte(f[22:]), [16]byte(f[38:]), inet.ProtoUDP, len(l4))
			}
			if got := inet.Fold(inet.Sum(l4, sum)); got != 0xffff {
				t.Fatalf("datagram sums to %#x: %x", got, f)
			}
			switch binary.BigEndian.Uint16(l4[6:]) {
			case 0:
				t.Fatal("checksum 0 on the wire")
			case 0xffff:
				ones++
			}
		}
		if ones == 0 {
			t.Error("the walk never met a sum of zero")
		}
	}
}

func TestAnyStreamBuildsValidFrames(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := testStream(nil)
		if rapid.Bool().Draw(rt, "six") {
			v6(s)
			s.Src = netip.AddrFrom16([16]byte(append([]byte{0x20}, rapid.SliceOfN(rapid.Byte(), 15, 15).Draw(rt, "src6")...)))
		} else {
			s.Src = netip.AddrFrom4([4]byte(append([]byte{10}, rapid.SliceOfN(rapid.Byte(), 3, 3).Draw(rt, "src4")...)))
			s.Dst = append(s.Dst, netip.PrefixFrom(netip.AddrFrom4([4]byte(append([]byte{11}, rapid.SliceOfN(rapid.Byte(), 3, 3).Draw(rt, "dst4")...))), rapid.IntRange(1, 32).Draw(rt, "bits")))
		}
		s.Size = rapid.IntRange(s.headerLen(), 300).Draw(rt, "size")
		s.Size = max(s.Size, 60)
		s.Flows = rapid.IntRange(1, 100).Draw(rt, "flows")
		s.TTL = rapid.IntRange(1, 255).Draw(rt, "ttl")
		s.Seed = rapid.Uint64().Draw(rt, "seed")
		src := mustSource(t, s)
		src.built = rapid.Uint64().Draw(rt, "built")
		for range 20 {
			f, _ := src.take(rapid.Int64().Draw(rt, "now"))
			checkFrame(t, s, f)
		}
	})
}

func TestBadStreamsAreRefused(t *testing.T) {
	for _, c := range []struct {
		name, want string
		edit       func(*Stream)
	}{
		{"size", "size is 59", func(s *Stream) { s.Size = 59 }},
		{"short for v6", "at least 62", func(s *Stream) { v6(s); s.Size = 61 }},
		{"families", "different families", func(s *Stream) { s.Dst = []netip.Prefix{netip.MustParsePrefix("2001:db8::/64")} }},
		{"no destination", "at least one destination", func(s *Stream) { s.Dst = nil }},
		{"everything", "never routed", func(s *Stream) { s.Dst = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")} }},
		{"zero prefix", "expected a prefix", func(s *Stream) { s.Dst = []netip.Prefix{{}} }},
		{"ports", "above 65535", func(s *Stream) { s.SrcPort, s.Flows = 65000, 537 }},
		{"no MAC", "destination MAC is required", func(s *Stream) { s.DstMAC = inet.MAC{} }},
		{"group MAC", "group address", func(s *Stream) { s.SrcMAC = inet.Broadcast }},
		{"no source MAC", "source MAC is required", func(s *Stream) { s.SrcMAC = inet.MAC{} }},
		{"source", "unicast", func(s *Stream) { s.Src = netip.Addr{} }},
		{"mapped", "unicast", func(s *Stream) { s.Src = netip.MustParseAddr("::ffff:10.0.0.1") }},
		{"name", "name is required", func(s *Stream) { s.Name = "" }},
		{"id", "id is 40000", func(s *Stream) { s.ID = 40000 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := testStream(c.edit).Validate()
			if err == nil || !bytes.Contains([]byte(err.Error()), []byte(c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	if err := testStream(nil).Validate(); err != nil {
		t.Error(err)
	}
	a, b := testStream(nil), testStream(nil)
	if err := Distinct([]*Stream{a, b}); err == nil {
		t.Error("two streams of one number were accepted")
	}
	b.ID = a.Number()%maxID + 1
	if err := Distinct([]*Stream{a, b}); err != nil {
		t.Error(err)
	}
}
