// Package inlinetest lets a package's tests fail when the compiler stops
// inlining a function that the packet path cannot afford to call.
package inlinetest

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

var canInline = regexp.MustCompile(`(?m)^\S+: can inline (.+)$`)

// Require compiles the package with the compiler's inlining report and fails
// the test for every function that the compiler would not inline. Functions are
// named as the compiler names them: "F", "T.M" or "(*T).M"; for generic ones
// with their type arguments, e.g. "(*slots[gorouter/fib.Adjacency]).get". A name
// that does not exist fails too. The test must run inside the module, with the go
// command in the PATH.
func Require(t *testing.T, pkgPath string, funcs ...string) {
	t.Helper()
	for _, f := range missing(report(t, pkgPath), funcs) {
		t.Errorf("%s: %s is not inlined any more (or does not exist): see go build -gcflags=-m=2 %s", pkgPath, f, pkgPath)
	}
}

// report returns the compiler's report. The go command replays it from its
// cache when nothing changed.
func report(t *testing.T, pkgPath string) string {
	t.Helper()
	out, err := exec.Command("go", "build", "-gcflags="+pkgPath+"=-m=1", pkgPath).CombinedOutput()
	if err != nil {
		t.Fatalf("go build %s: %v\n%s", pkgPath, err, out)
	}
	if !canInline.Match(out) {
		t.Fatalf("go build -gcflags=-m=1 %s reports nothing", pkgPath)
	}
	return string(out)
}

// missing returns the functions the report does not call inlinable.
func missing(report string, funcs []string) []string {
	have := make(map[string]bool)
	for _, m := range canInline.FindAllStringSubmatch(report, -1) {
		have[strings.TrimSpace(m[1])] = true
	}
	var out []string
	for _, f := range funcs {
		if !have[f] {
			out = append(out, f)
		}
	}
	return out
}
