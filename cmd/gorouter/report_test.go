package main

import (
	"strings"
	"testing"
	"time"
)

func TestIntervalIsTheDifference(t *testing.T) {
	old := &report{Ports: map[string]portReport{"a": {RxPackets: 100, TxPackets: 10, RxBytes: 6000, RxMissed: 4}}, Drops: map[string]uint64{"ip4_ttl": 3, "rx_crc": 1}, names: []string{"a"}}
	now := &report{Duration: 2, Ports: map[string]portReport{"a": {RxPackets: 300, TxPackets: 50, RxBytes: 18000, RxMissed: 11, Up: true}},
		Drops: map[string]uint64{"ip4_ttl": 5, "rx_crc": 1}, names: []string{"a"}}
	d := now.since(old)
	p := d.Ports["a"]
	if p.RxPackets != 200 || p.RxPPS != 100 || p.TxPPS != 20 {
		t.Errorf("%+v", p)
	}
	if len(d.Drops) != 1 || d.Drops["ip4_ttl"] != 2 {
		t.Errorf("drops %v", d.Drops)
	}
	if now.Ports["a"].RxPackets != 300 || now.Drops["ip4_ttl"] != 5 {
		t.Error("the reports themselves changed")
	}
	if got, want := d.line(), "a rx 100 tx 20 pps missed 7  drops 2"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	text, n := d.table(now)
	if n != strings.Count(text, "\n") || !strings.Contains(text, "ip4_ttl 5, rx_crc 1") || !strings.Contains(text, "missed") || !strings.Contains(text, " 11 ") || !strings.Contains(text, "up") {
		t.Errorf("%d lines:\n%s", n, text)
	}
}

func TestRatesAreReadable(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 999: "999", 1000: "1.0 k", 1488095: "1.488 M"} {
		if got := si(v); got != want {
			t.Errorf("%v: %q, want %q", v, got, want)
		}
	}
	if rate(10, 0) != 0 || rate(10, 2*time.Second) != 5 {
		t.Error("rate")
	}
}

func TestLongLinesAreCutToTheTerminal(t *testing.T) {
	got := cut("short\n"+strings.Repeat("x", 30)+"\nend\n", 10)
	if want := "short\n" + strings.Repeat("x", 9) + "…\nend\n"; got != want {
		t.Errorf("%q", got)
	}
}
