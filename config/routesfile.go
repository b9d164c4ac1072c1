package config

import (
	"net/netip"

	"gopkg.in/yaml.v3"

	"gorouter/fib"
)

// RoutesFile is a list of routes in a file of its own, see package
// fib/routefile. The zero value means that there is none.
type RoutesFile struct {
	Pos  Pos
	File string
	// Hops are the next hops of lines that name none, used in turn.
	Hops []NextHop
}

var routesFileKeys = []key{
	{"file", "path", "required", "the list: one prefix a line, with next hop and port or without; gzip is recognised"},
	{"via", "address, or list of addresses", "none", "next hops of the lines that name none, used in turn"},
}

func (d *decoder) routesFile(n *yaml.Node) {
	r := &d.cfg.RoutesFile
	r.Pos = at(n)
	if n.Kind == yaml.ScalarNode {
		r.File, _ = d.text(n, "routes_file")
		return
	}
	f, ok := d.fields(n, "routes_file", names(routesFileKeys))
	if !ok {
		return
	}
	if v := f["file"]; v != nil {
		r.File, _ = d.text(v, "routes_file.file")
	} else {
		d.errorf(at(n), "routes_file.file is missing, expected the path of a list of routes")
	}
	v := f["via"]
	if v == nil {
		return
	}
	hops := []*yaml.Node{v}
	if v.Kind == yaml.SequenceNode {
		hops = v.Content
	}
	if len(hops) == 0 || len(hops) > fib.MaxNextHops {
		d.errorf(at(v), "routes_file.via is a list of %d next hops, expected 1 to %d", len(hops), fib.MaxNextHops)
		return
	}
	for i, e := range hops {
		path := "routes_file.via"
		if v.Kind == yaml.SequenceNode {
			path = index(path, i)
		}
		if a, ok := d.addr(e, path); ok {
			r.Hops = append(r.Hops, NextHop{Pos: at(e), Gateway: a, Weight: 1})
		}
	}
}

func (d *decoder) checkRoutesFile() {
	seen := map[netip.Addr]Pos{}
	for i := range d.cfg.RoutesFile.Hops {
		h := &d.cfg.RoutesFile.Hops[i]
		if was, dup := seen[h.Gateway]; dup {
			d.errorf(h.Pos, "routes_file.via has %s twice, first on line %d", h.Gateway, was.Line)
		}
		seen[h.Gateway] = h.Pos
		if port, ok := d.reach(h.Pos, "next hop of routes_file", h.Gateway, "", false); ok {
			h.Port = port
		}
	}
}

// PortTo is the place of the port on whose connected network an address lies,
// the longest network winning, or -1.
func (c *Config) PortTo(a netip.Addr) int {
	best, bits := -1, -1
	for i := range c.Ports {
		for _, x := range c.Ports[i].Addresses {
			if x.Prefix.Bits() > bits && x.Prefix.Masked().Contains(a) {
				best, bits = i, x.Prefix.Bits()
			}
		}
	}
	return best
}

func (r *RoutesFile) tree() item {
	it := item{name: "routes_file", kids: []item{leaf("file", quote(r.File))}}
	if len(r.Hops) > 0 {
		via := item{name: "via", list: true, flow: true}
		for _, h := range r.Hops {
			via.kids = append(via.kids, leaf(h.Gateway.String(), quote(h.Gateway.String())))
		}
		it.kids = append(it.kids, via)
	}
	return it
}
