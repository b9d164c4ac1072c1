package fib

import (
	"errors"
	"fmt"
	"iter"
	"net/netip"
)

// ErrFull is wrapped by errors that mean all indices of a kind are in use.
var ErrFull = errors.New("fib is full")

// adjKey is what makes two legs share an adjacency.
type adjKey struct {
	addr netip.Addr
	port uint16
	kind Kind
}

// adjInfo is the writer's side of one adjacency.
type adjInfo struct {
	key  adjKey
	refs uint32 // groups, paths and outside holders together
	held uint32 // outside holders alone
}

// initAdjacencies makes the adjacencies with fixed indices. They are never
// released.
func (f *FIB) initAdjacencies() {
	f.adj.init(&Adjacency{Kind: Miss, Index: AdjMiss})
	f.adjIndex = make(map[adjKey]uint32)
	for i, kind := range [numFixed]Kind{Miss, Blackhole, Unreachable, Prohibit} {
		idx, _ := f.adj.alloc()
		f.adj.set(idx, &Adjacency{Kind: kind, Index: uint32(i)})
		f.adjInfo = append(f.adjInfo, adjInfo{})
	}
}

// refAdj takes a reference to the adjacency of the key and makes it if needed.
func (f *FIB) refAdj(key adjKey) (uint32, error) {
	if idx, ok := f.adjIndex[key]; ok {
		f.adjInfo[idx].refs++
		return idx, nil
	}
	idx, ok := f.adj.alloc()
	if !ok {
		return 0, fmt.Errorf("%w: all %d adjacencies are in use: remove routes or neighbours", ErrFull, maxSlots)
	}
	if int(idx) == len(f.adjInfo) {
		f.adjInfo = append(f.adjInfo, adjInfo{})
	}
	f.adjInfo[idx] = adjInfo{key: key, refs: 1}
	f.adjIndex[key] = idx
	f.adj.set(idx, &Adjacency{Kind: key.kind, Port: key.port, NextHop: key.addr, Index: idx})
	return idx, nil
}

// unrefAdj gives a reference back. The record stays readable until the readers
// have passed a quiescent point.
func (f *FIB) unrefAdj(idx uint32) {
	if idx < numFixed {
		return
	}
	info := &f.adjInfo[idx]
	if info.refs--; info.refs == 0 {
		delete(f.adjIndex, info.key)
		f.adj.waiting++
		f.retire(&f.adj, uint64(idx))
	}
}

// known says whether idx is a referenced adjacency, not a fixed one.
func (f *FIB) known(idx uint32) bool {
	return idx >= numFixed && int(idx) < len(f.adjInfo) && f.adjInfo[idx].refs > 0
}

// AcquireAdjacency returns the index of the adjacency of a neighbour, the same
// one routes through that neighbour use, and holds a reference to it until
// ReleaseAdjacency. Zones are ignored, mapped IPv4 addresses count as IPv4. It
// returns AdjMiss when addr is not a unicast address or all indices are in use.
func (f *FIB) AcquireAdjacency(port uint16, addr netip.Addr) uint32 {
	addr = addr.Unmap().WithZone("")
	if !addr.IsValid() || addr.IsUnspecified() || addr.IsMulticast() {
		return AdjMiss
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	idx, err := f.refAdj(adjKey{addr: addr, port: port, kind: Forward})
	if err != nil {
		f.stats.Full++
		return AdjMiss
	}
	f.adjInfo[idx].held++
	return idx
}

// ReleaseAdjacency gives one reference of AcquireAdjacency back. Releasing what
// is not held changes nothing and is counted (Stats.Misuses); fixed indices are
// ignored.
func (f *FIB) ReleaseAdjacency(idx uint32) {
	if idx < numFixed {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.known(idx) || f.adjInfo[idx].held == 0 {
		f.stats.Misuses++
		return
	}
	f.adjInfo[idx].held--
	f.unrefAdj(idx)
	_ = f.finish() // nothing to publish but what could not be before
}

// FindAdjacency returns the index of an adjacency that exists, without taking a
// reference. addr is the zero Addr for Local and Connected.
func (f *FIB) FindAdjacency(kind Kind, port uint16, addr netip.Addr) (uint32, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	idx, ok := f.adjIndex[adjKey{addr: addr.Unmap().WithZone(""), port: port, kind: kind}]
	return idx, ok
}

// SetAdjacency copies the record, lets edit change the copy, and publishes it in
// one step. What makes the adjacency itself (Kind, Port, NextHop, Index) keeps
// its value whatever edit does. edit must not call the FIB. An index that is
// fixed or not in use is left alone and counted (Stats.Misuses).
func (f *FIB) SetAdjacency(idx uint32, edit func(*Adjacency)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.known(idx) {
		f.stats.Misuses++
		return
	}
	old := f.adj.get(idx)
	rec := new(Adjacency)
	*rec = *old
	edit(rec)
	rec.Kind, rec.Port, rec.NextHop, rec.Index = old.Kind, old.Port, old.NextHop, old.Index
	rec.RewriteLen = min(rec.RewriteLen, uint8(len(rec.Rewrite)))
	f.adj.set(idx, rec)
}

// Adjacencies yields the adjacencies in use, the fixed ones first, by index. It
// is a snapshot: the loop may call the FIB.
func (f *FIB) Adjacencies() iter.Seq[Adjacency] {
	return func(yield func(Adjacency) bool) {
		f.mu.Lock()
		list := make([]*Adjacency, 0, len(f.adjInfo))
		for i := range f.adjInfo {
			if i < numFixed || f.adjInfo[i].refs > 0 {
				list = append(list, f.adj.get(uint32(i)))
			}
		}
		f.mu.Unlock()
		for _, a := range list {
			if !yield(*a) {
				return
			}
		}
	}
}
