package dataplane

import (
	"bytes"
	"encoding/binary"
	"math"
	"net/netip"
	"testing"
	"time"

	"github.com/google/gopacket/layers"
	"pgregory.net/rapid"

	"gorouter/fib"
	"gorouter/internal/inet"
	"gorouter/skb"
)

// refusing is a lab with a route of every kind that refuses.
func refusing(t testing.TB) *lab {
	l := newLab(t)
	l.via("10.0.0.0/8", 1, "198.51.100.2")
	for p, k := range map[string]fib.Kind{"10.9.0.0/16": fib.Blackhole, "10.8.0.0/16": fib.Unreachable, "10.7.0.0/16": fib.Prohibit} {
		l.route(fib.Route{Prefix: netip.MustParsePrefix(p), Kind: k})
	}
	return l
}

// packet is the IP packet in a frame, padding cut off.
func packet(f []byte) []byte { return f[14 : 14+int(binary.BigEndian.Uint16(f[16:]))] }

func TestICMPErrors(t *testing.T) {
	with := func(f func(*pkt)) func(*pkt) { return f }
	for _, c := range []struct {
		name      string
		dst       string
		change    func(*pkt)
		typ, code uint8
		mtu       uint16
	}{
		{"net unreachable", "11.0.0.1", nil, 3, 0, 0},
		{"host unreachable", "10.8.0.1", nil, 3, 1, 0},
		{"administratively prohibited", "10.7.0.1", nil, 3, 13, 0},
		{"protocol unreachable", "192.0.2.1", with(func(p *pkt) { p.proto = layers.IPProtocolTCP }), 3, 2, 0},
		{"port unreachable", "198.51.100.1", nil, 3, 3, 0},
		{"time exceeded", "10.0.0.1", with(func(p *pkt) { p.ttl = 1 }), 11, 0, 0},
		{"time exceeded, connected network", "198.51.100.2", with(func(p *pkt) { p.ttl = 1 }), 11, 0, 0},
		{"time exceeded, ttl 0", "10.0.0.1", with(func(p *pkt) { p.ttl = 0 }), 11, 0, 0},
		{"fragmentation needed", "10.0.0.1", with(func(p *pkt) { p.df, p.payload = true, make([]byte, 1473) }), 3, 4, 1500},
		{"long packet quoted to 576", "11.0.0.1", with(func(p *pkt) { p.payload = make([]byte, 1200) }), 3, 0, 0},
		{"548 bytes quoted whole", "11.0.0.1", with(func(p *pkt) { p.payload = make([]byte, 520) }), 3, 0, 0},
		{"549 bytes lose one", "11.0.0.1", with(func(p *pkt) { p.payload = make([]byte, 521) }), 3, 0, 0},
		{"odd length", "11.0.0.1", with(func(p *pkt) { p.payload = make([]byte, 33) }), 3, 0, 0},
		{"options are quoted", "11.0.0.1", with(func(p *pkt) {
			p.options = []layers.IPv4Option{{OptionType: 148, OptionLength: 4, OptionData: []byte{0, 0}}}
		}), 3, 0, 0},
		{"first fragment", "11.0.0.1", with(func(p *pkt) { p.mf, p.payload = true, make([]byte, 32) }), 3, 0, 0},
		{"echo request", "11.0.0.1", with(func(p *pkt) {
			*p = echo(p.src, p.dst)
		}), 3, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := refusing(t)
			p := udp("192.0.2.2", c.dst)
			if c.change != nil {
				c.change(&p)
			}
			in := p.bytes(t)
			orig := append([]byte(nil), packet(in)...)
			l.run(in)
			out := l.out(0)
			if len(out) != 1 {
				t.Fatalf("%d frames, drops %v", len(out), l.drops())
			}
			eth, ip, dec := decode(t, out[0])
			ic, _ := dec.Layer(layers.LayerTypeICMPv4).(*layers.ICMPv4)
			if ic == nil || ic.TypeCode != layers.CreateICMPv4TypeCode(c.typ, c.code) {
				t.Fatalf("got %v, want type %d code %d", ic, c.typ, c.code)
			}
			if !bytes.Equal(eth.DstMAC, hostMAC[0][:]) || !bytes.Equal(eth.SrcMAC, routerMAC[0][:]) {
				t.Errorf("link header %v -> %v", eth.SrcMAC, eth.DstMAC)
			}
			// The address of the port it leaves by, whatever was asked for.
			if ip.SrcIP.String() != "192.0.2.1" || ip.DstIP.String() != "192.0.2.2" || ip.TTL != 64 || ip.TOS != 0xc0 || ip.IHL != 5 {
				t.Errorf("header %+v", ip)
			}
			if int(ip.Length)+14 != len(out[0]) || ip.Length > 576 {
				t.Errorf("total length %d in a frame of %d", ip.Length, len(out[0]))
			}
			if inet.Checksum(out[0][34:]) != 0 {
				t.Error("ICMP checksum is wrong")
			}
			if want := orig[:min(len(orig), 548)]; !bytes.Equal(ic.Payload, want) {
				t.Errorf("quoted %x\n  want %x", ic.Payload, want)
			}
			if ic.Id != 0 || ic.Seq != c.mtu {
				t.Errorf("unused word %#x, mtu %d, want %d", ic.Id, ic.Seq, c.mtu)
			}
			if s := l.r.Stats(); s.Originated != 1 || s.Suppressed != 0 || s.Forbidden != 0 {
				t.Errorf("counted %+v", s)
			}
		})
	}
}

