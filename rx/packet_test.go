package rx

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"net"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"golang.org/x/sys/unix"

	"gorouter/internal/tpacket"
	"gorouter/skb"
)

// packetRing is a receive ring that the test fills as the kernel would.
type packetRing struct {
	mem   []byte
	shape tpacket.Layout
	head  int
}

const packetMac = 80 // where the frame begins in a slot

func newPacketRing(t testing.TB, segment bool, slot int) (*packetRing, *Packet, *skb.Cache) {
	t.Helper()
	a, err := skb.NewArena(skb.Options{Buffers: 512})
	if err != nil {
		t.Fatal(err)
	}
	o := OptionTable.Defaults()
	o.Ring = MinRing
	r := &packetRing{shape: tpacket.NewLayout(o.Ring, slot)}
	words := make([]uint64, r.shape.Size()/8)
	r.mem = unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), r.shape.Size())
	c := a.NewCache("test")
	p, err := NewPacket(PacketConfig{Name: "p rx", Port: 5, Cache: c, Ring: r.mem, Shape: r.shape, MaxFrame: 1514, Segment: segment, Options: o})
	if err != nil {
		t.Fatal(err)
	}
	return r, p, c
}

// vnet is a virtio header.
func vnet(flags, gso uint8, size, start, offset int) []byte {
	b := make([]byte, tpacket.VnetSize)
	b[0], b[1] = flags, gso
	binary.NativeEndian.PutUint16(b[4:], uint16(size))
	binary.NativeEndian.PutUint16(b[6:], uint16(start))
	binary.NativeEndian.PutUint16(b[8:], uint16(offset))
	return b
}

// put fills the next slot. It reports whether the slot was the kernel's.
func (r *packetRing) put(v, data []byte, wire int, status uint32, tci, tpid uint16) bool {
	s := r.mem[r.head*r.shape.SlotSize:][:r.shape.SlotSize]
	h := (*tpacket.Header)(unsafe.Pointer(unsafe.SliceData(s)))
	if h.Status != unix.TP_STATUS_KERNEL {
		return false
	}
	copy(s[packetMac-tpacket.VnetSize:], v)
	h.Snaplen = uint32(copy(s[packetMac:], data))
	h.Len, h.Mac, h.Vlan_tci, h.Vlan_tpid = uint32(wire), packetMac, tci, tpid
	h.Status = unix.TP_STATUS_USER | status
	r.head = (r.head + 1) % r.shape.Slots
	return true
}

