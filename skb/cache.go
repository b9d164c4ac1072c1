package skb

import (
	"sync/atomic"
	"unsafe"
)

// Cache is a worker's own stock of free buffers. It exchanges whole batches
// with the arena's shared list. One goroutine at a time may use it.
//
// LIFO order keeps one stack: what was freed last is warm and goes out first.
// FIFO order keeps what comes in apart from what goes out, so that a buffer is
// reused only after all others have been.
type Cache struct {
	a     *Arena
	owner string
	stack []Handle // free buffers to hand out, next one last
	n     int
	back  []Handle // FIFO only: freed buffers on their way to the shared list
	nback int
	fifo  bool
	batch int

	// Counts that a cost model prices; owned by the worker.
	Allocs, Frees, Failed uint64
}

// NewCache makes a cache. The owner's name appears in leak reports.
func (a *Arena) NewCache(owner string) *Cache {
	c := &Cache{a: a, owner: owner, batch: a.opts.CacheSize, fifo: a.opts.AllocOrder == OrderFIFO}
	c.stack = make([]Handle, 2*c.batch)
	c.back = make([]Handle, c.batch)
	a.mu.Lock()
	a.caches = append(a.caches, c)
	a.mu.Unlock()
	return c
}

// Arena is the arena whose buffers the cache holds.
func (c *Cache) Arena() *Arena { return c.a }

// Alloc takes a free buffer: one reference, empty, the frame starting at the
// arena's headroom; flags, transport offset, flow hash and sequence number are
// zero, the other metadata is whatever it was. None when the arena is
// exhausted.
func (c *Cache) Alloc() Handle {
	if c.n == 0 {
		if !c.refill() {
			c.Failed++
			return None
		}
	}
	c.n--
	h := c.stack[c.n]
	c.Allocs++
	c.prepare(h)
	return h
}

// AllocBatch fills dst with free buffers, as Alloc would one after the other,
// and returns how many there were. What is missing counts as failed.
func (c *Cache) AllocBatch(dst []Handle) int {
	n := 0
	for n < len(dst) && (c.n > 0 || c.refill()) {
		k := min(len(dst)-n, c.n)
		c.n -= k
		for i, h := range c.stack[c.n : c.n+k] {
			c.prepare(h)
			dst[n+k-1-i] = h
		}
		n += k
	}
	c.Allocs += uint64(n)
	c.Failed += uint64(len(dst) - n)
	return n
}

// prepare makes a free buffer one that is held once.
func (c *Cache) prepare(h Handle) {
	if debugEnabled {
		c.a.debugAlloc(h, c.owner)
	}
	m := (*Meta)(unsafe.Add(c.a.meta, uintptr(h)*MetaSize))
	storeRefs(&m.refs, 1)
	m.Data = uint16(c.a.opts.Headroom)
	m.Len = 0
	m.Flags = 0
	m.L4 = 0
	m.Hash = 0
	m.Seq = 0
}

// Free gives one reference back; the last one frees the buffer.
func (c *Cache) Free(h Handle) {
	if c.release(h) {
		c.put(h)
	}
}

// release counts one reference down and reports whether it was the last.
func (c *Cache) release(h Handle) bool {
	if debugEnabled {
		c.a.debugFree(h, c.owner)
	}
	m := (*Meta)(unsafe.Add(c.a.meta, uintptr(h)*MetaSize))
	// The load is atomic because another holder may count down beside us; a
	// count of one means that nobody else is left to.
	if atomic.LoadUint32(&m.refs) == 1 {
		storeRefs(&m.refs, 0)
		return true
	}
	return atomic.AddUint32(&m.refs, ^uint32(0)) == 0
}

func (c *Cache) put(h Handle) {
	c.Frees++
	if debugEnabled {
		c.a.debugFreed(h, c.owner)
	}
	if c.fifo {
		if c.nback == len(c.back) {
			c.a.give(c.back[:c.nback])
			c.nback = 0
		}
		c.back[c.nback] = h
		c.nback++
		return
	}
	if c.n == len(c.stack) {
		c.spill()
	}
	c.stack[c.n] = h
	c.n++
}

// FreeBatch frees every handle of a slice.
func (c *Cache) FreeBatch(hs []Handle) {
	for _, h := range hs {
		if c.release(h) {
			c.put(h)
		}
	}
}

// refill takes a batch from the shared list, or what was freed here when that
// list is empty.
func (c *Cache) refill() bool {
	if c.n = c.a.take(c.stack[:c.batch]); c.n > 0 {
		return true
	}
	for c.nback > 0 {
		c.nback--
		c.stack[c.n] = c.back[c.nback]
		c.n++
	}
	return c.n > 0
}

// spill gives the coldest half of the stack to the shared list.
func (c *Cache) spill() {
	c.a.give(c.stack[:c.batch])
	c.n = copy(c.stack, c.stack[c.batch:c.n])
}

// Flush returns every buffer to the shared list, for a worker that stops.
func (c *Cache) Flush() {
	c.a.give(c.stack[:c.n])
	c.a.give(c.back[:c.nback])
	c.n, c.nback = 0, 0
}

// Cached is the number of free buffers in the cache. Only the owner may ask
// while the worker runs.
func (c *Cache) Cached() int { return c.n + c.nback }

// take fills dst from the shared list and reports how many there were.
func (a *Arena) take(dst []Handle) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := min(len(dst), a.freeLen)
	if a.opts.AllocOrder == OrderFIFO {
		// A cache hands out from the end, so the oldest goes there.
		for i := n - 1; i >= 0; i-- {
			dst[i] = a.free[a.freeHead]
			a.freeHead++
			if a.freeHead == len(a.free) {
				a.freeHead = 0
			}
		}
	} else {
		for i := n - 1; i >= 0; i-- {
			a.freeLen--
			dst[i] = a.free[(a.freeHead+a.freeLen)%len(a.free)]
		}
		a.freeLen += n
	}
	a.freeLen -= n
	return n
}

// give appends handles to the shared list.
func (a *Arena) give(hs []Handle) {
	if len(hs) == 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, h := range hs {
		a.free[(a.freeHead+a.freeLen)%len(a.free)] = h
		a.freeLen++
	}
}

// SharedFree is the number of buffers in the shared list. Safe for concurrent
// use.
func (a *Arena) SharedFree() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.freeLen
}
