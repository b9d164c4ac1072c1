// Package testenv says what a test needs from the machine it runs on.
//
// A test whose need is not met skips itself with a clear message, unless the
// variable GOROUTER_REQUIRE_ALL is set, as ./test/run does: then it fails, so
// that a complete run never passes by leaving something out.
package testenv

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// RequireAll is the name of the environment variable which, when not empty,
// turns every unmet need into a failure.
const RequireAll = "GOROUTER_REQUIRE_ALL"

// SoakTime is the name of the environment variable with the duration of soak
// tests, in the form of time.ParseDuration.
const SoakTime = "GOROUTER_SOAK"

// Missing ends the test because the machine lacks something that it needs. The
// message says what is missing and how to get it.
func Missing(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv(RequireAll) != "" {
		t.Fatalf(format+" ("+RequireAll+" forbids to skip)", args...)
		return
	}
	t.Skipf(format, args...)
}

// NeedRoot ends the test unless it runs as root.
func NeedRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		Missing(t, "needs root; run ./test/run as root")
	}
}

// NeedTool ends the test unless the program is in the search path. The Debian
// package that has it goes into the message. It returns the program's path.
func NeedTool(t testing.TB, program, debianPackage string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		Missing(t, "needs the program %s; install the package %s", program, debianPackage)
	}
	return path
}

// Soak returns how long a soak test is to run: GOROUTER_SOAK, or short when
// that is not set.
func Soak(t testing.TB, short time.Duration) time.Duration {
	t.Helper()
	text := os.Getenv(SoakTime)
	if text == "" {
		return short
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		t.Fatalf("%s: %q is not a positive duration such as 10m", SoakTime, text)
	}
	return d
}

// Root returns the folder of the repository: the nearest one upwards from the
// working folder that has a go.mod.
func Root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatal("no go.mod in this folder or above; run the tests inside the repository")
		}
		dir = up
	}
}
