package fib

import (
	"encoding/binary"
	"net/netip"
)

// SnapshotForTest returns IPv4 lookups by a reader that keeps the view it has
// now.
func SnapshotForTest(tab TableRef) func(netip.Addr) uint32 {
	v := tab.views().v4.Load()
	return func(a netip.Addr) uint32 {
		b := a.As4()
		return v.lookup4(binary.BigEndian.Uint32(b[:]))
	}
}

// Forms of one family of a table.
const (
	FormTrie   = "trie"
	FormDirect = "direct table and trie"
	FormNarrow = "DIR-24-8, 16 bits"
	FormWide   = "DIR-24-8, 32 bits"
)

// FormForTest says what a table is made of.
func FormForTest(tab TableRef, family Family) string {
	v := tab.views().v4.Load()
	if family == IPv6 {
		v = tab.views().v6.Load()
	}
	switch {
	case v.narrow != nil:
		return FormNarrow
	case v.wide != nil:
		return FormWide
	case v.trie.direct != nil:
		return FormDirect
	}
	return FormTrie
}

// Sizes are those of tuning which tests lower.
type Sizes struct{ Promote4, Promote6, Results16, Groups16, Groups32 int }

// NewForTest returns a FIB whose structures change at these sizes; 0 stands for
// the usual one.
func NewForTest(seed uint64, s Sizes) *FIB {
	t := defaultTuning
	t.results, t.groups16, t.groups32 = 1<<16, 1<<10, 1<<10
	for _, x := range []struct {
		to   *int
		from int
	}{{&t.promote4, s.Promote4}, {&t.promote6, s.Promote6}, {&t.results16, s.Results16}, {&t.groups16, s.Groups16}, {&t.groups32, s.Groups32}} {
		if x.from != 0 {
			*x.to = x.from
		}
	}
	return New(Options{Seed: seed, tuning: &t})
}

// MemoryForTest returns the units in use in the blocks of a table's trie and the
// groups in use in its DIR-24-8 table.
func MemoryForTest(f *FIB, id uint32, family Family) (units, groups int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := f.table(id).of(family)
	if m.dir != nil {
		return 0, m.dir.groupsUsed()
	}
	return int(m.trie.a.used), 0
}
