package kernel

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"testing"

	"gorouter/internal/inet"
	"gorouter/internal/testenv"
	"gorouter/test/netlab"
)

const config = `
poll: {idle: backoff}
ip: {icmp_rate: 1000000, icmp_burst: 100000}
ports:
  lan0: {driver: af_packet, interface: lan0, addresses: [192.0.2.1/24]}
  wan0: {driver: af_packet, interface: wan0, mtu: 1000, addresses: [198.51.100.1/24]}
neighbors:
  - {address: 192.0.2.2, mac: "%s", port: lan0}
  - {address: 198.51.100.2, mac: "%s", port: wan0}
routes:
  - {prefix: 10.0.0.0/8, via: 198.51.100.2}
  - {prefix: 172.16.0.0/12, via: 192.0.2.2}
  - {prefix: 10.9.0.0/16, type: blackhole}
  - {prefix: 10.8.0.0/16, type: unreachable}
  - {prefix: 10.7.0.0/16, type: prohibit}
`

// routers makes the two: the kernel and gorouter, between equal cables.
func routers(t *testing.T) (kernel, ours *bench) {
	testenv.NeedRoot(t)
	testenv.NeedTool(t, "ip", "iproute2")
	lab := netlab.New(t)
	kernel = newBench(t, lab, "k")
	n := kernel.router
	for k, v := range map[string]string{
		"ip_forward": "1", "icmp_ratelimit": "0", "icmp_ratemask": "0", "conf.all.rp_filter": "0", "conf.lan0.rp_filter": "0", "conf.wan0.rp_filter": "0",
		"conf.all.accept_source_route": "0", "conf.all.send_redirects": "0", "conf.lan0.send_redirects": "0", "conf.wan0.send_redirects": "0",
	} {
		n.Sysctl("net.ipv4."+k, v)
	}
	n.Address("lan0", leftAddr+"/24")
	n.Address("wan0", rightAddr+"/24")
	n.Neighbor("lan0", hostAddr, kernel.sides[0].mac)
	n.Neighbor("wan0", gateway, kernel.sides[1].mac)
	n.Route("10.0.0.0/8", gateway)
	n.Route("172.16.0.0/12", hostAddr)
	for prefix, kind := range map[string]string{"10.9.0.0/16": "blackhole", "10.8.0.0/16": "unreachable", "10.7.0.0/16": "prohibit"} {
		n.MustRun("ip", "route", "add", kind, prefix)
	}
	ours = newBench(t, lab, "g")
	r := lab.Router(ours.router, fmt.Sprintf(config, ours.sides[0].mac, ours.sides[1].mac))
	t.Cleanup(func() {
		if !t.Failed() {
			balance(t, r.Finish(), r.Stdout())
		}
	})
	return kernel, ours
}

// balance checks that every frame left or has a named reason, fragments and
// errors included.
func balance(t *testing.T, r netlab.Report, stdout string) {
	var more struct{ Originated, Fragmented, Fragments uint64 }
	if err := json.Unmarshal([]byte(stdout), &more); err != nil {
		t.Fatal(err)
	}
	in, out := more.Originated, uint64(0)
	for _, p := range r.Ports {
		in += p.RxPackets
		out += p.TxPackets
	}
	for _, n := range r.Drops {
		out += n
	}
	if in != out || more.Fragmented == 0 || more.Fragments < 2*more.Fragmented {
		t.Errorf("%d frames came in or were made here, %d went out or were dropped by name; %+v", in, out, more)
	}
}

// normal takes out of a packet what two routers may do differently: the
// identification of what they make themselves, and the time of day in
// timestamps.
func normal(o output) output {
	p := append([]byte(nil), o.ip...)
	hl := int(p[0]&15) * 4
	if hl < 20 || hl > len(p) || inet.Checksum(p[:hl]) != 0 {
		return output{o.side, append([]byte("bad header "), p...)}
	}
	if net.IP(p[12:16]).String() == leftAddr || net.IP(p[12:16]).String() == rightAddr {
		p[4], p[5] = 0, 0
	}
	for i := 20; i+1 < hl && p[i] != 0; {
		if p[i] == 1 {
			i++
			continue
		}
		n := int(p[i+1])
		if n < 2 || i+n > hl {
			break
		}
		if p[i] == 68 && n >= 4 {
			step, from := 8, 8
			if p[i+3]&15 == 0 {
				step, from = 4, 4
			}
			for k := from; k+4 <= n && k+1 < int(p[i+2]); k += step {
				clear(p[i+k : i+k+4])
			}
		}
		i += n
	}
	p[10], p[11] = 0, 0
	return output{o.side, p}
}

