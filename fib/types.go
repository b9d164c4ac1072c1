package fib

import (
	"fmt"
	"net/netip"
	"strings"
)

// Kind says what happens to a packet that matched.
type Kind uint8

// The kinds of routes and adjacencies.
const (
	Miss        Kind = iota // no route; only adjacencies have this kind
	Forward                 // send to a next hop
	Connected               // on-link: resolve the destination itself
	Local                   // an address of this router
	Blackhole               // drop silently
	Unreachable             // drop, ICMP host unreachable (IPv6: no route)
	Prohibit                // drop, ICMP administratively prohibited

	numKinds
)

var kindNames = [numKinds]string{"miss", "forward", "connected", "local", "blackhole", "unreachable", "prohibit"}

// String returns the lower-case name of the kind.
func (k Kind) String() string {
	if k < numKinds {
		return kindNames[k]
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// Family is an address family.
type Family uint8

// The address families, by IP version number.
const (
	IPv4 Family = 4
	IPv6 Family = 6
)

// FamilyOf returns the family of a valid address; mapped IPv4 counts as IPv6.
func FamilyOf(a netip.Addr) Family {
	if a.Is4() {
		return IPv4
	}
	return IPv6
}

// Limits checked by Replace and Batch.
const (
	MaxWeight   = 256 // largest weight of one next hop
	MaxNextHops = 256 // most next hops of one route
)

// NoPort is the port of a Local route which belongs to no particular port.
const NoPort uint16 = 0xffff

// NextHop is one leg of a route.
type NextHop struct {
	Port   uint16     // port the packet leaves by
	Via    netip.Addr // gateway; the zero Addr means on-link
	Weight uint16     // share among the legs, 1..256; 0 means 1
}

// String formats the next hop as "via ADDR port N weight W".
func (n NextHop) String() string {
	var b strings.Builder
	if n.Via.IsValid() {
		fmt.Fprintf(&b, "via %s ", n.Via)
	}
	fmt.Fprintf(&b, "port %d", n.Port)
	if n.Weight > 1 {
		fmt.Fprintf(&b, " weight %d", n.Weight)
	}
	return b.String()
}

// Route is one candidate for one prefix of one table.
//
// Forward needs 1..MaxNextHops next hops, at least one of them with a gateway.
// The gateway of an IPv4 prefix may be IPv6. Legs of a Forward route without a
// gateway are on-link. Connected needs next hops without gateways, Local
// exactly one whose Port says whose address it is (or NoPort). Blackhole,
// Unreachable and Prohibit have no next hops; any given are ignored, because
// kernels announce such routes with a made-up device.
//
// Next hops with the same port and gateway count as one with the sum of their
// weights.
type Route struct {
	Table    uint32
	Prefix   netip.Prefix
	TOS      uint8  // only 0 takes part in lookups
	Metric   uint32 // lowest wins
	Kind     Kind
	NextHops []NextHop
	Source   netip.Addr // preferred source address, may be the zero Addr
}

// Key identifies a candidate.
type Key struct {
	Table  uint32
	Prefix netip.Prefix
	TOS    uint8
	Metric uint32
}

// Key returns the key of the route.
func (r *Route) Key() Key {
	return Key{Table: r.Table, Prefix: r.Prefix, TOS: r.TOS, Metric: r.Metric}
}

// String formats the route on one line, for people.
func (r Route) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", r.Kind, r.Prefix)
	for _, n := range r.NextHops {
		b.WriteString(" ")
		b.WriteString(n.String())
		if n.Weight <= 1 && len(r.NextHops) > 1 {
			b.WriteString(" weight 1")
		}
	}
	fmt.Fprintf(&b, " table %d metric %d", r.Table, r.Metric)
	if r.TOS != 0 {
		fmt.Fprintf(&b, " tos %#02x", r.TOS)
	}
	if r.Source.IsValid() {
		fmt.Fprintf(&b, " src %s", r.Source)
	}
	return b.String()
}

// State is what is known about the link address behind an adjacency.
type State uint8

// The states of an adjacency. The neighbour table gives them their meaning; a
// new adjacency is Unresolved.
const (
	Unresolved State = iota // nobody asked yet
	Incomplete              // asked, no answer yet
	Reachable               // Rewrite is usable
	Failed                  // asked in vain
	Stale                   // Rewrite is usable; whoever uses it notes the use

	numStates
)

var stateNames = [numStates]string{"unresolved", "incomplete", "reachable", "failed", "stale"}

// String returns the lower-case name of the state.
func (s State) String() string {
	if s < numStates {
		return stateNames[s]
	}
	return fmt.Sprintf("state(%d)", uint8(s))
}

// GroupFlag marks a result word that must go through Reader.Pick.
const GroupFlag uint32 = 1 << 31

// Adjacencies with fixed indices. All routes of these kinds share them.
const (
	AdjMiss        uint32 = 0
	AdjBlackhole   uint32 = 1
	AdjUnreachable uint32 = 2
	AdjProhibit    uint32 = 3

	numFixed = 4
)

// Adjacency is the end of a lookup: where the packet goes and with which link
// header. A published record is immutable; a change swaps the record
// (FIB.SetAdjacency), so a reader may keep the pointer until its next
// quiescent point. One record fills one 64-byte line.
type Adjacency struct {
	Kind       Kind
	State      State
	Port       uint16
	MTU        uint16   // largest IP packet in bytes; 0 = the port's
	RewriteLen uint8    // used bytes of Rewrite; 0 until resolved
	Rewrite    [22]byte // destination, source, VLAN tags if any, ethertype
	NextHop    netip.Addr
	Index      uint32 // its own index
}
