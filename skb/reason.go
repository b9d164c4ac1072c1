package skb

// Reason is why a frame that came in did not go out. Every frame leaves or is
// counted under exactly one reason.
type Reason uint8

// Severity says what a reason means to an operator.
type Severity uint8

const (
	// Normal: the router did what it should (a frame for itself, a filter).
	Normal Severity = iota
	// Protocol: the frame or its sender broke a rule.
	Protocol
	// Resource: the router had no room, memory or time.
	Resource
	// Failure: a device or link failed.
	Failure
)

// String is the severity's name.
func (s Severity) String() string {
	return [...]string{"normal", "protocol", "resource", "failure"}[s&3]
}

// The drop reasons. ReasonNone is not a drop.
const (
	ReasonNone Reason = iota

	RxCRC
	RxSymbol
	RxSequence
	RxCarrier
	RxData
	RxRunt
	RxMultiDescriptor
	RxNoBuffer
	RxTruncated
	RxSuperFrame
	RxTooLong
	RxAborted

	EthShort
	EthGroupSource
	EthOtherHost
	EthUnknownType
	EthVLAN

	ArpInvalid
	ArpNotForUs
	ArpConsumed

	IP4Short
	IP4Version
	IP4HeaderLength
	IP4TotalLength
	IP4Checksum
	IP4Options
	IP4SourceRoute
	IP4MartianSource
	IP4MartianDestination
	IP4OwnSource
	IP4Broadcast
	IP4DirectedBroadcast
	IP4Multicast
	IP4LinkMulticast
	IP4TTL
	IP4NoRoute
	IP4Blackhole
	IP4Unreachable
	IP4Prohibit
	IP4TooBig
	IP4FragmentNoBuffer
	IP4LocalProtocol
	IP4LocalPort
	IP4LocalFragment
	IP4LocalICMP
	IP4LocalConsumed

	IP6Unsupported

	NeighQueueFull
	NeighFailed
	NeighTableFull
	NeighRequestRate

	TxRingFull
	TxTooLong
	TxLinkDown
	TxAborted
	HandoffFull
	Shutdown

	// NumReasons is the number of reasons, for arrays.
	NumReasons = iota
)

// ReasonInfo describes a reason.
type ReasonInfo struct {
	Name     string
	Severity Severity
	Help     string
}

