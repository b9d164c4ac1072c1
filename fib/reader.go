package fib

import (
	"encoding/binary"
	"net/netip"
	"sync/atomic"
)

// offline is a reader epoch later than any real one.
const offline = ^uint64(0)

// TableRef names one table for lookups. It is resolved once, when ports are
// configured, and stays valid for the life of the FIB, also when the table is
// emptied and filled again. The zero TableRef finds nothing.
type TableRef struct{ t *table }

// Reader does lookups for one worker. All methods belong to the goroutine that
// owns it; none but NewReader, Table and Close takes a lock. The package
// comment states its duties.
type Reader struct {
	_      [128]byte // seen is written once per batch: keep its line private
	seen   atomic.Uint64
	epoch  *atomic.Uint64
	adj    *slots[Adjacency]
	groups *slots[buckets]
	f      *FIB
	Hasher
	_ [128]byte
}

// NewReader registers a reader. It is online from the start.
func (f *FIB) NewReader() *Reader {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := &Reader{epoch: &f.epoch, adj: &f.adj, groups: &f.groups, f: f, Hasher: f.Hasher}
	r.seen.Store(f.epoch.Load())
	f.readers = append(f.readers, r)
	return r
}

// Close takes the reader out of the FIB. It must not be used afterwards.
// Closing twice does nothing.
func (r *Reader) Close() {
	r.f.mu.Lock()
	defer r.f.mu.Unlock()
	r.seen.Store(offline)
	for i, o := range r.f.readers {
		if o == r {
			r.f.readers = append(r.f.readers[:i], r.f.readers[i+1:]...)
			break
		}
	}
	r.f.reclaim()
}

// Quiescent declares that the reader holds nothing from earlier lookups.
// Without a change since the last call it only reads.
func (r *Reader) Quiescent() {
	if e := r.epoch.Load(); e != r.seen.Load() {
		r.seen.Store(e)
	}
}

// Offline says that no lookups follow until Online: call it before blocking.
// It implies Quiescent.
func (r *Reader) Offline() { r.seen.Store(offline) }

// Online ends Offline.
func (r *Reader) Online() { r.seen.Store(r.epoch.Load()) }

// Table resolves a table number, for use in lookups. A table that does not
// exist yet is made, empty. It takes the writer lock: not for the packet path.
func (r *Reader) Table(id uint32) TableRef { return r.f.Table(id) }

// Lookup4Batch looks up dst[i], IPv4 addresses in host order, into out[i]. Each
// answer is the state before or after every single change; see FIB.Batch for
// when many changes are one step. out must not be shorter than dst.
func (r *Reader) Lookup4Batch(tab TableRef, dst, out []uint32) {
	v := tab.views().v4.Load()
	switch {
	case v.narrow != nil:
		v.narrow.batch(dst, out)
	case v.wide != nil:
		v.wide.batch(dst, out)
	default:
		v.trie.batch4(dst, out)
	}
}

// Lookup6Batch looks up the IPv6 addresses with upper halves hi and lower
// halves lo, both in host order, into out; otherwise it is like Lookup4Batch.
// lo and out must not be shorter than hi.
func (r *Reader) Lookup6Batch(tab TableRef, hi, lo []uint64, out []uint32) {
	tab.views().v6.Load().trie.batch6(hi, lo, out)
}

// Lookup looks up one address. Zones are ignored, mapped IPv4 addresses are
// looked up as IPv4, the zero Addr is a miss.
func (r *Reader) Lookup(tab TableRef, addr netip.Addr) uint32 {
	addr = addr.Unmap()
	switch {
	case addr.Is4():
		b := addr.As4()
		return tab.views().v4.Load().lookup4(binary.BigEndian.Uint32(b[:]))
	case addr.Is6():
		b := addr.As16()
		return tab.views().v6.Load().trie.lookup(binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:]))
	}
	return AdjMiss
}

func (t TableRef) views() *tableViews {
	if t.t == nil {
		return noViews
	}
	return &t.t.tableViews
}

// Pick turns a result word into an adjacency index: of a group it takes the leg
// that the flow hash falls on. A group without a live leg gives AdjUnreachable.
func (r *Reader) Pick(result, hash uint32) uint32 {
	if result&GroupFlag == 0 {
		return result
	}
	return r.groups.get(result).pick(hash)
}

// Adjacency returns the present record of an index. It is never nil: an index
// that is not in use gives the Miss record.
func (r *Reader) Adjacency(idx uint32) *Adjacency { return r.adj.get(idx) }
