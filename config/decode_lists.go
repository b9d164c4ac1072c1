package config

import (
	"fmt"
	"math"
	"net/netip"
	"slices"

	"gopkg.in/yaml.v3"

	"gorouter/fib"
	"gorouter/internal/inet"
	"gorouter/pktgen"
)

func (d *decoder) routes(n *yaml.Node) {
	for i, e := range d.items(n, "routes", "a list of routes, such as - {prefix: 198.51.100.0/24, via: 192.0.2.2}") {
		path := index("routes", i)
		if f, ok := d.fields(e, path, names(routeKeys)); ok {
			d.route(e, f, path)
		}
	}
}

func (d *decoder) route(n *yaml.Node, f map[string]*yaml.Node, path string) {
	r := Route{Pos: at(n)}
	good := true
	if v := f["prefix"]; v != nil {
		if r.Prefix, good = d.network(v, path+".prefix"); good {
			if n := neverRouted(r.Prefix); n != nil {
				d.errorf(at(v), "%s.prefix is %s, %s (%s), which is never routed: leave the route out", path, r.Prefix, n.what, n.prefix)
				good = false
			}
		}
	} else {
		d.errorf(at(n), "%s.prefix is missing, expected network/length such as 198.51.100.0/24", path)
		good = false
	}
	r.Metric = d.uint32(f["metric"], path+".metric")
	r.Table = d.uint32(f["table"], path+".table")
	via, port, typ := f["via"], f["port"], f["type"]
	switch {
	case typ != nil:
		w, ok := d.word(typ, path+".type", routeTypes)
		if good = good && ok; ok {
			r.Kind = fib.Blackhole + fib.Kind(slices.Index(routeTypes, w))
		}
		for _, k := range []string{"via", "port", "onlink"} {
			if f[k] != nil {
				d.errorf(at(f[k]), "%s.%s does not go with type: a route has next hops or a type", path, k)
			}
		}
	case via == nil && port == nil:
		d.errorf(at(n), "%s has no next hop, expected via, port or type", path)
		good = false
	case via != nil && via.Kind == yaml.MappingNode:
		d.expected(via, path+".via", "an address, or a list of next hops such as [{gateway: 192.0.2.2}]")
		good = false
	case via != nil && via.Kind == yaml.SequenceNode:
		for _, k := range []string{"port", "onlink"} {
			if f[k] != nil {
				d.errorf(at(f[k]), "%s.%s does not go with a list of next hops: write it into each of them, via: [{gateway: …, %s: …}]", path, k, k)
			}
		}
		if k := len(via.Content); k == 0 || k > fib.MaxNextHops {
			d.errorf(at(via), "%s.via is a list of %d next hops, expected 1 to %d", path, k, fib.MaxNextHops)
			good = false
		}
		for i, e := range via.Content {
			hop := index(path+".via", i)
			if e.Kind == yaml.ScalarNode {
				good = d.hop(&r, e, map[string]*yaml.Node{"gateway": e}, hop, hop) && good
			} else if h, ok := d.fields(e, hop, names(hopKeys)); ok {
				good = d.hop(&r, e, h, hop, hop+".gateway") && good
			} else {
				good = false
			}
		}
	default:
		hop := map[string]*yaml.Node{"gateway": via, "port": port, "onlink": f["onlink"]}
		p := n
		if via != nil {
			p = via
		}
		good = d.hop(&r, p, hop, path, path+".via") && good
	}
	if good {
		d.cfg.Routes = append(d.cfg.Routes, r)
	}
}

// hop decodes one next hop and sets the kind of the route by it.
func (d *decoder) hop(r *Route, n *yaml.Node, f map[string]*yaml.Node, path, gateway string) bool {
	h := NextHop{Pos: at(n), Weight: 1}
	ok := true
	if r.Kind == fib.Miss {
		r.Kind = fib.Connected
	}
	if v := f["gateway"]; v != nil {
		r.Kind = fib.Forward
		h.Gateway, ok = d.addr(v, gateway)
	}
	if v := f["port"]; v != nil {
		var named bool
		h.Port, named = d.portName(v, path+".port")
		ok = ok && named
	}
	if v := f["weight"]; v != nil {
		if w, in := d.integer(v, path+".weight", 1, fib.MaxWeight, ""); in {
			h.Weight = w
		}
	}
	if v := f["onlink"]; v != nil {
		h.OnLink = d.boolean(v, path+".onlink")
	}
	switch {
	case f["gateway"] == nil && f["port"] == nil:
		d.errorf(at(n), "%s has neither gateway nor port, expected at least one of them", path)
		return false
	case h.OnLink && f["port"] == nil:
		d.errorf(at(f["onlink"]), "%s.onlink needs port: no network tells which link the next hop is on", path)
		return false
	case h.OnLink && f["gateway"] == nil:
		d.errorf(at(f["onlink"]), "%s.onlink does not go without a next hop: a route with a port only is on the link anyway", path)
		return false
	}
	r.Hops = append(r.Hops, h)
	return ok
}

// portName is the name of a port that exists.
func (d *decoder) portName(n *yaml.Node, path string) (string, bool) {
	s, ok := d.text(n, path)
	if !ok {
		return "", false
	}
	if _, ok := d.byName[s]; ok {
		return s, true
	}
	if !d.hidden {
		d.errorf(at(n), "%s is %q, and there is no such port%s", path, s, d.suggestPort(s))
	}
	return "", false
}

