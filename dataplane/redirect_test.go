package dataplane

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/google/gopacket/layers"

	"gorouter/fib"
	"gorouter/internal/inet"
)

func ipOptions(f func(*IPOptions)) func(*Config) {
	return func(c *Config) {
		c.IP = IPTable.Defaults()
		f(&c.IP)
	}
}

// redirectLab routes 10/8 to a gateway on the hosts' own network.
func redirectLab(t testing.TB, on bool) *lab {
	l := newLab(t, ipOptions(func(o *IPOptions) { o.Redirects = on }))
	if err := l.r.Neighbours().SetPermanent(0, netip.MustParseAddr("192.0.2.9"), hostMAC[2]); err != nil {
		t.Fatal(err)
	}
	l.via("10.0.0.0/8", 0, "192.0.2.9")
	l.via("11.0.0.0/8", 1, "198.51.100.2")
	l.via("172.16.0.0/12", 0, "192.0.2.2")
	return l
}

// RFC 1812 section 5.2.7.2: when a redirect is sent, and what it says.
func TestRedirects(t *testing.T) {
	for _, c := range []struct {
		name     string
		on       bool
		src, dst string
		edit     func(*pkt)
		gateway  []byte // nil = none sent
	}{
		{"to a gateway on the sender's network", true, "192.0.2.2", "10.0.0.1", nil, []byte{192, 0, 2, 9}},
		{"to a host on the sender's network", true, "192.0.2.2", "192.0.2.9", nil, []byte{192, 0, 2, 9}},
		{"switched off", false, "192.0.2.2", "10.0.0.1", nil, nil},
		{"by another port", true, "192.0.2.2", "11.0.0.1", nil, nil},
		{"from a sender beyond another router", true, "172.16.0.1", "10.0.0.1", nil, nil},
		{"about an ICMP error", true, "192.0.2.2", "10.0.0.1", func(p *pkt) {
			p.proto, p.transport, p.payload = layers.IPProtocolICMPv4, &layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(3, 0)}, make([]byte, 28)
		}, nil},
		{"about a later fragment", true, "192.0.2.2", "10.0.0.1", func(p *pkt) { p.proto, p.frag = layers.IPProtocolUDP, 9 }, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := redirectLab(t, c.on)
			p := udp(c.src, c.dst)
			if c.edit != nil {
				c.edit(&p)
			}
			in := p.bytes(t)
			orig := append([]byte(nil), packet(in)...)
			l.run(in)
			out, fwd := l.out(0), l.out(1)
			// The packet itself goes on all the same.
			var redirects [][]byte
			for _, f := range out {
				if f[23] == inet.ProtoICMP && f[34] == icmpRedirect {
					redirects = append(redirects, f)
				} else {
					fwd = append(fwd, f)
				}
			}
			if len(fwd) != 1 || l.r.Stats().Forwarded != 1 {
				t.Errorf("%d forwarded, drops %v", len(fwd), l.drops())
			}
			if c.gateway == nil {
				if len(redirects) != 0 {
					t.Errorf("redirect %x", redirects)
				}
				return
			}
			if len(redirects) != 1 {
				t.Fatalf("%d redirects", len(redirects))
			}
			f := redirects[0]
			_, ip, _ := decode(t, f)
			if f[35] != codeRedirectHost || !bytes.Equal(f[38:42], c.gateway) || !bytes.Equal(f[42:], orig) || inet.Checksum(f[34:]) != 0 {
				t.Errorf("redirect %x", f[34:])
			}
			if ip.SrcIP.String() != "192.0.2.1" || ip.DstIP.String() != c.src || inet.MAC(f[0:6]) != hostMAC[0] {
				t.Errorf("from %v to %v", ip.SrcIP, ip.DstIP)
			}
		})
	}
}

func TestRedirectsHaveTheirOwnLimit(t *testing.T) {
	l := newLab(t, ipOptions(func(o *IPOptions) { o.Redirects, o.ICMPBurst = true, 3 }))
	l.via("10.0.0.0/8", 0, "192.0.2.2")
	for range 10 {
		l.run(numbered(t, "10.0.0.1", 1))
	}
	if n := len(l.out(0)); n != 13 || l.r.Stats().Suppressed != 7 {
		t.Errorf("%d frames, suppressed %d", n, l.r.Stats().Suppressed)
	}
	l.run(numbered(t, "12.0.0.1", 1))
	if out := l.out(0); len(out) != 1 || out[0][34] != icmpUnreachable {
		t.Errorf("errors share the redirects' tokens: %x", out)
	}
}

