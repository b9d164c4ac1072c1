package netlab

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"
)

// readyLine is what gorouter logs once all ports are up and packets flow, in the
// text and in the JSON form of log/slog.
var readyLine = regexp.MustCompile(`msg=ready\b|"msg":"ready"`)

// readyWithin is how long a router may take to come up; ten times what a build
// with the race detector needs on a slow machine.
const readyWithin = 30 * time.Second

// Router is gorouter, running in a namespace.
type Router struct {
	*Process
	t testing.TB
}

// Report is what gorouter --json prints at its end.
type Report struct {
	DurationS float64               `json:"duration_s"`
	Ports     map[string]PortReport `json:"ports"`
	Drops     map[string]uint64     `json:"drops"`   // frames by reason
	Buffers   map[string]uint64     `json:"buffers"` // by place; also total, free, cached
	Stages    []StageReport         `json:"stages"`
	Polls     struct {
		Full  uint64 `json:"full"`
		Short uint64 `json:"short"`
		Empty uint64 `json:"empty"`
	} `json:"polls"`
}

// PortReport is one port's part of a Report: frames, bytes, frames per second.
type PortReport struct {
	RxPackets uint64  `json:"rx_packets"`
	RxBytes   uint64  `json:"rx_bytes"`
	TxPackets uint64  `json:"tx_packets"`
	TxBytes   uint64  `json:"tx_bytes"`
	RxPPS     float64 `json:"rx_pps"`
	TxPPS     float64 `json:"tx_pps"`
}

// StageReport is one stage's line of the stage table.
type StageReport struct {
	Name        string  `json:"name"`
	Calls       uint64  `json:"calls"`
	Packets     uint64  `json:"packets"`
	NsPerPacket float64 `json:"ns_per_packet"`
}

// Router starts gorouter with the configuration in the namespace and waits until
// it says that it is ready. Arguments are added to -c FILE --json.
func (l *Lab) Router(n *Namespace, yaml string, args ...string) *Router {
	l.t.Helper()
	return l.RunRouter(n, Binary(l.t), yaml, readyLine, args...)
}

// RunRouter is Router with a program of the caller's choice, for other build
// tags, and with the text that says it is ready.
func (l *Lab) RunRouter(n *Namespace, program, yaml string, ready *regexp.Regexp, args ...string) *Router {
	l.t.Helper()
	file := filepath.Join(l.t.TempDir(), "router.yaml")
	if err := os.WriteFile(file, []byte(yaml), 0o644); err != nil {
		l.t.Fatal(err)
	}
	r := &Router{t: l.t, Process: n.Start(program, append([]string{"-c", file, "--json"}, args...)...)}
	ctx, cancel := context.WithTimeout(context.Background(), readyWithin)
	defer cancel()
	if err := r.AwaitOutput(ctx, ready); err != nil {
		l.t.Fatal(err)
	}
	return r
}

// Finish ends the router by SIGTERM and returns its report. The test ends here
// if it does not end cleanly or prints something else.
func (r *Router) Finish() Report {
	r.t.Helper()
	if err := r.Stop(syscall.SIGTERM); err != nil {
		r.t.Fatalf("gorouter: %v\n%s", err, r.Stderr())
	}
	report, err := parseReport([]byte(r.Stdout()))
	if err != nil {
		r.t.Fatalf("gorouter --json: %v\n%s", err, r.Stdout())
	}
	return report
}

// parseReport decodes the one object on standard output. Unknown fields are
// further statistics; other text is an error.
func parseReport(stdout []byte) (Report, error) {
	var report Report
	d := json.NewDecoder(bytes.NewReader(stdout))
	if err := d.Decode(&report); err != nil {
		return report, err
	}
	if d.More() {
		return report, fmt.Errorf("more than one object on standard output")
	}
	if report.Ports == nil || report.Buffers == nil {
		return report, fmt.Errorf("the report lacks ports or buffers")
	}
	return report, nil
}
