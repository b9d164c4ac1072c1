package config

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"gorouter/internal/inet"
	"gorouter/internal/option"
)

// field is one key with its value.
type field struct{ key, val *yaml.Node }

// what names the kind of a node in messages.
func what(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Kind == yaml.AliasNode:
		return "an alias"
	case n.Tag == "!!null":
		return "nothing"
	}
	return fmt.Sprintf("%q", n.Value)
}

// absent reports whether a key stands without any value. A section whose lines
// are all commented out looks like that, so it counts as left out.
func absent(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.Tag == "!!null" && n.Value == ""
}

// expected reports a node of the wrong kind; aliases have been reported.
func (d *decoder) expected(n *yaml.Node, path, want string) {
	if n.Kind == yaml.AliasNode {
		return
	}
	if path == "" {
		path = "the configuration"
	}
	d.errorf(at(n), "%s is %s, expected %s", path, what(n), want)
}

// entries lists the keys of a mapping in order, without duplicates.
func (d *decoder) entries(n *yaml.Node, path, want string) ([]field, bool) {
	if absent(n) {
		return nil, true
	}
	if n.Kind != yaml.MappingNode {
		d.expected(n, path, want)
		return nil, false
	}
	var list []field
	first := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		switch {
		case k.Kind == yaml.AliasNode:
			continue
		case k.Kind != yaml.ScalarNode:
			d.errorf(at(k), "a key%s is %s, expected a word", in(path), what(k))
			continue
		case k.Tag == "!!merge":
			d.errorf(at(k), "merge key <<%s: merge keys are not supported, write the values out", in(path))
			continue
		}
		if line, dup := first[k.Value]; dup {
			d.errorf(at(k), "key %q%s is given twice, on line %d and on line %d", k.Value, in(path), line, k.Line)
			continue
		}
		first[k.Value] = k.Line
		list = append(list, field{k, v})
	}
	return list, true
}

func in(path string) string {
	if path == "" {
		return ""
	}
	return " in " + path
}

// fields gives the known keys of a mapping by name and reports the others.
func (d *decoder) fields(n *yaml.Node, path string, known []string) (map[string]*yaml.Node, bool) {
	list, ok := d.entries(n, path, "a mapping with some of "+strings.Join(known, ", "))
	if !ok {
		return nil, false
	}
	f := make(map[string]*yaml.Node, len(list))
	for _, e := range list {
		if !slices.Contains(known, e.key.Value) {
			d.errorf(at(e.key), "unknown key %q%s%s", e.key.Value, in(path), orList(suggest(e.key.Value, known), known))
			continue
		}
		f[e.key.Value] = e.val
	}
	return f, true
}

// orList is the suggestion, or else all that would be right.
func orList(suggestion string, known []string) string {
	if suggestion != "" {
		return suggestion
	}
	return ", expected one of " + strings.Join(known, ", ")
}

// items lists the elements of a list; a single value where one will do.
func (d *decoder) items(n *yaml.Node, path, want string) []*yaml.Node {
	if absent(n) {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		d.expected(n, path, want)
		return nil
	}
	return n.Content
}

// raw is the text of a scalar, whatever YAML takes it for.
func (d *decoder) raw(n *yaml.Node, path, want string) (string, bool) {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		d.expected(n, path, want)
		return "", false
	}
	return n.Value, true
}

// word is one of a list of words.
func (d *decoder) word(n *yaml.Node, path string, known []string) (string, bool) {
	s, ok := d.raw(n, path, "one of "+strings.Join(known, ", "))
	if ok && !slices.Contains(known, s) {
		d.errorf(at(n), "%s is %q, expected one of %s%s", path, s, strings.Join(known, ", "), suggest(s, known))
		return "", false
	}
	return s, ok
}

func (d *decoder) integer(n *yaml.Node, path string, lo, hi int, unit string) (int, bool) {
	want := fmt.Sprintf("%d to %d%s", lo, hi, unit)
	s, ok := d.raw(n, path, want)
	if !ok {
		return 0, false
	}
	v, err := option.ParseInt(s)
	if err != nil || quoted(n) {
		d.errorf(at(n), "%s is %q, expected %s%s", path, s, want, plainNumber)
		return 0, false
	}
	if v < lo || v > hi {
		d.errorf(at(n), "%s is %d, expected %s", path, v, want)
		return 0, false
	}
	return v, true
}

const plainNumber = ", written as a plain decimal number"

