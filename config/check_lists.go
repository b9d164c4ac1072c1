package config

import (
	"fmt"
	"net/netip"
	"strings"

	"gorouter/fib"
	"gorouter/internal/inet"
)

// place is an address on the link of a port.
type place struct {
	addr netip.Addr
	port string
}

// reach finds the port by which an address on a link is reached. what begins
// the messages. named is the port that the file gives, or "".
func (d *decoder) reach(pos Pos, what string, a netip.Addr, named string, onlink bool) (string, bool) {
	switch {
	case a.IsUnspecified() || a.IsMulticast() || a.IsLoopback():
		d.errorf(pos, "%s is %s, expected the unicast address of a neighbour", what, a)
		return "", false
	case onEveryLink(a) && named == "":
		d.errorf(pos, "%s is %s, a link-local address: it needs port, which says on which link", what, a)
		return "", false
	case onEveryLink(a):
		return named, true
	}
	if own, ok := d.networks.own[a]; ok {
		d.errorf(pos, "%s is %s, the router's own address on port %s (line %d)", what, a, d.cfg.Ports[own.port].Name, own.pos.Line)
		return "", false
	}
	if onlink {
		return named, true
	}
	c, ok := d.networks.find(a)
	l, linked := d.links.find(a)
	if linked = linked && (!ok || l.prefix.Bits() > c.prefix.Bits()); linked {
		c, ok = l, true
	}
	if !ok {
		if !d.hidden {
			d.errorf(pos, "%s is %s, which is on no connected network (%s): give a port an address there", what, a, d.listNetworks())
		}
		return "", false
	}
	port := d.cfg.Ports[c.port].Name
	if named != "" && named != port {
		d.errorf(pos, "%s is %s, on network %s of port %s (line %d), but port says %s", what, a, c.prefix, port, c.pos.Line, named)
		return "", false
	}
	if e := edge(c.prefix, a); e != "" && !linked {
		d.errorf(pos, "%s is %s, %s of network %s on port %s", what, a, e, c.prefix, port)
		return "", false
	}
	return port, true
}

func (d *decoder) checkRoutes() {
	d.gatherLinks()
	seen := map[fib.Key]Pos{}
	for i := range d.cfg.Routes {
		r := &d.cfg.Routes[i]
		key := fib.Key{Table: r.Table, Prefix: r.Prefix, Metric: r.Metric}
		if was, dup := seen[key]; dup {
			d.errorf(r.Pos, "route %s is given twice in table %d with metric %d, first on line %d: list the next hops under one via, or give another metric", r.Prefix, r.Table, r.Metric, was.Line)
		}
		seen[key] = r.Pos
		if r.Table == 0 && r.Metric == 0 {
			d.checkShadow(r)
		}
		legs := map[place]Pos{}
		for k := range r.Hops {
			h := &r.Hops[k]
			if h.Gateway.IsValid() {
				if h.Gateway.Is4() && r.Prefix.Addr().Is6() {
					d.errorf(h.Pos, "next hop of %s is %s, expected an IPv6 address", r.Prefix, h.Gateway)
					continue
				}
				port, ok := d.reach(h.Pos, "next hop of "+r.Prefix.String(), h.Gateway, h.Port, h.OnLink)
				if !ok {
					continue
				}
				h.Port = port
			}
			l := place{h.Gateway, h.Port}
			if was, dup := legs[l]; dup {
				d.errorf(h.Pos, "route %s has this next hop twice, first on line %d: give one of them a weight", r.Prefix, was.Line)
			}
			legs[l] = h.Pos
		}
	}
}

// checkShadow refuses a route that would take the place of one which the
// router has by itself.
func (d *decoder) checkShadow(r *Route) {
	if c, ok := d.networks.byPrefix[r.Prefix]; ok {
		d.errorf(r.Pos, "route %s is the connected network of port %s (line %d): leave it out, or give it a metric above 0 as a fallback",
			r.Prefix, d.cfg.Ports[c.port].Name, c.pos.Line)
	} else if c, ok := d.networks.own[r.Prefix.Addr()]; ok && r.Prefix.IsSingleIP() {
		d.errorf(r.Pos, "route %s is the router's own address on port %s (line %d): leave it out", r.Prefix, d.cfg.Ports[c.port].Name, c.pos.Line)
	}
}

func (d *decoder) checkNeighbors() {
	seen := map[place]Pos{}
	for i := range d.cfg.Neighbors {
		n := &d.cfg.Neighbors[i]
		onlink := n.Port != "" && d.onLink[place{n.Address, n.Port}]
		port, ok := d.reach(n.Pos, d.neighborPaths[i]+".address", n.Address, n.Port, onlink)
		if !ok {
			continue
		}
		n.Port = port
		k := place{n.Address, port}
		if was, dup := seen[k]; dup {
			d.errorf(n.Pos, "neighbour %s of port %s is given twice, first on line %d", n.Address, port, was.Line)
		}
		seen[k] = n.Pos
		if p := &d.cfg.Ports[d.byName[port]]; p.MAC == n.MAC {
			d.errorf(n.Pos, "neighbour %s has MAC address %s, which is that of port %s itself", n.Address, n.MAC, port)
		}
	}
}

