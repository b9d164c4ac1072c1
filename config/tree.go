package config

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gorouter/dataplane"
	"gorouter/dataplane/neigh"
	"gorouter/fib"
	"gorouter/internal/inet"
	"gorouter/internal/option"
	"gorouter/nic/model"
	"gorouter/pktgen"
	"gorouter/rx"
	"gorouter/skb"
	"gorouter/tx"
)

// item is a configuration as a tree: what is printed, and what differences are
// found by.
type item struct {
	name string // key, or what an element of a list is told apart by
	text string // value of a leaf, as YAML
	note string // unit and range
	live bool   // can be changed, added or removed on a running router
	list bool   // the kids are elements of a list
	flow bool   // printed on one line
	kids []item
}

func leaf(name, text string) item { return item{name: name, text: text} }

// tree describes the whole configuration with all defaults.
func (c *Config) tree() item {
	workers := item{name: "workers", list: true}
	for i, w := range c.Workers {
		cpu := auto
		if w.CPU != AnyCPU {
			cpu = strconv.Itoa(w.CPU)
		}
		workers.kids = append(workers.kids, item{name: strconv.Itoa(i), flow: true, kids: []item{leaf("cpu", cpu)}})
	}
	ports := item{name: "ports"}
	for i := range c.Ports {
		ports.kids = append(ports.kids, c.Ports[i].tree())
	}
	routes := item{name: "routes", list: true}
	for i := range c.Routes {
		routes.kids = append(routes.kids, c.Routes[i].tree())
	}
	neighbors := item{name: "neighbors", list: true}
	for _, n := range c.Neighbors {
		neighbors.kids = append(neighbors.kids, item{
			name: n.Address.String() + " port " + n.Port, flow: true, live: true,
			kids: []item{leaf("address", quote(n.Address.String())), leaf("mac", macText(n.MAC)), leaf("port", quote(n.Port))},
		})
	}
	streams := item{name: "streams", list: true}
	for i := range c.Streams {
		streams.kids = append(streams.kids, c.Streams[i].tree())
	}
	top := []item{
		workers,
		{name: "poll", kids: leaves(dataplane.OptionTable, c.Poll)},
		{name: "ip", kids: leaves(dataplane.IPTable, c.IP)},
		{name: "neigh", kids: leaves(neigh.OptionTable, c.Neigh)},
		{name: "buffers", kids: leaves(skb.OptionTable, c.Buffers)},
		ports, routes,
	}
	if c.RoutesFile.File != "" {
		top = append(top, c.RoutesFile.tree())
	}
	return item{kids: append(top, neighbors, item{name: "pktgen", kids: []item{streams}})}
}

// leaves describes the options of a table.
func leaves[T any](t option.Table[T], v T) []item {
	var list []item
	for i := range t {
		s := &t[i]
		text := ascii(s.Text(&v))
		if s.Str != nil {
			text = quote(text)
		}
		it := item{name: s.Name, text: text, note: ascii(s.Expect()), live: s.Live}
		if s.Live {
			it.note += "; live"
		}
		list = append(list, it)
	}
	return list
}

// ascii writes microseconds in the form that every keyboard has.
func ascii(s string) string { return strings.ReplaceAll(s, "µs", "us") }

func (p *Port) tree() item {
	it := item{name: p.Name, kids: []item{leaf("driver", p.Driver)}}
	add := func(k item) { it.kids = append(it.kids, k) }
	switch p.Driver {
	case DriverModel:
		if p.Cable != "" {
			add(leaf("cable", quote(p.Cable)))
		}
		add(item{name: "model", kids: leaves(ModelTable, p.Model)})
		add(item{name: "impair", kids: leaves(model.ImpairmentTable, p.Impair)})
		add(item{name: "flap", kids: leaves(FlapTable, p.Flap)})
	case DriverAFPacket:
		add(leaf("interface", quote(p.Interface)))
		add(item{name: "packet", kids: leaves(PacketTable, p.Packet)})
	case DriverPcap:
		if p.File != "" {
			add(leaf("file", quote(p.File)))
		}
		if p.Output != "" {
			add(leaf("output", quote(p.Output)))
		}
		add(leaf("loop", strconv.FormatBool(p.Loop)))
	}
	if p.MAC != (inet.MAC{}) {
		add(leaf("mac", macText(p.MAC)))
	}
	add(item{name: "mtu", text: strconv.Itoa(p.MTU), note: fmt.Sprintf("%d to %d bytes", minMTU, maxMTU)})
	add(leaf("worker", strconv.Itoa(p.Worker)))
	add(weightItem(p.Weight))
	addresses := item{name: "addresses", list: true, flow: true}
	for _, a := range p.Addresses {
		addresses.kids = append(addresses.kids, leaf(a.Prefix.String(), quote(a.Prefix.String())))
	}
	add(addresses)
	add(item{name: "rx", kids: leaves(rx.OptionTable, p.Rx)})
	add(item{name: "tx", kids: leaves(tx.OptionTable, p.Tx)})
	return it
}

