package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"gorouter/config"
	"gorouter/dataplane/neigh"
	"gorouter/pktgen"
	"gorouter/skb"
)

var update = flag.Bool("update", false, "rewrite the generated documents")

// generated compares a document with what the code says it should be.
func generated(t *testing.T, path string, want []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is out of date; run go test ./cmd/gorouter -update", path)
	}
}

func TestConfigurationReferenceIsCurrent(t *testing.T) {
	var b bytes.Buffer
	b.WriteString("# Options of router.yaml\n\nWritten from the option tables by `go test ./cmd/gorouter -update`.\n\n")
	if err := config.Reference(&b); err != nil {
		t.Fatal(err)
	}
	generated(t, "../../docs/configuration.md", b.Bytes())
}

func TestDropReferenceIsCurrent(t *testing.T) {
	var b bytes.Buffer
	b.WriteString("# Drop reasons\n\nEvery frame leaves or is counted under exactly one of these. Written by `go test ./cmd/gorouter -update`.\n\n")
	b.WriteString("| reason | severity | meaning |\n|---|---|---|\n")
	for r := skb.ReasonNone + 1; int(r) < skb.NumReasons; r++ {
		i := r.Info()
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", i.Name, i.Severity, i.Help)
	}
	generated(t, "../../docs/drops.md", b.Bytes())
}

// The README shows what the program says to a mistake.
func TestReadmeErrorIsCurrent(t *testing.T) {
	text := strings.Repeat("#\n", 20) + "ports:\n  left:\n    driver: model\n    adresses: [192.0.2.1/24]\n"
	_, err := config.Parse("router.yaml", []byte(text))
	readme, rerr := os.ReadFile("../../README.md")
	if err == nil || rerr != nil || !bytes.Contains(readme, []byte("\n"+err.Error()+"\n")) {
		t.Errorf("the README lacks %q (%v)", err, rerr)
	}
}

// Every field of the two JSON reports is described.
func TestReportFieldsAreDescribed(t *testing.T) {
	doc, err := os.ReadFile("../../docs/report.md")
	if err != nil {
		t.Fatal(err)
	}
	var walk func(reflect.Type)
	walk = func(r reflect.Type) {
		switch r.Kind() {
		case reflect.Slice, reflect.Map, reflect.Pointer:
			walk(r.Elem())
		case reflect.Struct:
			if r == reflect.TypeFor[neigh.Stats]() {
				return // described as a whole
			}
			for i := range r.NumField() {
				f := r.Field(i)
				name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
				if !f.IsExported() || name == "-" {
					continue
				}
				if name == "" || !bytes.Contains(doc, []byte("`"+name+"`")) {
					t.Errorf("docs/report.md lacks %q, the field %s of %s", name, f.Name, r)
				}
				walk(f.Type)
			}
		}
	}
	walk(reflect.TypeFor[report]())
	walk(reflect.TypeFor[pktgen.Report]())
}
