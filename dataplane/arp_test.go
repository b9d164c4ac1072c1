package dataplane

import (
	"bytes"
	"encoding/binary"
	"maps"
	"net/netip"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"gorouter/dataplane/neigh"
	"gorouter/internal/inet"
)

// readARP decodes a frame that must be ARP.
func readARP(t *testing.T, f []byte) (*layers.Ethernet, *layers.ARP) {
	t.Helper()
	p := gopacket.NewPacket(f, layers.LayerTypeEthernet, gopacket.Default)
	eth, _ := p.Layer(layers.LayerTypeEthernet).(*layers.Ethernet)
	a, _ := p.Layer(layers.LayerTypeARP).(*layers.ARP)
	if eth == nil || a == nil || p.ErrorLayer() != nil {
		t.Fatalf("no ARP: %x: %v", f, p.ErrorLayer())
	}
	return eth, a
}

func ip4(s string) []byte { return netip.MustParseAddr(s).AsSlice() }

func TestARPAnswer(t *testing.T) {
	for _, c := range []struct {
		name    string
		dst     inet.MAC
		spa     string
		learned bool
	}{
		{"broadcast request", inet.Broadcast, "192.0.2.9", true},
		{"unicast probe of a neighbour", routerMAC[0], "192.0.2.9", true},
		{"address probe (RFC 5227)", inet.Broadcast, "0.0.0.0", false},
		{"sender of another network", inet.Broadcast, "172.16.0.9", false},
		{"sender claims the network address", inet.Broadcast, "192.0.2.0", false},
		{"sender claims the broadcast address", inet.Broadcast, "192.0.2.255", false},
		{"sender claims our address", inet.Broadcast, "192.0.2.1", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t)
			l.run(arpFrame(arpRequest, c.dst, hostMAC[2], c.spa, inet.MAC{}, "192.0.2.1"))
			out := l.out(0)
			if len(out) != 1 {
				t.Fatalf("%d answers, drops %v", len(out), l.drops())
			}
			eth, a := readARP(t, out[0])
			if !bytes.Equal(eth.DstMAC, hostMAC[2][:]) || !bytes.Equal(eth.SrcMAC, routerMAC[0][:]) || eth.EthernetType != layers.EthernetTypeARP {
				t.Errorf("link header %+v", eth)
			}
			if a.AddrType != layers.LinkTypeEthernet || a.Protocol != layers.EthernetTypeIPv4 || a.HwAddressSize != 6 || a.ProtAddressSize != 4 || a.Operation != layers.ARPReply {
				t.Errorf("fixed part %+v", a)
			}
			if !bytes.Equal(a.SourceHwAddress, routerMAC[0][:]) || !bytes.Equal(a.SourceProtAddress, ip4("192.0.2.1")) ||
				!bytes.Equal(a.DstHwAddress, hostMAC[2][:]) || !bytes.Equal(a.DstProtAddress, ip4(c.spa)) {
				t.Errorf("addresses %+v", a)
			}
			if len(out[0]) != arpEnd {
				t.Errorf("%d bytes; what follows is the transmit side's to pad", len(out[0]))
			}
			if n := len(l.r.Neighbours().All()); (n == 4) != c.learned {
				t.Errorf("%d neighbours", n)
			}
			s := l.r.Stats()
			if len(l.drops()) != 0 || s.Answered != 1 || s.Originated != 0 {
				t.Errorf("drops %v, answered %d, originated %d", l.drops(), s.Answered, s.Originated)
			}
		})
	}
}

