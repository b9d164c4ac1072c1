package fib

import (
	"encoding/binary"
	"net/netip"
)

// SnapshotForTest returns lookups in the state the table has now.
func SnapshotForTest(tab TableRef) func(netip.Addr) uint32 {
	l := tab.load()
	return func(a netip.Addr) uint32 {
		b := a.As4()
		return l.lookup4(binary.BigEndian.Uint32(b[:]))
	}
}

// SharesTrieForTest says whether the table has the same trie after change.
func SharesTrieForTest(tab TableRef, change func()) bool {
	before := tab.load().trie
	change()
	return tab.load().trie == before
}