// RFC 1812 section 4.3.2.7, the whole list.
func TestICMPErrorsThatMustNotBeSent(t *testing.T) {
	icmpType := func(typ uint8) func(*pkt) {
		return func(p *pkt) {
			p.proto, p.transport = layers.IPProtocolICMPv4, &layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(typ, 0)}
			p.payload = make([]byte, 28)
		}
	}
	for _, c := range []struct {
		name      string
		src, dst  string
		mac       inet.MAC
		change    func(*pkt)
		forbidden uint64 // errors that were due and not allowed
	}{
		{"about unreachable", "192.0.2.2", "11.0.0.1", routerMAC[0], icmpType(3), 1},
		{"about source quench", "192.0.2.2", "11.0.0.1", routerMAC[0], icmpType(4), 1},
		{"about redirect", "192.0.2.2", "11.0.0.1", routerMAC[0], icmpType(5), 1},
		{"about time exceeded", "192.0.2.2", "11.0.0.1", routerMAC[0], icmpType(11), 1},
		{"about parameter problem", "192.0.2.2", "11.0.0.1", routerMAC[0], icmpType(12), 1},
		{"expired error", "192.0.2.2", "10.0.0.1", routerMAC[0], func(p *pkt) { icmpType(11)(p); p.ttl = 1 }, 1},
		{"ICMP without a type", "192.0.2.2", "11.0.0.1", routerMAC[0], func(p *pkt) { p.proto, p.payload = layers.IPProtocolICMPv4, nil }, 1},
		{"later fragment", "192.0.2.2", "11.0.0.1", routerMAC[0], func(p *pkt) { p.proto, p.frag = layers.IPProtocolUDP, 1 }, 1},
		{"last fragment", "192.0.2.2", "10.0.0.1", routerMAC[0], func(p *pkt) { p.proto, p.frag, p.ttl = layers.IPProtocolUDP, 8191, 1 }, 1},
		{"to a multicast group", "192.0.2.2", "224.1.2.3", routerMAC[0], nil, 0},
		{"to the limited broadcast", "192.0.2.2", "255.255.255.255", inet.Broadcast, nil, 0},
		{"to our network's broadcast", "192.0.2.2", "192.0.2.255", inet.Broadcast, nil, 0},
		{"to another network's broadcast", "192.0.2.2", "198.51.100.255", routerMAC[0], nil, 0},
		{"expired on the way to a broadcast", "192.0.2.2", "198.51.100.255", routerMAC[0], func(p *pkt) { p.ttl = 1 }, 0},
		{"link broadcast, unicast IP", "192.0.2.2", "11.0.0.1", inet.Broadcast, nil, 0},
		{"link multicast, unicast IP", "192.0.2.2", "192.0.2.1", inet.MAC{1, 0, 0x5e, 0, 0, 1}, nil, 0},
		{"from nowhere", "0.0.0.0", "11.0.0.1", routerMAC[0], nil, 0},
		{"from this network", "0.1.2.3", "11.0.0.1", routerMAC[0], nil, 0},
		{"from a loopback", "127.0.0.1", "11.0.0.1", routerMAC[0], nil, 0},
		{"from a group", "224.0.0.9", "11.0.0.1", routerMAC[0], nil, 0},
		{"from class E", "250.0.0.9", "11.0.0.1", routerMAC[0], nil, 0},
		{"from the limited broadcast", "255.255.255.255", "11.0.0.1", routerMAC[0], nil, 0},
		{"from our network's broadcast", "192.0.2.255", "11.0.0.1", routerMAC[0], nil, 0},
		{"from another port's broadcast", "198.51.100.255", "11.0.0.1", routerMAC[0], nil, 0},
		{"from a broadcast in an odd network", "10.3.3.255", "11.0.0.1", routerMAC[0], nil, 0},
		{"from ourselves", "198.51.100.1", "11.0.0.1", routerMAC[0], nil, 0},
		{"to a broadcast that has a route of its own", "192.0.2.2", "198.51.100.255", routerMAC[0], nil, 1},
		{"to a blackhole", "192.0.2.2", "10.9.0.1", routerMAC[0], nil, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := refusing(t)
			if err := l.r.AddAddress(2, netip.MustParsePrefix("10.3.3.1/24")); err != nil {
				t.Fatal(err)
			}
			if c.name == "to a broadcast that has a route of its own" {
				l.route(fib.Route{Prefix: netip.MustParsePrefix("198.51.100.255/32"), Kind: fib.Unreachable})
			}
			p := udp(c.src, c.dst)
			p.dstMAC = c.mac
			if c.change != nil {
				c.change(&p)
			}
			l.run(p.bytes(t))
			if n := len(l.out(0)) + len(l.out(1)) + len(l.out(2)); n != 0 {
				t.Errorf("%d frames sent", n)
			}
			var total uint64
			for _, n := range l.drops() {
				total += n
			}
			s := l.r.Stats()
			if total != 1 || s.Forbidden != c.forbidden || s.Suppressed != 0 || s.Originated != 0 {
				t.Errorf("drops %v, forbidden %d (want %d), suppressed %d", l.drops(), s.Forbidden, c.forbidden, s.Suppressed)
			}
		})
	}
}

