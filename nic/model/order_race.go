//go:build race

package model

import "sync/atomic"

// publish32 and publish64 tell the race detector what the stores of other
// builds are to the machine: whole.
func (c *Chip) publish32(p *uint32, v uint32) { atomic.StoreUint32(p, v) }

func (c *Chip) publish64(p *uint64, v uint64) { atomic.StoreUint64(p, v) }
