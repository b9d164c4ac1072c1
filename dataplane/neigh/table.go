// Package neigh is the neighbour table: which Ethernet address a next hop or
// an on-link host has, and the life cycle that finds it out.
//
// Each neighbour owns one adjacency of the FIB. What the table learns goes
// into that adjacency, so that a worker sees it in the record it looks up
// anyway, and a change costs one record however many routes use it.
//
// Find, Generation and Counts take no lock and may be called by any worker on
// the packet path. All other methods take the table's lock; workers call them
// only for ARP frames and for the first packet to a neighbour.
package neigh

import (
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"gorouter/fib"
	"gorouter/internal/inet"
)

// State of a neighbour, as in RFC 4861 section 7.3.2.
type State uint8

const (
	// Incomplete: asked for, no answer yet.
	Incomplete State = iota
	// Reachable: confirmed not long ago.
	Reachable
	// Stale: confirmed too long ago to be sure; still used.
	Stale
	// Probe: being asked again, still used.
	Probe
	// Failed: did not answer; remembered so that packets are refused at once.
	Failed
	// Permanent: configured, never asked for.
	Permanent
)

// String is the state's name in lower case.
func (s State) String() string {
	return [...]string{"incomplete", "reachable", "stale", "probe", "failed", "permanent"}[s]
}

// Options of the table.
type Options struct {
	Max        int           // neighbours in all
	Reachable  time.Duration // how long an answer is believed
	Retransmit time.Duration // between two questions
	Unicast    int           // questions to the known address before asking everybody
	Broadcast  int           // questions to everybody before giving up
	Negative   time.Duration // how long a failure is remembered
}

// DefaultOptions are the values of a Linux host, with a negative cache.
func DefaultOptions() Options {
	return Options{Max: 65536, Reachable: 30 * time.Second, Retransmit: time.Second,
		Unicast: 3, Broadcast: 3, Negative: 3 * time.Second}
}

// Question is a request that the caller has to send.
type Question struct {
	Port uint16
	Addr netip.Addr
	To   inet.MAC // the known address, or broadcast
}

// Neighbour is a copy of one entry, for people.
type Neighbour struct {
	Port  uint16
	Addr  netip.Addr
	MAC   inet.MAC
	State State
}

// Counts of the table. Safe for concurrent use.
type Counts struct {
	Requests, Failures, Learned, Moved, Conflicts, Unasked, Full atomic.Uint64
}

type entry struct {
	port uint16
	addr netip.Addr
	v4   uint32
	adj  uint32
	next atomic.Pointer[entry]

	// Guarded by the table's lock.
	state State
	mac   inet.MAC
	due   int64 // when the state has to change or a question is repeated
	asked int   // questions without an answer
}

const buckets = 4096

// Table is the neighbour table of a router.
type Table struct {
	Counts Counts

	fib  *fib.FIB
	opts Options
	gen  atomic.Uint64

	mu    sync.Mutex
	count int
	macs  map[uint16]inet.MAC // of our own ports
	hash  [buckets]atomic.Pointer[entry]

	// Of Tick alone.
	cursor    int // next bucket to visit
	questions []Question
}

// New returns an empty table over a FIB.
func New(f *fib.FIB, o Options) *Table {
	return &Table{fib: f, opts: o, macs: map[uint16]inet.MAC{}}
}

// Generation changes whenever a neighbour became usable or failed, so that
// packets which wait for one have to be looked at.
func (t *Table) Generation() uint64 { return t.gen.Load() }

func bucket(port uint16, v4 uint32) uint32 {
	return (v4 ^ uint32(port)<<20) * 0x9e3779b1 >> 20
}

// Find returns the adjacency of an on-link IPv4 host (address in host order).
func (t *Table) Find(port uint16, v4 uint32) (adj uint32, ok bool) {
	for e := t.hash[bucket(port, v4)].Load(); e != nil; e = e.next.Load() {
		if e.v4 == v4 && e.port == port {
			return e.adj, true
		}
	}
	return 0, false
}

func v4of(a netip.Addr) uint32 {
	b := a.As4()
	return uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
}

func (t *Table) find(port uint16, addr netip.Addr) *entry {
	for e := t.hash[bucket(port, v4of(addr))].Load(); e != nil; e = e.next.Load() {
		if e.addr == addr && e.port == port {
			return e
		}
	}
	return nil
}

// add makes an entry; nil when the table or the FIB is full.
func (t *Table) add(port uint16, addr netip.Addr) *entry {
	if t.count >= t.opts.Max {
		t.Counts.Full.Add(1)
		return nil
	}
	adj := t.fib.AcquireAdjacency(port, addr)
	if adj == fib.AdjMiss {
		t.Counts.Full.Add(1)
		return nil
	}
	e := &entry{port: port, addr: addr, v4: v4of(addr), adj: adj}
	head := &t.hash[bucket(port, e.v4)]
	e.next.Store(head.Load())
	head.Store(e)
	t.count++
	return e
}

// remove unlinks an entry. Workers that still see it find an adjacency which
// is unresolved, until the FIB's readers have moved on.
func (t *Table) remove(e *entry) {
	t.publish(e, fib.Unresolved)
	p := &t.hash[bucket(e.port, e.v4)]
	for p.Load() != e {
		p = &p.Load().next
	}
	p.Store(e.next.Load())
	t.count--
	t.fib.ReleaseAdjacency(e.adj)
}

// publish writes the entry into its adjacency.
func (t *Table) publish(e *entry, s fib.State) {
	own := t.macs[e.port]
	t.fib.SetAdjacency(e.adj, func(a *fib.Adjacency) {
		a.State = s
		a.RewriteLen = 0
		if s == fib.Reachable {
			a.RewriteLen = inet.EthHeaderLen
			copy(a.Rewrite[0:], e.mac[:])
			copy(a.Rewrite[6:], own[:])
			a.Rewrite[12], a.Rewrite[13] = inet.EtherIPv4>>8, inet.EtherIPv4&0xff
		}
	})
	if s != fib.Incomplete {
		t.gen.Add(1) // nothing that waits moves because somebody asks
	}
}

// SetPortMAC says which address our own port has; adjacencies over the port
// are rewritten.
func (t *Table) SetPortMAC(port uint16, mac inet.MAC) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.macs[port] == mac {
		return
	}
	t.macs[port] = mac
	t.each(func(e *entry) {
		if e.port == port && e.state != Incomplete && e.state != Failed {
			t.publish(e, fib.Reachable)
		}
	})
}

// SetPermanent configures a neighbour.
func (t *Table) SetPermanent(port uint16, addr netip.Addr, mac inet.MAC) error {
	if !addr.Is4() {
		return fmt.Errorf("neighbour %v: only IPv4 neighbours are supported", addr)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.find(port, addr)
	if e == nil {
		if e = t.add(port, addr); e == nil {
			return fmt.Errorf("neighbour %v: the table is full at %d entries", addr, t.count)
		}
	}
	e.mac, e.state = mac, Permanent
	t.publish(e, fib.Reachable)
	return nil
}

// each calls f for every entry; f may remove it.
func (t *Table) each(f func(*entry)) {
	for i := range t.hash {
		for e := t.hash[i].Load(); e != nil; {
			next := e.next.Load()
			f(e)
			e = next
		}
	}
}

// All is a copy of the table in no particular order.
func (t *Table) All() []Neighbour {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []Neighbour
	t.each(func(e *entry) {
		out = append(out, Neighbour{Port: e.port, Addr: e.addr, MAC: e.mac, State: e.state})
	})
	return out
}
