package fib_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"gorouter/fib"
)

// Diff against comparing the oracle's lists.
func TestDiffAgainstOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(fib.Sizes{})
		c := rapidChooser{t}
		for range rapid.IntRange(0, 40).Draw(t, "changes") {
			m.batch(t, c)
		}
		a, b := choose(c, worldTables), choose(c, worldTables)
		var want []string
		left, right := m.o.sorted(a), m.o.sorted(b)
		for _, r := range left {
			i := slices.IndexFunc(right, func(o fib.Route) bool { o.Table = r.Table; return o.Key() == r.Key() })
			if i < 0 {
				want = append(want, fmt.Sprint(r.String(), " | "))
			} else if o := right[i]; o.Kind != r.Kind || o.Source != r.Source || o.Kind < fib.Blackhole && !slices.Equal(o.NextHops, r.NextHops) {
				want = append(want, fmt.Sprint(r.String(), " | ", o.String()))
			}
		}
		for _, r := range right {
			if !slices.ContainsFunc(left, func(o fib.Route) bool { o.Table = r.Table; return o.Key() == r.Key() }) {
				want = append(want, fmt.Sprint(" | ", r.String()))
			}
		}
		var got []string
		for d := range m.f.Diff(a, b) {
			s := [2]string{}
			for i, r := range []*fib.Route{d.A, d.B} {
				if r != nil {
					s[i] = r.String()
				}
			}
			got = append(got, fmt.Sprint(s[0], " | ", s[1]))
			m.f.Delete(fib.Key{Table: a, Prefix: pfx("10.0.0.0/8")}) // must not matter
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Fatalf("Diff(%d, %d) =\n%q, want\n%q", a, b, got, want)
		}
	})
}

func TestDiffIsInOrder(t *testing.T) {
	f, _ := newFIB(t)
	for i, p := range []string{"10.0.0.0/8", "10.0.0.0/16", "192.0.2.0/24", "2001:db8::/32"} {
		r := forward(p, hop(1, "fe80::1"))
		r.Table = uint32(1 + i%2)
		install(t, f, r)
	}
	var got []string
	for d := range f.Diff(1, 2) {
		r := d.A
		if r == nil {
			r = d.B
		}
		got = append(got, r.Prefix.String())
	}
	if want := "[10.0.0.0/8 10.0.0.0/16 192.0.2.0/24 2001:db8::/32]"; fmt.Sprint(got) != want {
		t.Errorf("Diff gives %v, want %s", got, want)
	}
}
