package packet

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/google/go-cmp/cmp"
	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"gorouter/skb"
)

func arpRequest(mac net.HardwareAddr, from, to string) []byte {
	return serialize(
		&layers.Ethernet{SrcMAC: mac, DstMAC: net.HardwareAddr{255, 255, 255, 255, 255, 255}, EthernetType: layers.EthernetTypeARP},
		&layers.ARP{
			AddrType: layers.LinkTypeEthernet, Protocol: layers.EthernetTypeIPv4, HwAddressSize: 6, ProtAddressSize: 4, Operation: layers.ARPRequest,
			SourceHwAddress: mac, SourceProtAddress: net.ParseIP(from).To4(), DstHwAddress: make([]byte, 6), DstProtAddress: net.ParseIP(to).To4(),
		})
}

func serialize(ls ...gopacket.SerializableLayer) []byte {
	b := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, ls...); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// ping is an echo request to the kernel of the port's namespace or beyond it.
func (r *rig) ping(to string) []byte {
	return serialize(
		&layers.Ethernet{SrcMAC: r.peer.MAC(peerDev), DstMAC: r.here.MAC(hereDev), EthernetType: layers.EthernetTypeIPv4},
		&layers.IPv4{Version: 4, TTL: 9, Protocol: layers.IPProtocolICMPv4, SrcIP: net.IP{10, 0, 0, 2}, DstIP: net.ParseIP(to)},
		&layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(layers.ICMPv4TypeEchoRequest, 0), Id: 1, Seq: 1})
}

// kernelReacts sends what the kernel would answer (ARP, ping) and what it
// would forward, and lists the kinds of frames that come of it.
func (r *rig) kernelReacts() map[string]bool {
	r.t.Helper()
	r.fromPeer(arpRequest(r.peer.MAC(peerDev), "10.0.0.2", "10.0.0.1"))
	r.fromPeer(r.ping("10.0.0.1"))
	r.fromPeer(r.ping("10.0.0.99"))
	r.marker()
	got := map[string]bool{}
	for {
		p := gopacket.NewPacket(r.atPeer(), layers.LayerTypeEthernet, gopacket.Default)
		if a, ok := p.Layer(layers.LayerTypeARP).(*layers.ARP); ok && a.Operation == layers.ARPReply {
			got["arp"] = true
		}
		if i, ok := p.Layer(layers.LayerTypeICMPv4).(*layers.ICMPv4); ok {
			switch i.TypeCode.Type() {
			case layers.ICMPv4TypeEchoReply:
				got["echo"] = true
			case layers.ICMPv4TypeEchoRequest:
				got["forwarded"] = true
			}
		}
		if e := p.Layer(layers.LayerTypeEthernet).(*layers.Ethernet); e.EthernetType == 0x88b5 {
			return got
		}
	}
}

// Case 44: an address on the port and ip_forward must not give duplicates.
func TestKernelIsKeptOff(t *testing.T) {
	for _, mode := range []string{IsolationAuto, IsolationTCX, IsolationClsact, IsolationOff} {
		t.Run(mode, func(t *testing.T) {
			r := newCable(t)
			r.here.Address(hereDev, "10.0.0.1/24")
			r.here.Sysctl("net.ipv4.ip_forward", "1")
			r.here.Neighbor(hereDev, "10.0.0.2", r.peer.MAC(peerDev))
			r.here.Neighbor(hereDev, "10.0.0.99", r.peer.MAC(peerDev))
			r.listen()
			all := map[string]bool{"arp": true, "echo": true, "forwarded": true}
			if got := r.kernelReacts(); !cmp.Equal(got, all) {
				t.Fatalf("before: %v", got)
			}
			r.open(func(c *Config) { c.Isolation = mode })
			want := map[string]bool{}
			if mode == IsolationOff {
				want = all
			}
			if got := r.kernelReacts(); !cmp.Equal(got, want) {
				t.Errorf("while open: %v, want %v", got, want)
			}
			r.receive(3) // the port has seen them
			r.close()
			if got := r.kernelReacts(); !cmp.Equal(got, all) {
				t.Errorf("after Close: %v", got)
			}
			if names, qdisc := r.filters(); len(names) != 0 || qdisc {
				t.Errorf("left behind: filters %v, qdisc %v", names, qdisc)
			}
		})
	}
}

