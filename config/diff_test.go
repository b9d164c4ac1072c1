package config

import (
	"strings"
	"testing"
)

func TestDiff(t *testing.T) {
	const base = `
poll: {weight: 64}
ports:
  p0: {driver: model, addresses: [192.0.2.1/24], rx: {ring: 256}}
  p1: {driver: model}
routes:
  - {prefix: 10.0.0.0/8, via: 192.0.2.2}
  - {prefix: 10.1.0.0/16, type: blackhole}
neighbors:
  - {address: 192.0.2.2, mac: 02:00:00:00:00:02}
`
	replace := func(pairs ...string) string { return strings.NewReplacer(pairs...).Replace(base) }
	for name, c := range map[string]struct {
		text string
		want []string // with "!" before what cannot be done live
	}{
		"nothing": {base, nil},
		"a default written down, another order of routes": {`
workers: 1
poll: {weight: 64, vector: 32}
ports:
  p0: {driver: model, addresses: [192.0.2.1/24], mtu: 1500}
  p1: {driver: model}
routes:
  - {prefix: 10.1.0.0/16, type: blackhole}
  - {prefix: 10.0.0.0/8, via: [{gateway: 192.0.2.2, port: p0}]}
neighbors: [{address: 192.0.2.2, mac: 02:00:00:00:00:02, port: p0}]
`, nil},
		"options": {replace("weight: 64", "weight: 32, idle: spin}\nneigh: {delay: 1s, hold: 4", "ring: 256", "ring: 512, replenish: 8"), []string{
			"~ poll.weight: 64 -> 32", "~ poll.idle: backoff -> spin",
			"!~ neigh.delay: 5s -> 1s", "!~ neigh.hold: 8 -> 4",
			"!~ ports.p0.rx.ring: 256 -> 512", "~ ports.p0.rx.replenish: 16 -> 8",
		}},
		"routes and neighbours": {replace("via: 192.0.2.2}", "via: 192.0.2.3}", "10.1.0.0/16", "10.2.0.0/16", ":02}", ":03}"), []string{
			"~ routes[10.0.0.0/8 table 0 metric 0]: {prefix: 10.0.0.0/8, via: 192.0.2.2, port: p0, metric: 0, table: 0} -> {prefix: 10.0.0.0/8, via: 192.0.2.3, port: p0, metric: 0, table: 0}",
			"+ routes[10.2.0.0/16 table 0 metric 0]: {prefix: 10.2.0.0/16, type: blackhole, metric: 0, table: 0}",
			"- routes[10.1.0.0/16 table 0 metric 0]: {prefix: 10.1.0.0/16, type: blackhole, metric: 0, table: 0}",
			"~ neighbors[192.0.2.2 port p0]: {address: 192.0.2.2, mac: 02:00:00:00:00:02, port: p0} -> {address: 192.0.2.2, mac: 02:00:00:00:00:03, port: p0}",
		}},
		"addresses and workers": {replace("192.0.2.1/24", "192.0.2.1/24, 192.0.2.9/24") + "workers: 2\n", []string{
			"!+ workers[1]: {cpu: auto}", "!~ ports.p0.addresses: [192.0.2.1/24] -> [192.0.2.1/24, 192.0.2.9/24]",
		}},
		"cable": {replace("p1: {driver: model}", "p1: {driver: model, cable: p0}"), []string{
			"!+ ports.p0.cable: p1", "!+ ports.p1.cable: p0",
		}},
		"order of ports": {`
ports:
  p1: {driver: model}
  p0: {driver: model, addresses: [192.0.2.1/24]}
routes:
  - {prefix: 10.0.0.0/8, via: 192.0.2.2}
  - {prefix: 10.1.0.0/16, type: blackhole}
neighbors: [{address: 192.0.2.2, mac: 02:00:00:00:00:02}]
`, []string{"!~ ports: [p0, p1] -> [p1, p0]"}},
	} {
		var got []string
		for _, ch := range Diff(parse(t, base), parse(t, c.text)) {
			s := ch.String()
			if !ch.Live {
				s = "!" + s
			}
			got = append(got, s)
		}
		if a, b := strings.Join(got, "\n"), strings.Join(c.want, "\n"); a != b {
			t.Errorf("%s:\n%s\nwant:\n%s", name, a, b)
		}
	}
}

func TestDiffOfWholePorts(t *testing.T) {
	one, two := parse(t, "ports: {p0: {driver: model}}"), parse(t, "ports: {p0: {driver: model}, p1: {driver: pcap, file: a.pcap}}")
	got := Diff(one, two)
	if len(got) != 1 || got[0].Path != "ports.p1" || got[0].Old != "" || !strings.HasPrefix(got[0].New, "{driver: pcap, file: a.pcap, ") || got[0].Live {
		t.Errorf("%v", got)
	}
	got = Diff(two, one)
	if len(got) != 1 || got[0].Path != "ports.p1" || got[0].New != "" || got[0].Live {
		t.Errorf("%v", got)
	}
}
