package fib

import (
	"math/bits"
	"sync/atomic"
	"unsafe"
)

// assign gives all addresses of k that no longer prefix owns the leaf. Where
// the runs of a node stay as they are its leaves change in place. Otherwise the
// block of nodes it lies in is copied with the new content, and one store in
// the node above, or the cell, publishes it.
func (t *trie) assign(k key, leaf uint32) error {
	if t.direct == nil {
		return t.assignCell(rootCell, 0, k, leaf)
	}
	if !t.inDirect(k) {
		t.v.version.Add(1)
		defer func() { t.v.version.Add(1) }() // of the view the trie has then
		return t.assignCell(rootCell, 0, k, leaf)
	}
	first := cell(k.hi>>40) & (directCells - 1)
	n := cell(1)
	if k.bits < directBits {
		n = 1 << (directBits - k.bits)
	}
	for c := first; c < first+n; c++ {
		if err := t.assignCell(c, directBits, k, leaf); err != nil {
			return err
		}
	}
	return nil
}

// directFrom is the length of the shortest prefixes that the direct table
// holds. Shorter ones would fill whole pages of it; they stay below the root,
// where lookups end that find nothing in the direct table.
const directFrom = 16

// inDirect says where a prefix belongs.
func (t *trie) inDirect(k key) bool { return t.direct != nil && k.bits >= directFrom && k.hi>>61 == 1 }

func (t *trie) assignCell(c cell, d uint8, k key, leaf uint32) error {
	w := t.loadCell(c)
	if w&nodeFlag == 0 {
		switch {
		case w == leaf || ownerOf(w) > k.bits:
			return nil
		case k.bits <= d:
			t.storeCell(c, leaf)
			return nil
		}
		n, err := t.chain(w, d, k, leaf)
		if err != nil {
			return err
		}
		return t.placeAtCell(c, &n)
	}
	at := w &^ nodeFlag
	if k.bits <= d {
		t.paint(at, k.bits, leaf)
		return nil
	}
	e := edit{t: t, k: k, leaf: leaf}
	out, err := e.node(at, d)
	if err != nil || out == untouched {
		return err
	}
	if out == collapsed {
		t.storeCell(c, e.single)
	} else if err := t.placeAtCell(c, &e.content); err != nil {
		return err
	}
	t.drop(block{at: at, size: nodeSize(1)})
	return nil
}

// placeAtCell makes a node of the content and hangs it up.
func (t *trie) placeAtCell(c cell, n *node) error {
	at, err := t.take(nodeSize(1))
	if err != nil {
		return err
	}
	*t.node(at) = *n
	t.storeCell(c, nodeFlag|at)
	return nil
}

// chain returns the content of a node at bit d where all is one leaf but for k,
// which is longer than d.
func (t *trie) chain(all uint32, d uint8, k key, leaf uint32) (node, error) {
	var n node
	s := k.digit(d)
	for q := range n {
		n[q].runs = 1
		var l leaves
		for i := range l {
			l[i] = all
		}
		if int(s>>6) <= q && k.bits <= d+8 {
			first, last := int(s), int(s)+1<<(d+8-k.bits)
			for i := max(first, q*64); i < min(last, q*64+64); i++ {
				l[i-q*64] = leaf
			}
		} else if int(s>>6) == q {
			below, err := t.chain(all, d+8, k, leaf)
			if err != nil {
				return n, err
			}
			if n[q].nodesAt, err = t.take(nodeSize(1)); err != nil {
				return n, err
			}
			*t.node(n[q].nodesAt) = below
			n[q].nodes = 1 << (s & 63)
		}
		runs, count := l.compress(n[q].nodes)
		at, err := t.storeLeaves(&l, count)
		if err != nil {
			return n, err
		}
		n[q].runs, n[q].leavesAt = runs, at
	}
	return n, nil
}

// paint changes, in place, all leaves of a node and below that no longer prefix
// owns.
func (t *trie) paint(at uint32, owner uint8, leaf uint32) {
	n := t.node(at)
	for q := range n {
		base := t.a.at(n[q].leavesAt)
		for i := range bits.OnesCount64(n[q].runs) {
			if w := load32(base, uint32(i)); ownerOf(w) <= owner && w != leaf {
				store32(base, uint32(i), leaf)
			}
		}
		for i := range bits.OnesCount64(n[q].nodes) {
			t.paint(n[q].nodesAt+uint32(i)*nodeUnits, owner, leaf)
		}
	}
}

// edit is one change of a trie on its way down and up again.
type edit struct {
	t    *trie
	k    key
	leaf uint32

	content node   // of the node just edited, if it must be placed anew
	single  uint32 // the leaf that the node just edited has collapsed to
}

type outcome uint8

const (
	untouched outcome = iota // nothing to do above
	replaced                 // edit.content must take the node's place
	collapsed                // edit.single must take the node's place
)

