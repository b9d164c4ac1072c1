package kernel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gorouter/internal/inet"
	"gorouter/test/netlab"
)

func TestMain(m *testing.M) { os.Exit(netlab.Main(m)) }

const (
	hostAddr  = "192.0.2.2"    // the sender, on the left
	leftAddr  = "192.0.2.1"    // the router's
	rightAddr = "198.51.100.1" // the router's
	gateway   = "198.51.100.2" // on the right, towards 10/8
	rightMTU  = 1000
)

// side is one end of the tester: a packet socket on a cable to the router.
type side struct {
	fd   int
	mac  net.HardwareAddr
	peer net.HardwareAddr
}

// bench is a router between two packet sockets.
type bench struct {
	t      testing.TB
	router *netlab.Namespace
	sides  [2]side // left, right
	marks  uint16
}

// newBench lays the cables; the router's addresses are for whoever routes.
func newBench(t testing.TB, lab *netlab.Lab, name string) *bench {
	t.Helper()
	b := &bench{t: t, router: lab.Namespace(name)}
	tester := lab.Namespace(name + "t")
	for i, dev := range []string{"lan0", "wan0"} {
		mine := fmt.Sprintf("t%d", i)
		lab.Link(tester, mine, b.router, dev)
		s := &b.sides[i]
		s.mac, s.peer = tester.MAC(mine), b.router.MAC(dev)
		if i == 1 {
			b.router.MTU(dev, rightMTU)
		}
		index := tester.Interface(mine).Attrs().Index
		err := tester.Do(func() (err error) {
			const all = unix.ETH_P_ALL<<8&0xff00 | unix.ETH_P_ALL>>8
			if s.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, all); err != nil {
				return err
			}
			if err = unix.SetsockoptInt(s.fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1); err != nil {
				return err
			}
			if err = unix.SetsockoptTimeval(s.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 5}); err != nil {
				return err
			}
			return unix.Bind(s.fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: index})
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Close(s.fd) })
	}
	return b
}

// send puts an IP packet on the left cable.
func (b *bench) send(p []byte, dst net.HardwareAddr) {
	b.t.Helper()
	s := &b.sides[0]
	if dst == nil {
		dst = s.peer
	}
	f := append(append(append([]byte(nil), dst...), s.mac...), inet.EtherIPv4>>8, inet.EtherIPv4&0xff)
	if _, err := unix.Write(s.fd, append(f, p...)); err != nil {
		b.t.Fatal(err)
	}
}

// output is an IP packet that came out.
type output struct {
	side int
	ip   []byte
}

// exchange sends a packet and collects what comes out because of it: until a
// packet that is forwarded and an echo, sent behind it, have come through.
func (b *bench) exchange(p []byte, dst net.HardwareAddr) []output {
	b.t.Helper()
	runtime.LockOSThread() // one processor's queues keep the order
	defer runtime.UnlockOSThread()
	b.marks++
	b.send(p, dst)
	b.send(marker(b.marks, "10.0.0.99", inet.ProtoUDP), nil)
	b.send(marker(b.marks, leftAddr, inet.ProtoICMP), nil)
	var out []output
	for i := range b.sides {
		for {
			ip, err := b.receive(i)
			if err != nil {
				b.t.Fatalf("%s: after %x: %v", b.router.Name(), p, err)
			}
			if isMarker(ip, b.marks) {
				break
			}
			out = append(out, output{i, ip})
		}
	}
	return out
}

// receive returns the next IP packet at a side.
func (b *bench) receive(i int) ([]byte, error) {
	buf := make([]byte, 4096)
	s := &b.sides[i]
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
		n, err := unix.Read(s.fd, buf)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("side %d: %w", i, err)
		}
		f := buf[:n]
		if n < 34 || binary.BigEndian.Uint16(f[12:]) != inet.EtherIPv4 {
			continue
		}
		ip := f[14:]
		// Frames are padded, packets are not.
		return append([]byte(nil), ip[:min(len(ip), int(binary.BigEndian.Uint16(ip[2:])))]...), nil
	}
	return nil, errors.New("nothing came")
}

const markTTL = 33

func marker(n uint16, dst string, proto byte) []byte {
	body := make([]byte, 12)
	if proto == inet.ProtoICMP {
		body[0] = 8
	} else {
		binary.BigEndian.PutUint16(body[4:], uint16(len(body)))
	}
	binary.BigEndian.PutUint16(body[8:], 0xfeed)
	binary.BigEndian.PutUint16(body[10:], n)
	if proto == inet.ProtoICMP {
		binary.BigEndian.PutUint16(body[2:], inet.Checksum(body))
	}
	return packet(header{dst: dst, ttl: markTTL, proto: proto}, nil, body)
}

func isMarker(ip []byte, n uint16) bool {
	return len(ip) == 32 && binary.BigEndian.Uint16(ip[28:]) == 0xfeed && binary.BigEndian.Uint16(ip[30:]) == n
}

// header is what a test chooses of a packet.
type header struct {
	src, dst string
	tos, ttl byte
	proto    byte
	id       uint16
	word     uint16 // flags and offset
}

func packet(h header, opts, body []byte) []byte {
	for len(opts)%4 != 0 {
		opts = append(opts, 0)
	}
	if h.src == "" {
		h.src = hostAddr
	}
	p := make([]byte, 20, 20+len(opts)+len(body))
	p[0], p[1] = 0x45+byte(len(opts)/4), h.tos
	binary.BigEndian.PutUint16(p[2:], uint16(cap(p)))
	binary.BigEndian.PutUint16(p[4:], h.id)
	binary.BigEndian.PutUint16(p[6:], h.word)
	p[8], p[9] = h.ttl, h.proto
	copy(p[12:], net.ParseIP(h.src).To4())
	copy(p[16:], net.ParseIP(h.dst).To4())
	p = append(append(p, opts...), body...)
	binary.BigEndian.PutUint16(p[10:], inet.Checksum(p[:20+len(opts)]))
	return p
}
