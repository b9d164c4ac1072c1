package fib_test

import (
	"net/netip"
	"testing"

	"gorouter/fib"
)

const mainTable = 254

var (
	pfx = netip.MustParsePrefix
	ip  = netip.MustParseAddr
)

func hop(port uint16, via string) fib.NextHop { return fib.NextHop{Port: port, Via: ip(via)} }

func forward(p string, hops ...fib.NextHop) fib.Route {
	return fib.Route{Table: mainTable, Prefix: pfx(p), Kind: fib.Forward, NextHops: hops}
}

func newFIB(t testing.TB) (*fib.FIB, *fib.Reader) {
	t.Helper()
	f := fib.New(fib.Options{Seed: 1})
	r := f.NewReader()
	t.Cleanup(r.Close)
	return f, r
}

func install(t testing.TB, f *fib.FIB, routes ...fib.Route) {
	t.Helper()
	for _, r := range routes {
		if err := f.Replace(r); err != nil {
			t.Fatal(err)
		}
	}
}

func remove(t testing.TB, f *fib.FIB, p string) {
	t.Helper()
	if !f.Delete(fib.Key{Table: mainTable, Prefix: pfx(p)}) {
		t.Fatalf("Delete(%s) found nothing", p)
	}
}

// lookup returns the adjacency a packet to addr with flow hash 0 uses.
func lookup(r *fib.Reader, addr string) *fib.Adjacency {
	return r.Adjacency(r.Pick(r.Lookup(r.Table(mainTable), ip(addr)), 0))
}

// expect fails unless packets to addr go to via, or have the kind if via is "".
func expect(t testing.TB, r *fib.Reader, addr string, kind fib.Kind, via string) {
	t.Helper()
	a := lookup(r, addr)
	if a.Kind != kind || via != "" && a.NextHop != ip(via) {
		t.Fatalf("%s: %s via %s port %d, want %s via %s", addr, a.Kind, a.NextHop, a.Port, kind, via)
	}
}

// spread counts, over n flows, where group result words send them.
func spread(r *fib.Reader, result uint32, hashes []uint32) map[uint32]int {
	out := make(map[uint32]int)
	for _, h := range hashes {
		out[r.Pick(result, h)]++
	}
	return out
}

// legsOf returns the adjacency each hash is sent to.
func legsOf(r *fib.Reader, result uint32, hashes []uint32) []netip.Addr {
	out := make([]netip.Addr, len(hashes))
	for i, h := range hashes {
		out[i] = r.Adjacency(r.Pick(result, h)).NextHop
	}
	return out
}

// flows returns the hashes of n flows that differ in their ports.
func flows(h fib.Hasher, n int) []uint32 {
	out := make([]uint32, n)
	for i := range out {
		out[i] = h.Hash4(0xc0000201, 0xc6336401, 17, uint32(i)<<16|53)
	}
	return out
}

// moved counts the flows on other legs than before.
func moved(before, after []netip.Addr) (n int) {
	for i := range before {
		if before[i] != after[i] {
			n++
		}
	}
	return n
}
