package dataplane

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"gorouter/fib"
	"gorouter/internal/inet"
)

// What FuzzFrames mends before a frame goes in, so that random bytes get past
// the first checks.
const (
	mendMAC      = 1 << (iota + 2) // to the port's own address
	mendIPv4                       // ethertype and first header byte
	mendLength                     // total length
	mendChecksum                   // of the IPv4 header
	mendARP                        // ethertype and the constant part
	mendRoute                      // destination among our routes
)

// cutFrames makes frames out of fuzz data: a byte that says port and mending, a
// length, the bytes.
func cutFrames(data []byte, use func(port int, f []byte)) {
	for n := 0; len(data) >= 2 && n < 64; n++ {
		mode, l := data[0], int(data[1])*6
		data = data[2:]
		f := append([]byte(nil), data[:min(l, len(data), 1514)]...)
		data = data[min(l, len(data)):]
		port := int(mode&3) % 3
		if mode&mendMAC != 0 && len(f) >= 6 {
			copy(f, routerMAC[port][:])
		}
		if mode&mendARP != 0 && len(f) >= 20 {
			binary.BigEndian.PutUint16(f[12:], inet.EtherARP)
			copy(f[14:], arpFixed[:])
		} else if mode&mendIPv4 != 0 && len(f) >= 34 {
			binary.BigEndian.PutUint16(f[12:], inet.EtherIPv4)
			f[14] = 0x45 + f[14]&3
		}
		if mode&mendRoute != 0 && len(f) >= 34 {
			f[30] = []byte{10, 192, 198, 203}[f[30]&3]
		}
		if mode&mendLength != 0 && len(f) >= 34 {
			binary.BigEndian.PutUint16(f[16:], uint16(len(f)-14))
		}
		if hl := 14 + 4*int(byteAt(f, 14)&15); mode&mendChecksum != 0 && hl >= 34 && hl <= len(f) {
			resum(f)
		}
		use(port, f)
	}
}

func byteAt(f []byte, i int) byte {
	if i < len(f) {
		return f[i]
	}
	return 0
}

// checkOut says what is wrong with a frame that left by a port.
func checkOut(port int, f []byte) error {
	if len(f) < 34 || len(f) > 1514 {
		return fmt.Errorf("%d bytes", len(f))
	}
	if inet.MAC(f[6:12]) != routerMAC[port] || inet.MAC(f[0:6]) == (inet.MAC{}) {
		return fmt.Errorf("link header %x", f[:14])
	}
	switch binary.BigEndian.Uint16(f[12:]) {
	case inet.EtherARP:
		if len(f) != arpEnd || [6]byte(f[14:20]) != arpFixed || f[20] != 0 || (f[21] != arpRequest && f[21] != arpReply) || inet.MAC(f[22:28]) != routerMAC[port] {
			return fmt.Errorf("ARP")
		}
	case inet.EtherIPv4:
		p := f[14:]
		hl := int(p[0]&15) * 4
		if p[0]>>4 != 4 || hl < 20 || hl > len(p) || int(binary.BigEndian.Uint16(p[2:])) != len(p) || p[8] == 0 {
			return fmt.Errorf("header")
		}
		if inet.Checksum(p[:hl]) != 0 {
			return fmt.Errorf("header checksum")
		}
		if p[1]&0xe3 == 0xc0 && p[9] == inet.ProtoICMP && p[8] == icmpTTL && hl == 20 && (p[20] == icmpUnreachable || p[20] == icmpTimeExceeded) && inet.Checksum(p[20:]) != 0 &&
			ownAddress(p[12:16]) {
			return fmt.Errorf("ICMP checksum")
		}
	default:
		return fmt.Errorf("ethertype")
	}
	return nil
}

func ownAddress(b []byte) bool {
	switch netip.AddrFrom4([4]byte(b)).String() {
	case "192.0.2.1", "198.51.100.1", "203.0.113.1":
		return true
	}
	return false
}

func FuzzFrames(f *testing.F) {
	mend := func(port int, what byte, frame []byte) []byte {
		for len(frame)%6 != 0 {
			frame = append(frame, 0)
		}
		return append([]byte{byte(port) | what, byte(len(frame) / 6)}, frame...)
	}
	long := udp("192.0.2.2", "10.0.0.1")
	long.payload, long.df = make([]byte, 1000), true
	seeds := [][]byte{
		udp("192.0.2.2", "10.0.0.1").bytes(f), udp("192.0.2.2", "198.51.100.77").bytes(f), udp("192.0.2.77", "11.0.0.1").bytes(f),
		echo("192.0.2.2", "192.0.2.1").bytes(f), long.bytes(f), udp("192.0.2.2", "10.10.0.1").bytes(f),
		arpFrame(1, inet.Broadcast, hostMAC[2], "192.0.2.9", inet.MAC{}, "192.0.2.1"),
		arpFrame(2, routerMAC[0], hostMAC[2], "192.0.2.77", routerMAC[0], "192.0.2.1"),
	}
	var all []byte
	for _, s := range seeds {
		f.Add(mend(0, 0, s))
		f.Add(mend(0, mendMAC|mendIPv4|mendLength|mendChecksum, s))
		all = append(all, mend(0, 0, s)...)
	}
	f.Add(all)
	f.Fuzz(func(t *testing.T, data []byte) {
		l := newLab(t)
		defer l.close()
		l.via("10.0.0.0/8", 1, "198.51.100.2")
		l.route(fib.Route{Prefix: netip.MustParsePrefix("10.10.0.0/16"), Kind: fib.Forward, NextHops: []fib.NextHop{
			{Port: 1, Via: netip.MustParseAddr("198.51.100.99")}, {Port: 2, Via: netip.MustParseAddr("203.0.113.0")}}})
		cutFrames(data, func(port int, f []byte) { l.wires[port].in = append(l.wires[port].in, f) })
		l.run()
		check := func(when string) {
			if err := checkConservation(l); err != nil {
				t.Fatalf("%s: %v", when, err)
			}
			for i := range l.wires {
				for _, f := range l.out(i) {
					if err := checkOut(i, f); err != nil {
						t.Fatalf("%s: port %d sent %x: %v", when, i, f, err)
					}
				}
			}
		}
		check("at once")
		// The neighbours that were asked for fail, and what waits for them ends.
		for range 8 {
			l.pass(time.Second)
		}
		check("in the end")
		if err := checkStages(l); err != nil {
			t.Fatal(err)
		}
		if n := l.r.workers[0].held.total; n != 0 {
			t.Fatalf("%d packets wait for ever", n)
		}
	})
}
