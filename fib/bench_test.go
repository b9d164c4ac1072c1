package fib_test

import (
	"fmt"
	"net/netip"
	"os"
	"testing"

	"gorouter/fib"
	"gorouter/fib/fibtest"
	"gorouter/fib/routefile"
)

const batch = 32

// fullTable returns the prefixes of one family of the file that GOROUTER_TABLE
// names, else generated ones.
func fullTable(b *testing.B, family fib.Family) (table []netip.Prefix) {
	b.Helper()
	name := os.Getenv("GOROUTER_TABLE")
	switch {
	case name == "" && family == fib.IPv4:
		return fibtest.Table4(fibtest.Full4, 1)
	case name == "":
		return fibtest.Table6(fibtest.Full6, 1)
	}
	if _, err := routefile.ReadFile(name, routefile.Options{}, func(r routefile.Route) error {
		if fib.FamilyOf(r.Prefix.Addr()) == family {
			table = append(table, r.Prefix)
		}
		return nil
	}); err != nil {
		b.Fatal(err)
	}
	return table
}

func BenchmarkFullTable(b *testing.B) {
	for _, family := range []fib.Family{fib.IPv4, fib.IPv6} {
		table := fullTable(b, family)
		name := fmt.Sprintf("IPv%d/", family)
		b.Run(name+"build", func(b *testing.B) {
			for range b.N {
				load(b, fib.New(fib.Options{}), table)
			}
		})
		f, r := newFIB(b)
		r.Offline()
		load(b, f, table)
		hops := []fib.NextHop{hop(1, "fe80::1")}
		b.Run(name+"replace", func(b *testing.B) {
			b.ReportAllocs()
			for i := range b.N {
				hops[0].Port = uint16(i & 255)
				install(b, f, fib.Route{Table: mainTable, Prefix: table[i*7919%len(table)], Kind: fib.Forward, NextHops: hops})
			}
		})
		b.Run(name+"delete and insert", func(b *testing.B) {
			b.ReportAllocs()
			for i := range b.N {
				p := table[i*7919%len(table)]
				f.Delete(fib.Key{Table: mainTable, Prefix: p})
				hops[0].Port = uint16(i & 255)
				install(b, f, fib.Route{Table: mainTable, Prefix: p, Kind: fib.Forward, NextHops: hops})
			}
		})
		b.Run(name+"churn in batches", func(b *testing.B) {
			for i := 0; i < b.N; i += 256 {
				err := f.Batch(func(tx *fib.Tx) error {
					for j := range 256 {
						p := table[(i+j)*7919%3551]
						if j%4 == 3 {
							tx.Delete(fib.Key{Table: mainTable, Prefix: p})
							continue
						}
						hops[0].Port = uint16(j)
						if err := tx.Replace(fib.Route{Table: mainTable, Prefix: p, Kind: fib.Forward, NextHops: hops}); err != nil {
							return err
						}
					}
					return nil
				})
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkLookup4Batch(b *testing.B) {
	for _, n := range []int{100, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			f, r := newFIB(b)
			table := fibtest.Table4(n, 1)
			load(b, f, table)
			keys := make([]uint32, 1<<16)
			for i := range keys {
				keys[i] = host4(table[i*7919%n].Addr())
			}
			tab, out := r.Table(mainTable), make([]uint32, batch)
			b.ReportAllocs()
			b.ResetTimer()
			for i := 0; i < b.N; i += batch {
				at := i & (len(keys) - 1)
				r.Lookup4Batch(tab, keys[at:at+batch], out)
			}
		})
	}
}

func BenchmarkLookup6Batch(b *testing.B) {
	f, r := newFIB(b)
	table := fibtest.Table6(100_000, 1)
	load(b, f, table)
	hi, lo := make([]uint64, 1<<16), make([]uint64, 1<<16)
	for i := range hi {
		hi[i], lo[i] = halves(table[i*7919%len(table)].Addr())
	}
	tab, out := r.Table(mainTable), make([]uint32, batch)
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; i < b.N; i += batch {
		at := i & (len(hi) - 1)
		r.Lookup6Batch(tab, hi[at:at+batch], lo[at:at+batch], out)
	}
}

func BenchmarkPickAndAdjacency(b *testing.B) {
	f, r := newFIB(b)
	install(b, f, nWay(4))
	word := result(r)
	var sink uint16
	b.ReportAllocs()
	for i := range b.N {
		sink += r.Adjacency(r.Pick(word, r.Hash4(1, uint32(i), 17, 0))).Port
	}
	_ = sink
}

func BenchmarkReplace(b *testing.B) {
	f, _ := newFIB(b)
	table := fibtest.Table4(100_000, 1)
	load(b, f, table)
	hops := []fib.NextHop{hop(1, "192.0.2.1")}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		hops[0].Port = uint16(i & 255)
		if err := f.Replace(fib.Route{Table: mainTable, Prefix: table[i*7919%len(table)], Kind: fib.Forward, NextHops: hops}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDefaultRouteFlap(b *testing.B) {
	f, _ := newFIB(b)
	load(b, f, fibtest.Table4(100_000, 1))
	route := forward("0.0.0.0/0", hop(1, "192.0.2.1"))
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		install(b, f, route)
		f.Delete(route.Key())
	}
}

func BenchmarkBulkLoad100k(b *testing.B) {
	table := fibtest.Table4(100_000, 1)
	b.ResetTimer()
	for range b.N {
		load(b, fib.New(fib.Options{}), table)
	}
}
