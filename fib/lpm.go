package fib

import (
	"encoding/binary"
	"net/netip"

	"github.com/gaissmai/bart"
)

// change is one edit of an lpm: the prefix's new result word, or gone.
type change struct {
	prefix netip.Prefix
	result uint32
	gone   bool
}

// lpm is the lookup structure of one table: an immutable snapshot that apply
// copies. The default routes are held outside the trie, so that a flap of
// theirs touches two words however large the table is.
type lpm struct {
	trie       *bart.Table[uint32]
	def4, def6 uint32
}

var emptyLPM = &lpm{trie: new(bart.Table[uint32])}

// has says whether the change is in effect already.
func (l *lpm) has(c *change) bool {
	var v uint32
	var ok bool
	switch {
	case c.prefix.Bits() > 0:
		v, ok = l.trie.Get(c.prefix)
	case c.prefix.Addr().Is4():
		v, ok = l.def4, l.def4 != AdjMiss
	default:
		v, ok = l.def6, l.def6 != AdjMiss
	}
	return ok == !c.gone && (!ok || v == c.result)
}

// copyRatio: when a batch touches more than 1/copyRatio of the prefixes, one
// copy of the whole trie is cheaper than a path copy per change.
const copyRatio = 64

// apply returns the snapshot with the changes made, in order. The receiver
// stays as it is.
func (l *lpm) apply(changes []change) *lpm {
	n := &lpm{trie: l.trie, def4: l.def4, def6: l.def6}
	if len(changes) > 1 && len(changes)*copyRatio > l.trie.Size() {
		n.trie = l.trie.Clone()
		for i := range changes {
			c := &changes[i]
			switch {
			case n.setDefault(c):
			case c.gone:
				n.trie.Delete(c.prefix)
			default:
				n.trie.Insert(c.prefix, c.result)
			}
		}
		return n
	}
	for i := range changes {
		c := &changes[i]
		switch {
		case n.setDefault(c):
		case c.gone:
			n.trie = n.trie.DeletePersist(c.prefix)
		default:
			n.trie = n.trie.InsertPersist(c.prefix, c.result)
		}
	}
	return n
}

// setDefault makes the change if it is one of a default route. An absent
// default route is AdjMiss, which is what a lookup without any match gives.
func (l *lpm) setDefault(c *change) bool {
	if c.prefix.Bits() != 0 {
		return false
	}
	word := &l.def6
	if c.prefix.Addr().Is4() {
		word = &l.def4
	}
	*word = c.result
	if c.gone {
		*word = AdjMiss
	}
	return true
}

// lookup4 takes the address in host order.
func (l *lpm) lookup4(dst uint32) uint32 {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], dst)
	if v, ok := l.trie.Lookup(netip.AddrFrom4(b)); ok {
		return v
	}
	return l.def4
}

// lookup6 takes the halves of the address in host order. A mapped IPv4 address
// has no route of its own: the trie would take it for IPv6, where no such
// prefix is ever inserted except shorter ones, which match as they should.
func (l *lpm) lookup6(hi, lo uint64) uint32 {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], hi)
	binary.BigEndian.PutUint64(b[8:], lo)
	if v, ok := l.trie.Lookup(netip.AddrFrom16(b)); ok {
		return v
	}
	return l.def6
}