// gatherLinks collects what routes declare to be on a link.
func (d *decoder) gatherLinks() {
	d.links.byPrefix, d.onLink = map[netip.Prefix]connected{}, map[place]bool{}
	for i := range d.cfg.Routes {
		r := &d.cfg.Routes[i]
		for _, h := range r.Hops {
			if h.OnLink {
				d.onLink[place{h.Gateway, h.Port}] = true
			}
			if _, had := d.links.byPrefix[r.Prefix]; r.Kind == fib.Connected && !had {
				d.links.add(connected{r.Prefix, r.Prefix.Addr(), d.byName[h.Port], r.Pos})
			}
		}
	}
}

func (d *decoder) checkStreams() {
	seen := map[string]Pos{}
	numbers := map[uint16]*Stream{}
	for i := range d.cfg.Streams {
		s := &d.cfg.Streams[i]
		path := d.streamPaths[i]
		before := len(d.errs)
		if was, dup := seen[s.Name]; dup {
			d.errorf(s.Pos, "%s.name is %s, as of the stream on line %d: reports could not tell them apart", path, s.Name, was.Line)
		}
		seen[s.Name] = s.Pos
		d.checkStreamAddresses(s, path)
		if last := s.SrcPort + s.Flows - 1; last > 65535 {
			d.errorf(d.cfg.At(path+".flows"), "%s.flows is %d, expected at most %d: source ports from %d on end at 65535", path, s.Flows, 65536-s.SrcPort, s.SrcPort)
		}
		j, ok := d.byName[s.Port]
		if !ok {
			continue
		}
		p := &d.cfg.Ports[j]
		switch {
		case p.Driver == "": // reported
			continue
		case p.Cable != "":
			d.errorf(d.cfg.At(path+".port"), "%s.port is %s, whose cable goes to port %s: a stream needs a model port without cable", path, p.Name, p.Cable)
		}
		if most := p.MTU + inet.EthHeaderLen; s.Size > most {
			d.errorf(d.cfg.At(path+".size"), "%s.size is %d, expected at most %d: port %s has mtu %d%s", path, s.Size, most, p.Name, p.MTU, higherMTU(p, s.Size-inet.EthHeaderLen))
		}
		if len(d.errs) > before || !s.Src.IsValid() || len(s.Dst) == 0 && s.DstFile == "" {
			continue
		}
		d.checkGenerator(s, path)
		if other := numbers[s.Number()]; other != nil {
			d.errorf(s.Pos, "%s: the generator numbers streams by name, and %s and %s (line %d) happen to have the same number: give one another name", path, s.Name, other.Name, other.Pos.Line)
		}
		numbers[s.Number()] = s
	}
}

// higherMTU says how a port is made to take longer packets, where it can be.
func higherMTU(p *Port, want int) string {
	most := maxMTU
	if p.Driver == DriverModel {
		most = modelMTU()
	}
	if want > most {
		return fmt.Sprintf(", and driver %s takes at most an mtu of %d", p.Driver, most)
	}
	return fmt.Sprintf(" (set ports.%s.mtu to %d, or send shorter frames)", p.Name, want)
}

// checkGenerator asks the generator itself, last, for what only it knows.
func (d *decoder) checkGenerator(s *Stream, path string) {
	whole := s.Stream
	if whole.SrcMAC == (inet.MAC{}) {
		whole.SrcMAC = inet.MAC{2}
	}
	if whole.DstMAC == (inet.MAC{}) {
		whole.DstMAC = inet.MAC{2}
	}
	if len(whole.Dst) == 0 {
		// The list is not read here.
		whole.Dst = []netip.Prefix{netip.PrefixFrom(s.Src, s.Src.BitLen())}
	}
	if err := whole.Validate(); err != nil {
		d.errorf(s.Pos, "%s: %s", path, strings.ReplaceAll(err.Error(), "\n", "; "))
	}
}

// farEnd reports whether a stream comes in by the cable of a software port. On
// other ports a stream is what "gorouter pktgen" sends, from the port itself.
func (d *decoder) farEnd(s *Stream) bool {
	j, ok := d.byName[s.Port]
	return !ok || d.cfg.Ports[j].Driver == DriverModel
}

func (d *decoder) checkStreamAddresses(s *Stream, path string) {
	if !s.Src.IsValid() {
		return
	}
	src := d.cfg.At(path + ".src")
	if s.Src.IsUnspecified() || s.Src.IsMulticast() || s.Src.IsLoopback() {
		d.errorf(src, "%s.src is %s, expected the unicast address of a station", path, s.Src)
	} else if own, ok := d.networks.own[s.Src]; ok && d.farEnd(s) {
		d.errorf(src, "%s.src is %s, the router's own address on port %s (line %d)", path, s.Src, d.cfg.Ports[own.port].Name, own.pos.Line)
	}
	for _, dst := range s.Dst {
		if dst.Addr().Is4() != s.Src.Is4() {
			d.errorf(d.cfg.At(path+".dst"), "%s.dst has %s and src is %s: a stream is of one address family", path, dst, s.Src)
			break
		}
	}
}