// A router does not follow redirects, and does not answer them.
func TestARedirectChangesNothing(t *testing.T) {
	l := redirectLab(t, true)
	quoted := append([]byte(nil), packet(udp("192.0.2.1", "11.0.0.1").bytes(t))...)
	p := echo("192.0.2.2", "192.0.2.1")
	p.transport, p.payload = &layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(5, 1), Id: 192<<8 + 0, Seq: 2<<8 + 9}, quoted
	l.run(p.bytes(t))
	if d := l.drops(); d["ip4_local_consumed"] != 1 || len(l.out(0)) != 0 {
		t.Errorf("drops %v", d)
	}
	l.run(numbered(t, "11.0.0.1", 1))
	if len(l.out(1)) != 1 || len(l.out(0)) != 0 {
		t.Errorf("the route has changed, drops %v", l.drops())
	}
}

func TestDirectedBroadcasts(t *testing.T) {
	on := ipOptions(func(o *IPOptions) { o.DirectedBroadcast = true })
	for _, c := range []struct {
		name   string
		on     bool
		dst    string
		edit   func(*pkt)
		out    int
		reason string
	}{
		{"dropped when not asked for", false, "198.51.100.255", nil, 0, "ip4_directed_broadcast"},
		{"forwarded when asked for", true, "198.51.100.255", nil, 1, ""},
		{"the old form is not", true, "198.51.100.0", nil, 0, "ip4_directed_broadcast"},
		{"nor back to where it came from", true, "192.0.2.255", nil, 0, "ip4_directed_broadcast"},
		{"nor from a broadcast frame", true, "198.51.100.255", func(p *pkt) { p.dstMAC = inet.Broadcast }, 0, "ip4_directed_broadcast"},
		{"nor expired, without a word", true, "198.51.100.255", func(p *pkt) { p.ttl = 1 }, 0, "ip4_ttl"},
		{"nor too long, without a word", true, "198.51.100.255", func(p *pkt) { p.df, p.payload = true, make([]byte, 1480) }, 0, "ip4_too_big"},
		{"limited broadcast", true, "255.255.255.255", nil, 0, "ip4_broadcast"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var change []func(*Config)
			if c.on {
				change = append(change, on)
			}
			l := newLab(t, change...)
			p := udp("192.0.2.2", c.dst)
			if c.edit != nil {
				c.edit(&p)
			}
			l.run(p.bytes(t))
			out := l.out(1)
			if len(out) != c.out || len(l.out(0))+len(l.out(2)) != 0 || (c.reason != "" && l.drops()[c.reason] != 1) {
				t.Fatalf("%d frames, drops %v", len(out), l.drops())
			}
			for _, f := range out {
				eth, ip, _ := decode(t, f)
				if inet.MAC(eth.DstMAC) != inet.Broadcast || inet.MAC(eth.SrcMAC) != routerMAC[1] || ip.TTL != 63 || eth.EthernetType != layers.EthernetTypeIPv4 {
					t.Errorf("%+v %+v", eth, ip)
				}
			}
		})
	}
}

func TestIPOptions(t *testing.T) {
	l := newLab(t)
	w := l.r.workers[0]
	if w.ip4 != IPTable.Defaults() {
		t.Errorf("%+v", w.ip4)
	}
	if err := w.SetIPOptions(IPOptions{ICMPRate: 1, ICMPBurst: 0}); err == nil || w.ip4 != IPTable.Defaults() {
		t.Errorf("%v, %+v", err, w.ip4)
	}
	if err := w.SetIPOptions(IPOptions{ICMPRate: 1, ICMPBurst: 2, Redirects: true}); err != nil || !w.ip4.Redirects || w.icmp.burst != 2 || w.redirects.burst != 2 {
		t.Errorf("%v, %+v", err, w.ip4)
	}
	w.icmp.tokens = 0
	if err := w.SetIPOptions(IPOptions{ICMPRate: 1, ICMPBurst: 2}); err != nil || w.icmp.tokens != 0 {
		t.Errorf("a change of something else gives tokens: %v", err)
	}
	_, err := New(Config{Arena: l.arena, FIB: fib.New(fib.Options{}), Clock: l.clk, Ports: l.r.ports, Workers: NewWorkers(l.arena, l.fib, l.clk, 1), Assign: []int{0, 0, 0}, Options: OptionTable.Defaults(), IP: IPOptions{ICMPRate: -1}})
	if err == nil {
		t.Error("a wrong option is taken")
	}
}
