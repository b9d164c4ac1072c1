//go:build !race

package skb

// storeRefs sets a reference count that nobody else can be changing. A plain
// aligned store is whole on every architecture; sync/atomic would make it a
// locked exchange on amd64.
func storeRefs(p *uint32, v uint32) { *p = v }
