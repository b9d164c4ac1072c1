package config

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// connected is the network of one address of a port.
type connected struct {
	prefix netip.Prefix // masked
	addr   netip.Addr
	port   int
	pos    Pos
}

// networks finds the connected network of an address without looking at all of
// them.
type networks struct {
	byPrefix map[netip.Prefix]connected
	bits     [2][]int // lengths in use, longest first; IPv4, IPv6
	own      map[netip.Addr]connected
}

func family(a netip.Addr) int {
	if a.Is4() {
		return 0
	}
	return 1
}

// onEveryLink reports whether the address is an IPv6 link-local one. Their
// network exists on each link, so it never says which.
func onEveryLink(a netip.Addr) bool { return a.Is6() && a.IsLinkLocalUnicast() }

func (s *networks) find(a netip.Addr) (connected, bool) {
	for _, bits := range s.bits[family(a)] {
		if c, ok := s.byPrefix[netip.PrefixFrom(a, bits).Masked()]; ok {
			return c, true
		}
	}
	return connected{}, false
}

func (s *networks) add(c connected) {
	s.byPrefix[c.prefix] = c
	bits := &s.bits[family(c.addr)]
	if n := c.prefix.Bits(); !slices.Contains(*bits, n) {
		*bits = append(*bits, n)
		slices.SortFunc(*bits, func(a, b int) int { return cmp.Compare(b, a) })
	}
}

// edge says which special address of its network an address is, or "".
func edge(p netip.Prefix, a netip.Addr) string {
	host := a.BitLen() - p.Bits()
	switch {
	case host < 2: // RFC 3021, RFC 6164
		return ""
	case a == p.Masked().Addr() && a.Is4():
		return "the network address"
	case a == p.Masked().Addr():
		return "the subnet-router anycast address"
	case a.Is4():
		b := a.As4()
		for i := range b {
			rest := min(max(host-8*(3-i), 0), 8)
			if low := byte(1<<rest - 1); b[i]&low != low {
				return ""
			}
		}
		return "the broadcast address"
	}
	return ""
}

// checkAddresses checks the addresses of the ports and gathers their networks.
func (d *decoder) checkAddresses() {
	s := &d.networks
	s.byPrefix, s.own = map[netip.Prefix]connected{}, map[netip.Addr]connected{}
	var all []connected
	local := map[string]Pos{} // link-local IPv6 addresses, which are per port
	for i := range d.cfg.Ports {
		p := &d.cfg.Ports[i]
		six := false
		for k, a := range p.Addresses {
			path := index("ports."+p.Name+".addresses", k)
			addr := a.Prefix.Addr()
			six = six || addr.Is6()
			if why := unusable(a.Prefix); why != "" {
				d.hidden = true
				d.errorf(a.Pos, "%s is %s, %s, expected an address that one station can have, with the length of its network", path, a.Prefix, why)
				continue
			}
			c := connected{a.Prefix.Masked(), addr, i, a.Pos}
			if onEveryLink(addr) {
				key := p.Name + " " + addr.String()
				if was, dup := local[key]; dup {
					d.errorf(a.Pos, "%s is %s, which port %s has already (line %d)", path, addr, p.Name, was.Line)
				}
				local[key] = a.Pos
				continue
			}
			if was, dup := s.own[addr]; dup {
				d.errorf(a.Pos, "%s is %s, which port %s has already (line %d)", path, addr, d.cfg.Ports[was.port].Name, was.pos.Line)
				continue
			}
			s.own[addr] = c
			all = append(all, c)
		}
		if six && p.MTU < minMTU6 {
			d.errorf(d.cfg.At("ports."+p.Name+".mtu"), "ports.%s.mtu is %d, expected at least %d: the port has IPv6 addresses", p.Name, p.MTU, minMTU6)
		}
	}
	// Wide networks first: then whatever contains a network is there before it.
	slices.SortStableFunc(all, func(a, b connected) int { return cmp.Compare(a.prefix.Bits(), b.prefix.Bits()) })
	for _, c := range all {
		if was, ok := s.find(c.addr); ok && was.port != c.port {
			late, early := c, was
			if cmp.Or(cmp.Compare(c.pos.Line, was.pos.Line), cmp.Compare(c.pos.Col, was.pos.Col)) < 0 {
				late, early = was, c
			}
			d.errorf(late.pos, "network %s of port %s overlaps network %s of port %s (line %d): an address must be on one link only",
				late.prefix, d.cfg.Ports[late.port].Name, early.prefix, d.cfg.Ports[early.port].Name, early.pos.Line)
			continue
		}
		if _, ok := s.byPrefix[c.prefix]; !ok {
			s.add(c)
		}
	}
}

// unusable says why a port cannot have an address, or "".
func unusable(p netip.Prefix) string {
	a := p.Addr()
	switch {
	case p.Bits() == 0:
		return "a network of length 0"
	case a.IsUnspecified():
		return "the unspecified address"
	case a.IsMulticast():
		return "a multicast address"
	case a.IsLoopback():
		return "a loopback address"
	case a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return "the limited broadcast address"
	}
	if e := edge(p, a); e != "" {
		return fmt.Sprintf("%s of %s", e, p.Masked())
	}
	return ""
}

// listNetworks names the connected networks for a message.
func (d *decoder) listNetworks() string {
	var names []string
	for _, c := range d.networks.byPrefix {
		names = append(names, d.cfg.Ports[c.port].Name+": "+c.prefix.String())
	}
	if len(names) == 0 {
		return "no port has an address"
	}
	slices.Sort(names)
	if n := len(names) - 8; n > 0 {
		names = append(names[:8], fmt.Sprintf("and %d more", n))
	}
	return strings.Join(names, ", ")
}

// reserved is a network whose addresses are no destinations of routed packets.
type reserved struct {
	prefix netip.Prefix
	what   string
}

// reservedNetworks is by RFC 6890, RFC 5771, RFC 1112 section 4 and RFC 4291:
// what the packet path drops before any route is looked up. The first is not
// the default route, whose length is 0.
var reservedNetworks = []reserved{
	{netip.MustParsePrefix("0.0.0.0/8"), `"this network"`},
	{netip.MustParsePrefix("127.0.0.0/8"), "loopback"},
	{netip.MustParsePrefix("169.254.0.0/16"), "link-local"},
	{netip.MustParsePrefix("224.0.0.0/4"), "multicast"},
	{netip.MustParsePrefix("240.0.0.0/4"), "reserved"},
	{netip.MustParsePrefix("224.0.0.0/3"), "multicast and reserved"},
	{netip.MustParsePrefix("::/128"), "the unspecified address"},
	{netip.MustParsePrefix("::1/128"), "loopback"},
	{netip.MustParsePrefix("fe80::/10"), "link-local"},
	{netip.MustParsePrefix("ff00::/8"), "multicast"},
}

// neverRouted is the reserved network that p is, or is part of, or nil.
func neverRouted(p netip.Prefix) *reserved {
	for i := range reservedNetworks {
		if r := &reservedNetworks[i]; p.Bits() >= r.prefix.Bits() && r.prefix.Contains(p.Addr()) {
			return r
		}
	}
	return nil
}