func TestARPThatIsNotAnswered(t *testing.T) {
	req := func(edit func(f []byte)) []byte {
		f := arpFrame(arpRequest, inet.Broadcast, hostMAC[2], "192.0.2.9", inet.MAC{}, "192.0.2.1")
		edit(f)
		return f
	}
	for _, c := range []struct {
		name  string
		frame []byte
		why   string
	}{
		{"for another port's address", req(func(f []byte) { copy(f[38:], ip4("198.51.100.1")) }), "arp_not_for_us"},
		{"for our network's broadcast", req(func(f []byte) { copy(f[38:], ip4("192.0.2.255")) }), "arp_not_for_us"},
		{"operation 0", req(func(f []byte) { f[21] = 0 }), "arp_invalid"},
		{"reverse ARP", req(func(f []byte) { f[21] = 3 }), "arp_invalid"},
		{"operation 0x0101", req(func(f []byte) { f[20] = 1 }), "arp_invalid"},
		{"protocol IPv6", req(func(f []byte) { f[16], f[17] = 0x86, 0xdd }), "arp_invalid"},
		{"hardware length 8", req(func(f []byte) { f[18] = 8 }), "arp_invalid"},
		{"protocol length 16", req(func(f []byte) { f[19] = 16 }), "arp_invalid"},
		{"sender MAC zero", req(func(f []byte) { clear(f[22:28]) }), "arp_invalid"},
		{"sender MAC multicast", req(func(f []byte) { f[22] = 1 }), "arp_invalid"},
		{"sender MAC is our own", req(func(f []byte) { copy(f[22:], routerMAC[0][:]) }), "arp_invalid"},
		{"sender address multicast", req(func(f []byte) { f[28] = 224 }), "arp_invalid"},
		{"sender address broadcast", req(func(f []byte) { copy(f[28:], []byte{255, 255, 255, 255}) }), "arp_invalid"},
		{"answer to somebody else", arpFrame(arpReply, routerMAC[0], hostMAC[2], "192.0.2.9", hostMAC[1], "192.0.2.8"), "arp_consumed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t)
			l.run(c.frame)
			if d := l.drops(); !maps.Equal(d, map[string]uint64{c.why: 1}) {
				t.Errorf("drops %v, want %s", d, c.why)
			}
			if n := len(l.out(0)) + len(l.out(1)); n != 0 {
				t.Errorf("%d frames left", n)
			}
			if n := len(l.r.Neighbours().All()); n != 3 {
				t.Errorf("%d neighbours", n)
			}
		})
	}
}

func TestOurAddressSeenElsewhereIsAConflict(t *testing.T) {
	for _, op := range []uint16{arpRequest, arpReply} {
		l := newLab(t)
		l.run(arpFrame(op, inet.Broadcast, hostMAC[2], "192.0.2.1", inet.MAC{}, "192.0.2.1"))
		if n := l.r.Neighbours().Counts.Conflicts.Load(); n != 1 {
			t.Errorf("operation %d: %d conflicts", op, n)
		}
		// The request is answered, as a defence.
		if n := len(l.out(0)); n != int(2-op) {
			t.Errorf("operation %d: %d answers", op, n)
		}
		if l.r.isNeighbour(0, "192.0.2.1") {
			t.Error("our own address became a neighbour")
		}
	}
}

func (r *Router) isNeighbour(port uint16, addr string) bool {
	_, ok := r.neigh.Find(port, addr4(netip.MustParseAddr(addr)))
	return ok
}

func TestAnUnaskedAnswerMakesNoEntryButUpdatesOne(t *testing.T) {
	l := newLab(t)
	gratuitous := arpFrame(arpReply, inet.Broadcast, hostMAC[2], "198.51.100.77", inet.Broadcast, "198.51.100.77")
	l.runAt(1, gratuitous)
	if l.r.isNeighbour(1, "198.51.100.77") || l.r.Neighbours().Counts.Unasked.Load() != 1 {
		t.Fatalf("an unasked answer made an entry, or %d counted", l.r.Neighbours().Counts.Unasked.Load())
	}
	l.run(numbered(t, "198.51.100.77", 1))
	l.out(1)
	l.runAt(1, gratuitous)
	if got := ids(l.out(1)); len(got) != 1 {
		t.Errorf("the announcement did not wake what waits: %v", got)
	}
	for _, n := range l.r.Neighbours().All() {
		if n.Addr.String() == "198.51.100.77" && (n.MAC != hostMAC[2] || n.State != neigh.Stale) {
			t.Errorf("%+v", n)
		}
	}
}

// The answer must reach the right port's entry: the same address behind two
// ports is two neighbours.
func TestAnAnswerCountsForItsPortOnly(t *testing.T) {
	l := newLab(t)
	l.run(numbered(t, "198.51.100.77", 1))
	l.out(1)
	l.run(arpFrame(arpReply, routerMAC[0], hostMAC[2], "198.51.100.77", routerMAC[0], "192.0.2.1"))
	if n := len(l.out(1)); n != 0 {
		t.Errorf("%d packets left after an answer by another port", n)
	}
}

func TestRequestsUseTheAddressOfTheNeighboursNetwork(t *testing.T) {
	l := newLab(t)
	if err := l.r.AddAddress(1, netip.MustParsePrefix("10.3.0.7/16")); err != nil {
		t.Fatal(err)
	}
	l.run(numbered(t, "10.3.0.9", 1))
	_, a := readARP(t, l.out(1)[0])
	if !bytes.Equal(a.SourceProtAddress, ip4("10.3.0.7")) || binary.BigEndian.Uint32(a.DstProtAddress) != 0x0a030009 {
		t.Errorf("%+v", a)
	}
}
