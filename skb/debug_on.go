//go:build skbdebug

package skb

import (
	"fmt"
	"sync"
	"unsafe"
)

// Debug reports whether the package was built with the tag skbdebug.
const Debug = true

const debugEnabled = true

const poison = 0xdb

type debugState struct {
	mu    sync.Mutex
	owner []string
	freed []bool
	dirty []bool // never freed yet, so not poisoned
}

func (d *debugState) init(n int) {
	d.owner = make([]string, n)
	d.freed = make([]bool, n)
	d.dirty = make([]bool, n)
	for i := range d.freed {
		d.freed[i], d.dirty[i] = true, true
	}
}

func (a *Arena) whole(h Handle) []byte {
	return unsafe.Slice((*byte)(a.Start(h)), a.Stride())
}

func (a *Arena) debugFail(h Handle, what string) {
	owner := "nobody"
	if uint32(h) < a.count {
		owner = a.debugOwner(h)
	}
	panic(fmt.Sprintf("skb: buffer %d: %s (last owner: %s)", h, what, owner))
}

func (a *Arena) debugUse(h Handle) {
	if uint32(h) >= a.count {
		a.debugFail(h, "no such buffer")
	}
	a.debug.mu.Lock()
	freed := a.debug.freed[h]
	a.debug.mu.Unlock()
	if freed {
		a.debugFail(h, "use after free")
	}
}

func (a *Arena) debugAlloc(h Handle, owner string) {
	d := &a.debug
	d.mu.Lock()
	freed, poisoned := d.freed[h], !d.dirty[h]
	d.mu.Unlock()
	if !freed {
		a.debugFail(h, "handed out while in use")
	}
	if poisoned {
		for i, b := range a.whole(h) {
			if b != poison {
				a.debugFail(h, fmt.Sprintf("byte %d was written after free", i))
			}
		}
	}
	d.mu.Lock()
	d.freed[h], d.dirty[h] = false, false
	d.owner[h] = owner
	d.mu.Unlock()
}

func (a *Arena) debugFree(h Handle, owner string) {
	d := &a.debug
	if uint32(h) >= a.count {
		a.debugFail(h, "free of no such buffer")
	}
	d.mu.Lock()
	freed := d.freed[h]
	d.mu.Unlock()
	if freed {
		a.debugFail(h, "double free by "+owner)
	}
}

func (a *Arena) debugFreed(h Handle, owner string) {
	d := &a.debug
	w := a.whole(h)
	for i := range w {
		w[i] = poison
	}
	d.mu.Lock()
	d.freed[h] = true
	d.owner[h] = owner
	d.mu.Unlock()
}

func (a *Arena) debugOwner(h Handle) string {
	a.debug.mu.Lock()
	defer a.debug.mu.Unlock()
	o := a.debug.owner[h]
	switch {
	case o == "":
		return "nobody"
	case a.debug.freed[h]:
		return o + ", who freed it"
	}
	return o
}

// SetOwner notes in a debug build who holds the buffer now.
func (a *Arena) SetOwner(h Handle, owner string) {
	a.debug.mu.Lock()
	a.debug.owner[h] = owner
	a.debug.mu.Unlock()
}
