//go:build !race

package model

import "sync/atomic"

// publish32 and publish64 store what the other goroutine of a chip reads. On
// amd64 an atomic store is a locked exchange, which would be the dearest part
// of a frame; inline there is no other goroutine, and a plain aligned store is
// whole on every architecture.
func (c *Chip) publish32(p *uint32, v uint32) {
	if c.threaded {
		atomic.StoreUint32(p, v)
		return
	}
	*p = v
}

func (c *Chip) publish64(p *uint64, v uint64) {
	if c.threaded {
		atomic.StoreUint64(p, v)
		return
	}
	*p = v
}