// A router whose ports have no address forwards, and has nobody to complain as.
func TestNoICMPWithoutAnAddress(t *testing.T) {
	l := newLab(t)
	s := *l.r.ifaces.Load()
	for i := range s.ifs {
		s.ifs[i].addrs = nil
	}
	l.r.ifaces.Store(newIfaceSet(l.r, &s))
	l.via("10.0.0.0/8", 1, "198.51.100.2")
	l.run(numbered(t, "10.0.0.1", 1), numbered(t, "11.0.0.1", 2))
	if len(l.out(1)) != 1 || len(l.out(0)) != 0 || l.r.Stats().Forbidden != 1 {
		t.Errorf("drops %v, forbidden %d", l.drops(), l.r.Stats().Forbidden)
	}
}

func TestFragmentationNeededTellsTheMTU(t *testing.T) {
	l := newLab(t)
	l.via("10.0.0.0/8", 1, "198.51.100.2")
	adj, ok := l.r.neigh.Find(1, addr4(netip.MustParseAddr("198.51.100.2")))
	if !ok {
		t.Fatal("no neighbour")
	}
	l.fib.SetAdjacency(adj, func(a *fib.Adjacency) { a.MTU = 1400 })
	for _, c := range []struct {
		length int // of the IP packet
		df     bool
		out    int
		icmp   int
	}{
		{1400, true, 1, 0}, {1401, true, 0, 1}, {1500, true, 0, 1}, {1400, false, 1, 0}, {1401, false, 2, 0},
	} {
		p := udp("192.0.2.2", "10.0.0.1")
		p.df, p.payload = c.df, make([]byte, c.length-28)
		l.run(p.bytes(t))
		icmp := l.out(0)
		if n := len(l.out(1)); n != c.out || len(icmp) != c.icmp {
			t.Errorf("%d bytes, DF %v: %d forwarded, %d answered", c.length, c.df, n, len(icmp))
		}
		for _, f := range icmp {
			if mtu := binary.BigEndian.Uint16(f[40:]); mtu != 1400 || f[34] != 3 || f[35] != 4 || binary.BigEndian.Uint16(f[38:]) != 0 {
				t.Errorf("ICMP %d/%d says %d", f[34], f[35], mtu)
			}
		}
	}
	// The time to live goes first.
	p := udp("192.0.2.2", "10.0.0.1")
	p.df, p.ttl, p.payload = true, 1, make([]byte, 1472)
	l.run(p.bytes(t))
	if f := l.out(0); len(f) != 1 || f[0][34] != 11 {
		t.Errorf("an expired long packet gives %x", f)
	}
}

