package skb

import (
	"fmt"
	"sort"
	"strings"
)

// Holder is a place that holds references to buffers: a ring, a neighbour's
// queue, a generator.
type Holder interface {
	// HolderName names the place in reports, such as "p0 tx".
	HolderName() string
	// EachHeld calls f once for every reference held.
	EachHeld(f func(Handle))
}

// Census says where the buffers are.
type Census struct {
	Total  int
	Free   int            // in the shared list
	Cached int            // in worker caches
	Places map[string]int // references by holder
}

// Census counts without checking. The workers must stand still.
func (a *Arena) Census(holders ...Holder) Census {
	c, _ := a.census(holders, nil)
	return c
}

func (a *Arena) census(holders []Holder, seen []uint32) (Census, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := Census{Total: int(a.count), Free: a.freeLen, Places: map[string]int{}}
	for _, k := range a.caches {
		c.Cached += k.Cached()
	}
	var bad error
	for _, p := range holders {
		name := p.HolderName()
		p.EachHeld(func(h Handle) {
			c.Places[name]++
			if seen != nil {
				if uint32(h) >= a.count {
					bad = fmt.Errorf("%s holds handle %d of %d buffers", name, h, a.count)
					return
				}
				seen[h]++
			}
		})
	}
	return c, bad
}

// Audit checks conservation: every buffer without a reference lies in the
// free list or a cache exactly once, and every reference is held by one of the
// holders. The workers must stand still. The error names what is wrong and, in
// a debug build, the owners of leaked buffers.
func (a *Arena) Audit(holders ...Holder) (Census, error) {
	seen := make([]uint32, a.count)
	c, err := a.census(holders, seen)
	if err != nil {
		return c, err
	}
	idle := make([]uint8, a.count)
	a.mu.Lock()
	defer a.mu.Unlock()
	mark := func(h Handle, where string) {
		if idle[h]++; idle[h] > 1 && err == nil {
			err = fmt.Errorf("buffer %d is free twice, the second time in %s", h, where)
		}
		if r := a.RefsAt(h); r != 0 && err == nil {
			err = fmt.Errorf("buffer %d lies in %s with %d references", h, where, r)
		}
	}
	for i := range a.freeLen {
		mark(a.free[(a.freeHead+i)%len(a.free)], "the shared list")
	}
	for _, k := range a.caches {
		for _, h := range k.stack[:k.n] {
			mark(h, "the cache of "+k.owner)
		}
		for _, h := range k.back[:k.nback] {
			mark(h, "the cache of "+k.owner)
		}
	}
	if err != nil {
		return c, err
	}
	lost := map[string]int{}
	for i := range a.count {
		h := Handle(i)
		refs := a.RefsAt(h)
		switch {
		case refs == 0 && idle[h] == 0:
			lost["no reference and in no list"]++
		case seen[h] > refs:
			return c, fmt.Errorf("buffer %d has %d references and is held %d times", h, refs, seen[h])
		case seen[h] < refs:
			lost[fmt.Sprintf("held by nobody, last owner %s", a.debugOwner(h))]++
		}
	}
	if len(lost) > 0 {
		var s []string
		for k, n := range lost {
			s = append(s, fmt.Sprintf("%d buffers %s", n, k))
		}
		sort.Strings(s)
		return c, fmt.Errorf("leak: %s", strings.Join(s, "; "))
	}
	return c, nil
}
