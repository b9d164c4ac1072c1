package fib_test

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"unsafe"

	"go.uber.org/goleak"

	"gorouter/fib"
	"gorouter/fib/fibtest"
	"gorouter/internal/inlinetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func host4(a netip.Addr) uint32 { b := a.As4(); return binary.BigEndian.Uint32(b[:]) }

func halves(a netip.Addr) (hi, lo uint64) {
	b := a.As16()
	return binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])
}

func TestHotFunctionsAreInlined(t *testing.T) {
	inlinetest.Require(t, "gorouter/fib",
		"(*Reader).Adjacency", "(*Reader).Pick", "(*Reader).Quiescent", "(*Reader).Offline", "(*Reader).Online",
		"TableRef.views", "(*buckets).pick", "load32", "wordOf",
		"loadEntry[go.shape.uint16]", "loadEntry[go.shape.uint32]", "Hasher.Hash4", "fold",
		"(*slots[gorouter/fib.Adjacency]).get", "(*slots[gorouter/fib.buckets]).get")
}

func TestAdjacencyFillsOneLine(t *testing.T) {
	if n := unsafe.Sizeof(fib.Adjacency{}); n != 64 {
		t.Fatalf("an adjacency takes %d bytes, want 64", n)
	}
}

func TestLookupsDoNotAllocate(t *testing.T) {
	f, r := newFIB(t)
	install(t, f, nWay(4), forward("2001:db8::/32", hop(1, "fe80::1")))
	tab := r.Table(mainTable)
	dst, out := make([]uint32, 64), make([]uint32, 64)
	hi, lo := make([]uint64, 64), make([]uint64, 64)
	for i := range dst {
		dst[i] = 0x0a000000 + uint32(i)
		hi[i] = 0x20010db8 << 32
	}
	a4, a6 := ip("10.0.0.1"), ip("2001:db8::1")
	var sink uint32
	if n := testing.AllocsPerRun(100, func() {
		r.Quiescent()
		r.Lookup4Batch(tab, dst, out)
		for i := range out {
			out[i] = r.Pick(out[i], r.Hash4(1, dst[i], 17, 0))
			sink += uint32(r.Adjacency(out[i]).Port)
		}
		r.Lookup6Batch(tab, hi, lo, out)
		sink += r.Lookup(tab, a4) + r.Lookup(tab, a6) + r.Hash6(1, 2, 3, 4, 5, 6)
		r.Offline()
		r.Online()
	}); n != 0 {
		t.Fatalf("%v allocations per batch", n)
	}
	_ = sink
}