// What the link allows may change while packets flow.
func TestTheLinksMTUIsFollowed(t *testing.T) {
	l := newLab(t)
	p := udp("192.0.2.2", "198.51.100.2")
	p.df, p.payload = true, make([]byte, 1472)
	for _, mtu := range []int{1500, 1400, 1499, 1500, 40} {
		l.r.ports[1].SetLinkMTU(mtu)
		l.run(p.bytes(t))
		icmp := l.out(0)
		if n := len(l.out(1)); n+len(icmp) != 1 || (n == 1) != (mtu == 1500) {
			t.Fatalf("MTU %d: %d forwarded, %d answered", mtu, n, len(icmp))
		}
		for _, f := range icmp {
			if got := int(binary.BigEndian.Uint16(f[40:])); got != max(mtu, minMTU) {
				t.Errorf("MTU %d: the answer says %d", mtu, got)
			}
		}
	}
}

func TestICMPErrorGoesBackByTheRouteToTheSender(t *testing.T) {
	l := newLab(t)
	l.via("172.16.0.0/12", 2, "203.0.113.0")
	l.run(udp("172.16.5.5", "11.0.0.1").bytes(t))
	out := l.out(2)
	if len(out) != 1 || len(l.out(0)) != 0 {
		t.Fatalf("drops %v", l.drops())
	}
	if _, ip, _ := decode(t, out[0]); ip.SrcIP.String() != "203.0.113.1" || ip.DstIP.String() != "172.16.5.5" {
		t.Errorf("%v -> %v", ip.SrcIP, ip.DstIP)
	}
	// No way back: the error itself is dropped by name.
	l.run(udp("172.99.5.5", "11.0.0.1").bytes(t))
	if d := l.drops(); d["ip4_no_route"] != 3 {
		t.Errorf("drops %v, want the two packets and the one error", d)
	}
}

func TestICMPErrorWaitsForAnUnknownSender(t *testing.T) {
	l := newLab(t)
	l.run(udp("192.0.2.9", "11.0.0.1").bytes(t))
	if out := l.out(0); len(out) != 1 || requests(out) != 1 {
		t.Fatalf("%d frames", len(out))
	}
	l.run(arpFrame(arpReply, routerMAC[0], hostMAC[2], "192.0.2.9", routerMAC[0], "192.0.2.1"))
	out := l.out(0)
	if len(out) != 1 {
		t.Fatalf("%d frames after the answer", len(out))
	}
	if _, ip, _ := decode(t, out[0]); ip.TTL != icmpTTL {
		t.Errorf("what is made here was decremented: ttl %d", ip.TTL)
	}
}

func TestICMPRateLimit(t *testing.T) {
	l := newLab(t)
	for range 100 {
		l.run(numbered(t, "11.0.0.1", 1))
	}
	s := l.r.Stats()
	if n := len(l.out(0)); n != 50 || s.Suppressed != 50 || s.Originated != 50 || s.Forbidden != 0 {
		t.Errorf("%d sent, %+v", n, s)
	}
	if d := l.drops()["ip4_no_route"]; d != 100 {
		t.Errorf("%d drops", d)
	}
	// What a rule forbids takes no token and is counted once.
	l.clk.Advance(1e9) // one token
	p := udp("192.0.2.2", "11.0.0.1")
	p.proto, p.frag = layers.IPProtocolUDP, 1
	l.run(p.bytes(t), numbered(t, "11.0.0.1", 1), numbered(t, "11.0.0.1", 1))
	s = l.r.Stats()
	if n := len(l.out(0)); n != 1 || s.Forbidden != 1 || s.Suppressed != 51 {
		t.Errorf("%d sent, forbidden %d, suppressed %d", n, s.Forbidden, s.Suppressed)
	}
}

