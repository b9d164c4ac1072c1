package main

import "net/netip"

// binaryTrie is what one writes first: a trie with a node for each address bit.
type binaryTrie struct {
	root binaryNode
	keys []netip.Addr
}

type binaryNode struct {
	child [2]*binaryNode
	hop   uint32
}

func (s *binaryTrie) name() string { return "binary trie" }

func (s *binaryTrie) build(t *table) error {
	for i, p := range t.prefixes {
		if err := s.insert(p, t.hops[i]); err != nil {
			return err
		}
	}
	return nil
}

func bit(b *[16]byte, i int) byte { return b[i>>3&15] >> (7 - i&7) & 1 }

// left returns an address left-aligned.
func left(a netip.Addr) (b [16]byte) {
	if a.Is4() {
		four := a.As4()
		copy(b[:], four[:])
		return b
	}
	return a.As16()
}

// walk returns the node of a prefix, or nil.
func (s *binaryTrie) walk(p netip.Prefix, create bool) *binaryNode {
	n, b := &s.root, left(p.Addr())
	for i := range p.Bits() {
		next := &n.child[bit(&b, i)]
		if *next == nil {
			if !create {
				return nil
			}
			*next = new(binaryNode)
		}
		n = *next
	}
	return n
}

func (s *binaryTrie) insert(p netip.Prefix, hop uint16) error {
	s.walk(p, true).hop = uint32(hop)
	return nil
}

// delete leaves the nodes.
func (s *binaryTrie) delete(p netip.Prefix) {
	if n := s.walk(p, false); n != nil {
		n.hop = 0
	}
}

func (s *binaryTrie) use(keys []netip.Addr) { s.keys = keys }

func (s *binaryTrie) find(a netip.Addr) uint32 {
	n, hop, b := &s.root, uint32(0), left(a)
	for i := 0; n != nil; i++ {
		if n.hop != 0 {
			hop = n.hop
		}
		if i == a.BitLen() {
			break
		}
		n = n.child[bit(&b, i)]
	}
	return hop
}

func (s *binaryTrie) lookup(first, n int, out []uint32) {
	for i, a := range s.keys[first : first+n] {
		out[i] = s.find(a)
	}
}

func (s *binaryTrie) chain(first, n int, zero uint32) uint32 {
	v := uint32(0)
	for i := first; i < first+n; i++ {
		v = s.find(s.keys[i+int(v&zero)])
	}
	return v
}

func (s *binaryTrie) close() {}
