package dataplane

import (
	"net/netip"
	"testing"

	"gorouter/fib"
	"gorouter/skb"
)

func forwardVia(prefix string, metric uint32, portIndex uint16, gw string) fib.Route {
	return fib.Route{Prefix: netip.MustParsePrefix(prefix), Metric: metric, Kind: fib.Forward,
		NextHops: []fib.NextHop{{Port: portIndex, Via: netip.MustParseAddr(gw)}}}
}

// What replaces a route whose link is gone: the next metric, a shorter prefix,
// a typed route, or nothing; and all comes back with the link.
func TestRoutesFollowTheirLinks(t *testing.T) {
	l := newLab(t)
	if err := l.r.AddRoutes([]fib.Route{
		forwardVia("50.0.0.0/8", 1, 1, "198.51.100.2"), forwardVia("50.0.0.0/8", 5, 2, "203.0.113.0"),
		forwardVia("51.0.0.0/8", 0, 1, "198.51.100.2"), forwardVia("0.0.0.0/0", 0, 2, "203.0.113.0"),
		forwardVia("53.0.0.0/8", 1, 1, "198.51.100.2"), {Prefix: netip.MustParsePrefix("53.0.0.0/8"), Metric: 5, Kind: fib.Unreachable},
		forwardVia("198.51.100.0/24", 10, 2, "203.0.113.0"),
	}); err != nil {
		t.Fatal(err)
	}
	dsts := []string{"50.0.0.1", "51.0.0.1", "53.0.0.1", "198.51.100.2"}
	look := func(when string, want [4]int) {
		t.Helper()
		for i, dst := range dsts {
			l.run(udp("192.0.2.2", dst).bytes(t))
			got := -1
			for p := range 3 {
				if len(l.out(p)) > 0 {
					got = p
				}
			}
			if got != want[i] {
				t.Errorf("%s: %s left by port %d, want %d; drops %v", when, dst, got, want[i], l.drops())
			}
		}
	}
	look("all up", [4]int{1, 1, 1, 1})
	l.r.ports[1].SetUp(false)
	look("port 1 down", [4]int{2, 2, 0, 2}) // 0: the unreachable came back
	l.r.ports[1].SetUp(true)
	look("up again", [4]int{1, 1, 1, 1})
}

// A route that nobody withdraws still does not swallow packets.
func TestAWayOutWithoutLinkIsAnsweredAtOnce(t *testing.T) {
	l := newLab(t)
	l.via("10.0.0.0/8", 1, "198.51.100.2")  // resolved
	l.via("11.0.0.0/8", 1, "198.51.100.99") // not
	l.r.ports[1].SetUp(false)
	for _, dst := range []string{"10.0.0.1", "11.0.0.1"} {
		l.run(udp("192.0.2.2", dst).bytes(t))
		if n := len(l.out(0)); n != 1 {
			t.Errorf("%s: %d answers", dst, n)
		}
	}
	if d := l.drops(); d[skb.TxLinkDown.String()] != 2 || len(d) != 1 {
		t.Errorf("drops %v", d)
	}
	if n := len(l.wires[1].out); n != 0 {
		t.Errorf("%d frames into the dead link", n)
	}
}

func TestBadFollowedRoutesAreRefused(t *testing.T) {
	l := newLab(t)
	l.r.ports[1].SetUp(false) // so that nothing would reach the FIB
	for _, x := range []fib.Route{
		{Prefix: netip.MustParsePrefix("10.0.0.1/8"), Kind: fib.Blackhole},
		{Prefix: netip.MustParsePrefix("10.0.0.0/8"), Kind: fib.Forward},
		forwardVia("10.0.0.0/8", 0, 99, "198.51.100.2"),
	} {
		if err := l.r.AddRoutes([]fib.Route{x}); err == nil {
			t.Errorf("%+v was accepted", x)
		}
	}
}

func TestALinkLocalAddressOfOursAnswers(t *testing.T) {
	l := newLab(t)
	if err := l.r.AddAddress(0, netip.MustParsePrefix("169.254.0.1/16")); err != nil {
		t.Fatal(err)
	}
	if err := l.r.Neighbours().SetPermanent(0, netip.MustParseAddr("169.254.0.9"), hostMAC[0]); err != nil {
		t.Fatal(err)
	}
	l.run(echo("169.254.0.9", "169.254.0.1").bytes(t))
	if n := len(l.out(0)); n != 1 {
		t.Errorf("%d answers, drops %v", n, l.drops())
	}
	l.via("10.0.0.0/8", 1, "198.51.100.2")
	l.run(udp("169.254.0.9", "10.0.0.1").bytes(t), udp("192.0.2.2", "169.254.0.9").bytes(t))
	if d := l.drops(); d["ip4_martian_source"] != 1 || d["ip4_martian_destination"] != 1 {
		t.Errorf("link-local addresses are forwarded: drops %v", d)
	}
}

// A priority tag is not a VLAN.
func TestPriorityTagIsTakenOff(t *testing.T) {
	l := newLab(t)
	l.via("10.0.0.0/8", 1, "198.51.100.2")
	tag := func(f []byte, tci ...byte) []byte {
		return append(append(append([]byte(nil), f[:12]...), append([]byte{0x81, 0}, tci...)...), f[12:]...)
	}
	f := udp("192.0.2.2", "10.0.0.1").bytes(t)
	l.run(tag(f, 0, 0), tag(f, 0xe0, 0), tag(f, 0xe0, 5), tag(tag(f, 0, 0), 0, 0), f[:12:12], tag(f, 0, 0)[:16])
	out := l.out(1)
	if len(out) != 3 {
		t.Fatalf("%d of 3 forwarded, drops %v", len(out), l.drops())
	}
	for _, o := range out {
		if _, ip, _ := decode(t, o); ip == nil || ip.TTL != 63 || len(o) != 14+int(ip.Length) {
			t.Errorf("%x", o)
		}
	}
	if d := l.drops(); d["eth_vlan"] != 2 || d["eth_short"] != 1 {
		t.Errorf("drops %v", d)
	}
}
