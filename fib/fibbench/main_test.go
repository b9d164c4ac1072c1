package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// The program runs, agrees with itself about what it measures, and writes the
// list that others read.
func TestQuickRunWritesTheList(t *testing.T) {
	dir := t.TempDir()
	table := filepath.Join(dir, "table")
	if err := os.WriteFile(table, []byte("192.0.2.0/24\n198.51.100.0/25\n2001:db8::/32\n2001:db8:1::/48\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "list.json")
	if err := run([]string{"--quick", "--table", table, "--json", name}, io.Discard); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var rows []map[string]any
	if err := json.Unmarshal(data, &rows); err != nil {
		t.Fatal(err)
	}
	lookups, ops := 0, 0
	for _, r := range rows {
		want := []string{"family", "structure", "op", "p50_ns", "p99_ns", "per_s"}
		if r["op"] == nil {
			want = []string{"family", "structure", "keys", "batch", "ns_per_lookup"}
			lookups++
		} else {
			ops++
		}
		for _, k := range want {
			if r[k] == nil {
				t.Errorf("no %q in %v", k, r)
			}
		}
	}
	if want := 2 * 4 * len(keyKinds); lookups != want {
		t.Errorf("%d rows of lookups, want %d", lookups, want)
	}
	if want := 2 * (4*5 + 3); ops != want {
		t.Errorf("%d rows of operations, want %d", ops, want)
	}
}

// The structures must agree, or their times mean nothing.
func TestStructuresAgree(t *testing.T) {
	tables, err := loadTables(&options{quick: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, tab := range []*table{&tables.four, &tables.six} {
		tab.prefixes, tab.hops = tab.prefixes[:5000], tab.hops[:5000]
		subjects, _, err := buildAll(tab)
		if err != nil {
			t.Fatal(err)
		}
		keys := makeKeys(tab, "announced", 4096)
		var want []uint32
		for _, s := range subjects {
			s.use(keys)
			out := make([]uint32, len(keys))
			s.lookup(0, len(keys), out)
			if o, ok := s.(*own); ok {
				for i, w := range out {
					out[i] = uint32(o.r.Adjacency(w).Port)
				}
			}
			if want == nil {
				want = out
			}
			for i := range out {
				if out[i] != want[i] || out[i] == 0 {
					t.Fatalf("IPv%d: %s leads %s to %d, %s to %d", tab.family, s.name(), keys[i], out[i], subjects[0].name(), want[i])
				}
			}
			s.close()
		}
	}
}

func TestWrongArgumentsAreErrors(t *testing.T) {
	for _, args := range [][]string{{"extra"}, {"--table", "/does/not/exist"}} {
		if err := run(args, io.Discard); err == nil {
			t.Errorf("%v gives no error", args)
		}
	}
}
