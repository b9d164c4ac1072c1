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

// sh runs a shell command with the program as $0.
func sh(t *testing.T, command string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-c", command, netlab.Binary(t)}, args...)...)
	cmd.WaitDelay = time.Second
	b, err := cmd.CombinedOutput()
	return string(b), err
}

// shortDemo is the shipped configuration with streams that end.
func shortDemo(t *testing.T) string {
	t.Helper()
	demo, err := os.ReadFile("../../router.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return tempFile(t, "router.yaml", strings.ReplaceAll(string(demo), "size: 60", "size: 60\n      count: 500"))
}

func tempFile(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// Output that could not be written is an error, whatever was to be written.
func TestLostOutputIsAnError(t *testing.T) {
	file := shortDemo(t)
	for _, command := range []string{
		`"$0" --help >/dev/full`, `"$0" pktgen --help >/dev/full`, `"$0" --version >/dev/full`, `"$0" version >/dev/full`,
		`"$0" completion bash >/dev/full`, `"$0" check -c "$1" >/dev/full`,
		`"$0" -c "$1" --duration 100ms >/dev/full`, `"$0" -c "$1" --duration 100ms --json >/dev/full`,
		`"$0" pktgen -c "$1" --port left >/dev/full`, `"$0" pktgen -c "$1" --port left --json >/dev/full`,
		`"$0" -c "$1" --duration 100ms --cpuprofile /dev/full >/dev/null`,
		`"$0" -c "$1" --duration 100ms --json >&-`, `"$0" pktgen -c "$1" --port left --json >&-`,
		`"$0" version >&-`, `"$0" check -c "$1" >&-`,
	} {
		out, err := sh(t, command, file)
		if err == nil || !strings.Contains(out, "no space left") && !strings.Contains(out, "closed") {
			t.Errorf("%s: %v\n%s", command, err, out)
		}
	}
	for _, command := range []string{`"$0" -c "$1" --duration 100ms --json >/dev/null`, `"$0" -c "$1" --duration 100ms >&-`} {
		if out, err := sh(t, command, file); err != nil {
			t.Errorf("%s: %v\n%s", command, err, out)
		}
	}
}

const captureHeader = "\xd4\xc3\xb2\xa1\x02\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x04\x00\x01\x00\x00\x00"

// A capture output that fails is told at the end, after the report.
func TestFailedCaptureKeepsTheReport(t *testing.T) {
	frame := "\x02\x00\x00\x00\x00\x01\x02\x00\x00\x00\x00\x09\x08\x06" + strings.Repeat("\x00", 46)
	in := tempFile(t, "in.pcap", captureHeader+strings.Repeat("\x00", 8)+"\x3c\x00\x00\x00\x3c\x00\x00\x00"+frame)
	file := tempFile(t, "router.yaml", "ports:\n  p0: {driver: pcap, file: "+in+", output: /dev/full, addresses: [192.0.2.1/24]}\n")
	for _, args := range [][]string{{"--json"}, {}} {
		stdout, stderr, err := gorouter(t, append([]string{"-c", file, "--duration", "300ms"}, args...)...)
		if err == nil || !strings.Contains(stderr, "/dev/full") {
			t.Errorf("%v: %s", err, stderr)
		}
		if len(args) == 0 {
			if !strings.Contains(stdout, "buffers:") {
				t.Errorf("no report: %s", stdout)
			}
			continue
		}
		var r netlab.Report
		if err := json.Unmarshal([]byte(stdout), &r); err != nil || r.Ports["p0"].RxPackets != 1 {
			t.Errorf("%v: %s", err, stdout)
		}
	}
}

// Opening a named pipe would wait for its other end, for ever.
func TestNamedPipesAreRefused(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	in := tempFile(t, "empty.pcap", captureHeader)
	for name, file := range map[string]string{
		"configuration": pipe,
		"capture":       tempFile(t, "a.yaml", "ports:\n  p0: {driver: pcap, file: "+pipe+"}\n"),
		"output":        tempFile(t, "b.yaml", "ports:\n  p0: {driver: pcap, file: "+in+", output: "+pipe+"}\n"),
	} {
		out, err := sh(t, `timeout 20 "$0" -c "$1" --duration 100ms`, file)
		if err == nil || name != "output" && !strings.Contains(out, "a named pipe") {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
	// A pipe that the caller has opened is read, and waiting for it ends by a
	// signal.
	if out, err := sh(t, `cat ../../router.yaml | "$0" check -c /dev/stdin`); err != nil || !strings.Contains(out, "left-to-right") {
		t.Errorf("%v\n%s", err, out)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	cmd := exec.Command(netlab.Binary(t), "check", "-c", "/dev/fd/3")
	var errs bytes.Buffer
	cmd.ExtraFiles, cmd.Stderr, cmd.Stdout = []*os.File{r}, &errs, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(500 * time.Millisecond)
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	hung := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
	defer hung.Stop()
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 1 || !strings.Contains(errs.String(), "interrupted while reading") {
		t.Errorf("%v\n%s", err, errs.String())
	}
}

func TestHugeConfigurationIsRefused(t *testing.T) {
	file := tempFile(t, "huge.yaml", strings.Repeat("# comment\n", 2<<20))
	_, stderr, err := gorouter(t, "check", "-c", file)
	if err == nil || !strings.Contains(stderr, "16 MiB") || !strings.Contains(stderr, "routes_file") {
		t.Errorf("%v: %s", err, stderr)
	}
}

// Duration and device statistics cover the whole run, however short.
func TestShortRunsAreCoveredWhole(t *testing.T) {
	for _, d := range []string{"1ns", "300ms"} {
		stdout, stderr, err := gorouter(t, "-c", shortDemo(t), "--duration", d, "--json")
		if err != nil {
			t.Fatalf("%v\n%s", err, stderr)
		}
		var r struct {
			Duration float64 `json:"duration_s"`
			Ports    map[string]struct {
				RxPackets uint64  `json:"rx_packets"`
				RxPPS     float64 `json:"rx_pps"`
				Device    map[string]uint64
			}
		}
		if err := json.Unmarshal([]byte(stdout), &r); err != nil {
			t.Fatal(err)
		}
		for name, p := range r.Ports {
			// 500 frames at 2 GHz for one instruction each would take longer.
			// Whether any frame comes within a nanosecond is chance.
			if r.Duration < 1e-6 || p.RxPackets == 0 && d != "1ns" || p.RxPPS > 1e8 {
				t.Errorf("%s: port %s: %d frames at %v a second in %v s", d, name, p.RxPackets, p.RxPPS, r.Duration)
			}
			if p.Device["GPRC"] != p.RxPackets {
				t.Errorf("%s: port %s: %d frames in the chip's statistics, %d in the router's", d, name, p.Device["GPRC"], p.RxPackets)
			}
		}
	}
}
