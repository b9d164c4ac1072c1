package dataplane

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"github.com/google/gopacket/layers"
	"pgregory.net/rapid"

	"gorouter/fib"
	"gorouter/skb"
)

// withOptions is a packet with the given bytes as its options, filled up with
// zeros to whole words.
func withOptions(t testing.TB, p pkt, opts ...byte) []byte {
	t.Helper()
	plain := p.bytes(t)
	plain = plain[:14+int(binary.BigEndian.Uint16(plain[16:]))]
	opts = append([]byte(nil), opts...)
	for len(opts)%4 != 0 {
		opts = append(opts, 0)
	}
	f := append(append(append([]byte(nil), plain[:34]...), opts...), plain[34:]...)
	f[14] = 0x45 + byte(len(opts)/4)
	binary.BigEndian.PutUint16(f[16:], uint16(len(f)-14))
	return resum(f)
}

// optionsOf are the options of a frame.
func optionsOf(f []byte) []byte { return f[34 : 14+int(f[14]&15)*4] }

var (
	leftAddr  = []byte{192, 0, 2, 1}    // of port 0
	rightAddr = []byte{198, 51, 100, 1} // of port 1, by which packets leave here
)

func cat(parts ...any) (b []byte) {
	for _, p := range parts {
		switch p := p.(type) {
		case int:
			b = append(b, byte(p))
		case []byte:
			b = append(b, p...)
		}
	}
	return b
}

// noon is 12:34:56.789 as a timestamp.
var noon = []byte{0x02, 0xb3, 0x2c, 0x95}

// optionLab is a lab at a known time of day, its host 10.0.0.1 behind port 1.
func optionLab(t testing.TB) *lab {
	l := newLab(t)
	l.via("10.0.0.0/8", 1, "198.51.100.2")
	l.clk.Advance(int64(36*time.Hour+34*time.Minute+56789*time.Millisecond) * 1000)
	return l
}