func weightItem(n int) item {
	text := auto
	if n != 0 {
		text = strconv.Itoa(n)
	}
	note := "auto, or " + dataplane.OptionTable.Find("weight").Expect() + "; live"
	return item{name: "weight", text: text, note: note, live: true}
}

func (r *Route) tree() item {
	it := item{
		name: fmt.Sprintf("%s table %d metric %d", r.Prefix, r.Table, r.Metric), flow: true, live: true,
		kids: []item{leaf("prefix", quote(r.Prefix.String()))},
	}
	one := len(r.Hops) == 1 && r.Hops[0].Weight == 1
	switch {
	case r.Kind > fib.Local:
		it.kids = append(it.kids, leaf("type", r.Kind.String()))
	case one:
		it.kids = append(it.kids, r.Hops[0].leaves("via")...)
	default:
		via := item{name: "via", list: true, flow: true}
		for i := range r.Hops {
			h := &r.Hops[i]
			kids := append(h.leaves("gateway"), leaf("weight", strconv.Itoa(h.Weight)))
			via.kids = append(via.kids, item{name: strconv.Itoa(i), flow: true, kids: kids})
		}
		it.kids = append(it.kids, via)
	}
	it.kids = append(it.kids, leaf("metric", fmt.Sprint(r.Metric)), leaf("table", fmt.Sprint(r.Table)))
	return it
}

func (h *NextHop) leaves(gateway string) []item {
	var list []item
	if h.Gateway.IsValid() {
		list = append(list, leaf(gateway, quote(h.Gateway.String())))
	}
	list = append(list, leaf("port", quote(h.Port)))
	if h.OnLink {
		list = append(list, leaf("onlink", "true"))
	}
	return list
}

func (s *Stream) tree() item {
	dst := item{name: "dst", list: true, flow: true}
	for _, p := range s.Dst {
		dst.kids = append(dst.kids, leaf(p.String(), quote(p.String())))
	}
	kids := []item{
		leaf("name", quote(s.Name)), leaf("port", quote(s.Port)),
		leaf("src", quote(s.Src.String())),
		leaf("src_mac", macText(s.SrcMAC)), leaf("dst_mac", macText(s.DstMAC)),
	}
	if len(s.Dst) > 0 {
		kids = append(kids, dst)
	}
	if s.DstFile != "" {
		kids = append(kids, leaf("dst_file", quote(s.DstFile)))
	}
	return item{name: s.Name, kids: append(kids, leaves(pktgen.StreamTable, s.StreamOptions)...)}
}

// macText is an address as a stream or neighbour has it.
func macText(m inet.MAC) string {
	if m == (inet.MAC{}) {
		return auto
	}
	return quote(m.String())
}

// plain matches text that every YAML reader takes for text, in block and in
// flow style.
var plain = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_./-]*$`)

// quote writes text as YAML: plain where that is safe, or an address that is
// safe, otherwise in double quotes.
func quote(s string) string {
	if plain.MatchString(s) && !truthWord.MatchString(s) && !slices.Contains([]string{"null", "Null", "NULL"}, s) {
		return s
	}
	if isAddress(s) && !strings.HasPrefix(s, ":") && !strings.HasSuffix(s, ":") {
		return s
	}
	return strconv.QuoteToASCII(s)
}

// isAddress reports whether s is an address, a prefix or a MAC address.
func isAddress(s string) bool {
	_, err := netip.ParseAddr(s)
	_, err2 := netip.ParsePrefix(s)
	_, mac := parseMAC(s)
	return err == nil || err2 == nil || mac
}
