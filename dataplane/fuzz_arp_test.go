package dataplane

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"gorouter/dataplane/neigh"
	"gorouter/internal/inet"
)

// arpStep makes an ARP frame for port 0 or 1 out of six bytes of fuzz data; the
// addresses are few, so that frames have to do with each other.
func arpStep(b []byte) (port int, f []byte) {
	port = int(b[0] & 1)
	net := [2]string{"192.0.2.", "198.51.100."}[port]
	addr := func(v byte) []byte {
		switch v & 15 {
		case 13:
			return []byte{0, 0, 0, 0}
		case 14:
			return []byte{172, 16, 0, 9}
		case 15:
			return ip4("203.0.113.1")
		}
		a := ip4(net + "0")
		a[3] = []byte{1, 2, 77, 78, 255, 0, 9, 10, 11, 12, 13, 14, 15}[v&15]
		return a
	}
	macs := []inet.MAC{hostMAC[0], hostMAC[1], hostMAC[2], routerMAC[port], {}, inet.Broadcast, {2, 7, 7, 7, 7, 7}, {1, 0, 0x5e, 0, 0, 1}}
	dst := []inet.MAC{routerMAC[port], inet.Broadcast, hostMAC[0], {1, 0, 0x5e, 0, 0, 1}}[b[1]>>6]
	f = arpFrame(uint16(b[1]&3), dst, macs[b[1]>>2&7], "0.0.0.0", macs[b[3]&7], "0.0.0.0")
	copy(f[28:], addr(b[2]))
	copy(f[38:], addr(b[2]>>4))
	if b[4] < 60 { // seldom: one byte of the packet is another, or it ends early
		f[14+b[4]%28] ^= b[5]
		if b[5]&1 != 0 {
			f = f[:14+int(b[4])%46]
		}
	}
	return port, f
}

// FuzzARP mixes ARP frames of all kinds, packets and time. Whatever comes, only
// who was asked, or asks for us, becomes a neighbour; no own address and no
// group address does; configured neighbours stay what they are; every frame is
// accounted for.
func FuzzARP(f *testing.F) {
	f.Add([]byte{1, 0x02, 0x02, 0, 99, 0, 1, 0x01, 0x02, 0, 99, 0})
	f.Add([]byte{4, 0, 0, 0, 0, 0, 1, 0x0a, 0x02, 0, 99, 0, 8, 60, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 8, 20, 0, 0, 0, 0})
	f.Add(bytes.Repeat([]byte{0, 0x41, 0x22, 3, 99, 0}, 8))
	f.Add(bytes.Repeat([]byte{1, 0x49, 0x00, 3, 99, 0, 4, 1, 0, 0, 0, 0, 8, 3, 0, 0, 0, 0}, 5))
	f.Fuzz(func(t *testing.T, data []byte) {
		l := newLab(t, func(c *Config) {
			c.Neigh.Max, c.Neigh.GCMin, c.Neigh.GCSoft, c.Neigh.Announce, c.Neigh.RequestRate = 7, 0, 4, 1, 20
		})
		defer l.close()
		l.via("10.0.0.0/8", 1, "172.16.0.9")
		asked := map[string]bool{} // who may be a neighbour
		for n := 0; len(data) >= 6 && n < 64; n++ {
			b := data[:6]
			data = data[6:]
			switch b[0] >> 2 & 3 {
			case 1: // a packet
				dst := netip.AddrFrom4([4]byte{198, 51, 100, b[1]})
				if b[2]&1 != 0 {
					dst = netip.AddrFrom4([4]byte{10, 0, 0, 1})
					asked["172.16.0.9"] = true
				}
				asked[dst.String()] = true
				asked["192.0.2.2"] = true
				l.run(numbered(t, dst.String(), 1))
			case 2: // time
				l.pass(time.Duration(b[1]) * time.Second / 4)
			case 3: // the link
				p := l.r.ports[b[1]&1]
				p.SetUp(b[1]&2 == 0)
			default:
				port, f := arpStep(b)
				if len(f) >= arpEnd && f[21] == arpRequest {
					if tpa := netip.AddrFrom4([4]byte(f[38:42])); tpa.String() == [2]string{"192.0.2.1", "198.51.100.1"}[port] {
						asked[netip.AddrFrom4([4]byte(f[28:32])).String()] = true
					}
				}
				l.runAt(port, f)
			}
			all := l.r.Neighbours().All()
			if len(all) > 7 {
				t.Fatalf("%d entries", len(all))
			}
			for _, n := range all {
				if n.State == neigh.Permanent {
					if n.MAC != hostMAC[n.Port] {
						t.Fatalf("a configured neighbour became %+v", n)
					}
					continue
				}
				if !asked[n.Addr.String()] || ownAddress(n.Addr.AsSlice()) || n.Addr.IsMulticast() || n.Addr.IsUnspecified() {
					t.Fatalf("%+v is a neighbour", n)
				}
				if n.State.Usable() && (n.MAC.IsMulticast() || n.MAC == (inet.MAC{}) || n.MAC == routerMAC[n.Port]) {
					t.Fatalf("%+v has an address that nobody has", n)
				}
			}
			for i := range l.wires {
				for _, f := range l.out(i) {
					if err := checkOut(i, f); err != nil {
						t.Fatalf("port %d sent %x: %v", i, f, err)
					}
					if a := netip.AddrFrom4([4]byte(f[28:32])); binary.BigEndian.Uint16(f[12:]) == inet.EtherARP &&
						f[21] == arpReply && a.String() != []string{"192.0.2.1", "198.51.100.1", "203.0.113.1"}[i] {
						t.Fatalf("port %d answered for %v", i, a)
					}
				}
			}
		}
		for i := range l.r.ports {
			l.r.ports[i].SetUp(true)
		}
		for range 70 {
			l.pass(time.Second)
		}
		if err := checkConservation(l); err != nil {
			t.Fatal(err)
		}
		if n := l.r.workers[0].held.total; n != 0 {
			t.Fatalf("%d packets wait for ever", n)
		}
	})
}
