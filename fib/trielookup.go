package fib

import (
	"math/bits"
	"runtime"
	"sync/atomic"
	"unsafe"
)

// A trie is made of cells, nodes and leaves.
//
// A cell is a 32-bit word: a leaf, or nodeFlag and the place of a node. The
// root is a cell for address bit 0; the direct table, if there is one, has a
// cell for each of the 2^21 values of bits 3 to 23 of an address in 2000::/3.
//
// A leaf is a 32-bit word, 0 for no route: bits 0-19 and 30 are the index and
// GroupFlag of the result, bits 20-27 the length of the prefix that owns it.
//
// Places count units of eight bytes from the base of the arena.
const (
	nodeFlag = 1 << 31

	leafIndex = 1<<20 - 1
	leafOwner = 20 // shift
	leafGroup = 1 << 30

	unit      = 8  // bytes
	nodeUnits = 12 // of a node

	directBits  = 24 // address bits that lead to a cell of the direct table
	directCells = 1 << 21
)

// node handles eight address bits, a quarter for each 64 of the 256 values.
type node [4]quarter

// quarter says for each of 64 values whether a node follows or which leaf. The
// nodes of a quarter lie side by side, so do its leaves: one for each run of
// equal ones. A node in between does not end a run.
type quarter struct {
	nodes    uint64 // a node follows
	runs     uint64 // a run of leaves begins
	leavesAt uint32 // place of the leaves
	nodesAt  uint32 // place of the nodes; the only field that changes in place
}

// trieView is a trie as readers see it.
type trieView struct {
	base   unsafe.Pointer // of the arena
	direct unsafe.Pointer // the direct table or nil
	root   atomic.Uint32  // cell
	def    atomic.Uint32  // word of the default route
	fallbackVersion
	_ [128]byte
}

// walk follows a cell to its leaf. key holds the address bits from the cell on,
// left-aligned, left says how many bytes of them are before those in lo.
func walk(base unsafe.Pointer, cell uint32, key, lo uint64, left int) uint32 {
	for cell&nodeFlag != 0 {
		digit := key >> 56
		key <<= 8
		if left--; left == 0 {
			key = lo
		}
		q := (*quarter)(unsafe.Add(base, uintptr(cell&^nodeFlag)*unit+uintptr(digit>>6)*unsafe.Sizeof(quarter{})))
		upTo := uint64(2)<<(digit&63) - 1
		if q.nodes>>(digit&63)&1 == 0 {
			run := bits.OnesCount64(q.runs & upTo)
			return load32(unsafe.Add(base, uintptr(q.leavesAt)*unit), uint32(run-1))
		}
		cell = nodeFlag | atomic.LoadUint32(&q.nodesAt) + uint32(bits.OnesCount64(q.nodes&upTo)-1)*nodeUnits
	}
	return cell
}

// wordOf turns a leaf into a result word.
func wordOf(leaf uint32) uint32 { return leaf&leafIndex | leaf&leafGroup<<1 }

// batch4 looks up IPv4 addresses.
func (t *trieView) batch4(dst, out []uint32) {
	out = out[:len(dst)]
	version := t.version.Load()
	base, root, def := t.base, t.root.Load(), t.def.Load()
	for i, a := range dst {
		w := wordOf(walk(base, root, uint64(a)<<32, 0, 8))
		if w == 0 {
			w = def
		}
		out[i] = w
	}
	if t.version.Load() != version {
		for i, a := range dst {
			out[i] = t.lookup(uint64(a)<<32, 0)
		}
	}
	runtime.KeepAlive(t)
}

// batch6 looks up IPv6 addresses.
func (t *trieView) batch6(hi, lo []uint64, out []uint32) {
	lo, out = lo[:len(hi)], out[:len(hi)]
	for len(hi) > 0 {
		n := min(len(hi), lanes)
		version := t.version.Load()
		if t.direct == nil {
			t.oneByOne(hi[:n], lo[:n], out[:n])
		} else {
			t.together(hi[:n], lo[:n], out[:n])
		}
		if t.version.Load() != version {
			t.again(hi[:n], lo[:n], out[:n])
		}
		hi, lo, out = hi[n:], lo[n:], out[n:]
	}
	runtime.KeepAlive(t)
}

