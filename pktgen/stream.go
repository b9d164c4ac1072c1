// Package pktgen generates streams of UDP frames and takes them in again.
//
// A Generator sends through the transmit queue of a port, with buffers from
// the router's own allocator; a Station is the far end of a cable, where
// frames are built outside of the router; a Sink counts what arrives and
// finds what was lost, repeated, reordered or damaged. Port runs a whole
// measurement on one port.
package pktgen

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"gorouter/internal/inet"
	"gorouter/internal/option"
)

// StreamOptions are the scalar options of a stream.
type StreamOptions struct {
	Size    int // bytes without FCS
	Count   int // frames in all, 0 = no end
	Burst   int // frames handed over at once
	Rate    int // frames per second, 0 = as fast as they are taken
	Clone   int // times one buffer is sent before a fresh one is built; 0 builds each afresh
	Flows   int // source ports that are cycled through
	SrcPort int
	DstPort int
	TTL     int
	Start   time.Duration // wait before the first frame
	Order   string        // how the destinations follow each other
}

// StreamTable lists the scalar options of a stream.
var StreamTable = option.Table[StreamOptions]{
	{Name: "size", Unit: "bytes without FCS", Min: 60, Max: 9014, DefInt: 60,
		Help: "frame size; at most the port's mtu and 14",
		Int:  func(o *StreamOptions) *int { return &o.Size }},
	{Name: "count", Unit: "frames", Min: 0, Max: 1 << 40, DefInt: 0,
		Help: "frames in all; 0 never ends",
		Int:  func(o *StreamOptions) *int { return &o.Count }},
	{Name: "burst", Unit: "frames", Min: 1, Max: 64, DefInt: 32,
		Help: "frames handed to the port at once",
		Int:  func(o *StreamOptions) *int { return &o.Burst }},
	{Name: "rate", Unit: "frames per second", Min: 0, Max: 200_000_000, DefInt: 0,
		Help: "offered rate; 0 sends as fast as frames are taken",
		Int:  func(o *StreamOptions) *int { return &o.Rate }},
	{Name: "clone", Unit: "sends", Min: 0, Max: 1 << 20, DefInt: 0,
		Help: "times that one buffer is sent before a new one is built; 0 builds each frame in a fresh buffer",
		Int:  func(o *StreamOptions) *int { return &o.Clone }},
	{Name: "flows", Min: 1, Max: 60000, DefInt: 1,
		Help: "number of UDP source ports, used in turn from src_port on",
		Int:  func(o *StreamOptions) *int { return &o.Flows }},
	{Name: "src_port", Min: 1, Max: 65535, DefInt: 5000,
		Help: "first UDP source port",
		Int:  func(o *StreamOptions) *int { return &o.SrcPort }},
	{Name: "dst_port", Min: 1, Max: 65535, DefInt: 9,
		Help: "UDP destination port (9 is discard)",
		Int:  func(o *StreamOptions) *int { return &o.DstPort }},
	{Name: "ttl", Min: 1, Max: 255, DefInt: 64,
		Help: "time to live",
		Int:  func(o *StreamOptions) *int { return &o.TTL }},
	{Name: "start", Min: 0, Max: 60_000_000, DefDur: 0,
		Help: "wait before the first frame",
		Dur:  func(o *StreamOptions) *time.Duration { return &o.Start }},
	{Name: "dst_order", Values: []string{OrderTurn, OrderRandom, OrderZipf}, DefStr: OrderTurn,
		Help: "destinations in turn, drawn evenly, or drawn by Zipf's law with exponent 1.1; draws repeat after a million",
		Str:  func(o *StreamOptions) *string { return &o.Order }},
}

// Orders in which the destinations of a stream follow each other.
const (
	OrderTurn   = "turn"
	OrderRandom = "random"
	OrderZipf   = "zipf"
)

// Stream is one stream of UDP frames.
type Stream struct {
	Name string
	StreamOptions
	SrcMAC, DstMAC inet.MAC
	Src            netip.Addr
	// Dst is the list of destinations, used in turn. A prefix stands for
	// addresses spread over it.
	Dst []netip.Prefix
	// ID is the number, 1 to 32767, by which a sink tells streams apart. 0
	// takes one made from the name.
	ID uint16
	// Seed chooses where in each prefix the spread begins.
	Seed uint64
}

// maxID is the largest stream number; the bit above says that the frames are
// clones.
const maxID = 1<<15 - 1

// Number is the stream's number in its frames: ID, or one made from the name,
// the same in every process.
func (s *Stream) Number() uint16 {
	if s.ID != 0 {
		return s.ID
	}
	h := uint32(2166136261) // FNV-1a
	for i := range len(s.Name) {
		h = (h ^ uint32(s.Name[i])) * 16777619
	}
	return uint16((h^h>>15)%maxID) + 1
}

// headerLen is the length of all headers before the UDP payload.
func (s *Stream) headerLen() int {
	if s.Src.Is4() {
		return inet.EthHeaderLen + inet.IPv4HeaderLen + inet.UDPHeaderLen
	}
	return inet.EthHeaderLen + inet.IPv6HeaderLen + inet.UDPHeaderLen
}

// Validate reports everything that is wrong with the stream; nil when nothing
// is. The MAC addresses must have been filled in.
func (s *Stream) Validate() error {
	errs := StreamTable.Check(&s.StreamOptions)
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if s.Name == "" {
		bad("name is required")
	}
	if s.ID > maxID {
		bad("id is %d, expected 1 to %d", s.ID, maxID)
	}
	switch {
	case s.DstMAC == inet.MAC{}:
		bad("destination MAC is required: the address of the router's port, or of the next hop")
	case s.SrcMAC == inet.MAC{}:
		bad("source MAC is required")
	case s.SrcMAC.IsMulticast():
		bad("source MAC %v is a group address", s.SrcMAC)
	}
	if !s.Src.IsValid() || s.Src.Is4In6() || s.Src.Zone() != "" || s.Src.IsMulticast() {
		bad("source %v: expected a unicast IPv4 or IPv6 address without zone", s.Src)
	} else if s.Size < s.headerLen() {
		bad("size is %d, expected at least %d for IPv6", s.Size, s.headerLen())
	}
	if s.SrcPort+s.Flows-1 > 65535 {
		bad("flows: %d source ports from %d on end above 65535", s.Flows, s.SrcPort)
	}
	if len(s.Dst) == 0 {
		bad("at least one destination is required")
	}
	for _, p := range s.Dst {
		switch {
		case !p.IsValid() || p.Addr().Is4In6():
			bad("destination %v: expected a prefix such as 198.51.100.0/24", p)
		case s.Src.IsValid() && p.Addr().Is4() != s.Src.Is4():
			bad("destination %v and source %v are of different families", p, s.Src)
		case p.Bits() == 0:
			bad("destination %v has addresses that are never routed; list smaller prefixes", p)
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("stream %q: %w", s.Name, errors.Join(errs...))
}

// Distinct reports two streams whose frames a sink could not tell apart.
func Distinct(streams []*Stream) error {
	seen := map[uint16]string{}
	for _, s := range streams {
		if other, ok := seen[s.Number()]; ok {
			return fmt.Errorf("streams %q and %q have the same number %d: give one another name or id", other, s.Name, s.Number())
		}
		seen[s.Number()] = s.Name
	}
	return nil
}