func equal(a, b []output) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		x, y := normal(a[i]), normal(b[i])
		if x.side != y.side || !bytes.Equal(x.ip, y.ip) {
			return false
		}
	}
	return true
}

func text(out []output) (s string) {
	for _, o := range out {
		s += fmt.Sprintf("\n\tside %d: %x", o.side, o.ip)
	}
	return s
}

func udpBody(n int) []byte {
	b := make([]byte, 8+n)
	for i := range b[8:] {
		b[8+i] = byte(i*7 + i>>8)
	}
	binary.BigEndian.PutUint16(b, 1000)
	binary.BigEndian.PutUint16(b[2:], 2000)
	binary.BigEndian.PutUint16(b[4:], uint16(len(b)))
	return b
}

func icmpBody(typ byte, n int) []byte {
	b := make([]byte, 8+n)
	b[0] = typ
	b[5] = 7 // the kernel gives an answer of nothing but zeros a checksum of zero, which is wrong
	binary.BigEndian.PutUint16(b[2:], inet.Checksum(b))
	return b
}

func TestSamePacketsSameAnswers(t *testing.T) {
	kernel, ours := routers(t)
	to := func(dst string) header { return header{dst: dst, ttl: 64, proto: inet.ProtoUDP, id: 0x1234} }
	with := func(h header, f func(*header)) header { f(&h); return h }
	far := to("10.0.0.1")
	bad := func(p []byte, at int) []byte { p[at] ^= 0x11; return p }
	for _, c := range []struct {
		name string
		p    []byte
		mac  net.HardwareAddr
	}{
		{"plain", packet(far, nil, udpBody(10)), nil},
		{"type of service is kept", packet(with(far, func(h *header) { h.tos = 0xfc }), nil, udpBody(10)), nil},
		{"ttl 1", packet(with(far, func(h *header) { h.ttl = 1 }), nil, udpBody(10)), nil},
		{"ttl 0", packet(with(far, func(h *header) { h.ttl = 0 }), nil, udpBody(10)), nil},
		{"ttl 2", packet(with(far, func(h *header) { h.ttl = 2 }), nil, udpBody(10)), nil},
		{"ttl 1 with type of service", packet(with(far, func(h *header) { h.ttl, h.tos = 1, 0x10 }), nil, udpBody(10)), nil},
		{"ttl 1, long", packet(with(far, func(h *header) { h.ttl = 1 }), nil, udpBody(900)), nil},
		{"ttl 1, later fragment", packet(with(far, func(h *header) { h.ttl, h.word = 1, 5 }), nil, udpBody(10)), nil},
		{"ttl 1, first fragment", packet(with(far, func(h *header) { h.ttl, h.word = 1, 0x2000 }), nil, udpBody(8)), nil},
		{"no route", packet(to("11.0.0.1"), nil, udpBody(10)), nil},
		{"unreachable", packet(to("10.8.0.1"), nil, udpBody(10)), nil},
		{"prohibit", packet(to("10.7.0.1"), nil, udpBody(10)), nil},
		{"blackhole", packet(to("10.9.0.1"), nil, udpBody(10)), nil},
		{"no route for an ICMP error", packet(with(to("11.0.0.1"), func(h *header) { h.proto = 1 }), nil, icmpBody(3, 28)), nil},
		{"no route for an echo", packet(with(to("11.0.0.1"), func(h *header) { h.proto = 1 }), nil, icmpBody(8, 28)), nil},
		{"no route, link broadcast", packet(to("11.0.0.1"), nil, udpBody(10)), net.HardwareAddr{255, 255, 255, 255, 255, 255}},
		{"exactly the MTU", packet(far, nil, udpBody(rightMTU-28)), nil},
		{"one more, fragments", packet(far, nil, udpBody(rightMTU-27)), nil},
		{"fragments", packet(far, nil, udpBody(1400)), nil},
		{"one more, don't fragment", packet(with(far, func(h *header) { h.word = 0x4000 }), nil, udpBody(rightMTU-27)), nil},
		{"a first fragment is fragmented", packet(with(far, func(h *header) { h.word = 0x2000 }), nil, udpBody(1400)), nil},
		{"a middle fragment is fragmented", packet(with(far, func(h *header) { h.word = 0x2000 + 185 }), nil, udpBody(1400)), nil},
		{"a last fragment is fragmented", packet(with(far, func(h *header) { h.word = 370 }), nil, udpBody(1391)), nil},
		{"fragments with options", packet(far, []byte{148, 4, 0, 0, 7, 7, 4, 0, 0, 0, 0, 30, 3, 9, 0x9e, 4, 5, 6}, udpBody(1400)), nil},
		{"echo", packet(with(to(leftAddr), func(h *header) { h.proto, h.tos = 1, 0x10 }), nil, icmpBody(8, 56)), nil},
		{"echo to the far address", packet(with(to(rightAddr), func(h *header) { h.proto, h.ttl = 1, 1 }), nil, icmpBody(8, 57)), nil},
		{"echo with a wrong checksum", bad(packet(with(to(leftAddr), func(h *header) { h.proto = 1 }), nil, icmpBody(8, 57)), 22), nil},
		{"echo with an option that is not returned", packet(with(to(leftAddr), func(h *header) { h.proto = 1 }), []byte{0x9e, 4, 1, 2}, icmpBody(8, 57)), nil},
		{"echo reply", packet(with(to(leftAddr), func(h *header) { h.proto = 1 }), nil, icmpBody(0, 57)), nil},
		{"address mask request", packet(with(to(leftAddr), func(h *header) { h.proto = 1 }), nil, icmpBody(17, 4)), nil},
		{"unknown ICMP type", packet(with(to(leftAddr), func(h *header) { h.proto = 1 }), nil, icmpBody(200, 4)), nil},
		{"port unreachable", packet(to(leftAddr), nil, udpBody(10)), nil},
		{"protocol unreachable", packet(with(to(leftAddr), func(h *header) { h.proto = 200 }), nil, udpBody(10)), nil},
		{"wrong checksum", bad(packet(far, nil, udpBody(10)), 10), nil},
		{"source 127/8", packet(with(far, func(h *header) { h.src = "127.0.0.1" }), nil, udpBody(10)), nil},
		{"source multicast", packet(with(far, func(h *header) { h.src = "224.0.0.1" }), nil, udpBody(10)), nil},
		{"source limited broadcast", packet(with(far, func(h *header) { h.src = "255.255.255.255" }), nil, udpBody(10)), nil},
		{"source is the router's", packet(with(far, func(h *header) { h.src = rightAddr }), nil, udpBody(10)), nil},
		{"to 127/8", packet(to("127.0.0.1"), nil, udpBody(10)), nil},
		{"to 0/8", packet(to("0.0.0.1"), nil, udpBody(10)), nil},
		{"to a group", packet(to("224.1.2.3"), nil, udpBody(10)), nil},
		{"limited broadcast", packet(to("255.255.255.255"), nil, udpBody(10)), nil},
		{"directed broadcast", packet(to("198.51.100.255"), nil, udpBody(10)), nil},
		{"own network's broadcast", packet(to("192.0.2.255"), nil, udpBody(10)), nil},
		{"loose source route", packet(far, []byte{131, 7, 4, 10, 0, 0, 2}, udpBody(10)), nil},
		{"strict source route", packet(to(leftAddr), []byte{137, 7, 4, 10, 0, 0, 2}, udpBody(10)), nil},
		{"record route", packet(far, []byte{7, 11, 4, 0, 0, 0, 0, 0, 0, 0, 0}, udpBody(10)), nil},
		{"record route, last", packet(far, []byte{7, 11, 8, 1, 2, 3, 4, 0, 0, 0, 0}, udpBody(10)), nil},
		{"record route, full", packet(far, []byte{7, 7, 8, 1, 2, 3, 4}, udpBody(10)), nil},
		{"record route, half room", packet(far, []byte{7, 7, 5, 1, 2, 3, 4}, udpBody(10)), nil},
		{"record route, pointer 3", packet(far, []byte{7, 7, 3, 1, 2, 3, 4}, udpBody(10)), nil},
		{"record route of two octets", packet(far, []byte{7, 2, 0, 0}, udpBody(10)), nil},
		{"timestamp", packet(far, []byte{68, 12, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0}, udpBody(10)), nil},
		{"timestamp asked of the router", packet(far, []byte{68, 12, 5, 3, 192, 0, 2, 1, 0, 0, 0, 0}, udpBody(10)), nil},
		{"timestamp, full", packet(far, []byte{68, 8, 9, 0x20, 1, 2, 3, 4}, udpBody(10)), nil},
		{"timestamp, full, asked of others", packet(far, []byte{68, 12, 13, 0xf3, 1, 2, 3, 4, 0, 0, 0, 0}, udpBody(10)), nil},
		{"timestamp, overflow of the overflow", packet(far, []byte{68, 8, 9, 0xf0, 1, 2, 3, 4}, udpBody(10)), nil},
		{"timestamp, pointer 4", packet(far, []byte{68, 8, 4, 0, 1, 2, 3, 4}, udpBody(10)), nil},
		{"timestamp, half room", packet(far, []byte{68, 8, 5, 1, 1, 2, 3, 4}, udpBody(10)), nil},
		{"router alert", packet(far, []byte{148, 4, 0, 0}, udpBody(10)), nil},
		{"unknown option", packet(far, []byte{30, 6, 1, 2, 3, 4}, udpBody(10)), nil},
		{"malformed, ttl 1", packet(with(far, func(h *header) { h.ttl = 1 }), []byte{7, 7, 5, 1, 2, 3, 4}, udpBody(10)), nil},
		{"malformed, no route", packet(to("11.0.0.1"), []byte{7, 7, 5, 1, 2, 3, 4}, udpBody(10)), nil},
		{"malformed, for the router", packet(to(leftAddr), []byte{7, 7, 5, 1, 2, 3, 4}, udpBody(10)), nil},
		{"no-operations", packet(far, []byte{1, 1, 1, 1}, udpBody(10)), nil},
		{"source 0.0.0.0", packet(with(far, func(h *header) { h.src = "0.0.0.0" }), nil, udpBody(10)), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			kernel.t, ours.t = t, t
			want, got := kernel.exchange(c.p, c.mac), ours.exchange(c.p, c.mac)
			if !equal(got, want) {
				t.Errorf("%x:\n  kernel:%s\n  gorouter:%s", c.p, text(want), text(got))
			}
		})
	}
	// Where the two differ, and why. A row that stops differing is out of date.
	for _, c := range []struct {
		name   string
		p      []byte
		why    string
		frames int // that gorouter sends
	}{
		{"source in network 0", packet(with(far, func(h *header) { h.src = "0.0.0.1" }), nil, udpBody(10)),
			"RFC 1812 section 5.3.7 has the whole network dropped, the kernel 0.0.0.0", 0},
		{"source is a network's broadcast", packet(with(far, func(h *header) { h.src = "192.0.2.255" }), nil, udpBody(10)),
			"the kernel leaves it to reverse path filtering", 0},
		{"source link-local", packet(with(far, func(h *header) { h.src = "169.254.1.1" }), nil, udpBody(10)),
			"RFC 3927 section 7 has it dropped", 0},
		{"source class E", packet(with(far, func(h *header) { h.src = "240.1.1.1" }), nil, udpBody(10)),
			"RFC 1812 section 5.3.7 has it dropped", 0},
		{"port unreachable of the far address", packet(to(rightAddr), nil, udpBody(10)),
			"the error comes from the interface's address it leaves by (RFC 1812 section 4.3.2.4), the kernel's from the one asked", 1},
		{"two record routes", packet(far, []byte{1, 7, 7, 8, 1, 2, 3, 4, 7, 7, 8, 1, 2, 3, 4}, udpBody(10)),
			"the kernel puts the options into the error's own header, too", 1},
		{"timestamp with address", packet(far, []byte{68, 12, 5, 1, 0, 0, 0, 0, 0, 0, 0, 0}, udpBody(10)),
			"the address is that of the way out as in record route, the kernel's that of the way in", 1},
		{"octets behind the end of options", packet(far, []byte{1, 1, 0, 7, 1, 1, 1, 1}, udpBody(10)),
			"they are padding and left alone; the kernel clears them", 1},
		{"option length 1", packet(far, []byte{30, 1, 0, 0}, udpBody(10)),
			"the pointer names the length, which is at fault; the kernel's the option", 1},
		{"option longer than the header", packet(far, []byte{30, 9, 0, 0}, udpBody(10)),
			"the same", 1},
		{"echo with record route", packet(with(to(leftAddr), func(h *header) { h.proto = 1 }), []byte{7, 11, 4, 0, 0, 0, 0, 0, 0, 0, 0}, icmpBody(8, 57)),
			"one entry for this router (RFC 1812 section 4.3.3.6), where the kernel makes two", 1},
		{"a later fragment with a first one's option", packet(with(far, func(h *header) { h.word = 185 }), []byte{30, 4, 1, 2}, udpBody(1400)),
			"its pieces but the first go without the option, as RFC 791's procedure has it; the kernel leaves it in all", 2},
		{"timestamp request", packet(with(to(leftAddr), func(h *header) { h.proto = 1 }), nil, icmpBody(13, 12)),
			"RFC 1812 section 4.3.3.8 leaves it open", 0},
	} {
		t.Run("differs: "+c.name, func(t *testing.T) {
			kernel.t, ours.t = t, t
			want, got := kernel.exchange(c.p, nil), ours.exchange(c.p, nil)
			if equal(got, want) || len(got) != c.frames {
				t.Errorf("%x (%s):\n  kernel:%s\n  gorouter:%s", c.p, c.why, text(want), text(got))
			}
		})
	}
	t.Run("random packets", func(t *testing.T) {
		kernel.t, ours.t = t, t
		r := rand.New(rand.NewPCG(1812, 1995))
		for range 1500 {
			p := randomPacket(r)
			want, got := kernel.exchange(p, nil), ours.exchange(p, nil)
			if !equal(got, want) {
				t.Fatalf("%x:\n  kernel:%s\n  gorouter:%s", p, text(want), text(got))
			}
		}
	})
}

