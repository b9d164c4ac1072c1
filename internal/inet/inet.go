package inet

// Lengths in bytes. Frame sizes leave out the 4-byte frame check sequence
// unless a name says otherwise.
const (
	EthHeaderLen = 14
	EthMinLen    = 60   // shortest frame on the wire, without FCS
	EthMaxLen    = 1514 // longest untagged frame of a 1500-byte MTU, without FCS
	FCSLen       = 4
	// WireOverhead is what a frame costs on the wire beyond its bytes without
	// FCS: preamble and start delimiter 8, FCS 4, inter-frame gap 12.
	WireOverhead = 24
	VLANTagLen   = 4

	IPv4HeaderLen = 20
	IPv6HeaderLen = 40
	UDPHeaderLen  = 8
	ARPLen        = 28
)

// Ethertypes.
const (
	EtherIPv4 = 0x0800
	EtherARP  = 0x0806
	EtherVLAN = 0x8100
	EtherQinQ = 0x88a8
	EtherIPv6 = 0x86dd
)

// IP protocol numbers.
const (
	ProtoICMP   = 1
	ProtoTCP    = 6
	ProtoUDP    = 17
	ProtoICMPv6 = 58
)

// MAC is an Ethernet address.
type MAC [6]byte

// Broadcast is the Ethernet broadcast address.
var Broadcast = MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// IsMulticast reports whether the group bit is set (broadcast included).
func (m MAC) IsMulticast() bool { return m[0]&1 != 0 }

// String is the usual colon form.
func (m MAC) String() string {
	const hex = "0123456789abcdef"
	b := make([]byte, 0, 17)
	for i, x := range m {
		if i > 0 {
			b = append(b, ':')
		}
		b = append(b, hex[x>>4], hex[x&15])
	}
	return string(b)
}