// again is for lookups during which the fallback changed.
func (t *trieView) again(hi, lo []uint64, out []uint32) {
	lo, out = lo[:len(hi)], out[:len(hi)]
	for i, h := range hi {
		out[i] = t.lookup(h, lo[i])
	}
}

// oneByOne is for tables without a direct table, which are in the caches.
func (t *trieView) oneByOne(hi, lo []uint64, out []uint32) {
	base, root, def := t.base, t.root.Load(), t.def.Load()
	lo, out = lo[:len(hi)], out[:len(hi)]
	for i, h := range hi {
		w := wordOf(walk(base, root, h, lo[i], 8))
		if w == 0 {
			w = def
		}
		out[i] = w
	}
}

// lanes is the number of IPv6 lookups that go down together.
const lanes = 32

// together looks up as many addresses as there are lanes, or fewer. They go down
// node by node side by side, so that the processor waits for the memory of all
// of them at once and not, after each wrong guess of where one ends, for one. A
// leaf is loaded only when its lane has ended: until then just its address is
// noted, which needs no decision.
func (t *trieView) together(hi, lo []uint64, out []uint32) {
	base, direct := t.base, t.direct
	var key [lanes]uint64
	var place, lane [lanes]uint32
	var leaf [lanes]uintptr // offset from base; of no meaning before a node was visited
	lo, out = lo[:len(hi)], out[:len(hi)]
	n := 0
	for i, h := range hi {
		c := uint32(0)
		if h>>61 == 1 {
			c = load32(direct, uint32(h>>40)&(directCells-1))
		}
		out[i] = c
		key[i&(lanes-1)], place[i&(lanes-1)] = h<<directBits, c&^nodeFlag
		lane[n&(lanes-1)] = uint32(i)
		n += int(c >> 31)
	}
	for left := 8 - directBits/8; n > 0 && left > 0; left-- {
		m := 0
		for k := range n {
			i := lane[k&(lanes-1)] & (lanes - 1)
			digit := key[i] >> 56
			key[i] <<= 8
			q := (*quarter)(unsafe.Add(base, uintptr(place[i])*unit+uintptr(digit>>6)*unsafe.Sizeof(quarter{})))
			upTo := uint64(2)<<(digit&63) - 1
			nodes := q.nodes
			leaf[i] = uintptr(q.leavesAt)*unit + uintptr(bits.OnesCount64(q.runs&upTo))*4 - 4
			place[i] = atomic.LoadUint32(&q.nodesAt) + uint32(bits.OnesCount64(nodes&upTo)-1)*nodeUnits
			lane[m&(lanes-1)] = i
			m += int(nodes >> (digit & 63) & 1)
		}
		n = m
	}
	long := uint32(0) // lanes that need the lower half of the address
	for k := range n {
		long |= 1 << (lane[k&(lanes-1)] & (lanes - 1))
	}
	root, def := t.root.Load(), t.def.Load()
	for i, c := range out {
		if long>>(i&(lanes-1))&1 != 0 {
			c = walk(base, nodeFlag|place[i&(lanes-1)], lo[i], 0, 8)
		} else if c&nodeFlag != 0 {
			c = atomic.LoadUint32((*uint32)(unsafe.Add(base, leaf[i&(lanes-1)])))
		}
		if c == 0 {
			c = walk(base, root, hi[i], lo[i], 8)
		}
		w := wordOf(c)
		if w == 0 {
			w = def
		}
		out[i] = w
	}
}

// lookup looks up one address, left-aligned.
func (t *trieView) lookup(hi, lo uint64) uint32 {
	for {
		version := t.version.Load()
		leaf := uint32(0)
		if t.direct != nil && hi>>61 == 1 {
			leaf = walk(t.base, load32(t.direct, uint32(hi>>40)&(directCells-1)), hi<<directBits, lo, 8-directBits/8)
		}
		if leaf == 0 {
			leaf = walk(t.base, t.root.Load(), hi, lo, 8)
		}
		w := wordOf(leaf)
		if w == 0 {
			w = t.def.Load()
		}
		if t.version.Load() == version {
			runtime.KeepAlive(t)
			return w
		}
	}
}
