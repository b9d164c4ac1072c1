package main

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/gaissmai/bart"

	"gorouter/fib"
)

// subject is one structure under test. Lookups are made in batches prepared in
// the form that suits the structure; out is for the results' low words.
type subject interface {
	name() string
	build(t *table) error
	// use makes the keys those of the next lookups.
	use(keys []netip.Addr)
	// lookup looks up keys first to first+n-1. zero is 0; each key of a chain
	// is made dependent on the result before with it.
	lookup(first, n int, out []uint32)
	chain(first, n int, zero uint32) uint32
	insert(p netip.Prefix, hop uint16) error
	delete(p netip.Prefix)
	close()
}

// own is package fib.
type own struct {
	f      *fib.FIB
	r      *fib.Reader
	tab    fib.TableRef
	dst    []uint32
	hi, lo []uint64
	hop    [1]fib.NextHop
}

const mainTable = 254

func (s *own) name() string { return "gorouter" }

func (s *own) route(p netip.Prefix, hop uint16) fib.Route {
	s.hop[0] = fib.NextHop{Port: hop, Via: netip.AddrFrom4([4]byte{192, 0, 2, 1})}
	if p.Addr().Is6() {
		s.hop[0].Via = linkLocal
	}
	return fib.Route{Table: mainTable, Prefix: p, Kind: fib.Forward, NextHops: s.hop[:]}
}

var linkLocal = netip.MustParseAddr("fe80::1")

func (s *own) build(t *table) error {
	s.f = fib.New(fib.Options{Seed: 1})
	s.r = s.f.NewReader()
	s.tab = s.r.Table(mainTable)
	return s.f.Batch(func(tx *fib.Tx) error {
		for i, p := range t.prefixes {
			if err := tx.Replace(s.route(p, t.hops[i])); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *own) use(keys []netip.Addr) {
	s.dst, s.hi, s.lo = nil, nil, nil
	for _, a := range keys {
		if a.Is4() {
			b := a.As4()
			s.dst = append(s.dst, binary.BigEndian.Uint32(b[:]))
			continue
		}
		b := a.As16()
		s.hi = append(s.hi, binary.BigEndian.Uint64(b[:8]))
		s.lo = append(s.lo, binary.BigEndian.Uint64(b[8:]))
	}
}

func (s *own) lookup(first, n int, out []uint32) {
	s.r.Quiescent()
	if s.dst != nil {
		s.r.Lookup4Batch(s.tab, s.dst[first:first+n], out)
		return
	}
	s.r.Lookup6Batch(s.tab, s.hi[first:first+n], s.lo[first:first+n], out)
}

func (s *own) chain(first, n int, zero uint32) uint32 {
	var dst, out [1]uint32
	var hi, lo [1]uint64
	for i := first; i < first+n; i++ {
		if s.dst != nil {
			dst[0] = s.dst[i] ^ out[0]&zero
			s.r.Lookup4Batch(s.tab, dst[:], out[:])
			continue
		}
		hi[0], lo[0] = s.hi[i]^uint64(out[0]&zero), s.lo[i]
		s.r.Lookup6Batch(s.tab, hi[:], lo[:], out[:])
	}
	return out[0]
}

func (s *own) insert(p netip.Prefix, hop uint16) error { return s.f.Replace(s.route(p, hop)) }
func (s *own) delete(p netip.Prefix)                   { s.f.Delete(fib.Key{Table: mainTable, Prefix: p}) }
func (s *own) close()                                  { s.r.Close() }

// barts is bart's Table or Fast. Changes are made in the way that is safe for
// readers: each returns a new table.
type barts[T bartTable[T]] struct {
	title string
	t     T
	keys  []netip.Addr
}

type bartTable[T any] interface {
	Insert(netip.Prefix, uint32)
	InsertPersist(netip.Prefix, uint32) T
	DeletePersist(netip.Prefix) T
	Lookup(netip.Addr) (uint32, bool)
}

func (s *barts[T]) name() string { return s.title }

func (s *barts[T]) build(t *table) error {
	for i, p := range t.prefixes {
		s.t.Insert(p, uint32(t.hops[i]))
	}
	return nil
}

func (s *barts[T]) use(keys []netip.Addr) { s.keys = keys }

func (s *barts[T]) lookup(first, n int, out []uint32) {
	for i, a := range s.keys[first : first+n] {
		out[i], _ = s.t.Lookup(a)
	}
}

func (s *barts[T]) chain(first, n int, zero uint32) uint32 {
	v := uint32(0)
	for i := first; i < first+n; i++ {
		v, _ = s.t.Lookup(s.keys[i+int(v&zero)])
	}
	return v
}

func (s *barts[T]) insert(p netip.Prefix, hop uint16) error {
	s.t = s.t.InsertPersist(p, uint32(hop))
	return nil
}

func (s *barts[T]) delete(p netip.Prefix) { s.t = s.t.DeletePersist(p) }
func (s *barts[T]) close()                {}

// buildAll builds all structures one after the other.
func buildAll(t *table) ([]subject, []opRow, error) {
	subjects := []subject{
		&own{},
		&barts[*bart.Table[uint32]]{title: "bart.Table", t: new(bart.Table[uint32])},
		&barts[*bart.Fast[uint32]]{title: "bart.Fast", t: new(bart.Fast[uint32])},
		&binaryTrie{},
	}
	var rows []opRow
	for _, s := range subjects {
		before := resident()
		start := time.Now()
		if err := s.build(t); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", s.name(), err)
		}
		took := time.Since(start)
		rows = append(rows, opRow{Family: t.family, Structure: s.name(), Op: "build", P50: float64(took), P99: float64(took),
			PerSecond: float64(len(t.prefixes)) / took.Seconds(), Bytes: resident() - before})
	}
	return subjects, rows, nil
}

// resident returns the bytes of memory the process has, without garbage.
func resident() int64 {
	debug.FreeOSMemory()
	debug.FreeOSMemory()
	data, err := os.ReadFile("/proc/self/statm")
	var size, pages int64
	if err == nil {
		_, err = fmt.Sscan(string(data), &size, &pages)
	}
	if err != nil {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	return pages * int64(os.Getpagesize())
}

// buildLevel returns the instruction set the program was built for.
func buildLevel() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if strings.HasPrefix(s.Key, "GO"+strings.ToUpper(runtime.GOARCH)) {
				return s.Key + "=" + s.Value
			}
		}
	}
	return ""
}