func TestOptionsOnTheWay(t *testing.T) {
	z := func(n int) []byte { return make([]byte, n) }
	for _, c := range []struct {
		name string
		in   []byte
		want []byte // without padding
	}{
		{"no-operations", cat(1, 1, 1, 0), cat(1, 1, 1, 0)},
		{"end of list, then rubbish", cat(0, 7, 1, 9), cat(0, 7, 1, 9)},
		{"unknown, not copied", cat(30, 4, 1, 2), cat(30, 4, 1, 2)},
		{"unknown, copied", cat(0x9e, 8, 1, 2, 3, 4, 5, 6), cat(0x9e, 8, 1, 2, 3, 4, 5, 6)},
		{"unknown with nothing in it", cat(30, 2, 0, 0), cat(30, 2, 0, 0)},
		{"security", cat(130, 11, z(9), 0), cat(130, 11, z(9), 0)},
		{"router alert", cat(148, 4, 0, 0), cat(148, 4, 0, 0)},
		{"record route, first", cat(7, 11, 4, z(8), 0), cat(7, 11, 8, rightAddr, z(4), 0)},
		{"record route, last place", cat(7, 11, 8, 1, 2, 3, 4, z(4), 0), cat(7, 11, 12, 1, 2, 3, 4, rightAddr, 0)},
		{"record route, full", cat(7, 7, 8, 1, 2, 3, 4, 0), cat(7, 7, 8, 1, 2, 3, 4, 0)},
		{"record route, full far beyond", cat(7, 7, 255, 1, 2, 3, 4, 0), cat(7, 7, 255, 1, 2, 3, 4, 0)},
		{"record route without any room", cat(7, 3, 4, 0), cat(7, 3, 4, 0)},
		{"record route behind others", cat(1, 30, 3, 9, 7, 7, 4, z(4), 0), cat(1, 30, 3, 9, 7, 7, 8, rightAddr, 0)},
		{"timestamp", cat(68, 12, 5, 0, z(8)), cat(68, 12, 9, 0, noon, z(4))},
		{"timestamp, last place", cat(68, 8, 5, 0, z(4)), cat(68, 8, 9, 0, noon)},
		{"timestamp, full", cat(68, 8, 9, 0, 1, 2, 3, 4), cat(68, 8, 9, 0x10, 1, 2, 3, 4)},
		{"timestamp, full for the last that can be counted", cat(68, 8, 9, 0xe0, 1, 2, 3, 4), cat(68, 8, 9, 0xf0, 1, 2, 3, 4)},
		{"timestamp with address", cat(68, 12, 5, 1, z(8)), cat(68, 12, 13, 1, rightAddr, noon)},
		{"timestamp with address, full", cat(68, 12, 13, 0x21, z(8)), cat(68, 12, 13, 0x31, z(8))},
		{"timestamp asked of us, the way out", cat(68, 12, 5, 3, rightAddr, z(4)), cat(68, 12, 13, 3, rightAddr, noon)},
		{"timestamp asked of us, another address", cat(68, 12, 5, 3, leftAddr, z(4)), cat(68, 12, 13, 3, leftAddr, noon)},
		{"timestamp asked of another", cat(68, 12, 5, 3, 10, 9, 9, 9, z(4)), cat(68, 12, 5, 3, 10, 9, 9, 9, z(4))},
		{"timestamp asked of others, full", cat(68, 12, 13, 0xf3, z(8)), cat(68, 12, 13, 0xf3, z(8))},
		{"timestamp of an unknown kind", cat(68, 12, 5, 2, z(8)), cat(68, 12, 5, 2, z(8))},
		{"both", cat(7, 7, 4, z(4), 68, 8, 5, 0, z(4), 0), cat(7, 7, 8, rightAddr, 68, 8, 9, 0, noon, 0)},
		{"forty bytes", cat(7, 39, 4, z(36), 0), cat(7, 39, 8, rightAddr, z(32), 0)},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := optionLab(t)
			in := withOptions(t, udp("192.0.2.2", "10.0.0.1"), c.in...)
			orig := append([]byte(nil), in...)
			l.run(in)
			out := l.out(1)
			if len(out) != 1 {
				t.Fatalf("%d frames, drops %v", len(out), l.drops())
			}
			_, ip, _ := decode(t, out[0])
			if ip.TTL != 63 || int(ip.Length) != len(out[0])-14 || len(out[0]) != len(orig) {
				t.Errorf("header %+v", ip)
			}
			for len(c.want)%4 != 0 {
				c.want = append(c.want, 0)
			}
			if got := optionsOf(out[0]); !bytes.Equal(got, c.want) {
				t.Errorf("options %v\n    want %v", got, c.want)
			}
			if n := len(orig) - 16; !bytes.Equal(out[0][n:], orig[n:]) {
				t.Errorf("payload %x", out[0][n:])
			}
			if s := l.r.Stats(); s.Forwarded != 1 || s.Originated != 0 {
				t.Errorf("counted %+v", s)
			}
			if err := checkStages(l); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestMalformedOptionsAreReportedWithThePlace(t *testing.T) {
	z := func(n int) []byte { return make([]byte, n) }
	for _, c := range []struct {
		name string
		in   []byte
		at   int // octet of the header
	}{
		{"ends behind the type", cat(1, 1, 1, 7), 23},
		{"length 0", cat(30, 0, 0, 0), 21},
		{"length 1", cat(30, 1, 0, 0), 21},
		{"length beyond the header", cat(30, 5, 0, 0), 21},
		{"length beyond the header, later", cat(1, 1, 30, 3), 23},
		{"record route too short", cat(7, 2, 0, 0), 21},
		{"record route, pointer into the option's head", cat(7, 7, 3, z(4), 0), 22},
		{"record route, pointer 0", cat(7, 7, 0, z(4), 0), 22},
		{"record route, room for a part of an address", cat(7, 7, 5, z(4), 0), 22},
		{"record route, odd length", cat(7, 6, 4, z(3), 0, 0), 22},
		{"two record routes", cat(7, 7, 4, z(4), 7, 7, 4, z(4), 0, 0), 27},
		{"timestamp too short", cat(68, 3, 5, 0), 21},
		{"timestamp, pointer into the option's head", cat(68, 8, 4, 0, z(4)), 22},
		{"timestamp, room for a part", cat(68, 8, 6, 0, z(4)), 22},
		{"timestamp with address, room for half", cat(68, 8, 5, 1, z(4)), 22},
		{"timestamp asked of some, room for half", cat(68, 8, 5, 3, rightAddr), 22},
		{"timestamp, sixteenth without room", cat(68, 8, 9, 0xf0, z(4)), 23},
		{"timestamp with address, sixteenth without room", cat(68, 12, 13, 0xf1, z(8)), 23},
		{"two timestamps", cat(68, 8, 5, 0, z(4), 68, 8, 5, 0, z(4)), 28},
		{"router alert too short", cat(148, 3, 0, 0), 21},
	} {
		// Whatever becomes of the packet otherwise.
		for _, dst := range []string{"10.0.0.1", "198.51.100.77", "192.0.2.1", "11.0.0.1"} {
			t.Run(c.name+" to "+dst, func(t *testing.T) {
				l := optionLab(t)
				in := withOptions(t, udp("192.0.2.2", dst), c.in...)
				orig := append([]byte(nil), packet(in)...)
				l.run(in)
				out := l.out(0)
				if len(out) != 1 || len(l.out(1)) != 0 || l.drops()["ip4_options"] != 1 {
					t.Fatalf("%d frames, drops %v", len(out), l.drops())
				}
				_, _, dec := decode(t, out[0])
				ic := dec.Layer(layers.LayerTypeICMPv4).(*layers.ICMPv4)
				if ic.TypeCode != layers.CreateICMPv4TypeCode(12, 0) || int(ic.Id) != c.at<<8 || ic.Seq != 0 {
					t.Errorf("%v, pointer %d, want %d", ic.TypeCode, ic.Id>>8, c.at)
				}
				if !bytes.Equal(ic.Payload, orig) {
					t.Errorf("quoted %x\n  want %x", ic.Payload, orig)
				}
			})
		}
	}
}

// Source routes are not obeyed, whoever they name and however far they are,
// and nothing is said about it: RFC 7126 sections 4.3 and 4.4.
func TestSourceRoutesAreDroppedWithoutAWord(t *testing.T) {
	for _, typ := range []byte{131, 137} {
		for _, ptr := range []byte{4, 8, 3, 255} {
			for _, dst := range []string{"10.0.0.1", "192.0.2.1", "11.0.0.1"} {
				l := optionLab(t)
				l.run(withOptions(t, udp("192.0.2.2", dst), 1, typ, 7, ptr, 10, 0, 0, 9),
					withOptions(t, echo("192.0.2.2", dst), typ, 7, ptr, 10, 0, 0, 9))
				if d := l.drops(); d["ip4_source_route"] != 2 || len(d) != 1 || len(l.out(0))+len(l.out(1)) != 0 {
					t.Errorf("type %d pointer %d to %s: drops %v", typ, ptr, dst, d)
				}
			}
		}
	}
}

// Entries are made when the packet leaves, so that an error about one that
// waited quotes what its sender sent.
func TestOptionsOfAPacketThatWaits(t *testing.T) {
	l := optionLab(t)
	in := withOptions(t, udp("192.0.2.2", "198.51.100.77"), 7, 7, 4, 0, 0, 0, 0)
	orig := append([]byte(nil), packet(in)...)
	l.run(in)
	l.out(1)
	l.runAt(1, arpFrame(arpReply, routerMAC[1], hostMAC[2], "198.51.100.77", routerMAC[1], "198.51.100.1"))
	if out := l.out(1); len(out) != 1 || !bytes.Equal(optionsOf(out[0]), cat(7, 7, 8, rightAddr, 0)) {
		t.Errorf("after the answer: %x", out)
	}
	l = optionLab(t)
	l.run(append([]byte(nil), in...))
	for range 8 {
		l.pass(time.Second)
	}
	if out := l.out(0); len(out) != 1 || !bytes.Equal(out[0][42:], orig) {
		t.Errorf("without one: %x, want %x quoted", out, orig)
	}
}

// A router without an address has none to record, and keeps the place free.
func TestOptionsWithoutAnAddress(t *testing.T) {
	l := optionLab(t)
	s := *l.r.ifaces.Load()
	for i := range s.ifs {
		s.ifs[i].addrs = nil
	}
	l.r.ifaces.Store(newIfaceSet(l.r, &s))
	opts := cat(7, 7, 4, 0, 0, 0, 0, 68, 12, 5, 1, make([]byte, 8), 0)
	l.run(withOptions(t, udp("192.0.2.2", "10.0.0.1"), opts...))
	if out := l.out(1); len(out) != 1 || !bytes.Equal(optionsOf(out[0]), opts) {
		t.Errorf("%x, drops %v", out, l.drops())
	}
}

// RFC 1812 section 4.3.3.6: a reply carries the request's record route and
// timestamp with our own entry, and nothing else.
func TestEchoReplyReturnsRecordRouteAndTimestamp(t *testing.T) {
	z := func(n int) []byte { return make([]byte, n) }
	for _, c := range []struct{ in, want []byte }{
		{cat(1, 1, 1, 0), nil},
		{cat(30, 4, 1, 2), nil},
		{cat(148, 4, 0, 0, 1), nil},
		{cat(7, 11, 4, z(8), 0), cat(7, 11, 8, leftAddr, z(4), 0)},
		{cat(7, 3, 4, 0), cat(7, 3, 4, 0)},
		{cat(1, 68, 8, 5, 0, z(4)), cat(68, 8, 9, 0, noon)},
		{cat(148, 4, 0, 0, 7, 7, 4, z(4), 30, 3, 9, 68, 12, 5, 1, z(8), 0), cat(7, 7, 8, leftAddr, 68, 12, 13, 1, leftAddr, noon, 0)},
		{cat(7, 39, 4, z(36), 0), cat(7, 39, 8, leftAddr, z(32), 0)},
		{cat(7, 7, 4, z(4), 0, 30, 4, 1), cat(7, 7, 8, leftAddr, 0)},
	} {
		l := optionLab(t)
		p := echo("192.0.2.2", "192.0.2.1")
		l.run(withOptions(t, p, c.in...))
		out := l.out(0)
		if len(out) != 1 {
			t.Errorf("%v: drops %v", c.in, l.drops())
			continue
		}
		_, ip, dec := decode(t, out[0])
		ic := dec.Layer(layers.LayerTypeICMPv4).(*layers.ICMPv4)
		if !bytes.Equal(optionsOf(out[0]), c.want) {
			t.Errorf("%v: options %v, want %v", c.in, optionsOf(out[0]), c.want)
		}
		if int(ip.Length) != len(out[0])-14 || ic.TypeCode != 0 || string(ic.Payload) != "ping payload" {
			t.Errorf("%v: %+v %v", c.in, ip, ic)
		}
	}
}

// refOptions is what RFC 791 makes of options, written down without regard for
// cost: the options taken apart, each treated by its own text, put together
// again. at is the octet at fault, counted from the header's start.
func refOptions(opts []byte, addr []byte, ms uint32, own func(netip.Addr) bool) (out []byte, why skb.Reason, at int) {
	type part struct {
		at   int
		body []byte
	}
	var parts []part
	var tail []byte
	count := map[byte]int{}
	for pos := 0; pos < len(opts); {
		switch kind := opts[pos]; {
		case kind == 0:
			tail = opts[pos:]
			pos = len(opts)
		case kind == 1:
			parts = append(parts, part{pos, []byte{1}})
			pos++
		case pos == len(opts)-1:
			return nil, skb.IP4Options, 20 + pos
		case opts[pos+1] < 2 || pos+int(opts[pos+1]) > len(opts):
			return nil, skb.IP4Options, 21 + pos
		case kind&0x7f == 3 && kind > 0x80 || kind&0x7f == 9 && kind > 0x80:
			return nil, skb.IP4SourceRoute, 0
		default:
			body := append([]byte(nil), opts[pos:pos+int(opts[pos+1])]...)
			count[kind]++
			entry := 0
			switch {
			case kind == 7 && len(body) < 3, kind == 68 && len(body) < 4, kind == 148 && len(body) < 4:
				if count[kind] > 1 && kind != 148 {
					return nil, skb.IP4Options, 20 + pos
				}
				return nil, skb.IP4Options, 21 + pos
			case (kind == 7 || kind == 68) && count[kind] > 1:
				return nil, skb.IP4Options, 20 + pos
			case kind == 7:
				entry = 4
			case kind == 68:
				entry = map[byte]int{0: 4, 1: 8, 3: 8}[body[3]%16]
			}
			if kind == 7 || kind == 68 {
				head := map[byte]int{7: 3, 68: 4}[kind]
				used := int(body[2]) - 1 // bytes up to the next entry
				switch {
				case used < head:
					return nil, skb.IP4Options, 22 + pos
				case used < len(body) && len(body)-used < entry:
					return nil, skb.IP4Options, 22 + pos
				case used >= len(body) && kind == 68 && body[3]%16 != 3 && body[3]/16 == 15:
					return nil, skb.IP4Options, 23 + pos
				}
			}
			parts = append(parts, part{pos, body})
			pos += len(body)
		}
	}
	stamp := binary.BigEndian.AppendUint32(nil, ms)
	for _, p := range parts {
		b := p.body
		if b[0] == 7 || b[0] == 68 {
			used := int(b[2]) - 1
			var entry []byte
			switch {
			case used >= len(b):
				if b[0] == 68 && (b[3]%16 == 0 || b[3]%16 == 1) {
					b[3] += 16
				}
			case b[0] == 7:
				entry = addr
			case b[3]%16 == 0:
				entry = stamp
			case b[3]%16 == 1:
				entry = append(append([]byte(nil), addr...), stamp...)
			case b[3]%16 == 3:
				if asked := b[used : used+4]; own(netip.AddrFrom4([4]byte(asked))) {
					entry = append(append([]byte(nil), asked...), stamp...)
				}
			}
			copy(b[min(used, len(b)):], entry)
			b[2] += byte(len(entry))
		}
		out = append(out, b...)
	}
	return append(out, tail...), skb.ReasonNone, 0
}

func isLabAddress(a netip.Addr) bool {
	switch a.String() {
	case "192.0.2.1", "198.51.100.1", "203.0.113.1":
		return true
	}
	return false
}

// checkOptionsPath sends a packet with these options through the router and
// compares with the reference.
func checkOptionsPath(t interface {
	Fatalf(string, ...any)
}, l *lab, frame []byte) skb.Reason {
	opts := append([]byte(nil), optionsOf(frame)...)
	want, why, at := refOptions(opts, rightAddr, uint32(l.clk.Now()/1e6%86400000), isLabAddress)
	before := l.drops()
	l.run(frame)
	out, icmp := l.out(1), l.out(0)
	switch why {
	case skb.ReasonNone:
		if len(out) != 1 || len(icmp) != 0 || !bytes.Equal(optionsOf(out[0]), want) {
			t.Fatalf("%v became %x (%d answers), want %v", opts, out, len(icmp), want)
		}
	case skb.IP4Options:
		if len(out) != 0 || len(icmp) != 1 || icmp[0][34] != 12 || int(icmp[0][38]) != at {
			t.Fatalf("%v: %d forwarded, answer %x, want pointer %d", opts, len(out), icmp, at)
		}
	default:
		if len(out)+len(icmp) != 0 {
			t.Fatalf("%v: %d forwarded, %d answers", opts, len(out), len(icmp))
		}
	}
	if why != skb.ReasonNone && l.drops()[why.String()] != before[why.String()]+1 {
		t.Fatalf("%v: drops %v, want one more %v", opts, l.drops(), why)
	}
	return why
}

func drawOptions(t *rapid.T) []byte {
	var o []byte
	for len(o) < 40 && rapid.IntRange(0, 3).Draw(t, "more") > 0 {
		left := 40 - len(o)
		kind := rapid.SampledFrom([]byte{0, 1, 7, 7, 68, 68, 148, 130, 30, 0x9e, 131, 137}).Draw(t, "kind")
		if kind <= 1 {
			o = append(o, kind)
			continue
		}
		n := rapid.IntRange(2, 16).Draw(t, "length")
		if kind == 7 {
			n = 3 + 4*rapid.IntRange(0, 3).Draw(t, "addresses")
		}
		if kind == 68 {
			n = 4 + 4*rapid.IntRange(0, 4).Draw(t, "words")
		}
		if n > left {
			break
		}
		body := make([]byte, n)
		for i := range body {
			body[i] = rapid.Byte().Draw(t, "byte")
		}
		body[0], body[1] = kind, byte(n)
		if n > 2 && (kind == 7 || kind == 68) {
			body[2] = byte(rapid.SampledFrom([]int{4, 5, 8, 9, 12, 13, n, n + 1}).Draw(t, "pointer"))
		}
		if n > 3 && kind == 68 {
			body[3] = body[3]&0xf0 | rapid.SampledFrom([]byte{0, 1, 3, 2}).Draw(t, "flags")
			if p := int(body[2]) - 1; body[3]&15 == 3 && p+4 <= n && rapid.Bool().Draw(t, "ours") {
				copy(body[p:], rightAddr)
			}
		}
		if rapid.IntRange(0, 9).Draw(t, "spoil") == 0 {
			body[rapid.IntRange(1, min(3, n-1)).Draw(t, "where")] = rapid.Byte().Draw(t, "with")
		}
		o = append(o, body...)
	}
	return o
}

func TestOptionsAgainstAPlainReading(t *testing.T) {
	l := optionLab(t)
	seen := map[skb.Reason]int{}
	rapid.Check(t, func(rt *rapid.T) {
		l.clk.Advance(1e12) // tokens for another answer
		frame := withOptions(t, udp("192.0.2.2", "10.0.0.1"), drawOptions(rt)...)
		seen[checkOptionsPath(rt, l, frame)]++
	})
	for _, r := range []skb.Reason{skb.ReasonNone, skb.IP4Options, skb.IP4SourceRoute} {
		if seen[r] == 0 {
			t.Errorf("no example met %v", r)
		}
	}
}

func FuzzOptions(f *testing.F) {
	f.Add([]byte{7, 7, 4, 0, 0, 0, 0, 0})
	f.Add([]byte{68, 12, 5, 3, 192, 0, 2, 1, 0, 0, 0, 0})
	f.Add([]byte{1, 131, 7, 4, 1, 2, 3, 4})
	f.Add([]byte{148, 4, 0, 0, 68, 8, 9, 0xf0, 0, 0, 0, 0})
	l := optionLab(f)
	f.Fuzz(func(t *testing.T, opts []byte) {
		l.clk.Advance(1e12)
		checkOptionsPath(t, l, withOptions(t, udp("192.0.2.2", "10.0.0.1"), opts[:min(len(opts), 40)]...))
	})
}

// Options cost the slow path, never memory.
func TestOptionsAndFragmentsDoNotAllocate(t *testing.T) {
	if skb.Debug {
		t.Log("the debug build allocates on purpose; checked without the tag")
		return
	}
	long := udp("192.0.2.2", "10.0.0.1")
	long.payload = make([]byte, 1400)
	back := udp("192.0.2.2", "172.16.0.1")
	for name, frame := range map[string][]byte{
		"record route and timestamp": withOptions(t, udp("192.0.2.2", "10.0.0.1"), 7, 7, 4, 0, 0, 0, 0, 68, 12, 5, 1, 0, 0, 0, 0, 0, 0, 0, 0),
		"malformed":                  withOptions(t, udp("192.0.2.2", "10.0.0.1"), 7, 2),
		"source route":               withOptions(t, udp("192.0.2.2", "10.0.0.1"), 131, 7, 4, 0, 0, 0, 0),
		"echo with options":          withOptions(t, echo("192.0.2.2", "192.0.2.1"), 1, 7, 7, 4, 0, 0, 0, 0),
		"fragments":                  withOptions(t, long, 148, 4, 0, 0, 7, 7, 4),
		"redirect":                   back.bytes(t),
	} {
		t.Run(name, func(t *testing.T) {
			l := looping(t, [][]byte{frame}, func(c *Config) {
				c.IP = IPTable.Defaults()
				c.IP.Redirects, c.IP.ICMPRate, c.IP.ICMPBurst = true, 1, 100000
			})
			l.via("10.0.0.0/8", 1, "198.51.100.2")
			l.via("172.16.0.0/12", 0, "192.0.2.2")
			adj, _ := l.r.neigh.Find(1, addr4(netip.MustParseAddr("198.51.100.2")))
			l.fib.SetAdjacency(adj, func(a *fib.Adjacency) { a.MTU = 576 })
			w := l.r.workers[0]
			for range 100 {
				w.Round()
			}
			if n := testing.AllocsPerRun(100, func() { w.Round() }); n != 0 {
				t.Errorf("%v allocations a round", n)
			}
		})
	}
}
