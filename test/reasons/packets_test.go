package reasons

import (
	"encoding/binary"
	"net"
	"net/netip"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"gorouter/internal/inet"
)

// packet is a UDP packet from the host at port 0, after the changes. Changed
// header fields are under a right checksum.
func packet(dst string, size int, change ...func(*layers.IPv4)) []byte {
	eth := &layers.Ethernet{SrcMAC: net.HardwareAddr(hostMAC[0][:]), DstMAC: net.HardwareAddr(routerMAC[0][:]), EthernetType: layers.EthernetTypeIPv4}
	ip := &layers.IPv4{Version: 4, IHL: 5, TTL: 64, Protocol: layers.IPProtocolUDP, SrcIP: net.ParseIP(hostAddr[0]), DstIP: net.ParseIP(dst)}
	udp := &layers.UDP{SrcPort: 1000, DstPort: 2000}
	if err := udp.SetNetworkLayerForChecksum(ip); err != nil {
		panic(err)
	}
	for _, f := range change {
		f(ip)
	}
	return serialize(eth, ip, udp, gopacket.Payload(make([]byte, size)))
}

// message is an ICMP message to the router.
func message(kind uint8) []byte {
	eth := &layers.Ethernet{SrcMAC: net.HardwareAddr(hostMAC[0][:]), DstMAC: net.HardwareAddr(routerMAC[0][:]), EthernetType: layers.EthernetTypeIPv4}
	ip := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolICMPv4, SrcIP: net.ParseIP(hostAddr[0]), DstIP: net.ParseIP("192.0.2.1")}
	return serialize(eth, ip, &layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(kind, 0)}, gopacket.Payload(make([]byte, 12)))
}

func serialize(ls ...gopacket.SerializableLayer) []byte {
	b := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, ls...); err != nil {
		panic(err)
	}
	f := b.Bytes()
	for len(f) < inet.EthMinLen {
		f = append(f, 0)
	}
	return f
}

// edit is a packet to 10.1.1.1 with bytes changed and the header checksum made
// right again.
func edit(f func([]byte)) []byte {
	b := packet("10.1.1.1", 8)
	f(b)
	b[24], b[25] = 0, 0
	binary.BigEndian.PutUint16(b[24:], inet.Checksum(b[14:34]))
	return b
}

// source is a packet to 10.1.1.1 from an address.
func source(src string) []byte {
	return packet("10.1.1.1", 8, func(ip *layers.IPv4) { ip.SrcIP = net.ParseIP(src) })
}

// option is a packet to 10.1.1.1 with an IP option.
func option(kind uint8, data ...byte) []byte {
	return packet("10.1.1.1", 8, func(ip *layers.IPv4) {
		ip.Options = []layers.IPv4Option{{OptionType: kind, OptionLength: uint8(len(data) + 2), OptionData: data}}
	})
}

// arp is a request or answer from the host at port i.
func arp(i int, op uint16, spa, tpa string) []byte {
	return serialize(
		&layers.Ethernet{SrcMAC: net.HardwareAddr(hostMAC[i][:]), DstMAC: net.HardwareAddr(routerMAC[i][:]), EthernetType: layers.EthernetTypeARP},
		&layers.ARP{AddrType: layers.LinkTypeEthernet, Protocol: layers.EthernetTypeIPv4, HwAddressSize: 6, ProtAddressSize: 4, Operation: op,
			SourceHwAddress: hostMAC[i][:], SourceProtAddress: netip.MustParseAddr(spa).AsSlice(),
			DstHwAddress: routerMAC[i][:], DstProtAddress: netip.MustParseAddr(tpa).AsSlice()})
}