var reasons = [NumReasons]ReasonInfo{
	ReasonNone: {"none", Normal, "not dropped"},

	RxCRC:             {"rx_crc", Failure, "frame check sequence or alignment error reported by the device"},
	RxSymbol:          {"rx_symbol", Failure, "symbol error reported by the device"},
	RxSequence:        {"rx_sequence", Failure, "sequence error reported by the device"},
	RxCarrier:         {"rx_carrier", Failure, "carrier extension error reported by the device"},
	RxData:            {"rx_data", Failure, "receive data error reported by the device"},
	RxRunt:            {"rx_runt", Protocol, "shorter than an Ethernet header after the frame check sequence is taken off"},
	RxMultiDescriptor: {"rx_multi_descriptor", Protocol, "longer than one receive buffer"},
	RxNoBuffer:        {"rx_no_buffer", Resource, "no buffer to replace the received one; it stayed on the ring"},
	RxTruncated:       {"rx_truncated", Resource, "cut short by the kernel's ring slot"},
	RxSuperFrame:      {"rx_super_frame", Protocol, "several segments in one frame, longer than can be taken or not to be cut: segmentation or receive offload is on at the sender (ethtool -K DEV gro off lro off tso off gso off)"},
	RxTooLong:         {"rx_too_long", Protocol, "longer than the MTU of the interface it came by, or than a buffer holds (raise buffers.stride)"},
	RxAborted:         {"rx_aborted", Failure, "was received and not yet taken off a ring that had to be reset"},

	EthShort:       {"eth_short", Protocol, "shorter than an Ethernet header"},
	EthGroupSource: {"eth_group_source", Protocol, "source MAC is a group address, from which no station sends (IEEE 802.3, 3.2.3)"},
	EthOtherHost:   {"eth_other_host", Normal, "destination MAC is another host's"},
	EthUnknownType: {"eth_unknown_type", Normal, "ethertype that is not routed"},
	EthVLAN:        {"eth_vlan", Normal, "tagged for a VLAN that is not configured here"},

	ArpInvalid:  {"arp_invalid", Protocol, "malformed ARP"},
	ArpNotForUs: {"arp_not_for_us", Normal, "ARP for another host"},
	ArpConsumed: {"arp_consumed", Normal, "ARP that was taken in and needs no answer"},

	IP4Short:              {"ip4_short", Protocol, "shorter than an IPv4 header"},
	IP4Version:            {"ip4_version", Protocol, "IP version is not 4"},
	IP4HeaderLength:       {"ip4_header_length", Protocol, "header length under 20 or beyond the packet"},
	IP4TotalLength:        {"ip4_total_length", Protocol, "total length beyond the frame or under the header length"},
	IP4Checksum:           {"ip4_checksum", Protocol, "header checksum is wrong"},
	IP4Options:            {"ip4_options", Protocol, "malformed IP option"},
	IP4SourceRoute:        {"ip4_source_route", Protocol, "source-routing option, which is not obeyed"},
	IP4MartianSource:      {"ip4_martian_source", Protocol, "source address that no host may send from"},
	IP4MartianDestination: {"ip4_martian_destination", Protocol, "destination address that is never routed"},
	IP4OwnSource:          {"ip4_own_source", Protocol, "source address is one of this router's"},
	IP4Broadcast:          {"ip4_broadcast", Normal, "limited broadcast, not for this router's services"},
	IP4DirectedBroadcast:  {"ip4_directed_broadcast", Normal, "directed broadcast, not forwarded (RFC 2644)"},
	IP4Multicast:          {"ip4_multicast", Normal, "multicast, not forwarded"},
	IP4LinkMulticast:      {"ip4_link_multicast", Protocol, "unicast packet in a link-layer broadcast or multicast frame"},
	IP4TTL:                {"ip4_ttl", Normal, "time to live expired"},
	IP4NoRoute:            {"ip4_no_route", Normal, "no route to the destination"},
	IP4Blackhole:          {"ip4_blackhole", Normal, "blackhole route"},
	IP4Unreachable:        {"ip4_unreachable", Normal, "unreachable route"},
	IP4Prohibit:           {"ip4_prohibit", Normal, "prohibit route"},
	IP4TooBig:             {"ip4_too_big", Normal, "longer than the MTU of the way out and not to be fragmented"},
	IP4FragmentNoBuffer:   {"ip4_fragment_no_buffer", Resource, "no buffer for a fragment; the ones before it went out"},
	IP4LocalProtocol:      {"ip4_local_protocol", Normal, "for this router, a protocol it does not speak"},
	IP4LocalPort:          {"ip4_local_port", Normal, "for this router, a UDP port nobody listens on"},
	IP4LocalFragment:      {"ip4_local_fragment", Normal, "fragment for this router, which does not reassemble"},
	IP4LocalICMP:          {"ip4_local_icmp", Normal, "ICMP for this router that is malformed, unknown or a request it does not answer"},
	IP4LocalConsumed:      {"ip4_local_consumed", Normal, "for this router, taken in"},

	IP6Unsupported: {"ip6_unsupported", Normal, "IPv6, which is not forwarded yet"},

	NeighQueueFull:   {"neigh_queue_full", Resource, "waited for an unresolved neighbour and was pushed out by newer packets"},
	NeighFailed:      {"neigh_failed", Failure, "the next hop does not answer ARP, or was forgotten while the packet waited: its link failed, or newer neighbours took its room"},
	NeighTableFull:   {"neigh_table_full", Resource, "no room for another neighbour"},
	NeighRequestRate: {"neigh_request_rate", Resource, "a new neighbour beyond the broadcast requests a second that neigh.request_rate allows"},

	TxRingFull:  {"tx_ring_full", Resource, "transmit ring full"},
	TxTooLong:   {"tx_too_long", Protocol, "longer than the device can send"},
	TxLinkDown:  {"tx_link_down", Failure, "the way out has no link"},
	TxAborted:   {"tx_aborted", Failure, "was on a transmit ring that had to be reset or closed"},
	HandoffFull: {"handoff_full", Resource, "the ring to the worker that owns the way out was full"},
	Shutdown:    {"shutdown", Normal, "was waiting inside the router when it stopped"},
}

// Info describes the reason.
func (r Reason) Info() ReasonInfo {
	if int(r) < len(reasons) {
		return reasons[r]
	}
	return ReasonInfo{Name: "unknown", Severity: Failure, Help: "not a reason"}
}

// String is the reason's name, as printed in counters.
func (r Reason) String() string { return r.Info().Name }

// DropCounts counts frames by reason. It is made of whole words, so that it
// can be published with package stat.
type DropCounts [NumReasons]uint64

// Total is the sum over all reasons.
func (d *DropCounts) Total() uint64 {
	var n uint64
	for _, v := range d {
		n += v
	}
	return n
}

// Add adds other to d.
func (d *DropCounts) Add(other *DropCounts) {
	for i, v := range other {
		d[i] += v
	}
}

// Map is the non-zero counts by name.
func (d *DropCounts) Map() map[string]uint64 {
	m := map[string]uint64{}
	for i, v := range d {
		if v != 0 {
			m[Reason(i).String()] = v
		}
	}
	return m
}