// checkWhole decodes a frame and has the checksums computed anew.
func checkWhole(t *testing.T, frame []byte) gopacket.Packet {
	t.Helper()
	p := gopacket.NewPacket(frame, layers.LayerTypeEthernet, gopacket.Default)
	if e := p.ErrorLayer(); e != nil {
		t.Fatalf("%v in %x", e.Error(), frame)
	}
	var ls []gopacket.SerializableLayer
	for _, l := range p.Layers() {
		switch v := l.(type) {
		case *layers.TCP:
			_ = v.SetNetworkLayerForChecksum(p.NetworkLayer())
		case *layers.UDP:
			_ = v.SetNetworkLayerForChecksum(p.NetworkLayer())
		}
		ls = append(ls, l.(gopacket.SerializableLayer))
	}
	// The serializer pads.
	if want := serialize(ls...)[:len(frame)]; !cmp.Equal(frame, want) {
		t.Errorf("lengths or checksums are wrong: %s", cmp.Diff(want, frame))
	}
	return p
}

// hosts gives the far end addresses and an entry for the port's, so that its
// kernel sends without asking.
func (r *rig) hosts() {
	r.peer.Address(peerDev, "10.0.0.2/24")
	r.peer.Address(peerDev, "fd00::2/64")
	r.peer.Neighbor(peerDev, "10.0.0.1", r.here.MAC(hereDev))
	r.peer.Neighbor(peerDev, "fd00::1", r.here.MAC(hereDev))
}

func newHosts(t *testing.T) *rig {
	t.Helper()
	r := newCable(t)
	for _, key := range []string{"all", "default", peerDev} {
		r.peer.Sysctl("net.ipv6.conf."+key+".disable_ipv6", "0")
	}
	r.hosts()
	return r
}

// Case 40: the kernel of a virtual interface's far end leaves checksums
// unfinished.
func TestPartialChecksumsAreFinished(t *testing.T) {
	r := newHosts(t)
	r.open()
	payload := make([]byte, 1400)
	for i := range payload {
		payload[i] = byte(i * 31)
	}
	for _, to := range []string{"10.0.0.1", "fd00::1"} {
		for _, n := range []int{0, 1, 2, 17, 18, 19, 1399, 1400} {
			r.sendUDP(to, payload[:n], 0)
			p := checkWhole(t, r.ipFrame())
			u, ok := p.Layer(layers.LayerTypeUDP).(*layers.UDP)
			if !ok || !cmp.Equal(u.Payload, payload[:n]) || u.Checksum == 0 {
				t.Fatalf("%s, %d bytes: %v", to, n, p)
			}
		}
		conn := r.startTCP(to)
		p := checkWhole(t, r.ipFrame())
		if s, ok := p.Layer(layers.LayerTypeTCP).(*layers.TCP); !ok || !s.SYN {
			t.Errorf("%s: %v", to, p)
		}
		_ = unix.Close(conn)
	}
}

// ipFrame is the next received frame that is TCP or UDP: an IPv6 kernel talks
// of its own accord.
func (r *rig) ipFrame() []byte {
	r.t.Helper()
	for {
		if len(r.queue) == 0 {
			r.poll(func(h skb.Handle) bool {
				r.queue = append(r.queue, bytes.Clone(r.arena.Bytes(h)))
				return true
			})
		}
		if len(r.queue) == 0 {
			r.t.Fatalf("no frame came; drops %v", r.rxq().Counters().Live.Drops.Map())
		}
		f := r.queue[0]
		r.queue = r.queue[1:]
		p := gopacket.NewPacket(f, layers.LayerTypeEthernet, gopacket.Default)
		if p.TransportLayer() != nil {
			return f
		}
	}
}

func address(ip string) unix.Sockaddr {
	a := net.ParseIP(ip)
	if v4 := a.To4(); v4 != nil {
		return &unix.SockaddrInet4{Port: 9, Addr: [4]byte(v4)}
	}
	return &unix.SockaddrInet6{Port: 9, Addr: [16]byte(a)}
}

func family(to string) int {
	if net.ParseIP(to).To4() != nil {
		return unix.AF_INET
	}
	return unix.AF_INET6
}

