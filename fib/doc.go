// Package fib is the forwarding information base: longest-prefix match over
// IPv4 and IPv6 in any number of tables, next-hop groups with weights (ECMP),
// special routes, and the adjacencies packets are rewritten from. It knows no
// netlink, no packets and no configuration.
//
// # Words
//
// A [Route] is what the control side installs. Routes with the same table and
// prefix but another TOS or metric are candidates; the candidate with TOS 0
// and the lowest metric is the active one. Lookups know no TOS, so candidates
// with another TOS are kept, listed and never used to forward.
//
// A lookup gives a 32-bit result word. It is the index of an [Adjacency], or,
// when [GroupFlag] is set, the index of a multi-leg group which [Reader.Pick]
// turns into an adjacency index with the packet's flow hash. Index 0 is
// [AdjMiss], so a zeroed word is a miss.
//
// Adjacencies are shared: there is one per (kind, port, next-hop address), and
// all routes, groups and callers of [FIB.AcquireAdjacency] hold references to
// it. What the neighbour table learned about it (state, rewrite, MTU) lives as
// long as the last reference, whatever happens to single routes.
//
// # Writers
//
// All methods of [FIB] may be called from any goroutine; a mutex serialises
// them. [FIB.Replace] changes a route in one step: a lookup sees the old or the
// new next hops and never a gap. [FIB.Batch] collects many changes, which is cheaper,
// and says when they become visible in one step.
//
// # Readers
//
// Each poll loop owns one [Reader], which is for one goroutine only. Lookups
// take no lock, allocate nothing and never wait for a writer. A reader promises
// to call [Reader.Quiescent] once per batch, at a point where it holds no
// result word, no adjacency index and no *Adjacency from before; and to call
// [Reader.Offline] before it blocks and [Reader.Online] afterwards. An index
// that must live longer (a packet queued for a neighbour) needs a reference
// from AcquireAdjacency. A packet handed to another worker must be rewritten
// before the hand-over, because the other worker's quiescent points do not
// cover this one's indices.
//
// # Structures
//
// docs/fib.md draws them. In short: DIR-24-8 for IPv4 tables of some size, a
// direct table with popcount nodes for IPv6, the nodes alone for small tables of
// either family, the default routes beside them, all in place in memory outside
// the Go heap. Files named *lookup.go are what readers execute.
//
// # Reclamation
//
// Indices and all memory of the structures are reused, or given back to the
// system, only after every online reader has passed a quiescent point that
// began after they were unpublished. The writer advances an epoch whenever it
// retires something, a quiescent point copies the epoch into the reader, and
// what was retired in epoch e is free when the smallest reader epoch is e or
// later. Writer calls reclaim as they go; [FIB.Reclaim] does it on demand. An
// online reader which never passes a quiescent point therefore holds back reuse
// (see [Stats].Retired) but does no other harm. A lookup by a reader that is
// offline or closed is a grave mistake: it may hit memory that is not there any
// more, which ends the program. Records of adjacencies and groups are immutable
// and left to the garbage collector.
package fib
