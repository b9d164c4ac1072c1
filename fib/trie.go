package fib

import (
	"fmt"
	"math/bits"
	"runtime"
	"unsafe"

	"gorouter/internal/mem"
)

// trie is the writer's side of a trie.
type trie struct {
	f        *FIB
	v        *trieView // what readers see once it is published
	a        arena
	direct   *mem.Region
	cleanups []runtime.Cleanup
	moved    bool // v is not yet published, though the trie is
	fresh    bool // no reader sees the trie yet
}

func newTrie(f *FIB) *trie { return &trie{f: f, v: new(trieView), fresh: true} }

// reuse implements retiree.
func (t *trie) reuse(item uint64) { t.a.give(block{at: uint32(item >> 8), size: uint8(item)}) }

// drop gives a block up that is not part of the trie any more.
func (t *trie) drop(b block) {
	if t.fresh {
		t.a.give(b)
		return
	}
	t.f.retire(t, uint64(b.at)<<8|uint64(b.size))
}

// memory is the item that readers may still look at after a trie moved or was
// given up as a whole.
type memory struct {
	v        *trieView // its cleanups must not run before they are stopped
	regions  [2]*mem.Region
	cleanups []runtime.Cleanup
}

// reuse implements retiree.
func (m *memory) reuse(uint64) {
	for _, c := range m.cleanups {
		c.Stop()
	}
	runtime.KeepAlive(m.v)
	for _, r := range m.regions {
		if r != nil {
			_ = r.Free()
		}
	}
}

func (t *trie) memory() *memory {
	return &memory{v: t.v, regions: [2]*mem.Region{t.a.region, t.direct}, cleanups: t.cleanups}
}

func (t *trie) setDefault(word uint32) {
	t.v.version.Add(1)
	t.v.def.Store(word)
	t.v.version.Add(1)
}

// makeDirect gives an empty trie a direct table.
func (t *trie) makeDirect() error {
	r, err := mem.Alloc(mem.Options{Size: directCells * 4, Lazy: true})
	if err != nil {
		return fmt.Errorf("direct table of a route table: %w", err)
	}
	t.direct = r
	t.v.direct = r.Base()
	t.cleanups = append(t.cleanups, freeWith(t.v, r)...)
	return nil
}

// take returns the place of a block. When the arena is full the whole trie
// moves: readers keep the old one, in the state it has, until the writer
// publishes the new view.
func (t *trie) take(size uint8) (uint32, error) {
	if at, ok := t.a.take(size); ok {
		return at, nil
	}
	if err := t.move(); err != nil {
		return 0, err
	}
	at, _ := t.a.take(size) // twice the units are enough for any block
	return at, nil
}

func (t *trie) move() error {
	a, err := t.a.moved()
	if err != nil {
		return err
	}
	v := &trieView{base: a.base}
	v.root.Store(t.v.root.Load())
	v.def.Store(t.v.def.Load())
	v.version.Store(t.v.version.Load())
	direct := t.direct
	if direct != nil {
		if direct, err = mem.Alloc(mem.Options{Size: directCells * 4, Lazy: true}); err != nil {
			_ = a.region.Free()
			return fmt.Errorf("direct table of a route table: %w", err)
		}
		copyUsed(direct.Base(), t.direct.Base())
		v.direct = direct.Base()
	}
	if old := t.memory(); t.fresh {
		old.reuse(0)
	} else {
		t.f.retire(old, 0)
	}
	t.a, t.v, t.direct = a, v, direct
	t.cleanups = freeWith(v, a.region, direct)
	t.moved = true
	return nil
}

// copyUsed copies a direct table without touching memory for what is empty.
func copyUsed(to, from unsafe.Pointer) {
	const page = mem.PageSize / 4
	src, dst := unsafe.Slice((*uint32)(from), directCells), unsafe.Slice((*uint32)(to), directCells)
	var empty [page]uint32
	for i := 0; i < directCells; i += page {
		if [page]uint32(src[i:]) != empty {
			copy(dst[i:i+page], src[i:])
		}
	}
}

// cell is a place where a node or leaf hangs: the root, or cell i of the direct
// table. It stays good when the trie moves.
type cell int32

const rootCell cell = -1

func (t *trie) loadCell(c cell) uint32 {
	if c == rootCell {
		return t.v.root.Load()
	}
	return load32(t.direct.Base(), uint32(c))
}

func (t *trie) storeCell(c cell, v uint32) {
	if c == rootCell {
		t.v.root.Store(v)
		return
	}
	store32(t.direct.Base(), uint32(c), v)
}

// leafOf makes the leaf of a prefix of that length.
func leafOf(word uint32, owner uint8) uint32 {
	if word == AdjMiss {
		return 0
	}
	return word&leafIndex | word>>1&leafGroup | uint32(owner)<<leafOwner
}

func ownerOf(leaf uint32) uint8 { return uint8(leaf >> leafOwner) }

// node returns the node at a place. The pointer is good until the trie moves.
func (t *trie) node(at uint32) *node { return (*node)(t.a.at(at)) }

// leaf returns leaf i of those at a place.
func (t *trie) leaf(at uint32, i int) uint32 { return load32(t.a.at(at), uint32(i)) }

// nodesBlock and leavesBlock return the blocks of a quarter. There may be none.
func (q *quarter) nodesBlock() (block, bool) {
	n := bits.OnesCount64(q.nodes)
	return block{at: q.nodesAt, size: nodeSize(n)}, n > 0
}

func (q *quarter) leavesBlock() (block, bool) {
	n := bits.OnesCount64(q.runs)
	return block{at: q.leavesAt, size: leafSize(n)}, n > 0
}

// leaves is what the 64 values of a quarter lead to; those of values with nodes
// have no meaning.
type leaves [64]uint32

// expand returns the leaves of a quarter.
func (t *trie) expand(q *quarter, to *leaves) {
	at, run := t.a.at(q.leavesAt), -1
	leaf := uint32(0)
	for i := range to {
		if q.runs>>i&1 != 0 {
			run++
			leaf = load32(at, uint32(run))
		}
		to[i] = leaf
	}
}

// compress finds the runs of the leaves of a quarter with those nodes, and
// moves the leaf of each run to the front.
func (l *leaves) compress(nodes uint64) (runs uint64, n int) {
	for rest := ^nodes; rest != 0; rest &= rest - 1 {
		i := bits.TrailingZeros64(rest)
		if leaf := l[i]; n == 0 || leaf != l[n-1] {
			runs |= 1 << i
			l[n] = leaf
			n++
		}
	}
	return runs, n
}

// storeLeaves makes a block of the first n leaves.
func (t *trie) storeLeaves(l *leaves, n int) (uint32, error) {
	if n == 0 {
		return 0, nil
	}
	at, err := t.take(leafSize(n))
	if err != nil {
		return 0, err
	}
	copy(unsafe.Slice((*uint32)(t.a.at(at)), n), l[:n])
	return at, nil
}

// reserve makes an empty trie large enough for about n prefixes.
func (t *trie) reserve(n int) error {
	if n == 0 {
		return nil
	}
	a, err := newArena(max(firstUnits, uint32(min(n, 1<<24))*unitsPerPrefix))
	if err != nil {
		return err
	}
	t.v.base, t.a = a.base, a
	t.cleanups = freeWith(t.v, a.region)
	return nil
}

// unitsPerPrefix is what an Internet table needs, with a reserve for changes.
const unitsPerPrefix = 6
