package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"gorouter/test/netlab"
)

// gorouter runs the program and returns what it printed.
func gorouter(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, netlab.Binary(t), args...)
	var o, e bytes.Buffer
	cmd.Stdout, cmd.Stderr = &o, &e
	err = cmd.Run()
	return o.String(), e.String(), err
}

// The shipped configuration: everything that its stations send is routed to
// the other side, and nothing is unaccounted for.
func TestShippedDemo(t *testing.T) {
	stdout, stderr, err := gorouter(t, "-c", "../../router.yaml", "--duration", "1s", "--json")
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	var r struct {
		netlab.Report
		Emulated bool `json:"rates_include_emulated_device"`
		Streams  []struct {
			Name                 string
			Sent, Received, Lost uint64
		}
	}
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatalf("%v\n%s", err, stdout)
	}
	balance(t, r.Report, stdout)
	if !r.Emulated {
		t.Error("the report does not say that its rates include the emulated device")
	}
	if len(r.Streams) != 2 {
		t.Fatalf("%d streams", len(r.Streams))
	}
	for _, s := range r.Streams {
		if s.Sent < 1000 || s.Sent != s.Received || s.Lost != 0 {
			t.Errorf("stream %s: sent %d, received %d, lost %d", s.Name, s.Sent, s.Received, s.Lost)
		}
	}
	for name, p := range r.Ports {
		if p.RxPPS <= 0 || p.TxPPS <= 0 || p.RxBytes != 60*p.RxPackets {
			t.Errorf("port %s: %+v", name, p)
		}
	}
	for _, s := range r.Stages {
		if s.Calls > s.Packets {
			t.Errorf("stage %s: %d calls for %d packets", s.Name, s.Calls, s.Packets)
		}
	}
	if r.Polls.Full+r.Polls.Short+r.Polls.Empty == 0 {
		t.Error("no polls")
	}
}

func TestDemoVariants(t *testing.T) {
	demo, err := os.ReadFile("../../router.yaml")
	if err != nil {
		t.Fatal(err)
	}
	change := func(pairs ...string) string { return strings.NewReplacer(pairs...).Replace(string(demo)) }
	for name, text := range map[string]string{
		"vector 1":           change("vector: 32", "vector: 1"),
		"spin":               change("vector: 32", "vector: 32\n  idle: spin"),
		"interrupt":          change("vector: 32", "vector: 32\n  idle: interrupt"),
		"weight of a port":   change("addresses: [192.0.2.1/24]", "addresses: [192.0.2.1/24]\n    weight: 7"),
		"doorbell frame":     change("doorbell: batch", "doorbell: frame"),
		"doorbell timer":     change("doorbell: batch", "doorbell: timer"),
		"replenish end":      change("replenish_at: turn", "replenish_at: end"),
		"smallest rings":     change("ring: 256", "ring: 80"),
		"largest rings":      change("ring: 256", "ring: 4096", "count: 8192", "count: 32768"),
		"copybreak":          change("replenish: 16", "replenish: 1\n      copybreak: 200"),
		"fifo":               change("count: 8192", "count: 8192\n  order: fifo"),
		"two workers":        change("poll:\n", "workers: 2\npoll:\n", "addresses: [198.51.100.1/24]", "addresses: [198.51.100.1/24]\n    worker: 1"),
		"chip on a thread":   change("driver: model  ", "model: {thread: true}\n    driver: model  "),
		"82544GC":            change("driver: model  ", "model: {chip: 82544GC}\n    driver: model  "),
		"82546GB on PCI-X":   change("driver: model  ", "model: {chip: 82546GB, bus: pcix133}\n    driver: model  "),
		"82541GI":            change("driver: model  ", "model: {chip: 82541GI}\n    driver: model  "),
		"lossy cable":        change("driver: model  ", "impair: {loss: 1000, corrupt: 1000, delay: 100us, jitter: 100us, reorder: 1000}\n    driver: model  "),
		"cable pulled out":   change("driver: model  ", "flap: {first: 50ms, down: 50ms, every: 100ms}\n    driver: model  "),
		"frames of 1514":     change("size: 60", "size: 1514"),
		"paced":              change("size: 60", "size: 60\n      rate: 2000"),
		"clone":              change("size: 60", "size: 60\n      clone: 1000"),
		"report every frame": change("report_every: 16", "report_every: 1"),
	} {
		t.Run(name, func(t *testing.T) {
			if text == string(demo) {
				t.Fatal("the shipped configuration changed and this variant is none any more")
			}
			file := filepath.Join(t.TempDir(), "router.yaml")
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			stdout, stderr, err := gorouter(t, "-c", file, "--duration", "300ms", "--json")
			if err != nil {
				t.Fatalf("%v\n%s", err, stderr)
			}
			var r netlab.Report
			if err := json.Unmarshal([]byte(stdout), &r); err != nil {
				t.Fatal(err)
			}
			balance(t, r, stdout)
			for n, p := range r.Ports {
				if p.RxPackets == 0 || p.TxPackets == 0 {
					t.Errorf("port %s: %+v", n, p)
				}
			}
		})
	}
}