func (d *decoder) boolean(n *yaml.Node, path string) bool {
	s, ok := d.raw(n, path, "true or false")
	if ok && (quoted(n) || s != "true" && s != "false") {
		d.errorf(at(n), "%s is %q, expected true or false%s", path, s, unquote(n))
	}
	return s == "true"
}

func quoted(n *yaml.Node) bool {
	return n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0
}

func unquote(n *yaml.Node) string {
	if quoted(n) {
		return " without quotes"
	}
	return ""
}

func (d *decoder) addr(n *yaml.Node, path string) (netip.Addr, bool) {
	const want = "an IPv4 or IPv6 address such as 192.0.2.1 or 2001:db8::1"
	s, ok := d.raw(n, path, want)
	if !ok {
		return netip.Addr{}, false
	}
	a, err := netip.ParseAddr(s)
	switch {
	case err != nil:
		d.errorf(at(n), "%s is %q, expected %s", path, s, want)
	case a.Zone() != "":
		d.errorf(at(n), "%s is %q with a zone, expected %s and the link named by port", path, s, a.WithZone(""))
	case a.Is4In6():
		d.errorf(at(n), "%s is %q, an IPv4-mapped address, expected it as IPv4: %s", path, s, a.Unmap())
	default:
		return a, true
	}
	return netip.Addr{}, false
}

// prefix reads an address with a length. What may stand in the host part is
// the caller's business.
func (d *decoder) prefix(n *yaml.Node, path string) (netip.Prefix, bool) {
	const want = "address/length such as 192.0.2.0/24 or 2001:db8::/64"
	s, ok := d.raw(n, path, want)
	if !ok {
		return netip.Prefix{}, false
	}
	p, err := netip.ParsePrefix(s)
	switch {
	case err != nil:
		d.errorf(at(n), "%s is %q, expected %s%s", path, s, want, prefixHint(s))
	case p.Addr().Is4In6():
		d.errorf(at(n), "%s is %q, an IPv4-mapped prefix, expected it as IPv4", path, s)
	default:
		return p, true
	}
	return netip.Prefix{}, false
}

func prefixHint(s string) string {
	addr, _, slash := strings.Cut(s, "/")
	a, err := netip.ParseAddr(addr)
	switch {
	case err != nil:
		return ""
	case a.Zone() != "":
		return " (without a zone)"
	case !slash:
		return " (the /length is missing)"
	case a.Is4():
		return " (the length is 0 to 32)"
	}
	return " (the length is 0 to 128)"
}

// network is a prefix without host bits.
func (d *decoder) network(n *yaml.Node, path string) (netip.Prefix, bool) {
	p, ok := d.prefix(n, path)
	if ok && p != p.Masked() {
		d.errorf(at(n), "%s is %s, which has host bits set: did you mean %s?", path, p, p.Masked())
		return netip.Prefix{}, false
	}
	return p, ok
}

func (d *decoder) mac(n *yaml.Node, path, extra string) (m inet.MAC, ok bool) {
	want := "six two-digit groups such as 02:00:00:00:00:01" + extra
	s, ok := d.raw(n, path, want)
	if !ok {
		return m, false
	}
	if m, ok = parseMAC(s); !ok {
		d.errorf(at(n), "%s is %q, expected %s", path, s, want)
	} else if m == (inet.MAC{}) {
		d.errorf(at(n), "%s is all zero, expected the address of a station", path)
		ok = false
	}
	return m, ok
}

// station is a MAC address that one station can have.
func (d *decoder) station(n *yaml.Node, path, extra string) (inet.MAC, bool) {
	m, ok := d.mac(n, path, extra)
	if ok && m.IsMulticast() {
		d.errorf(at(n), "%s is %s, a multicast address (the lowest bit of the first byte is set), expected that of one station", path, m)
		return inet.MAC{}, false
	}
	return m, ok
}

func parseMAC(s string) (m inet.MAC, ok bool) {
	if len(s) != 17 {
		return m, false
	}
	for i := range m {
		if i > 0 && s[3*i-1] != ':' {
			return m, false
		}
		hi := strings.IndexByte("0123456789abcdef", s[3*i]|0x20)
		lo := strings.IndexByte("0123456789abcdef", s[3*i+1]|0x20)
		if hi < 0 || lo < 0 {
			return m, false
		}
		m[i] = byte(hi<<4 | lo)
	}
	return m, true
}
