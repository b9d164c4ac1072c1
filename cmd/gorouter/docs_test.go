package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"testing"

	"gorouter/config"
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