func TestInterruptEndsWithAReport(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		cmd := exec.Command(netlab.Binary(t), "-c", "../../router.yaml", "--interval", "100ms")
		var out bytes.Buffer
		cmd.Stdout = &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(1500 * time.Millisecond)
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v: %v", sig, err)
		}
		if !strings.Contains(out.String(), "stream left-to-right: sent") || !strings.Contains(out.String(), "left rx") {
			t.Errorf("%v: no summary lines or no report:\n%s", sig, out.String())
		}
	}
}

func TestErrorsAreOneClearLine(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		f := filepath.Join(dir, name)
		if err := os.WriteFile(f, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return f
	}
	for _, c := range []struct {
		name string
		args []string
		want []string
	}{
		{"no configuration", nil, []string{"-c FILE"}},
		{"missing file", []string{"-c", filepath.Join(dir, "absent.yaml")}, []string{"absent.yaml", "no such file"}},
		{"misspelt key", []string{"-c", write("a.yaml", "ports:\n  p0:\n    driver: model\n    adresses: [192.0.2.1/24]\n")},
			[]string{"a.yaml:4:5", "addresses", "nothing was started"}},
		{"later driver", []string{"-c", write("b.yaml", "ports:\n  p0:\n    driver: e1000\n")}, []string{"b.yaml:3", "e1000"}},
		{"missing interface", []string{"-c", write("c.yaml", "ports:\n  p0:\n    driver: af_packet\n    interface: nosuch0\n")}, []string{"nosuch0"}},
		{"missing pcap", []string{"-c", write("d.yaml", "ports:\n  p0:\n    driver: pcap\n    file: nosuch.pcap\n")}, []string{"nosuch.pcap"}},
		{"bad duration", []string{"-c", "../../router.yaml", "--duration", "-1s"}, []string{"--duration", "-1s"}},
		{"unknown flag", []string{"--wieght", "3"}, []string{"--wieght"}},
		{"interval too short", []string{"-c", "../../router.yaml", "--interval", "1ns"}, []string{"--interval", "1ns", "100ms"}},
		{"negative duration of pktgen", []string{"pktgen", "-c", "../../router.yaml", "--port", "left", "--duration", "-1s"}, []string{"--duration", "-1s"}},
		{"unknown shell", []string{"completion", "tcsh"}, []string{"tcsh", "bash"}},
		{"unknown topic", []string{"help", "nosuch"}, []string{"nosuch"}},
		{"unknown command", []string{"chek"}, []string{"chek"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			stdout, stderr, err := gorouter(t, c.args...)
			if err == nil {
				t.Fatal("exit status 0")
			}
			if code := err.(*exec.ExitError).ExitCode(); code != 1 {
				t.Errorf("exit status %d", code)
			}
			if stdout != "" {
				t.Errorf("standard output: %s", stdout)
			}
			for _, w := range c.want {
				if !strings.Contains(stderr, w) {
					t.Errorf("stderr lacks %q:\n%s", w, stderr)
				}
			}
			if n := strings.Count(strings.TrimSpace(stderr), "\n"); n > 3 {
				t.Errorf("%d lines:\n%s", n+1, stderr)
			}
		})
	}
}

func TestOtherCommands(t *testing.T) {
	out, _, err := gorouter(t, "version")
	if err != nil || !strings.HasPrefix(out, "gorouter ") {
		t.Errorf("version: %v %s", err, out)
	}
	if flag, _, err := gorouter(t, "--version"); err != nil || flag != out {
		t.Errorf("--version: %v %q, want %q", err, flag, out)
	}
	eff, _, err := gorouter(t, "check", "-c", "../../router.yaml")
	if err != nil || !strings.Contains(eff, "replenish: 16") {
		t.Errorf("check: %v\n%s", err, eff)
	}
	file := filepath.Join(t.TempDir(), "effective.yaml")
	if err := os.WriteFile(file, []byte(eff), 0o600); err != nil {
		t.Fatal(err)
	}
	again, stderr, err := gorouter(t, "check", "-c", file)
	if err != nil || again != eff {
		t.Errorf("the effective configuration is not its own: %v %s", err, stderr)
	}
	out, _, err = gorouter(t, "completion", "bash")
	if err != nil || !strings.Contains(out, "gorouter") {
		t.Errorf("completion: %v", err)
	}
}

func TestPktgenOnASoftwarePort(t *testing.T) {
	demo, err := os.ReadFile("../../router.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range [][2]string{{"0", "left"}, {"1000", "left"}, {"0", "right"}} {
		clone, port := c[0], c[1]
		text := strings.ReplaceAll(string(demo), "size: 60", "size: 60\n      count: 20000\n      clone: "+clone)
		file := filepath.Join(t.TempDir(), "router.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		stdout, stderr, err := gorouter(t, "pktgen", "-c", file, "--port", port, "--json")
		if err != nil {
			t.Fatalf("%v\n%s", err, stderr)
		}
		var r struct {
			Streams []struct{ Sent uint64 }
			Sink    []struct{ Packets, Lost uint64 }
			Buffers map[string]int
			Totals  struct{ Packets uint64 } `json:"sink_totals"`
		}
		if err := json.Unmarshal([]byte(stdout), &r); err != nil {
			t.Fatalf("%v\n%s", err, stdout)
		}
		if len(r.Streams) != 1 || r.Streams[0].Sent != 20000 || len(r.Sink) == 0 || r.Sink[0].Packets != 20000 || r.Totals.Packets != 20000 {
			t.Errorf("clone %s: %s", clone, stdout)
		}
	}
}