func pick[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

// randomPacket makes a packet in which nothing is that the two treat
// differently.
func randomPacket(r *rand.Rand) []byte {
	h := header{
		// The kernel sends a source one error a second about its routes.
		src: fmt.Sprintf("172.%d.%d.%d", 16+r.IntN(16), r.IntN(256), r.IntN(256)),
		dst: pick(r, "10.0.0.1", "10.0.0.1", "10.1.2.3", "10.8.1.1", "10.7.1.1", "10.9.1.1", "11.0.0.1", leftAddr, "127.1.1.1", "198.51.100.255"),
		ttl: pick[byte](r, 0, 1, 2, 64, 255), tos: byte(r.Uint32()) &^ 3, id: uint16(r.Uint32()),
		word:  pick[uint16](r, 0, 0, 0x4000, 0x2000, 0x2000+uint16(r.IntN(8000)), uint16(r.IntN(8000))),
		proto: pick[byte](r, 17, 17, 1, 200),
	}
	if h.dst == leftAddr {
		h.word &= 0x4000
	}
	// The kernel fills in record route and timestamp before it knows that there
	// will be an error, which then has them in two places.
	passes := (h.dst == "10.0.0.1" || h.dst == "10.1.2.3") && h.ttl > 1 && h.word&0x5fff == 0
	var opts []byte
	for len(opts) < 20 && r.IntN(3) > 0 {
		used := func(kind byte) bool { return bytes.IndexByte(opts, kind) >= 0 }
		switch r.IntN(5) {
		case 0:
			opts = append(opts, 1)
		case 1:
			kind := pick[byte](r, 30, 0x9e, 148)
			if h.word&0x1fff != 0 {
				kind |= 0x80 // see "a later fragment with a first one's option"
			}
			opts = append(opts, kind, 4, 0, 0)
		case 2:
			if passes && !used(7) {
				opts = append(opts, 7, 11, pick[byte](r, 4, 8, 12), 10, 10, 10, 10, 0, 0, 0, 0)
			}
		case 3:
			if passes && !used(68) {
				opts = append(opts, 68, 12, 5+8*byte(r.IntN(2)), pick[byte](r, 0, 0x30, 3), 192, 0, 2, 1, 0, 0, 0, 0)
			}
		case 4:
			if r.IntN(4) == 0 && !used(131) && !used(137) {
				opts = append(opts, pick[byte](r, 131, 137), 7, 4, 10, 0, 0, 1)
			}
		}
	}
	n := pick(r, 0, 1, 32, 500, 940, 950, 960, 1400)
	if h.proto == 1 {
		return packet(h, opts, icmpBody(pick[byte](r, 0, 3, 8, 8, 11, 17), n))
	}
	return packet(h, opts, udpBody(n))
}
