package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gorouter/config"
)

func parse(t *testing.T, text string) *config.Config {
	t.Helper()
	cfg, err := config.Load(writeFile(t, t.TempDir(), "r.yaml", text))
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func writeFile(t *testing.T, dir, name, text string) string {
	t.Helper()
	p := filepath.Join(dir, name)
	if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestProcessorsThatAreNotThere(t *testing.T) {
	cfg := parse(t, "workers: [{cpu: 0}, {cpu: auto}, {cpu: 7}]\nports: {p0: {driver: model}}\n")
	if err := checkCPUs(cfg, []int{0, 7}); err != nil {
		t.Error(err)
	}
	err := checkCPUs(cfg, []int{0, 1, 2, 4, 8, 9})
	if err == nil || !strings.HasSuffix(err.Error(), "r.yaml:1:34: workers[2].cpu is 7, expected one that this process may use, 0-2, 4, 8-9, or auto") {
		t.Errorf("%v", err)
	}
	// The highest that the file may say is on no machine that runs this.
	cfg = parse(t, "workers: [{cpu: 1023}]\nports: {p0: {driver: model}}\n")
	if _, err := openBox(cfg, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "r.yaml:1:11: workers[0].cpu is 1023, expected") {
		t.Errorf("%v", err)
	}
}

// The file that one port reads is not emptied by another's output, though
// the paths differ.
func TestInputIsNotDestroyed(t *testing.T) {
	dir := t.TempDir()
	in := writeFile(t, dir, "in.pcap", "precious")
	if err := os.Link(in, filepath.Join(dir, "hard.pcap")); err != nil {
		t.Fatal(err)
	}
	cfg := parse(t, "ports:\n  a: {driver: pcap, output: "+dir+"/hard.pcap}\n  b: {driver: pcap, file: "+in+"}\n")
	if _, err := openBox(cfg, slog.New(slog.DiscardHandler)); err == nil ||
		!strings.Contains(err.Error(), "r.yaml:2:29: capture output") || !strings.Contains(err.Error(), "port b reads") {
		t.Errorf("%v", err)
	}
	if b, err := os.ReadFile(in); err != nil || string(b) != "precious" {
		t.Errorf("%q, %v", b, err)
	}
}

func TestWhatIsOfNoUseIsSaid(t *testing.T) {
	cfg := parse(t, `
ports: {p0: {driver: model, addresses: [192.0.2.1/24, 2001:db8::1/64]}}
routes:
  - {prefix: 10.0.0.0/8, via: 192.0.2.2}
  - {prefix: 10.0.0.0/8, via: 192.0.2.2, table: 7}
  - {prefix: 11.0.0.0/8, via: 192.0.2.2, table: 7}
  - {prefix: "::/0", via: "2001:db8::2"}
neighbors: [{address: "2001:db8::2", mac: 02:00:00:00:00:02}]
`)
	got := strings.Join(unused(cfg), "\n")
	want := "IPv6 is not forwarded yet and dropped as ip6_unsupported; of no use for now: addresses 1, routes 1, neighbours 1\n" +
		"every port looks up the main table, 0; of no use for now: 2 routes in table 7"
	if got != want {
		t.Errorf("%s", got)
	}
	if got := unused(parse(t, "ports: {p0: {driver: model, addresses: [192.0.2.1/24]}}\n")); len(got) != 0 {
		t.Errorf("%q", got)
	}
}