// The bucket is asked before a buffer is taken.
func TestASuppressedErrorTakesNoBuffer(t *testing.T) {
	l := newLab(t)
	w := l.r.workers[0]
	w.icmp.tokens, w.icmp.last = 0, 0
	before := w.cache.Allocs
	l.run(numbered(t, "11.0.0.1", 1))
	if n := w.cache.Allocs - before; n != 1 { // the received frame itself
		t.Errorf("%d buffers taken", n)
	}
}

func TestNoBufferForAnErrorIsCounted(t *testing.T) {
	l := newLab(t)
	w := l.r.workers[0]
	l.run(numbered(t, "11.0.0.1", 1))
	l.out(0)
	in := numbered(t, "11.0.0.1", 1)
	h := w.cache.Alloc()
	copy(w.arena.Put(h, len(in)), in)
	var taken []skb.Handle
	for x := w.cache.Alloc(); x != skb.None; x = w.cache.Alloc() {
		taken = append(taken, x)
	}
	w.in.Reset()
	w.in.Add(h)
	w.process(0)
	w.cache.FreeBatch(taken)
	if s := w.stats.Live; s.Suppressed != 1 || s.Originated != 1 || s.Drops[skb.IP4NoRoute] != 2 {
		t.Errorf("%+v", s)
	}
}

func TestTokenBucket(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.Int64Range(1, 100000).Draw(t, "rate")
		burst := rapid.Int64Range(1, 1000).Draw(t, "burst")
		b := tokenBucket{rate: rate, burst: burst, tokens: burst}
		now, taken := int64(0), int64(0)
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			now += rapid.Int64Range(0, 3e9/rate).Draw(t, "gap")
			if b.take(now) {
				taken++
			}
			if limit := float64(burst) + float64(rate)*float64(now)/1e9 + 1; float64(taken) > limit {
				t.Fatalf("%d taken after %v, limit %v", taken, time.Duration(now), limit)
			}
		}
	})
	// Asked more often than tokens come, none may get lost.
	b := tokenBucket{rate: 1000, burst: 50}
	n := 0
	for now := int64(0); now < 1e9; now += 19e5 {
		if b.take(now) {
			n++
		}
	}
	if n < 525 { // one every 1.9 ms
		t.Errorf("%d of 526 tokens in a second", n)
	}
	n = 0
	b = tokenBucket{rate: 1000, burst: 50}
	for now := int64(0); now < 1e9; now += 7e5 {
		if b.take(now) {
			n++
		}
	}
	if n < 998 || n > 1000 {
		t.Errorf("%d tokens in a second at 1000 a second", n)
	}
	// After months of rest.
	b = tokenBucket{rate: 1000, burst: 50}
	for range 50 {
		if !b.take(math.MaxInt64 / 2) {
			t.Fatal("no token after a long rest")
		}
	}
}

// RFC 1812 section 4.3.2.5: an error takes its cause's type of service and
// precedence 6, a reply keeps the request's octet.
func TestTypeOfServiceOfAnswers(t *testing.T) {
	for tos := range 256 {
		l := newLab(t)
		e := udp("192.0.2.2", "11.0.0.1").bytes(t)
		p := echo("192.0.2.2", "192.0.2.1").bytes(t)
		e[15], p[15] = byte(tos), byte(tos)
		l.run(resum(e), resum(p))
		out := l.out(0)
		if len(out) != 2 {
			t.Fatalf("drops %v", l.drops())
		}
		if want := byte(0xc0 | tos&0x1c); out[0][15] != want || out[1][15] != byte(tos) {
			t.Errorf("%#02x: error has %#02x, want %#02x; reply has %#02x", tos, out[0][15], want, out[1][15])
		}
	}
}

// Whatever is made here has a number of its own, on every worker.
func TestIdentificationsDiffer(t *testing.T) {
	l := newLab(t, func(c *Config) { c.Workers = NewWorkers(c.Arena, c.FIB, c.Clock, 3) })
	seen := map[uint16]bool{}
	for _, w := range l.r.workers {
		for range 20000 {
			id := w.identification()
			if seen[id] {
				t.Fatalf("%d twice", id)
			}
			seen[id] = true
		}
	}
	l.run(numbered(t, "11.0.0.1", 1), echo("192.0.2.2", "192.0.2.1").bytes(t))
	if out := l.out(0); len(out) != 2 || bytes.Equal(out[0][18:20], out[1][18:20]) {
		t.Errorf("%x", out)
	}
}