// One prefix of every length, with the addresses just inside and just outside.
func TestEveryPrefixLengthAtItsEdges(t *testing.T) {
	for _, base := range []string{"170.85.170.85", "0.0.0.0", "255.255.255.255",
		"aaaa:5555:aaaa:5555:aaaa:5555:aaaa:5555", "::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"} {
		f, r := newFIB(t)
		o := newOracle()
		addr := ip(base)
		for bits := range addr.BitLen() + 1 {
			p := netip.PrefixFrom(addr, bits).Masked()
			route := fib.Route{Table: mainTable, Prefix: p, Kind: fib.Connected, NextHops: []fib.NextHop{{Port: uint16(bits)}}}
			install(t, f, route)
			o.replace(route)
		}
		probe := func() {
			t.Helper()
			for bits := range addr.BitLen() + 1 {
				p := netip.PrefixFrom(addr, bits).Masked()
				first, last := p.Addr(), lastAddr(p)
				for _, a := range []netip.Addr{first, last, first.Prev(), last.Next()} {
					if !a.IsValid() {
						continue
					}
					if err := o.check(f, r, mainTable, a); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		probe()
		for bits := 0; bits <= addr.BitLen(); bits += 3 {
			k := fib.Key{Table: mainTable, Prefix: netip.PrefixFrom(addr, bits).Masked()}
			f.Delete(k)
			o.delete(k)
		}
		probe()
	}
}

func lastAddr(p netip.Prefix) netip.Addr {
	b := p.Addr().AsSlice()
	for i := p.Bits(); i < len(b)*8; i++ {
		b[i/8] |= 0x80 >> (i % 8)
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

// An Internet-like table: batch answers equal single answers equal the writer's.
func TestBatchesAgreeWithLongest(t *testing.T) {
	f, r := newFIB(t)
	t4, t6 := fibtest.Table4(20000, 1), fibtest.Table6(10000, 1)
	load(t, f, t4, t6)
	tab := r.Table(mainTable)
	var dst, out []uint32
	var hi, lo []uint64
	var probes []netip.Addr
	for i := 0; i < len(t4); i += 40 {
		probes = append(probes, t4[i].Addr(), lastAddr(t4[i]).Next())
	}
	n4 := len(probes)
	for i := 0; i < len(t6); i += 40 {
		probes = append(probes, t6[i].Addr(), lastAddr(t6[i]).Next())
	}
	for i, a := range probes {
		if i < n4 {
			dst = append(dst, host4(a))
			continue
		}
		h, l := halves(a)
		hi, lo = append(hi, h), append(lo, l)
	}
	out = make([]uint32, len(probes))
	r.Lookup4Batch(tab, dst, out)
	r.Lookup6Batch(tab, hi, lo, out[n4:])
	for i, a := range probes {
		if single := r.Lookup(tab, a); single != out[i] {
			t.Fatalf("%s: batch %d, single %d", a, out[i], single)
		}
		want := uint16(0)
		if route, ok := f.Longest(mainTable, a); ok {
			want = route.NextHops[0].Port
		}
		if got := r.Adjacency(out[i]).Port; got != want {
			t.Fatalf("%s: port %d, want %d", a, got, want)
		}
	}
}

// load installs prefixes in one batch, prefix i on port i mod 256 + 1.
func load(t testing.TB, f *fib.FIB, tables ...[]netip.Prefix) {
	t.Helper()
	via4, via6 := ip("192.0.2.1"), ip("fe80::1")
	err := f.Batch(func(tx *fib.Tx) error {
		hops := make([]fib.NextHop, 1)
		for _, table := range tables {
			for i, p := range table {
				hops[0] = fib.NextHop{Port: uint16(i%256 + 1), Via: via4}
				if p.Addr().Is6() {
					hops[0].Via = via6
				}
				if err := tx.Replace(fib.Route{Table: mainTable, Prefix: p, Kind: fib.Forward, NextHops: hops}); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestAddressesInAllSpellings(t *testing.T) {
	f, r := newFIB(t)
	install(t, f, forward("10.0.0.0/8", hop(1, "192.0.2.1")), forward("fe80::/10", hop(1, "fe80::1")))
	expect(t, r, "::ffff:10.1.1.1", fib.Forward, "192.0.2.1")
	expect(t, r, "fe80::2%eth0", fib.Forward, "fe80::1")
	if got := r.Lookup(r.Table(mainTable), netip.Addr{}); got != fib.AdjMiss {
		t.Errorf("the zero address finds %d", got)
	}
	if _, ok := f.Longest(mainTable, ip("::ffff:10.1.1.1")); !ok {
		t.Error("Longest does not unmap")
	}
	if got := f.AcquireAdjacency(1, ip("::ffff:192.0.2.1")); got != r.Lookup(r.Table(mainTable), ip("10.0.0.1")) {
		t.Error("AcquireAdjacency does not unmap")
	}
	for _, a := range []netip.Addr{{}, ip("0.0.0.0"), ip("ff02::1")} {
		if got := f.AcquireAdjacency(1, a); got != fib.AdjMiss {
			t.Errorf("AcquireAdjacency(%s) = %d", a, got)
		}
	}
}

func TestTableRefsOutliveTheTablesContents(t *testing.T) {
	f, r := newFIB(t)
	tab := r.Table(7)
	route := forward("10.0.0.0/8", hop(1, "192.0.2.1"))
	route.Table = 7
	for range 3 {
		if got := r.Lookup(tab, ip("10.0.0.1")); got != fib.AdjMiss {
			t.Fatalf("empty table finds %d", got)
		}
		install(t, f, route)
		if got := r.Adjacency(r.Lookup(tab, ip("10.0.0.1"))).NextHop; got != ip("192.0.2.1") {
			t.Fatalf("table finds %s", got)
		}
		expect(t, r, "10.0.0.1", fib.Miss, "") // another table
		if n := f.DeleteTable(7); n != 1 {
			t.Fatalf("DeleteTable = %d", n)
		}
	}
}

// An index is free for others only after each online reader was quiescent.
func TestIndicesWaitForEveryOnlineReader(t *testing.T) {
	f := fib.New(fib.Options{})
	a, b := f.NewReader(), f.NewReader()
	defer a.Close()
	b.Offline()
	old := f.AcquireAdjacency(1, ip("192.0.2.1"))
	f.ReleaseAdjacency(old)
	if got := a.Adjacency(old).NextHop; got != ip("192.0.2.1") {
		t.Fatalf("the record went away under a reader: %s", got)
	}
	f.SetAdjacency(old, func(*fib.Adjacency) { t.Error("a retired adjacency was edited") })
	if got := f.AcquireAdjacency(1, ip("192.0.2.2")); got == old {
		t.Fatal("index reused before the quiescent point")
	}
	b.Online() // after the release: no reason to wait for it
	a.Quiescent()
	if n := f.Reclaim(); n != 1 || f.Stats().Retired != 0 {
		t.Fatalf("Reclaim = %d, want 1", n)
	}
	if got := a.Adjacency(old); got.Kind != fib.Miss {
		t.Fatalf("a free index gives %+v", got)
	}
	if got := f.AcquireAdjacency(1, ip("192.0.2.3")); got != old {
		t.Fatalf("index %d, want %d again", got, old)
	}
	f.ReleaseAdjacency(old)
	a.Quiescent()
	if n := f.Reclaim(); n != 0 {
		t.Fatal("reclaimed although one reader is in its batch")
	}
	b.Close()
	if s := f.Stats(); s.Retired != 0 || s.Readers != 1 || s.Online != 1 {
		t.Fatalf("after Close: %+v", s)
	}
	b.Close()
}

func TestAdjacencyIsNeverNil(t *testing.T) {
	_, r := newFIB(t)
	for _, idx := range []uint32{0, 4, 1023, 1024, 1 << 20, 1<<31 - 1, 1 << 31, 1<<32 - 1} {
		if r.Adjacency(idx) == nil {
			t.Fatalf("adjacency %d is nil", idx)
		}
		r.Pick(idx, 1<<32-1)
	}
	for idx, kind := range []fib.Kind{fib.Miss, fib.Blackhole, fib.Unreachable, fib.Prohibit} {
		if a := r.Adjacency(uint32(idx)); a.Kind != kind || a.Index != uint32(idx) {
			t.Errorf("adjacency %d is %+v", idx, a)
		}
	}
}