func (d *decoder) suggestPort(s string) string {
	hint, ok := d.portHints[s]
	if !ok {
		hint = d.nearestPort(s)
		d.portHints[s] = hint
	}
	return hint
}

func (d *decoder) nearestPort(s string) string {
	var known []string
	for i := range d.cfg.Ports[:min(len(d.cfg.Ports), 256)] {
		known = append(known, d.cfg.Ports[i].Name)
	}
	if hint := suggest(s, known); hint != "" || len(known) > 16 {
		return hint
	}
	return orList("", known)
}

func (d *decoder) uint32(n *yaml.Node, path string) uint32 {
	if n == nil {
		return 0
	}
	v, _ := d.integer(n, path, 0, math.MaxUint32, "")
	return uint32(v)
}

func (d *decoder) neighbors(n *yaml.Node) {
	for i, e := range d.items(n, "neighbors", "a list, such as - {address: 192.0.2.2, mac: 02:00:00:00:00:02}") {
		path := index("neighbors", i)
		f, ok := d.fields(e, path, names(neighborKeys))
		if !ok {
			continue
		}
		b := Neighbor{Pos: at(e)}
		for _, k := range []string{"address", "mac"} {
			if f[k] == nil {
				d.errorf(at(e), "%s.%s is missing", path, k)
				ok = false
			}
		}
		var good bool
		if v := f["address"]; v != nil {
			b.Address, good = d.addr(v, path+".address")
			ok = ok && good
		}
		if v := f["mac"]; v != nil {
			b.MAC, good = d.station(v, path+".mac", "")
			ok = ok && good
		}
		if v := f["port"]; v != nil {
			b.Port, good = d.portName(v, path+".port")
			ok = ok && good
		}
		if ok {
			d.cfg.Neighbors = append(d.cfg.Neighbors, b)
			d.neighborPaths = append(d.neighborPaths, path)
		}
	}
}

func (d *decoder) pktgen(n *yaml.Node) {
	f, ok := d.fields(n, "pktgen", names(pktgenKeys))
	if !ok || f["streams"] == nil {
		return
	}
	for i, e := range d.items(f["streams"], "pktgen.streams", "a list of streams") {
		d.stream(e, i)
	}
}

func (d *decoder) stream(n *yaml.Node, i int) {
	path := index("pktgen.streams", i)
	f, ok := d.fields(n, path, streamNames())
	if !ok {
		return
	}
	for k, v := range f {
		d.mark(path+"."+k, v)
	}
	s := Stream{Pos: at(n), Stream: pktgen.Stream{
		Name: fmt.Sprintf("stream%d", i+1), StreamOptions: pktgen.StreamTable.Defaults(),
	}}
	for _, k := range []string{"port", "src", "dst"} {
		if f[k] == nil && !(k == "dst" && f["dst_file"] != nil) {
			d.errorf(at(n), "%s.%s is missing", path, k)
		}
	}
	if v := f["name"]; v != nil {
		// Else the default stays, so that no second error comes of the first.
		if name, ok := d.name(v, path+".name"); ok {
			s.Name = name
		}
	}
	if v := f["port"]; v != nil {
		s.Port, _ = d.portName(v, path+".port")
	}
	if v := f["src"]; v != nil {
		s.Src, _ = d.addr(v, path+".src")
	}
	if v := f["dst"]; v != nil {
		s.Dst = d.destinations(v, path+".dst")
	}
	if v := f["dst_file"]; v != nil {
		s.DstFile, _ = d.text(v, path+".dst_file")
	}
	s.SrcMAC = d.autoMAC(f["src_mac"], path+".src_mac", d.station)
	s.DstMAC = d.autoMAC(f["dst_mac"], path+".dst_mac", d.mac)
	setOptions(d, f, path, pktgen.StreamTable, &s.StreamOptions)
	d.cfg.Streams = append(d.cfg.Streams, s)
	d.streamPaths = append(d.streamPaths, path)
}

func (d *decoder) autoMAC(n *yaml.Node, path string, read func(*yaml.Node, string, string) (inet.MAC, bool)) inet.MAC {
	if n == nil || n.Kind == yaml.ScalarNode && n.Value == auto {
		return inet.MAC{}
	}
	m, _ := read(n, path, ", or auto")
	return m
}

// destinations reads one address or network, or a list of them.
func (d *decoder) destinations(n *yaml.Node, path string) []netip.Prefix {
	nodes, single := []*yaml.Node{n}, true
	if n.Kind == yaml.SequenceNode {
		nodes, single = n.Content, false
		if len(nodes) == 0 {
			d.errorf(at(n), "%s is an empty list, expected at least one destination", path)
		}
	}
	var list []netip.Prefix
	for i, e := range nodes {
		p := path
		if !single {
			p = index(path, i)
		}
		if dst, ok := d.destination(e, p); ok {
			list = append(list, dst)
		}
	}
	return list
}

func (d *decoder) destination(n *yaml.Node, path string) (netip.Prefix, bool) {
	if n.Kind == yaml.ScalarNode {
		if a, err := netip.ParseAddr(n.Value); err == nil && a.Zone() == "" && !a.Is4In6() {
			return netip.PrefixFrom(a, a.BitLen()), true
		}
	}
	return d.network(n, path)
}