func TestPacketReasons(t *testing.T) {
	long := make([]byte, 9000)
	none := vnet(0, 0, 0, 0, 0)
	for name, c := range map[string]struct {
		vnet []byte
		data []byte
		wire int
		want skb.Reason
	}{
		"good":                      {none, long[:1514], 1514, skb.ReasonNone},
		"runt":                      {none, long[:13], 13, skb.RxRunt},
		"cut short":                 {none, long[:200], 1000, skb.RxTruncated},
		"cut short and too long":    {none, long[:1900], 9000, skb.RxTooLong},
		"segments cut short":        {vnet(1, unix.VIRTIO_NET_HDR_GSO_TCPV4, 1448, 34, 16), long[:1400], 9000, skb.RxSuperFrame},
		"segments too long":         {vnet(1, unix.VIRTIO_NET_HDR_GSO_TCPV4, 1448, 34, 16), long[:1515], 1515, skb.RxSuperFrame},
		"too long":                  {none, long[:1515], 1515, skb.RxTooLong},
		"datagrams in one":          {vnet(1, unix.VIRTIO_NET_HDR_GSO_UDP_L4, 100, 34, 6), long[:500], 500, skb.RxSuperFrame},
		"segments that fit":         {vnet(1, unix.VIRTIO_NET_HDR_GSO_TCPV4, 100, 34, 16), long[:500], 500, skb.ReasonNone},
		"segments that fit, ECN":    {vnet(1, unix.VIRTIO_NET_HDR_GSO_TCPV6|unix.VIRTIO_NET_HDR_GSO_ECN, 100, 54, 16), long[:500], 500, skb.ReasonNone},
		"checksum beyond the frame": {vnet(1, 0, 0, 100, 6), long[:107], 107, skb.RxData},
		"checksum in the addresses": {vnet(1, 0, 0, 4, 6), long[:107], 107, skb.RxData},
	} {
		r, p, cache := newPacketRing(t, false, 2048)
		r.put(c.vnet, c.data, c.wire, 0, 0, 0)
		var b skb.Batch
		if n := p.Poll(&b, 64, 1); n != 1 || (b.N == 1) != (c.want == skb.ReasonNone) {
			t.Errorf("%s: poll %d, %d frames", name, n, b.N)
		}
		if d := &p.Counters().Live.Drops; c.want != skb.ReasonNone && (d[c.want] != 1 || d.Total() != 1) {
			t.Errorf("%s: drops %v, want %s", name, d.Map(), c.want)
		}
		cache.FreeBatch(b.Handles())
		if _, err := cache.Arena().Audit(p); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Slots go back by the batch only, and a ring of which all slots are held
// looks empty.
func TestPacketReplenish(t *testing.T) {
	for _, c := range []struct {
		at    string
		batch int
		// given back after a trip of 10, after one more, at the end of a turn
		// that was cut off, and of one that found the ring empty
		trip, second, cut, idle uint64
	}{
		{ReplenishTurn, 1, 10, 20, 30, 30},
		{ReplenishTurn, 16, 0, 20, 20, 30},
		{ReplenishTurn, 25, 0, 0, 30, 30},
		{ReplenishTurn, MaxRing, 0, 0, 0, 30},
		{ReplenishEnd, 1, 0, 0, 30, 30},
		{ReplenishEnd, 64, 0, 0, 30, 30},
	} {
		r, p, cache := newPacketRing(t, false, 2048)
		o := p.Options()
		o.Replenish, o.ReplenishAt = c.batch, c.at
		p.Configure(o)
		for range MinRing {
			r.put(vnet(0, 0, 0, 0, 0), make([]byte, 60), 60, 0, 0, 0)
		}
		live := &p.Counters().Live
		take := func() {
			var b skb.Batch
			p.Poll(&b, 10, 1)
			cache.FreeBatch(b.Handles())
		}
		check := func(when string, want uint64) {
			if live.Replenished != want {
				t.Errorf("%s %d, %s: %d given back, want %d", c.at, c.batch, when, live.Replenished, want)
			}
		}
		take()
		p.Replenish()
		check("first trip", c.trip)
		take()
		p.Replenish()
		check("second trip", c.second)
		take()
		p.EndTurn(false)
		check("end of a full turn", c.cut)
		p.EndTurn(true)
		check("end of an idle turn", c.idle)
	}
	r, p, cache := newPacketRing(t, false, 2048)
	o := p.Options()
	o.ReplenishAt = ReplenishEnd
	p.Configure(o)
	for r.put(vnet(0, 0, 0, 0, 0), make([]byte, 60), 60, 0, 0, 0) {
	}
	for total := 0; total < MinRing; {
		var b skb.Batch
		total += p.Poll(&b, 64, 1)
		cache.FreeBatch(b.Handles())
	}
	var b skb.Batch
	if n := p.Poll(&b, 64, 1); n != 0 || p.Ready() {
		t.Errorf("%d frames taken twice", n)
	}
	p.EndTurn(true)
	p.Close()
	p.Close()
	if n := p.Poll(&b, 64, 1); n != 0 || p.Ready() {
		t.Errorf("%d frames after Close", n)
	}
}

// A super-frame goes on in the next poll when the batch is full, and its slot
// is not given back before its last segment.
func TestPacketSuperFrameOverSeveralPolls(t *testing.T) {
	r, p, cache := newPacketRing(t, true, 66000)
	data := superFrame(false, 21*100+7)
	r.put(vnet(1, unix.VIRTIO_NET_HDR_GSO_TCPV4, 100, 34, 16), data, len(data), 0, 0, 0)
	r.put(vnet(0, 0, 0, 0, 0), make([]byte, 60), 60, 0, 0, 0)
	live := &p.Counters().Live
	for i, want := range []int{8, 8, 7, 0} {
		if i < 2 {
			if !p.Ready() {
				t.Error("not ready")
			}
			p.EndTurn(true)
			if live.Replenished != 0 {
				t.Error("the slot was given back under the segments")
			}
		}
		var b skb.Batch
		if n := p.Poll(&b, 8, 1); n != want || b.N != want {
			t.Errorf("poll %d: %d, %d frames, want %d", i, n, b.N, want)
		}
		cache.FreeBatch(b.Handles())
	}
	if live.Packets != 23 || live.Descriptors != 2 {
		t.Errorf("%+v", live)
	}
	// Without buffers each segment is counted.
	var held []skb.Handle
	for h := cache.Alloc(); h != skb.None; h = cache.Alloc() {
		held = append(held, h)
	}
	r.put(vnet(1, unix.VIRTIO_NET_HDR_GSO_TCPV4, 100, 34, 16), data, len(data), 0, 0, 0)
	var b skb.Batch
	if n := p.Poll(&b, 64, 1); n != 22 || b.N != 0 || live.Drops[skb.RxNoBuffer] != 22 {
		t.Errorf("poll %d, %d frames, %v", n, b.N, live.Drops.Map())
	}
	cache.FreeBatch(held)
}

// superFrame is a TCP packet with that much payload; IPv6 when asked.
func superFrame(v6 bool, payload int) []byte {
	eth := &layers.Ethernet{SrcMAC: net.HardwareAddr{2, 0, 0, 0, 0, 1}, DstMAC: net.HardwareAddr{2, 0, 0, 0, 0, 2}, EthernetType: layers.EthernetTypeIPv4}
	tcp := &layers.TCP{SrcPort: 1, DstPort: 2, Seq: 0xfffffff0, ACK: true, PSH: true, FIN: true, CWR: true, Window: 9,
		Options: []layers.TCPOption{{OptionType: layers.TCPOptionKindNop}, {OptionType: layers.TCPOptionKindNop}}}
	var ip gopacket.SerializableLayer
	if v6 {
		eth.EthernetType = layers.EthernetTypeIPv6
		l := &layers.IPv6{Version: 6, NextHeader: layers.IPProtocolTCP, HopLimit: 9, SrcIP: net.ParseIP("fd00::1"), DstIP: net.ParseIP("fd00::2")}
		_ = tcp.SetNetworkLayerForChecksum(l)
		ip = l
	} else {
		l := &layers.IPv4{Version: 4, Id: 0xfffe, TTL: 9, Protocol: layers.IPProtocolTCP, SrcIP: net.IP{10, 0, 0, 1}, DstIP: net.IP{10, 0, 0, 2}}
		_ = tcp.SetNetworkLayerForChecksum(l)
		ip = l
	}
	body := make([]byte, payload)
	for i := range body {
		body[i] = byte(i * 11)
	}
	b := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, eth, ip, tcp, gopacket.Payload(body)); err != nil {
		panic(err)
	}
	return b.Bytes()
}

func TestPacketSegmentsAreTheSendersOwn(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		for _, tagged := range []bool{false, true} {
			r, p, cache := newPacketRing(t, true, 66000)
			data := superFrame(v6, 3*1000+1)
			gso, l4 := uint8(unix.VIRTIO_NET_HDR_GSO_TCPV4), 34
			if v6 {
				gso, l4 = unix.VIRTIO_NET_HDR_GSO_TCPV6, 54
			}
			status, tagLen := uint32(0), 0
			if tagged {
				status, tagLen = unix.TP_STATUS_VLAN_VALID|unix.TP_STATUS_VLAN_TPID_VALID, 4
			}
			r.put(vnet(1, gso, 1000, l4, 16), data, len(data), status, 7, 0x88a8)
			var b skb.Batch
			p.Poll(&b, 64, 1)
			if b.N != 4 {
				t.Fatalf("%d segments; %v", b.N, p.Counters().Live.Drops.Map())
			}
			var body []byte
			for i, h := range b.Handles() {
				f := bytes.Clone(cache.Arena().Bytes(h))
				if tagged != (f[12] == 0x88 && f[13] == 0xa8 && f[15] == 7) {
					t.Errorf("tag: %x", f[:20])
				}
				f = append(f[:12], f[12+tagLen:]...)
				g := gopacket.NewPacket(f, layers.LayerTypeEthernet, gopacket.Default)
				tcp := g.Layer(layers.LayerTypeTCP).(*layers.TCP)
				last := i == 3
				if tcp.Seq != 0xfffffff0+uint32(1000*i) || tcp.PSH != last || tcp.FIN != last || tcp.CWR != (i == 0) || !tcp.ACK {
					t.Errorf("segment %d: %+v", i, tcp)
				}
				if ip, ok := g.NetworkLayer().(*layers.IPv4); ok && ip.Id != 0xfffe+uint16(i) {
					t.Errorf("segment %d: id %#x", i, ip.Id)
				}
				body = append(body, tcp.Payload...)
				_ = tcp.SetNetworkLayerForChecksum(g.NetworkLayer())
				buf := gopacket.NewSerializeBuffer()
				if err := gopacket.SerializePacket(buf, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, g); err != nil {
					t.Fatal(err)
				}
				if want := buf.Bytes()[:len(f)]; !bytes.Equal(want, f) {
					t.Error(cmp.Diff(want, f))
				}
			}
			if want := data[len(data)-3001:]; !bytes.Equal(body, want) {
				t.Error("the payload is not the sender's")
			}
			cache.FreeBatch(b.Handles())
		}
	}
}

