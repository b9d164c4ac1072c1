package skb_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestRaceDetectorWatchesTheArena plants a race in a program of its own and
// requires that the detector finds it: off the Go heap it would see nothing.
func TestRaceDetectorWatchesTheArena(t *testing.T) {
	bin := filepath.Join(t.TempDir(), "plantedrace")
	build := exec.Command("go", "build", "-race", "-o", bin, "./testdata/plantedrace")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", build, err, out)
	}
	run := func(what string) ([]byte, error) {
		cmd := exec.Command(bin, what)
		// Settings of the run that we are in could change the exit status.
		cmd.Env = append(os.Environ(), "GORACE=")
		return cmd.CombinedOutput()
	}
	out, err := run("race")
	if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != 66 {
		t.Errorf("two unordered writers: %v, want exit status 66 of the race detector\n%s", err, out)
	}
	if !strings.Contains(string(out), "WARNING: DATA RACE") || !strings.Contains(string(out), "main.write") {
		t.Errorf("two unordered writers were not reported:\n%s", out)
	}
	out, err = run("handover")
	if err != nil || string(out) != "done\n" {
		t.Errorf("a proper hand-over: %v\n%s", err, out)
	}
}