// What ICMP for the router itself becomes. Nothing but an echo is answered.
func TestICMPForTheRouter(t *testing.T) {
	for typ := range 256 {
		l := newLab(t)
		p := echo("192.0.2.2", "192.0.2.1")
		p.transport, p.payload = &layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(uint8(typ), 0)}, make([]byte, 28)
		l.run(p.bytes(t))
		want := "ip4_local_icmp"
		switch typ {
		case 8:
			if n := len(l.out(0)); n != 1 {
				t.Errorf("an echo request is not answered, drops %v", l.drops())
			}
			continue
		case 0, 3, 4, 5, 11, 12:
			want = "ip4_local_consumed"
		}
		if d := l.drops(); d[want] != 1 || len(d) != 1 || len(l.out(0)) != 0 {
			t.Errorf("type %d: drops %v", typ, d)
		}
	}
}

// The list of section 4.3.2.7 once more, each rule by itself: on the way here
// most such packets have been dropped already.
func TestMayAnswer(t *testing.T) {
	l := newLab(t)
	w := l.r.workers[0]
	w.ifs = l.r.ifaces.Load()
	icmp := func(typ byte) func([]byte) []byte {
		return func(p []byte) []byte { p[9], p[20] = inet.ProtoICMP, typ; return p }
	}
	plain := func(p []byte) []byte { return p }
	for _, c := range []struct {
		name     string
		src, dst string
		flags    skb.Flags
		edit     func([]byte) []byte
		want     bool
	}{
		{"plain", "192.0.2.2", "10.0.0.1", 0, plain, true},
		{"first fragment", "192.0.2.2", "10.0.0.1", 0, func(p []byte) []byte { p[6] = 0x20; return p }, true},
		{"echo", "192.0.2.2", "10.0.0.1", 0, icmp(8), true},
		{"echo reply", "192.0.2.2", "10.0.0.1", 0, icmp(0), true},
		{"unknown ICMP", "192.0.2.2", "10.0.0.1", 0, icmp(200), true},
		{"unreachable", "192.0.2.2", "10.0.0.1", 0, icmp(3), false},
		{"source quench", "192.0.2.2", "10.0.0.1", 0, icmp(4), false},
		{"redirect", "192.0.2.2", "10.0.0.1", 0, icmp(5), false},
		{"time exceeded", "192.0.2.2", "10.0.0.1", 0, icmp(11), false},
		{"parameter problem", "192.0.2.2", "10.0.0.1", 0, icmp(12), false},
		{"ICMP without a type", "192.0.2.2", "10.0.0.1", 0, func(p []byte) []byte { return icmp(8)(p)[:20] }, false},
		{"later fragment", "192.0.2.2", "10.0.0.1", 0, func(p []byte) []byte { p[7] = 1; return p }, false},
		{"last possible fragment", "192.0.2.2", "10.0.0.1", 0, func(p []byte) []byte { p[6], p[7] = 0x1f, 0xff; return p }, false},
		{"link-layer broadcast", "192.0.2.2", "10.0.0.1", skb.FlagLinkMulticast, plain, false},
		{"made here", "192.0.2.2", "10.0.0.1", skb.FlagLocal, plain, false},
		{"to a group", "192.0.2.2", "224.0.0.1", 0, plain, false},
		{"to class E", "192.0.2.2", "240.0.0.1", 0, plain, false},
		{"to the limited broadcast", "192.0.2.2", "255.255.255.255", 0, plain, false},
		{"to a network's broadcast", "192.0.2.2", "198.51.100.255", 0, plain, false},
		{"to a network", "192.0.2.2", "198.51.100.0", 0, plain, false},
		{"to both addresses of a /31", "192.0.2.2", "203.0.113.0", 0, plain, true},
		{"from network 0", "0.0.0.0", "10.0.0.1", 0, plain, false},
		{"from a loopback", "127.0.0.1", "10.0.0.1", 0, plain, false},
		{"from a group", "224.0.0.1", "10.0.0.1", 0, plain, false},
		{"from class E", "240.0.0.1", "10.0.0.1", 0, plain, false},
		{"from ourselves", "198.51.100.1", "10.0.0.1", 0, plain, false},
	} {
		p := c.edit(append([]byte(nil), packet(udp(c.src, c.dst).bytes(t))...))
		if got := w.mayAnswer(&skb.Meta{Flags: c.flags}, p); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
