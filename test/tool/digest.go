package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sort"
	"strings"
)

// event is one line of go test -json; see go doc cmd/test2json.
type event struct {
	Action     string
	Package    string
	ImportPath string // of build-output events
	Test       string
	Output     string
	Elapsed    float64 // seconds
}

// test names one test of one package; name "" is the package itself.
type test struct{ pkg, name string }

// digester holds the output of everything that has not passed yet.
type digester struct {
	w        io.Writer
	output   map[test]*strings.Builder
	packages int
	failed   []test
	skipped  []test
}

// digest condenses the events of one go test run. It returns an error when a
// test failed or skipped itself, or when no package was tested at all.
func digest(r io.Reader, w io.Writer) error {
	d := digester{w: w, output: map[test]*strings.Builder{}}
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			d.line(line)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	return d.verdict()
}

func (d *digester) line(line string) {
	var e event
	if json.Unmarshal([]byte(line), &e) != nil {
		fmt.Fprint(d.w, line) // the go command's own messages
		return
	}
	key := test{e.Package, e.Test}
	switch e.Action {
	case "output":
		if d.output[key] == nil {
			d.output[key] = new(strings.Builder)
		}
		d.output[key].WriteString(e.Output)
	case "build-output":
		fmt.Fprint(d.w, e.Output)
	case "pass":
		if e.Test == "" {
			d.packages++
			note := ""
			if o := d.output[key]; o != nil && strings.Contains(o.String(), "(cached)") {
				note = " (cached)"
			}
			fmt.Fprintf(d.w, "ok    %s %.1fs%s\n", e.Package, e.Elapsed, note)
			d.forget(e.Package)
			return
		}
		delete(d.output, key)
	case "skip":
		if e.Test != "" {
			d.skipped = append(d.skipped, key)
			fmt.Fprintf(d.w, "SKIP  %s %s\n", e.Package, e.Test)
			d.show(key)
		}
		delete(d.output, key)
	case "fail":
		if e.Test == "" {
			d.packages++
			fmt.Fprintf(d.w, "FAIL  %s %.1fs\n", e.Package, e.Elapsed)
			// What is left over was running when the package died, or was said outside any test.
			for _, k := range d.pending(e.Package) {
				d.show(k)
			}
			d.failed = append(d.failed, key)
			d.forget(e.Package)
			return
		}
		d.failed = append(d.failed, key)
		fmt.Fprintf(d.w, "FAIL  %s %s\n", e.Package, e.Test)
		d.show(key)
		delete(d.output, key)
	}
}

// show prints what the test said, indented.
func (d *digester) show(key test) {
	o := d.output[key]
	if o == nil {
		return
	}
	for _, l := range strings.Split(strings.TrimRight(o.String(), "\n"), "\n") {
		fmt.Fprintln(d.w, "      "+l)
	}
}

// pending returns the tests of the package with output not shown yet, in order.
func (d *digester) pending(pkg string) []test {
	var keys []test
	for k := range d.output {
		if k.pkg == pkg {
			keys = append(keys, k)
		}
	}
	sort.Slice(keys, func(i, j int) bool { return keys[i].name < keys[j].name })
	return keys
}

func (d *digester) forget(pkg string) {
	for k := range d.output {
		if k.pkg == pkg {
			delete(d.output, k)
		}
	}
}

func (d *digester) verdict() error {
	var faults []string
	if n := len(d.failed); n > 0 {
		faults = append(faults, "failed: "+names(d.failed))
	}
	if n := len(d.skipped); n > 0 {
		faults = append(faults, "skipped, which a complete run must not: "+names(d.skipped))
	}
	if d.packages == 0 {
		faults = append(faults, "no package was tested")
	}
	if len(faults) == 0 {
		return nil
	}
	return errors.New(strings.Join(faults, "; "))
}

func names(tests []test) string {
	var out []string
	for _, t := range tests {
		out = append(out, strings.TrimSuffix(t.pkg+":"+t.name, ":"))
	}
	return strings.Join(out, ", ")
}
