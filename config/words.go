package config

import (
	"fmt"
	"regexp"
	"strings"

	"gopkg.in/yaml.v3"
)

// synonyms are words that people write for ours and that are too far off for
// the edit distance.
var synonyms = map[string]string{
	"nexthop": "via", "nexthops": "via", "next_hop": "via", "next_hops": "via", "gateway": "via", "gw": "via",
	"destination": "prefix", "dest": "prefix", "dst": "prefix", "network": "prefix",
	"address": "addresses", "ip": "addresses", "ips": "addresses",
	"neighbours": "neighbors", "arp": "neighbors",
	"interfaces": "ports", "device": "interface", "dev": "port",
	"lladdr": "mac", "cores": "workers", "threads": "workers", "streams": "pktgen",
	"destinations": "dst", "source": "src", "pps": "rate", "length": "size", "receive": "rx", "transmit": "tx",
}

// suggest is `, did you mean "x"?` for the known word nearest to w, or "".
func suggest(w string, known []string) string {
	fold := func(s string) string { return strings.ReplaceAll(strings.ToLower(s), "-", "_") }
	w = fold(w)
	best, dist := "", max(2, len(w)/3+1)
	if len(w) <= 64 {
		for _, k := range known {
			if n := distance(w, fold(k)); n < dist && n < len(k) {
				best, dist = k, n
			}
		}
	}
	if s, ok := synonyms[w]; ok && dist > 1 {
		for _, k := range known {
			if k == s {
				best = s
			}
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(", did you mean %q?", best)
}

// distance is the number of letters to insert, delete, replace or swap with
// their neighbour to make b of a.
func distance(a, b string) int {
	rows := [3][]int{}
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		row, up, up2 := rows[i%3], rows[(i+2)%3], rows[(i+1)%3]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(up[j]+1, row[j-1]+1, up[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], up2[j-2]+1)
			}
		}
	}
	return rows[len(a)%3][len(b)]
}

// truthWord matches what YAML 1.1 took for true or false. Readers differ over
// these, so they have to be quoted where a name is meant.
var truthWord = regexp.MustCompile(`(?i)^(y|yes|n|no|on|off|true|false)$`)

// trap says what an unquoted word may be mistaken for, or "".
func trap(n *yaml.Node) string {
	switch {
	case quoted(n):
		return ""
	case truthWord.MatchString(n.Value):
		return "a truth value"
	case n.Tag == "!!int" || n.Tag == "!!float":
		return "a number"
	case n.Tag == "!!timestamp":
		return "a date"
	}
	return ""
}

// text is a name or path: what YAML readers might not take for text must be in
// quotes.
func (d *decoder) text(n *yaml.Node, path string) (string, bool) {
	if n.Kind == yaml.ScalarNode && (n.Tag == "!!null" || n.Value == "") {
		hint := ""
		if n.Value != "" {
			hint = fmt.Sprintf(" (%s means nothing in YAML: write %q if it is the name)", n.Value, n.Value)
		}
		d.errorf(at(n), "%s is empty, a name is required%s", path, hint)
		return "", false
	}
	s, ok := d.raw(n, path, "text")
	if !ok {
		return "", false
	}
	if t := trap(n); t != "" {
		d.errorf(at(n), "%s is %s, which YAML readers may take for %s: write %q", path, s, t, s)
		return "", false
	}
	return s, true
}

var validName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,31}$`)

// name is the name of a port or stream.
func (d *decoder) name(n *yaml.Node, path string) (string, bool) {
	s, ok := d.text(n, path)
	if ok && !validName.MatchString(s) {
		d.errorf(at(n), "%s is %q, expected up to 32 letters, digits, dots, hyphens and underscores, the first a letter, digit or underscore", path, s)
		return "", false
	}
	return s, ok
}

// ifname is the name of an interface, by the rules of the Linux kernel.
func (d *decoder) ifname(n *yaml.Node, path string) (string, bool) {
	s, ok := d.text(n, path)
	if ok && (len(s) > 15 || s == "." || s == ".." || strings.ContainsAny(s, "/: \t\n\v\f\r\x00")) {
		d.errorf(at(n), "%s is %q, expected an interface name: up to 15 bytes without blanks, slashes and colons", path, s)
		return "", false
	}
	return s, ok
}