// What is no whole packet that can be cut is a named drop.
func TestPacketUncuttable(t *testing.T) {
	good := superFrame(false, 3000)
	change := func(at int, v byte) []byte {
		f := bytes.Clone(good)
		f[at] = v
		return f
	}
	tcp4 := uint8(unix.VIRTIO_NET_HDR_GSO_TCPV4)
	for name, c := range map[string]struct{ v, data []byte }{
		"no partial checksum": {vnet(0, tcp4, 1000, 34, 16), good},
		"no size":             {vnet(1, tcp4, 0, 34, 16), good},
		"segments too long":   {vnet(1, tcp4, 1500, 34, 16), good},
		"wrong family":        {vnet(1, unix.VIRTIO_NET_HDR_GSO_TCPV6, 1000, 34, 16), good},
		"unknown kind":        {vnet(1, unix.VIRTIO_NET_HDR_GSO_UDP, 1000, 34, 16), good},
		"other start":         {vnet(1, tcp4, 1000, 38, 16), good},
		"not IP":              {vnet(1, tcp4, 1000, 34, 16), change(12, 0x99)},
		"version":             {vnet(1, tcp4, 1000, 34, 16), change(14, 0x65)},
		"header length":       {vnet(1, tcp4, 1000, 34, 16), change(14, 0x44)},
		"protocol":            {vnet(1, tcp4, 1000, 34, 16), change(23, 17)},
		"data offset":         {vnet(1, tcp4, 1000, 34, 16), change(46, 0x40)},
		"no payload":          {vnet(1, tcp4, 1000, 34, 16), good[:58]},
		"only a header":       {vnet(1, tcp4, 1000, 34, 16), good[:14]},
	} {
		r, p, _ := newPacketRing(t, true, 66000)
		r.put(c.v, c.data, len(c.data), 0, 0, 0)
		var b skb.Batch
		if n := p.Poll(&b, 64, 1); n != 1 || b.N != 0 || p.Counters().Live.Drops[skb.RxSuperFrame] != 1 {
			t.Errorf("%s: poll %d, %d frames, %v", name, n, b.N, p.Counters().Live.Drops.Map())
		}
	}
}

