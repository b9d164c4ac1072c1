package config

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gorouter/dataplane"
	"gorouter/dataplane/neigh"
	"gorouter/internal/option"
	"gorouter/nic/model"
	"gorouter/pktgen"
	"gorouter/rx"
	"gorouter/skb"
	"gorouter/tx"
)

// drawOptions writes some options of a table at random valid values as a flow
// mapping. cap bounds integers further.
func drawOptions[T any](t *rapid.T, table option.Table[T], cap map[string][2]int) string {
	var parts []string
	for i := range table {
		s := &table[i]
		if !rapid.Bool().Draw(t, s.Name+" given") {
			continue
		}
		lo, hi, step := s.Min, s.Max, max(s.Multiple, 1)
		if c, ok := cap[s.Name]; ok {
			lo, hi = c[0], c[1]
		}
		text := ""
		switch {
		case s.Int != nil:
			text = fmt.Sprint(rapid.IntRange((lo+step-1)/step, hi/step).Draw(t, s.Name) * step)
		case s.Dur != nil:
			text = (time.Duration(rapid.IntRange(lo, hi).Draw(t, s.Name)) * time.Microsecond).String()
		case s.Bool != nil:
			text = fmt.Sprint(rapid.Bool().Draw(t, s.Name))
		case s.Values != nil:
			text = rapid.SampledFrom(s.Values).Draw(t, s.Name)
		}
		parts = append(parts, s.Name+": "+text)
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// drawYAML writes a valid configuration.
func drawYAML(t *rapid.T) string {
	var b strings.Builder
	pr := func(format string, args ...any) { fmt.Fprintf(&b, format, args...) }
	maybe := func(what string) bool { return rapid.Bool().Draw(t, what) }
	number := func(what string, lo, hi int) int { return rapid.IntRange(lo, hi).Draw(t, what) }

	workers := number("workers", 1, 4)
	pr("workers: %d\npoll: %s\n", workers, drawOptions(t, dataplane.OptionTable, nil))
	pr("ip: %s\n", drawOptions(t, dataplane.IPTable, nil))
	pr("neigh: %s\n", drawOptions(t, neigh.OptionTable, nil))
	stride := rapid.SampledFrom([]int{2048, 4096, 8192, 16384}).Draw(t, "stride")
	buffers := drawOptions(t, skb.OptionTable, map[string][2]int{
		"stride": {stride, stride}, "count": {65536, 131072}, "headroom": {64, 512}, "cache": {16, 512},
	})
	if !strings.Contains(buffers, "count:") {
		buffers = strings.Replace(buffers+",", "},", ", count: 65536}", 1)
		buffers = strings.Replace(buffers, "{, ", "{", 1)
	}
	if !strings.Contains(buffers, "stride:") && strings.Contains(buffers, "headroom: 5") {
		buffers = strings.Replace(buffers, "}", ", stride: 4096}", 1)
	}
	pr("buffers: %s\nports:\n", buffers)
	ports := number("ports", 1, 5)
	for i := range ports {
		driver := rapid.SampledFrom(drivers).Draw(t, "driver")
		if i == 0 {
			driver = DriverModel
		}
		pr("  p%d:\n    driver: %s\n    worker: %d\n    mtu: %d\n", i, driver, number("worker", 0, workers-1), number("mtu", minMTU6, defaultMTU))
		switch driver {
		case DriverModel:
			if maybe("mac") {
				pr("    mac: 02:00:00:01:%02X:01\n", i)
			}
			pr("    model: %s\n", drawOptions(t, ModelTable, nil))
			pr("    impair: %s\n", drawOptions(t, model.ImpairmentTable, nil))
		case DriverAFPacket:
			name := rapid.SampledFrom([]string{"eth", "on-", "null", "1", "0x", "y#", "é'", `a"\`}).Draw(t, "interface")
			pr("    interface: %s\n", quote(fmt.Sprintf("%s%d", name, i)))
			pr("    packet: %s\n", drawOptions(t, PacketTable, nil))
		case DriverPcap:
			file := rapid.StringOfN(rapid.RuneFrom([]rune("a:#'\"\\{}[],&*!|>%@`- é\t\n\U0001f600")), 1, 8, -1).Draw(t, "file")
			pr("    file: %s\n    loop: %v\n", quote("in"+file), maybe("loop"))
			if maybe("output") {
				pr("    output: %s\n", quote(fmt.Sprint("out", i, file)))
			}
		}
		if maybe("weight") {
			pr("    weight: %d\n", number("frames", 1, 4096))
		}
		pr("    addresses: [10.%d.0.1/%d, 2001:db8:%x::1/64]\n", i, number("bits", 16, 30), i)
		rings := map[string][2]int{"ring": {256, 4096}, "replenish": {1, 255}, "reclaim_at": {1, 255}, "wake_at": {1, 255}, "report_every": {1, 255}}
		pr("    rx: %s\n    tx: %s\n", drawOptions(t, rx.OptionTable, rings), drawOptions(t, tx.OptionTable, rings))
	}
	if maybe("routes_file") {
		pr("routes_file: {file: table.gz, via: 10.0.0.2}\n")
	}
	pr("routes:\n")
	for i := range number("routes", 0, 6) {
		pr("  - prefix: 198.%d.0.0/16\n    metric: %d\n    table: %d\n", i, number("metric", 0, 1<<32-1), number("table", 0, 3))
		switch number("kind", 0, 3) {
		case 0:
			pr("    type: %s\n", rapid.SampledFrom(routeTypes).Draw(t, "type"))
		case 1:
			pr("    port: p%d\n", number("port", 0, ports-1))
		case 2:
			pr("    via: 203.0.113.%d\n    port: p%d\n    onlink: true\n", i, number("port", 0, ports-1))
		default:
			pr("    via:\n")
			for k := range number("hops", 1, 4) {
				if k > 0 && maybe("on the link") {
					pr("      - {port: p%d, weight: %d}\n", k%ports, number("weight", 1, 256))
					break
				}
				pr("      - {gateway: 10.%d.0.2, weight: %d}\n", k%ports, number("weight", 1, 256))
				if k+1 == ports {
					break
				}
			}
		}
	}
	pr("neighbors:\n")
	for i := range number("neighbors", 0, ports) {
		pr("  - {address: 10.%d.0.2, mac: 02:00:00:00:01:%02x}\n", i, i)
	}
	pr("pktgen:\n  streams:\n")
	for i := range number("streams", 0, 3) {
		options := drawOptions(t, pktgen.StreamTable, map[string][2]int{"size": {100, 1200}, "flows": {1, 1000}, "src_port": {1, 60000}, "count": {0, 1 << 40}})
		options = strings.TrimSuffix(options, "}")
		if options != "{" {
			options += ", "
		}
		pr("    - %sname: s%d, port: p0, src: 10.0.0.2, dst: [198.51.100.0/%d, 203.0.113.%d]}\n", options, i, number("dst", 24, 32), i)
	}
	return b.String()
}

// TestEffectiveRoundTrip: the effective configuration says the same as the one
// it is of, says it again when read again, and is no change.
func TestEffectiveRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		source := drawYAML(t)
		c, err := Parse("x", []byte(source))
		if err != nil {
			t.Fatalf("%v\n%s", err, source)
		}
		text := effective(t, c)
		again, err := Parse("x", []byte(text))
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if d := cmp.Diff(c, again, sameConfig); d != "" {
			t.Fatalf("%s\n%s", d, text)
		}
		if second := effective(t, again); second != text {
			t.Fatalf("second time:\n%s\nfirst:\n%s", second, text)
		}
		if d := Diff(c, again); len(d) > 0 {
			t.Fatalf("%v", d)
		}
	})
}

// TestOneWordSpoilt: a key or word of a valid file with a letter too many is an
// error on its own line, whatever else it causes.
func TestOneWordSpoilt(t *testing.T) {
	word := regexp.MustCompile(`[a-z_]{4,}:( |$)`)
	rapid.Check(t, func(t *rapid.T) {
		lines := strings.Split(drawYAML(t), "\n")
		var at []int
		for i, l := range lines {
			if word.MatchString(l) && !strings.Contains(l, `"`) {
				at = append(at, i)
			}
		}
		i := rapid.SampledFrom(at).Draw(t, "line")
		m := word.FindStringIndex(lines[i])
		lines[i] = lines[i][:m[0]+2] + "q" + lines[i][m[0]+2:]
		_, err := Parse("x", []byte(strings.Join(lines, "\n")))
		if err == nil {
			t.Fatalf("no error about %s", lines[i])
		}
		if want := fmt.Sprintf("x:%d:%d: unknown key ", i+1, m[0]+1); !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "did you mean") {
			t.Fatalf("%s\n%v", lines[i], err)
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add("ports: {p0: {driver: model}}")
	f.Add("ports:\n\tp0: {}\n")
	f.Add("a: &a [*a, *a]\n---\n")
	f.Add("\ufeffworkers: [{cpu: auto}]\r\nports: {é: {driver: pcap, file: \"\\u0085\"}}\r\n")
	f.Add("routes: [{prefix: ::/0}]")
	f.Add("? [a]\n: b\n<<: *x\n")
	f.Add("routes:\n  - {prefix: 0.0.0.0/0, via: [{gateway: 10.0.0.2, weight: 3}, 10.0.0.3]}\nports: {p0: {driver: model, addresses: [10.0.0.1/8]}}\n")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Parse("x", []byte(text))
		if err == nil {
			again := parse(t, effective(t, c))
			if d := cmp.Diff(c, again, sameConfig); d != "" {
				t.Fatal(d)
			}
			return
		}
		var list Errors
		if !errors.As(err, &list) || len(list) == 0 || c != nil {
			t.Fatalf("%#v", err)
		}
		lines := splitLines([]byte(text))
		for _, e := range list {
			if e.Pos.Line < 1 || e.Pos.Line > len(lines) || e.Pos.Col < 1 || e.Pos.Col > len([]rune(lines[e.Pos.Line-1]))+1 {
				t.Errorf("%v is outside the file of %d lines", e, len(lines))
			}
		}
	})
}

// TestLargeFiles: long and deep files end in the errors they should, and soon;
// a step that takes much longer for each further line shows as a hanging test.
func TestLargeFiles(t *testing.T) {
	repeat := func(n int, head, format string) string {
		var b strings.Builder
		b.WriteString(head)
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	for name, c := range map[string]struct {
		text string
		errs int
	}{
		"nested lists":     {strings.Repeat("[", 50000), 1},
		"nested mappings":  {strings.Repeat("{a: ", 50000), 1},
		"nested blocks":    {strings.Repeat("- ", 50000), 1},
		"unknown keys":     {repeat(5000, "{", "k%d: 1, ") + "}", 5001},
		"aliases":          {"ports: &a {p0: [" + strings.Repeat("*a, ", 20000) + "]}", 3},
		"ports":            {repeat(70000, "ports:\n", "  p%d: {driver: pcap, file: a}\n"), 1},
		"routes":           {repeat(5000, "ports: {p0: {driver: model, addresses: [10.0.0.1/8]}}\nroutes:\n", "  - {prefix: 198.51.100.0/24, metric: %d, via: 10.0.0.2}\n"), 0},
		"routes misspelt":  {repeat(5000, "ports: {p0: {driver: model}}\nroutes:\n", "  - {prefix: 198.51.100.0/24, metric: %d, port: p1}\n"), 5000},
		"anchors in a row": {strings.Repeat("&a ", 20000), 1},
	} {
		_, err := Parse("x", []byte(c.text))
		var list Errors
		errors.As(err, &list)
		if len(list) != c.errs {
			t.Errorf("%s: %d errors, want %d: %.300v", name, len(list), c.errs, err)
		}
	}
}
