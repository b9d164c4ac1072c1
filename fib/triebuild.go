package fib

import "math/bits"

// load fills an empty trie with prefixes in order of address and length.
func (t *trie) load(list []entry) error {
	var inside []entry // of the direct table
	rest := list[:0:0]
	for i := range list {
		switch e := &list[i]; {
		case e.bits == 0 || t.f.sets[e.set].active == nil:
		case t.inDirect(e.key):
			inside = append(inside, *e)
		default:
			rest = append(rest, *e)
		}
	}
	if err := t.loadDirect(inside); err != nil || len(rest) == 0 {
		return err
	}
	n, err := t.build(rest, 0, 0)
	if err != nil {
		return err
	}
	return t.placeAtCell(rootCell, &n)
}

func (t *trie) leafOf(e *entry) uint32 { return leafOf(t.f.sets[e.set].result(), e.bits) }

func (t *trie) loadDirect(list []entry) error {
	for i := 0; i < len(list); {
		e := &list[i]
		first := cell(e.hi>>40) & (directCells - 1)
		if e.bits <= directBits {
			for c := range cell(1) << (directBits - e.bits) {
				t.storeCell(first+c, t.leafOf(e))
			}
			i++
			continue
		}
		end := i + 1
		for end < len(list) && list[end].bits > directBits && list[end].hi>>40 == e.hi>>40 {
			end++
		}
		n, err := t.build(list[i:end], directBits, t.loadCell(first))
		if err != nil {
			return err
		}
		if err := t.placeAtCell(first, &n); err != nil {
			return err
		}
		i = end
	}
	return nil
}

// build makes the content of a node, at address bit d, for prefixes longer than
// d that all lie in it. Where none of them is it inherits a leaf. In their
// order a prefix comes before all that lie inside it, and those inside one
// value are neighbours.
func (t *trie) build(list []entry, d uint8, inherit uint32) (node, error) {
	var n node
	var all [256]uint32
	var deep [256][2]int32 // entries for the node of a value
	for i := range all {
		all[i] = inherit
	}
	for i := 0; i < len(list); {
		e := &list[i]
		s := e.digit(d)
		if e.bits <= d+8 {
			for j := range 1 << (d + 8 - e.bits) {
				all[int(s)+j] = t.leafOf(e)
			}
			i++
			continue
		}
		end := i + 1
		for end < len(list) && list[end].bits > d+8 && list[end].digit(d) == s {
			end++
		}
		n[s>>6].nodes |= 1 << (s & 63)
		deep[s] = [2]int32{int32(i), int32(end)}
		i = end
	}
	for q := range n {
		l := leaves(all[q*64:])
		runs, count := l.compress(n[q].nodes)
		at, err := t.storeLeaves(&l, count)
		if err != nil {
			return n, err
		}
		n[q].runs, n[q].leavesAt = runs, at
		if n[q].nodes == 0 {
			continue
		}
		if n[q].nodesAt, err = t.take(nodeSize(bits.OnesCount64(n[q].nodes))); err != nil {
			return n, err
		}
		at = n[q].nodesAt
		for rest := n[q].nodes; rest != 0; rest &= rest - 1 {
			s := q*64 + bits.TrailingZeros64(rest)
			child, err := t.build(list[deep[s][0]:deep[s][1]], d+8, all[s])
			if err != nil {
				return n, err
			}
			*t.node(at) = child
			at += nodeUnits
		}
	}
	return n, nil
}
