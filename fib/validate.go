package fib

import (
	"errors"
	"fmt"
	"net/netip"
)

// ErrInvalid is wrapped by the errors of all routes that are refused for what
// they say, as against ErrFull.
var ErrInvalid = errors.New("invalid route")

func refuse(r *Route, format string, args ...any) error {
	return fmt.Errorf("%w %s table %d: %s", ErrInvalid, r.Prefix, r.Table, fmt.Sprintf(format, args...))
}

// Validate reports why the FIB would refuse the route, or nil. The error wraps
// ErrInvalid and names the prefix and the remedy.
func (r *Route) Validate() error {
	if err := validatePrefix(r); err != nil {
		return err
	}
	if r.Source.IsValid() {
		if r.Source.Zone() != "" {
			return refuse(r, "source %s has a zone: leave it out", r.Source)
		}
		if FamilyOf(r.Source) != FamilyOf(r.Prefix.Addr()) || r.Source.Is4In6() {
			return refuse(r, "source %s is of the other family: use an address of the prefix's family", r.Source)
		}
	}
	switch r.Kind {
	case Forward, Connected, Local:
		return validateHops(r)
	case Blackhole, Unreachable, Prohibit:
		return nil
	}
	return refuse(r, "unknown kind %s: use forward, connected, local, blackhole, unreachable or prohibit", r.Kind)
}

func validatePrefix(r *Route) error {
	p := r.Prefix
	switch {
	case !p.IsValid():
		return refuse(r, "the prefix is not valid: give an address and a length within its family")
	case p.Addr().Is4In6():
		return refuse(r, "IPv4-mapped IPv6 prefix: write it as IPv4")
	case p != p.Masked():
		return refuse(r, "host bits are set: use %s", p.Masked())
	}
	return nil
}

func validateHops(r *Route) error {
	n := len(r.NextHops)
	switch {
	case n == 0:
		return refuse(r, "%s without next hops: give at least one", r.Kind)
	case r.Kind == Local && n > 1:
		return refuse(r, "local with %d next hops: give one, whose port says whose address it is", n)
	case n > MaxNextHops:
		return refuse(r, "%d next hops: give at most %d", n, MaxNextHops)
	}
	gateway := false
	for i := range r.NextHops {
		h := &r.NextHops[i]
		if h.Weight > MaxWeight {
			return refuse(r, "next hop %s: weight %d is above %d: scale the weights down", h, h.Weight, MaxWeight)
		}
		if h.Via == (netip.Addr{}) {
			continue
		}
		if r.Kind != Forward {
			return refuse(r, "%s with gateway %s: leave the gateway out or use forward", r.Kind, h.Via)
		}
		if err := validateVia(r, h.Via); err != nil {
			return err
		}
		gateway = true
	}
	if r.Kind == Forward && !gateway {
		return refuse(r, "forward without a gateway: give one or use connected")
	}
	return nil
}

func validateVia(r *Route, via netip.Addr) error {
	switch {
	case via.Zone() != "":
		return refuse(r, "gateway %s has a zone: leave it out, the port says which link", via)
	case via.Is4In6():
		return refuse(r, "gateway %s is IPv4-mapped: write it as IPv4", via)
	case via.IsUnspecified() || via.IsMulticast():
		return refuse(r, "gateway %s is not a unicast address: give the router's own", via)
	case via.Is4() && r.Prefix.Addr().Is6():
		return refuse(r, "IPv6 prefix with IPv4 gateway %s: give an IPv6 gateway", via)
	}
	return nil
}