// node edits the node at a place, whose first address bit is d.
func (e *edit) node(at uint32, d uint8) (outcome, error) {
	if e.k.bits <= d+8 {
		return e.here(at, d)
	}
	s := e.k.digit(d)
	q := e.t.node(at)[s>>6]
	bit := uint64(1) << (s & 63)
	rank := bits.OnesCount64(q.nodes & (bit - 1))
	if q.nodes&bit == 0 {
		var l leaves
		e.t.expand(&q, &l)
		w := l[s&63]
		if w == e.leaf || ownerOf(w) > e.k.bits {
			return untouched, nil
		}
		n, err := e.t.chain(w, d+8, e.k, e.leaf)
		if err != nil {
			return untouched, err
		}
		return e.rebuild(at, int(s>>6), &l, q.nodes|bit, rank, &n)
	}
	out, err := e.node(q.nodesAt+uint32(rank)*nodeUnits, d+8)
	switch {
	case err != nil || out == untouched:
		return untouched, err
	case out == collapsed:
		var l leaves
		e.t.expand(&q, &l)
		l[s&63] = e.single
		return e.rebuild(at, int(s>>6), &l, q.nodes&^bit, rank, nil)
	}
	old, _ := q.nodesBlock()
	n := bits.OnesCount64(q.nodes)
	to, err := e.t.take(old.size)
	if err != nil {
		return untouched, err
	}
	copy(e.t.nodesAt(to, n), e.t.nodesAt(old.at, n))
	*e.t.node(to + uint32(rank)*nodeUnits) = e.content
	atomic.StoreUint32(&e.t.node(at)[s>>6].nodesAt, to)
	e.t.drop(old)
	return untouched, nil
}

// nodesAt returns n nodes that lie side by side.
func (t *trie) nodesAt(at uint32, n int) []node {
	return unsafe.Slice((*node)(t.a.at(at)), n)
}

// rebuild makes the content of a node in which one value of a quarter changed
// between node and leaf: the node of that rank comes (n) or goes (nil).
func (e *edit) rebuild(at uint32, qi int, l *leaves, nodes uint64, rank int, n *node) (outcome, error) {
	t := e.t
	old := t.node(at)[qi]
	count := bits.OnesCount64(nodes)
	was := bits.OnesCount64(old.nodes)
	runs, k := l.compress(nodes)
	fresh := quarter{nodes: nodes, runs: runs}
	var err error
	if fresh.leavesAt, err = t.storeLeaves(l, k); err != nil {
		return untouched, err
	}
	if count > 0 {
		if fresh.nodesAt, err = t.take(nodeSize(count)); err != nil {
			return untouched, err
		}
		to := t.nodesAt(fresh.nodesAt, count)
		var from []node
		if was > 0 {
			from = t.nodesAt(old.nodesAt, was)
		}
		copy(to, from[:rank])
		if n != nil {
			to[rank] = *n
			copy(to[rank+1:], from[rank:])
		} else {
			copy(to[rank:], from[rank+1:])
		}
	}
	e.content = *t.node(at)
	e.content[qi] = fresh
	t.dropQuarter(&old)
	return e.settle(), nil
}

// dropQuarter gives up the blocks of a quarter, but not what its nodes lead to.
func (t *trie) dropQuarter(q *quarter) {
	if b, ok := q.nodesBlock(); ok {
		t.drop(b)
	}
	if b, ok := q.leavesBlock(); ok {
		t.drop(b)
	}
}

// here edits a node in which k begins and ends.
func (e *edit) here(at uint32, d uint8) (outcome, error) {
	t := e.t
	first := int(e.k.digit(d))
	last := first + 1<<(d+8-e.k.bits)
	out := untouched
	for qi := first >> 6; qi <= (last-1)>>6; qi++ {
		q := t.node(at)[qi]
		var l leaves
		t.expand(&q, &l)
		changed := false
		for i := max(first, qi*64); i < min(last, qi*64+64); i++ {
			switch j := i & 63; {
			case q.nodes>>j&1 != 0:
				rank := bits.OnesCount64(q.nodes & (1<<j - 1))
				t.paint(q.nodesAt+uint32(rank)*nodeUnits, e.k.bits, e.leaf)
			case ownerOf(l[j]) <= e.k.bits && l[j] != e.leaf:
				l[j] = e.leaf
				changed = true
			}
		}
		if !changed {
			continue
		}
		runs, n := l.compress(q.nodes)
		if runs == q.runs {
			base := t.a.at(q.leavesAt)
			for i := range n {
				if load32(base, uint32(i)) != l[i] {
					store32(base, uint32(i), l[i])
				}
			}
			continue
		}
		leavesAt, err := t.storeLeaves(&l, n)
		if err != nil {
			return untouched, err
		}
		if out == untouched {
			e.content = *t.node(at)
			out = replaced
		}
		e.content[qi].runs, e.content[qi].leavesAt = runs, leavesAt
		if b, ok := q.leavesBlock(); ok {
			t.drop(b)
		}
	}
	if out == untouched {
		e.content = *t.node(at)
		if e.settle() == replaced {
			return untouched, nil
		}
		return collapsed, nil
	}
	return e.settle(), nil
}

// settle finds out whether the content is one leaf only.
func (e *edit) settle() outcome {
	t := e.t
	e.single = t.leaf(e.content[0].leavesAt, 0)
	for q := range e.content {
		if e.content[q].nodes != 0 {
			return replaced
		}
		for i := range bits.OnesCount64(e.content[q].runs) {
			if t.leaf(e.content[q].leavesAt, i) != e.single {
				return replaced
			}
		}
	}
	for q := range e.content {
		t.dropQuarter(&e.content[q])
	}
	return collapsed
}