// sendUDP has the far end's kernel send; a segment size makes one super-frame
// of it.
func (r *rig) sendUDP(to string, payload []byte, segment int) {
	r.t.Helper()
	err := r.peer.Do(func() error {
		fd, err := unix.Socket(family(to), unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		if segment > 0 {
			if err := unix.SetsockoptInt(fd, unix.SOL_UDP, unix.UDP_SEGMENT, segment); err != nil {
				return fmt.Errorf("UDP_SEGMENT: %w", err)
			}
		}
		return unix.Sendto(fd, payload, 0, address(to))
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

// startTCP begins a connection from the far end, without waiting.
func (r *rig) startTCP(to string) (fd int) {
	r.t.Helper()
	err := r.peer.Do(func() (err error) {
		if fd, err = unix.Socket(family(to), unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0); err != nil {
			return err
		}
		if err = unix.Connect(fd, address(to)); err == unix.EINPROGRESS {
			return nil
		}
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return fd
}

// connect answers the connection's SYN out of the port.
func (r *rig) connect(to string) (fd int, next uint32) {
	r.t.Helper()
	fd = r.startTCP(to)
	p := checkWhole(r.t, r.ipFrame())
	syn := p.Layer(layers.LayerTypeTCP).(*layers.TCP)
	eth := p.Layer(layers.LayerTypeEthernet).(*layers.Ethernet)
	eth.SrcMAC, eth.DstMAC = eth.DstMAC, eth.SrcMAC
	answer := &layers.TCP{SrcPort: syn.DstPort, DstPort: syn.SrcPort, Seq: 1000, Ack: syn.Seq + 1, SYN: true, ACK: true, Window: 65535,
		Options: []layers.TCPOption{{OptionType: layers.TCPOptionKindMSS, OptionLength: 4, OptionData: binary.BigEndian.AppendUint16(nil, 1440)}}}
	var ip gopacket.SerializableLayer
	switch v := p.NetworkLayer().(type) {
	case *layers.IPv4:
		v.SrcIP, v.DstIP = v.DstIP, v.SrcIP
		_ = answer.SetNetworkLayerForChecksum(v)
		ip = v
	case *layers.IPv6:
		v.SrcIP, v.DstIP = v.DstIP, v.SrcIP
		_ = answer.SetNetworkLayerForChecksum(v)
		ip = v
	}
	r.port.Tx[0].Send(r.batch(serialize(eth, ip, answer)), false)
	if ack := checkWhole(r.t, r.ipFrame()).Layer(layers.LayerTypeTCP).(*layers.TCP); !ack.ACK || ack.Ack != 1001 {
		r.t.Fatalf("%s: the handshake failed: %+v", to, ack)
	}
	return fd, syn.Seq + 1
}

// Case 39: what the far end's kernel leaves to a segmenting device comes as
// the frames which that would have sent.
func TestSuperFramesAreCut(t *testing.T) {
	content := make([]byte, 9000)
	for i := range content {
		content[i] = byte(i*i>>3 + i)
	}
	for _, to := range []string{"10.0.0.1", "fd00::1"} {
		t.Run("tcp "+to, func(t *testing.T) {
			r := newHosts(t)
			r.open()
			fd, next := r.connect(to)
			defer unix.Close(fd)
			payload, pushes := content, 0
			if n, err := unix.Write(fd, payload); n != len(payload) {
				t.Fatalf("wrote %d bytes: %v", n, err)
			}
			for len(payload) > 0 {
				p := checkWhole(t, r.ipFrame())
				s := p.Layer(layers.LayerTypeTCP).(*layers.TCP)
				if s.Seq != next || len(s.Payload) == 0 || len(s.Payload) > len(payload) || string(s.Payload) != string(payload[:len(s.Payload)]) {
					t.Fatalf("segment with sequence number %d, want %d: %v", s.Seq, next, p)
				}
				payload = payload[len(s.Payload):]
				next += uint32(len(s.Payload))
				if s.PSH {
					pushes++
				}
			}
			c := r.rxq().Counters().Live
			if c.Drops.Total() != 0 || c.Descriptors >= c.Packets {
				t.Errorf("no super-frame came: %+v", c)
			}
			// Of a super-frame only the last segment may have it.
			if pushes == 0 || pushes > int(c.Descriptors) {
				t.Errorf("%d segments with PSH of %d super-frames", pushes, c.Descriptors)
			}
		})
		t.Run("udp "+to, func(t *testing.T) {
			r := newHosts(t)
			r.open()
			r.sendUDP(to, content[:5100], 1000)
			for i := range 6 {
				u := checkWhole(t, r.ipFrame()).Layer(layers.LayerTypeUDP).(*layers.UDP)
				want := 1000
				if i == 5 {
					want = 100
				}
				if !cmp.Equal(u.Payload, content[1000*i:1000*i+want]) {
					t.Errorf("datagram %d of %d bytes", i, len(u.Payload))
				}
			}
		})
	}
}

func TestSuperFramesAreNamed(t *testing.T) {
	for _, to := range []string{"10.0.0.1", "fd00::1"} {
		r := newHosts(t)
		r.open(func(c *Config) { c.SuperFrames = SuperFramesDrop })
		fd, _ := r.connect(to)
		if _, err := unix.Write(fd, make([]byte, 9000)); err != nil {
			t.Fatal(err)
		}
		r.sendUDP(to, make([]byte, 5100), 1000)
		r.sendUDP(to, make([]byte, 900), 400) // would fit, but is three datagrams
		q := r.rxq()
		r.until("three named drops", func() bool {
			var b skb.Batch
			q.Poll(&b, 64, 0)
			r.cache.FreeBatch(b.Handles())
			return q.Counters().Live.Drops[skb.RxSuperFrame] >= 3
		})
		if d := q.Counters().Live.Drops.Map(); len(d) != 1 {
			t.Errorf("drops: %v", d)
		}
		_ = unix.Close(fd)
		r.close()
	}
}
