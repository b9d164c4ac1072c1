package netlab

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gorouter/internal/testenv"
)

// A script in place of gorouter shows that the harness passes the configuration,
// waits for the ready line, ends by SIGTERM and reads the report.
func TestRouterLifeCycle(t *testing.T) {
	lab := New(t)
	n := lab.Namespace("router")
	script := filepath.Join(t.TempDir(), "fake")
	err := os.WriteFile(script, []byte(`#!/bin/sh
[ "$1" = -c ] && [ "$3" = --json ] && [ "$4" = --extra ] || exit 9
frames=$(cat "$2")
trap 'echo "{\"duration_s\": 1.5, \"ports\": {\"lan\": {\"rx_packets\": $frames}}, \"buffers\": {\"total\": 4}, \"more\": 1}"; exit 0' TERM
echo 'level=INFO msg=ready' >&2
while :; do sleep 0.05; done
`), 0o755)
	if err != nil {
		t.Fatal(err)
	}
	r := lab.RunRouter(n, script, "17", readyLine, "--extra")
	report := r.Finish()
	if report.Ports["lan"].RxPackets != 17 || report.Buffers["total"] != 4 || report.DurationS != 1.5 {
		t.Errorf("got %+v", report)
	}
}

func TestParseReport(t *testing.T) {
	for _, c := range []struct{ in, fault string }{
		{`{"ports": {}, "buffers": {}}`, ""},
		{``, "EOF"},
		{`ready`, "invalid"},
		{`{"ports": {}}`, "lacks"},
		{`{"ports": {}, "buffers": {}} {}`, "more than one"},
	} {
		_, err := parseReport([]byte(c.in))
		if c.fault == "" && err != nil || c.fault != "" && (err == nil || !strings.Contains(err.Error(), c.fault)) {
			t.Errorf("%s: want %q, got %v", c.in, c.fault, err)
		}
	}
}

// A program is built once for each set of tags, and runs.
func TestBuildOnce(t *testing.T) {
	root := testenv.Root(t)
	first, err := build(root, "./test/tool", nil)
	if err != nil {
		t.Fatal(err)
	}
	again, err := build(root, "./test/tool", nil)
	if err != nil || again != first {
		t.Errorf("second build: %s, %v; want %s", again, err, first)
	}
	tagged, err := build(root, "./test/tool", []string{"sometag"})
	if err != nil || tagged == first {
		t.Errorf("with a tag: %s, %v", tagged, err)
	}
	out, err := exec.Command(first).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "usage: tool") {
		t.Errorf("the built program says %q, %v", out, err)
	}
}
