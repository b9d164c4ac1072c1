package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestDigest(t *testing.T) {
	const (
		pass     = `{"Action":"output","Package":"p","Test":"TestA","Output":"secret chatter\n"}` + "\n" + `{"Action":"pass","Package":"p","Test":"TestA"}` + "\n"
		pkgPass  = `{"Action":"pass","Package":"p","Elapsed":1.5}` + "\n"
		pkgFail  = `{"Action":"fail","Package":"p","Elapsed":1.5}` + "\n"
		fail     = `{"Action":"output","Package":"p","Test":"TestB","Output":"b went wrong\n"}` + "\n" + `{"Action":"fail","Package":"p","Test":"TestB"}` + "\n"
		skip     = `{"Action":"output","Package":"p","Test":"TestC","Output":"no root here\n"}` + "\n" + `{"Action":"skip","Package":"p","Test":"TestC"}` + "\n"
		died     = `{"Action":"output","Package":"p","Test":"TestD","Output":"panic: ouch\n"}` + "\n"
		noTests  = `{"Action":"skip","Package":"q"}` + "\n"
		buildErr = `{"Action":"build-output","ImportPath":"p","Output":"x.go:1: undefined: y\n"}` + "\n"
	)
	for _, c := range []struct {
		name, in    string
		says, hides string
		fault       string // part of the error; empty for none
	}{
		{"a pass is one line", pass + pkgPass, "ok    p 1.5s", "secret chatter", ""},
		{"a failure shows its output", pass + fail + pkgFail, "b went wrong", "secret chatter", "failed: p:TestB"},
		{"a skipped test fails the run", skip + pkgPass, "no root here", "FAIL", "skipped, which a complete run must not: p:TestC"},
		{"a package without tests is no skip", pass + pkgPass + noTests, "ok    p", "SKIP", ""},
		{"a test that never ended is shown", died + pkgFail, "panic: ouch", "ok", "failed: p"},
		{"a build error is shown", buildErr + pkgFail, "undefined: y", "ok", "failed: p"},
		{"nothing tested is a fault", noTests, "", "ok", "no package was tested"},
		{"other text passes through", "go: some trouble\n", "go: some trouble", "ok", "no package was tested"},
		{"no newline at the end", pass + strings.TrimSpace(pkgPass), "ok    p", "FAIL", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out strings.Builder
			err := digest(strings.NewReader(c.in), &out)
			if !strings.Contains(out.String(), c.says) || strings.Contains(out.String(), c.hides) {
				t.Errorf("want %q and not %q in:\n%s", c.says, c.hides, out.String())
			}
			switch {
			case c.fault == "" && err != nil:
				t.Errorf("unexpected: %v", err)
			case c.fault != "" && (err == nil || !strings.Contains(err.Error(), c.fault)):
				t.Errorf("want an error with %q, got %v", c.fault, err)
			}
		})
	}
}

// The checker sees a static and a dynamic program for what they are.
func TestStatic(t *testing.T) {
	dir := t.TempDir()
	source := filepath.Join(dir, "main.go")
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		flags []string
		fault string
	}{
		{"static", nil, ""},
		{"dynamic", []string{"-buildmode=pie"}, "dynamic loader"},
	} {
		t.Run(c.name, func(t *testing.T) {
			program := filepath.Join(dir, c.name)
			cmd := exec.Command("go", append(append([]string{"build", "-o", program}, c.flags...), source)...)
			cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("go build: %v\n%s", err, out)
			}
			var out strings.Builder
			err := static(program, &out)
			if c.fault == "" && err != nil {
				t.Errorf("unexpected: %v", err)
			}
			if c.fault != "" && (err == nil || !strings.Contains(err.Error(), c.fault)) {
				t.Errorf("want an error with %q, got %v", c.fault, err)
			}
		})
	}
	if err := static(source, os.Stdout); err == nil {
		t.Error("a text file passed as a static program")
	}
}
