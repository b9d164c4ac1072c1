//go:build race

package skb

import "sync/atomic"

// storeRefs tells the race detector what storeRefs of other builds is to the
// machine: one whole 32-bit store.
func storeRefs(p *uint32, v uint32) { atomic.StoreUint32(p, v) }
