package mutation

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

const root = "../.."

// switches is the file that only the mutated program has.
const switches = `package dataplane

import (
	"os"
	"strconv"
)

var mutantOn, _ = strconv.Atoi(os.Getenv("GOROUTER_MUTANT"))

func mutant(n int) bool { return n == mutantOn }

func mutantKeep(n int) int {
	if n == mutantOn {
		return 0
	}
	return 1
}
`

// mutate gives the sources with all mutations in them, by file name.
func mutate(read func(file string) string, list []Mutation) (map[string]string, error) {
	out := map[string]string{}
	for i, m := range list {
		for _, e := range m.Edits {
			if out[e.File] == "" {
				out[e.File] = read(e.File)
			}
			if n := strings.Count(out[e.File], e.Old); n != 1 {
				return nil, fmt.Errorf("mutation %s: %q occurs %d times in %s, want once", m.Name, e.Old, n, e.File)
			}
			text := strings.ReplaceAll(strings.ReplaceAll(e.New, "OFF", fmt.Sprintf("mutant(%d)", i+1)), "KEEP", fmt.Sprintf("mutantKeep(%d)", i+1))
			out[e.File] = strings.Replace(out[e.File], e.Old, text, 1)
		}
	}
	return out, nil
}

// build makes the test program of package dataplane with all mutations in it.
func build(t *testing.T) (program, dir string) {
	t.Helper()
	tmp := t.TempDir()
	dir, err := filepath.Abs(filepath.Join(root, "dataplane"))
	if err != nil {
		t.Fatal(err)
	}
	files, err := mutate(func(file string) string {
		b, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}, List)
	if err != nil {
		t.Fatal(err)
	}
	files["mutants.go"] = switches
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for name, text := range files {
		at := filepath.Join(tmp, name)
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		overlay.Replace[filepath.Join(dir, name)] = at
	}
	b, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(tmp, "overlay.json"), b, 0o644); err != nil {
		t.Fatal(err)
	}
	program = filepath.Join(tmp, "dataplane.test")
	cmd := exec.Command("go", "test", "-c", "-vet=off", "-overlay", filepath.Join(tmp, "overlay.json"), "-o", program, "gorouter/dataplane")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
	return program, dir
}

// run runs tests with a mutation on, 0 for none, and reports whether they passed.
func run(t *testing.T, program, dir, tests string, mutant int) (passed bool, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "-test.run", "^("+tests+")$", "-test.timeout", "100s", "-rapid.nofailfile")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), fmt.Sprintf("GOROUTER_MUTANT=%d", mutant))
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return err == nil, string(out)
}

// Every rule can be switched off, and then its test fails.
func TestMutantsAreCaught(t *testing.T) {
	if testing.Short() {
		t.Skip("mutants take a minute; run without -short")
	}
	program, dir := build(t)
	var tests []string
	for _, m := range List {
		if !slices.Contains(tests, m.Test) {
			tests = append(tests, m.Test)
		}
	}
	if ok, text := run(t, program, dir, strings.Join(tests, "|"), 0); !ok || strings.Contains(text, "no tests to run") {
		t.Fatalf("with every rule on:\n%s", text)
	}
	for i, m := range List {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			if ok, text := run(t, program, dir, m.Test, i+1); ok {
				t.Errorf("%s passes with the rule switched off:\n%s", m.Test, text)
			}
		})
	}
}

func TestMutateRefusesWhatDoesNotFit(t *testing.T) {
	read := func(string) string { return "a a b" }
	if _, err := mutate(read, []Mutation{one("x", "T", "f.go", "a", "c")}); err == nil {
		t.Error("a text that occurs twice is taken")
	}
	if _, err := mutate(read, []Mutation{one("x", "T", "f.go", "c", "d")}); err == nil {
		t.Error("a text that does not occur is taken")
	}
	got, err := mutate(read, []Mutation{one("x", "T", "f.go", "b", "OFF"), one("y", "T", "f.go", "a a", "KEEP")})
	if err != nil || got["f.go"] != "mutantKeep(2) mutant(1)" {
		t.Errorf("%v, %v", got, err)
	}
}

func TestMutationsAreNamedOnce(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range List {
		if seen[m.Name] || m.Name == "" || len(m.Edits) == 0 {
			t.Errorf("mutation %q", m.Name)
		}
		seen[m.Name] = true
	}
}

// row is one line of docs/conformance.md.
type row struct {
	line                                     int
	section, level, what, state, test, mutes string
}

var code = regexp.MustCompile("`([^`]+)`")

func conformance(t *testing.T) (rows []row) {
	b, err := os.ReadFile(filepath.Join(root, "docs/conformance.md"))
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range bytes.Split(b, []byte("\n")) {
		cells := strings.Split(strings.Trim(string(line), "|"), "|")
		if len(line) == 0 || line[0] != '|' || strings.Contains(cells[0], "---") || strings.TrimSpace(cells[0]) == "Section" {
			continue
		}
		if len(cells) != 6 {
			t.Errorf("line %d has %d cells, want 6: %s", i+1, len(cells), line)
			continue
		}
		for k := range cells {
			cells[k] = strings.TrimSpace(cells[k])
		}
		rows = append(rows, row{i + 1, cells[0], cells[1], cells[2], cells[3], cells[4], cells[5]})
	}
	return rows
}

// The conformance table names tests and mutations that exist and fit each
// other; what is done and mutable is proved by a mutation.
func TestConformanceTable(t *testing.T) {
	tests := map[string]bool{}
	files, err := filepath.Glob(filepath.Join(root, "*/*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	more, err := filepath.Glob(filepath.Join(root, "*/*/*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	for _, f := range append(files, more...) {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range declared.FindAllStringSubmatch(string(b), -1) {
			tests[m[1]] = true
		}
	}
	byName := map[string]Mutation{}
	for _, m := range List {
		byName[m.Name] = m
	}
	used := map[string]bool{}
	rows := conformance(t)
	if len(rows) < 100 {
		t.Errorf("only %d rows", len(rows))
	}
	for _, r := range rows {
		var named []string
		for _, m := range code.FindAllStringSubmatch(r.test, -1) {
			named = append(named, m[1])
			if !tests[m[1]] {
				t.Errorf("line %d: there is no test %s", r.line, m[1])
			}
		}
		mutations := code.FindAllStringSubmatch(r.mutes, -1)
		for _, m := range mutations {
			used[m[1]] = true
			if mu, ok := byName[m[1]]; !ok {
				t.Errorf("line %d: there is no mutation %s", r.line, m[1])
			} else if !slices.Contains(named, mu.Test) {
				t.Errorf("line %d: mutation %s is caught by %s, which the row does not name", r.line, m[1], mu.Test)
			}
		}
		switch state, why, _ := strings.Cut(r.state, ":"); state {
		case "done":
			if len(named) == 0 || len(mutations) == 0 && len(r.mutes) < 5 {
				t.Errorf("line %d: done without a test, or without a mutation or the reason why there is none", r.line)
			}
		case "differently", "not done", "not applicable":
			if len(why) < 8 {
				t.Errorf("line %d: %s needs a reason", r.line, state)
			}
		default:
			t.Errorf("line %d: state %q", r.line, r.state)
		}
		switch r.level {
		case "MUST", "MUST NOT", "SHOULD", "SHOULD NOT", "MAY":
		default:
			t.Errorf("line %d: level %q", r.line, r.level)
		}
	}
	for _, m := range List {
		if !used[m.Name] {
			t.Errorf("no row names mutation %s", m.Name)
		}
	}
}