func TestPacketChecksums(t *testing.T) {
	// A UDP sum of zero is written as 0xffff, a TCP sum is not.
	b := make([]byte, 40)
	b[20], b[21] = 0xff, 0xff
	udp, tcp := bytes.Clone(b), bytes.Clone(b)
	if !completeChecksum(udp, 14, 6) || udp[20] != 0xff || udp[21] != 0xff {
		t.Errorf("UDP: %x", udp)
	}
	tcp[30], tcp[31], tcp[20], tcp[21] = 0xff, 0xff, 0, 0
	if !completeChecksum(tcp, 14, 16) || tcp[30] != 0 || tcp[31] != 0 {
		t.Errorf("TCP: %x", tcp)
	}
	// SCTP has a CRC: the checksum of everything with the field at zero.
	sctp := []byte("..............SCTPSCTPxxxxsome chunks")
	if !completeChecksum(sctp, 14, 8) {
		t.Error("SCTP refused")
	}
	zero := bytes.Clone(sctp[14:])
	copy(zero[8:], make([]byte, 4))
	if got, want := binary.LittleEndian.Uint32(sctp[22:]), crc32.Checksum(zero, crc32.MakeTable(crc32.Castagnoli)); got != want {
		t.Errorf("SCTP: %#x, want %#x", got, want)
	}
}

