package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"os"
	"runtime"
	"sort"
	"strings"

	"gorouter/fib/fibtest"
	"gorouter/fib/routefile"
)

// nextHops is the number of different next hops. They are spread at random,
// which is the worst case for structures that merge neighbours.
const nextHops = 256

// table is the prefixes of one family with their next hops.
type table struct {
	family   int
	prefixes []netip.Prefix
	hops     []uint16 // 1..nextHops
}

type tables struct {
	four, six table
	source    string
}

func loadTables(o *options) (*tables, error) {
	t := &tables{four: table{family: 4}, six: table{family: 6}}
	if o.table != "" {
		_, err := routefile.ReadFile(o.table, routefile.Options{}, func(r routefile.Route) error {
			if r.Prefix.Addr().Is4() {
				t.four.prefixes = append(t.four.prefixes, r.Prefix)
			} else {
				t.six.prefixes = append(t.six.prefixes, r.Prefix)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		t.source = "table from a file"
	} else {
		n4, n6 := fibtest.Full4, fibtest.Full6
		if o.quick {
			n4, n6 = n4/10, n6/10
		}
		t.four.prefixes, t.six.prefixes = fibtest.Table4(n4, 1), fibtest.Table6(n6, 1)
		t.source = "generated table"
	}
	for _, t := range []*table{&t.four, &t.six} {
		if len(t.prefixes) == 0 {
			return nil, fmt.Errorf("the table has no IPv%d prefixes", t.family)
		}
		rng := rand.New(rand.NewPCG(1, uint64(t.family)))
		rng.Shuffle(len(t.prefixes), func(i, j int) { t.prefixes[i], t.prefixes[j] = t.prefixes[j], t.prefixes[i] })
		if o.quick && len(t.prefixes) > fibtest.Full4/10 {
			t.prefixes = t.prefixes[:fibtest.Full4/10]
		}
		t.hops = make([]uint16, len(t.prefixes))
		for i := range t.hops {
			t.hops[i] = uint16(1 + rng.IntN(nextHops))
		}
	}
	return t, nil
}

// The kinds of keys, in the order of the report.
var keyKinds = []string{"uniform", "announced", "zipf", "pressure", "dependent"}

// makeKeys draws addresses: uniform ones of the family's unicast space, or
// hosts within prefixes of the table drawn evenly or by Zipf's law.
func makeKeys(t *table, kind string, n int) []netip.Addr {
	rng := rand.New(rand.NewPCG(7, uint64(len(kind))))
	draw := func() int { return rng.IntN(len(t.prefixes)) }
	if kind == "zipf" {
		draw = zipf(rng, len(t.prefixes), 1.1)
	}
	keys := make([]netip.Addr, n)
	for i := range keys {
		p := netip.PrefixFrom(netip.IPv4Unspecified(), 0)
		switch {
		case kind != "uniform":
			p = t.prefixes[draw()]
		case t.family == 6:
			p = netip.MustParsePrefix("2000::/3")
		}
		keys[i] = hostIn(rng, p)
	}
	return keys
}

func hostIn(rng *rand.Rand, p netip.Prefix) netip.Addr {
	b := p.Addr().AsSlice()
	for i := range b {
		host := byte(0xff)
		if fixed := p.Bits() - 8*i; fixed >= 8 {
			host = 0
		} else if fixed > 0 {
			host >>= fixed
		}
		b[i] |= byte(rng.Uint32()) & host
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

// zipf returns a source of ranks 0..n-1 with probabilities 1/(rank+1)^s.
func zipf(rng *rand.Rand, n int, s float64) func() int {
	sum := make([]float64, n)
	total := 0.0
	for i := range sum {
		total += math.Pow(float64(i+1), -s)
		sum[i] = total
	}
	return func() int { return min(n-1, sort.SearchFloat64s(sum, rng.Float64()*total)) }
}

// machine describes where this runs.
func machine() string {
	cpu := "unknown processor"
	if data, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(data)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				cpu = strings.TrimSpace(value)
				break
			}
		}
	}
	kernel := ""
	if data, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		kernel = ", Linux " + strings.TrimSpace(string(data))
	}
	return fmt.Sprintf("%s, %d threads%s, %s %s %s", cpu, runtime.NumCPU(), kernel, runtime.Version(), runtime.GOARCH, buildLevel())
}
