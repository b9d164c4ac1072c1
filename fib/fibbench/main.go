// The fibbench command compares the lookup structures of package fib with
// bart's tables and with a plain binary trie, in one process and in turns, so
// that the ratios hold on a machine that does other things as well.
//
//	go run ./fib/fibbench [--json FILE] [--table FILE] [--quick] [--family 4|6]
//
// The table file has one prefix a line, gzip accepted; the environment variable
// GOROUTER_TABLE names one too. Without it a generated table with the
// lengths of a full Internet table is used.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"time"
)

// options of a run.
type options struct {
	json   string
	table  string
	quick  bool
	family int
	keys   int           // of each kind
	rounds int           // of each measurement
	ops    int           // timed one by one
	churn  time.Duration // of each churn measurement
}

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "fibbench:", err)
		os.Exit(1)
	}
}

func run(args []string, w io.Writer) error {
	o := options{keys: 1 << 18, rounds: 5, ops: 20000, churn: time.Second}
	set := flag.NewFlagSet("fibbench", flag.ContinueOnError)
	set.StringVar(&o.json, "json", "", "write the results to this `file`")
	set.StringVar(&o.table, "table", os.Getenv("GOROUTER_TABLE"), "`file` with a full table, one prefix a line; default $GOROUTER_TABLE, else generated")
	set.BoolVar(&o.quick, "quick", false, "a tenth of the table, fewer rounds: to see that it works")
	set.IntVar(&o.family, "family", 0, "only IPv4 (4) or IPv6 (6)")
	if err := set.Parse(args); err != nil {
		return err
	}
	if set.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", set.Arg(0))
	}
	if o.quick {
		o.keys, o.rounds, o.ops, o.churn = 1<<14, 2, 1000, 50*time.Millisecond
	}
	tables, err := loadTables(&o)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%s\n%s\n", machine(), tables.source)
	var rows []any
	for _, t := range []*table{&tables.four, &tables.six} {
		if o.family != 0 && o.family != t.family {
			continue
		}
		r, err := compare(w, &o, t)
		if err != nil {
			return fmt.Errorf("IPv%d: %w", t.family, err)
		}
		rows = append(rows, r...)
	}
	if o.json == "" {
		return nil
	}
	data, err := json.MarshalIndent(rows, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(o.json, append(data, '\n'), 0o644)
}

// lookupRow is a line of the JSON list.
type lookupRow struct {
	Family      int     `json:"family"`
	Structure   string  `json:"structure"`
	Keys        string  `json:"keys"`
	Batch       int     `json:"batch"`
	NsPerLookup float64 `json:"ns_per_lookup"`
}

// opRow is the other kind of line. For a build the times are those of the whole
// and Bytes is the memory it took.
type opRow struct {
	Family    int     `json:"family"`
	Structure string  `json:"structure"`
	Op        string  `json:"op"`
	P50       float64 `json:"p50_ns"`
	P99       float64 `json:"p99_ns"`
	PerSecond float64 `json:"per_s"`
	Bytes     int64   `json:"bytes,omitempty"`
}

// compare runs everything for one family.
func compare(w io.Writer, o *options, t *table) ([]any, error) {
	fmt.Fprintf(w, "\nIPv%d, %d prefixes, %d next hops\n", t.family, len(t.prefixes), nextHops)
	subjects, builds, err := buildAll(t)
	if err != nil {
		return nil, err
	}
	defer func() {
		for _, s := range subjects {
			s.close()
		}
	}()
	rows := reportOps(w, builds)
	lookups := measureLookups(o, t, subjects)
	rows = append(rows, reportLookups(w, lookups)...)
	updates, err := measureUpdates(o, t, subjects)
	if err != nil {
		return nil, err
	}
	churn, err := measureChurn(o, t, subjects)
	if err != nil {
		return nil, err
	}
	return append(rows, reportOps(w, append(updates, churn...))...), nil
}

func reportOps(w io.Writer, list []opRow) []any {
	var rows []any
	fmt.Fprintf(w, "\n%-14s %-22s %12s %12s %14s %10s\n", "structure", "operation", "p50 ns", "p99 ns", "per second", "MiB")
	for _, r := range list {
		size := ""
		if r.Bytes != 0 {
			size = fmt.Sprintf("%.1f", float64(r.Bytes)/(1<<20))
		}
		fmt.Fprintf(w, "%-14s %-22s %12.0f %12.0f %14.0f %10s\n", r.Structure, r.Op, r.P50, r.P99, r.PerSecond, size)
		rows = append(rows, r)
	}
	return rows
}

func reportLookups(w io.Writer, list []lookupRow) []any {
	var rows []any
	fmt.Fprintf(w, "\n%-14s", "ns per lookup")
	for _, k := range keyKinds {
		fmt.Fprintf(w, " %10s", k)
	}
	last := ""
	for _, r := range list {
		if r.Structure != last {
			fmt.Fprintf(w, "\n%-14s", r.Structure)
			last = r.Structure
		}
		fmt.Fprintf(w, " %10.2f", r.NsPerLookup)
		rows = append(rows, r)
	}
	fmt.Fprintln(w)
	return rows
}