// Any slot content is taken, cut or dropped by name, and no buffer is lost.
func FuzzPacketSlot(f *testing.F) {
	f.Add(vnet(0, 0, 0, 0, 0), make([]byte, 60), 60, uint32(0), uint16(0), uint16(0), false)
	f.Add(vnet(1, 0, 0, 34, 6), make([]byte, 1514), 1514, uint32(unix.TP_STATUS_VLAN_VALID), uint16(5), uint16(0), true)
	f.Add(vnet(1, 1, 100, 34, 16), superFrame(false, 900), 966, uint32(0), uint16(0), uint16(0), true)
	f.Add(vnet(1, 4, 100, 54, 16), superFrame(true, 3000), 3086, uint32(0x50), uint16(9), uint16(0x88a8), true)
	f.Add(vnet(1, 0, 0, 33, 6), make([]byte, 2130), 1430, uint32(0x10), uint16(5), uint16(0), false)
	f.Add(vnet(1, 5, 1, 34, 6), superFrame(false, 64), 130, uint32(0), uint16(0), uint16(0), true)
	type half struct {
		r     *packetRing
		p     *Packet
		cache *skb.Cache
	}
	// Made once: a mapping each time would be most of the work.
	halves := map[bool]half{}
	for _, segment := range []bool{false, true} {
		r, p, cache := newPacketRing(f, segment, 8192)
		halves[segment] = half{r, p, cache}
	}
	f.Fuzz(func(t *testing.T, v, data []byte, wire int, status uint32, tci, tpid uint16, segment bool) {
		h := halves[segment]
		r, p, cache := h.r, h.p, h.cache
		before := p.Counters().Live
		slot := r.mem[r.head*r.shape.SlotSize:][:r.shape.SlotSize]
		clear(slot)
		if len(v) > tpacket.VnetSize {
			v = v[:tpacket.VnetSize]
		}
		r.put(v, data, wire, status, tci, tpid)
		live := &p.Counters().Live
		total := 0
		for {
			var b skb.Batch
			n := p.Poll(&b, 7, 1)
			if n == 0 {
				break
			}
			total += n
			for _, h := range b.Handles() {
				if l := len(cache.Arena().Bytes(h)); l < 14 || l > 1522 {
					t.Fatalf("frame of %d bytes", l)
				}
			}
			cache.FreeBatch(b.Handles())
			p.Replenish()
		}
		if live.Packets+live.Drops.Total()-before.Packets-before.Drops.Total() != uint64(total) || total == 0 {
			t.Fatalf("took %d: %+v", total, live)
		}
		p.EndTurn(true)
		if n := live.Replenished - before.Replenished; n != 1 {
			t.Fatalf("%d slots given back", n)
		}
		if _, err := cache.Arena().Audit(p); err != nil {
			t.Fatal(err)
		}
	})
}
