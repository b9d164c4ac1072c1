package pktgen

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"gorouter/internal/inet"
)

var broadcast = inet.Broadcast

func arpRequest(t testing.TB, sender, target string) []byte {
	t.Helper()
	buf := gopacket.NewSerializeBuffer()
	err := gopacket.SerializeLayers(buf, gopacket.SerializeOptions{FixLengths: true},
		&layers.Ethernet{SrcMAC: macB[:], DstMAC: broadcast[:], EthernetType: layers.EthernetTypeARP},
		&layers.ARP{
			AddrType: layers.LinkTypeEthernet, Protocol: layers.EthernetTypeIPv4, HwAddressSize: 6, ProtAddressSize: 4, Operation: layers.ARPRequest,
			SourceHwAddress: macB[:], SourceProtAddress: netip.MustParseAddr(sender).AsSlice(),
			DstHwAddress: make([]byte, 6), DstProtAddress: netip.MustParseAddr(target).AsSlice(),
		})
	if err != nil {
		t.Fatal(err)
	}
	return append(buf.Bytes(), make([]byte, max(0, 60-len(buf.Bytes())))...)
}

func testStation(t testing.TB, streams ...*Stream) *Station {
	t.Helper()
	st, err := NewStation(StationConfig{MAC: macA, Addrs: []netip.Prefix{netip.MustParsePrefix("192.0.2.200/32"), netip.MustParsePrefix("198.51.100.0/24")}, Streams: streams, Peer: macB})
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func TestStationAnswersARP(t *testing.T) {
	st := testStation(t, testStream(func(s *Stream) { s.Count = 1 }))
	for _, target := range []string{"192.0.2.200", "198.51.100.77", "192.0.2.1"} {
		if !st.Deliver(arpRequest(t, "192.0.2.254", target)) {
			t.Error("refused")
		}
		f := st.Next(0)
		if len(f) != 60 {
			t.Fatalf("%s: answer of %d bytes", target, len(f))
		}
		p := gopacket.NewPacket(f, layers.LayerTypeEthernet, gopacket.Default)
		eth, arp := p.Layer(layers.LayerTypeEthernet).(*layers.Ethernet), p.Layer(layers.LayerTypeARP).(*layers.ARP)
		if !bytes.Equal(eth.DstMAC, macB[:]) || !bytes.Equal(eth.SrcMAC, macA[:]) || arp.Operation != layers.ARPReply ||
			!bytes.Equal(arp.SourceHwAddress, macA[:]) || !bytes.Equal(arp.DstHwAddress, macB[:]) ||
			!bytes.Equal(arp.SourceProtAddress, netip.MustParseAddr(target).AsSlice()) || !bytes.Equal(arp.DstProtAddress, []byte{192, 0, 2, 254}) ||
			arp.AddrType != layers.LinkTypeEthernet || arp.Protocol != layers.EthernetTypeIPv4 {
			t.Errorf("%s: %v", target, p)
		}
	}
	if f := st.Next(0); f == nil || binary.BigEndian.Uint16(f[12:]) != inet.EtherIPv4 {
		t.Errorf("the stream does not follow the answers: %x", f)
	}
	if st.Next(1) != nil {
		t.Error("more than was asked for")
	}
	st.Publish()
	if tot := st.Sink().Totals(); tot.ARP != 3 {
		t.Errorf("%+v", tot)
	}
}

func TestStationKeepsQuiet(t *testing.T) {
	good := arpRequest(t, "192.0.2.254", "192.0.2.200")
	edit := func(off int, v ...byte) []byte {
		f := append([]byte(nil), good...)
		copy(f[off:], v)
		return f
	}
	for name, f := range map[string][]byte{
		"another's address": arpRequest(t, "192.0.2.254", "192.0.2.201"),
		"announcement":      arpRequest(t, "192.0.2.200", "192.0.2.200"),
		"reply":             edit(arpOp, 0, 2),
		"hardware type":     edit(14, 0, 6),
		"protocol":          edit(16, 0x86, 0xdd),
		"lengths":           edit(18, 8),
		"group sender":      edit(arpSrcMAC, 0xff),
		"cut short":         good[:41],
	} {
		st := testStation(t)
		st.Deliver(f)
		if st.Next(0) != nil {
			t.Errorf("%s: answered", name)
		}
	}
}

func TestARPAnswersAreBounded(t *testing.T) {
	st := testStation(t)
	f := arpRequest(t, "192.0.2.254", "192.0.2.200")
	for range 3 * arpQueueLen {
		st.Deliver(f)
	}
	n := 0
	for st.Next(0) != nil {
		n++
	}
	if n != arpQueueLen || st.arp.dropped != 2*arpQueueLen {
		t.Errorf("%d answers, %d dropped", n, st.arp.dropped)
	}
}

// Two stations on one cable: what one sends the other counts, exactly.
func TestTwoStations(t *testing.T) {
	ab := testStream(func(s *Stream) { s.Name, s.Count, s.Flows, s.SrcMAC, s.DstMAC = "ab", 5000, 3, inet.MAC{}, inet.MAC{} })
	ba := testStream(func(s *Stream) { s.Name, s.Count, s.Clone, s.Rate = "ba", 1000, 10, 100_000 })
	a, err := NewStation(StationConfig{MAC: macA, Peer: macB, Streams: []*Stream{ab}, Sink: NewSink(SinkConfig{Streams: []*Stream{ba}, Verify: true})})
	if err != nil {
		t.Fatal(err)
	}
	b, err := NewStation(StationConfig{MAC: macB, Peer: macA, Streams: []*Stream{ba}, Sink: NewSink(SinkConfig{Streams: []*Stream{ab}, Verify: true})})
	if err != nil {
		t.Fatal(err)
	}
	for now := int64(0); !a.Done() || !b.Done(); now += 50_000 {
		for range 30 {
			if f := a.Next(now); f != nil {
				b.Deliver(f)
			}
			if f := b.Next(now); f != nil {
				a.Deliver(f)
			}
		}
	}
	a.Publish()
	b.Publish()
	for _, c := range []struct {
		from, to *Station
		n        uint64
	}{{a, b, 5000}, {b, a, 1000}} {
		sent, got := c.from.Results()[0], c.to.Sink().Results()[0]
		got.Account(sent.Sent)
		if sent.Sent != c.n || got.Packets != c.n || got.Lost+got.Duplicates+got.Reordered+got.Damaged != 0 || sent.Bytes != got.Bytes || sent.Stream != got.Stream {
			t.Errorf("sent %+v, got %+v", sent, got)
		}
	}
}

func TestStationDoesNotAllocate(t *testing.T) {
	st := testStation(t, testStream(nil), testStream(func(s *Stream) { s.Name, s.Rate = "b", 1_000_000 }))
	f := framesOf(t, testStream(nil), 1)[0]
	arp := arpRequest(t, "192.0.2.254", "192.0.2.200")
	now := int64(0)
	if n := testing.AllocsPerRun(1000, func() {
		now += 500_000
		st.Next(now)
		st.Deliver(f)
		st.Deliver(arp)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzStation(f *testing.F) {
	f.Add(arpRequest(f, "192.0.2.254", "192.0.2.200"))
	f.Add([]byte{0, 1, 2})
	f.Fuzz(func(t *testing.T, frame []byte) {
		st := testStation(t)
		st.Deliver(frame)
		reply := st.Next(0)
		if reply == nil {
			return
		}
		if len(reply) != 60 || !bytes.Equal(reply[6:12], macA[:]) || binary.BigEndian.Uint16(reply[12:]) != inet.EtherARP {
			t.Fatalf("%x answered by %x", frame, reply)
		}
	})
}
