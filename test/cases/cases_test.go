package cases

import (
	"encoding/csv"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const root = "../.."

// sections of the list, by their first case.
var sections = []struct {
	name  string
	first int
}{
	{"fib", 25}, {"forwarding", 32}, {"neighbours", 47}, {"multipath", 54}, {"drivers", 58}, {"generator", 68}, {"configuration", 71}, {"", 78},
}

// parts that a case may wait for.
var parts = regexp.MustCompile(`^(IPv6|AF_XDP|control|generator)\b`)

// testsIn lists the tests and fuzz targets of the package in a folder.
func testsIn(t *testing.T, folder string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && (strings.HasPrefix(fn.Name.Name, "Test") || strings.HasPrefix(fn.Name.Name, "Fuzz")) {
				found[fn.Name.Name] = true
			}
		}
	}
	return found
}

// Every case has a test that exists, or names the part it waits for.
func TestEveryCaseHasItsTest(t *testing.T) {
	f, err := os.Open("cases.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	packages := map[string]map[string]bool{}
	next, section := sections[0].first, 0
	for _, r := range rows[1:] {
		number, group, title, tests, later := r[0], r[1], r[2], strings.Fields(r[3]), r[4]
		if number != strconv.Itoa(next) {
			t.Fatalf("case %s at the place of case %d", number, next)
		}
		if sections[section+1].first == next {
			section++
		}
		next++
		if group != sections[section].name || title == "" {
			t.Errorf("case %s is in section %q with title %q, want section %q", number, group, title, sections[section].name)
		}
		if len(tests) == 0 && later == "" {
			t.Errorf("case %s (%s) has no test", number, title)
		}
		if later != "" && !parts.MatchString(later) {
			t.Errorf("case %s waits for %q, which is no part that is to come", number, later)
		}
		for _, test := range tests {
			folder, name, _ := strings.Cut(test, ".")
			if packages[folder] == nil {
				packages[folder] = testsIn(t, folder)
			}
			if !packages[folder][name] {
				t.Errorf("case %s (%s): there is no test %s in %s", number, title, name, folder)
			}
		}
	}
	if last := sections[len(sections)-1].first; next != last {
		t.Errorf("the list ends before case %d, want %d", next, last)
	}
}
