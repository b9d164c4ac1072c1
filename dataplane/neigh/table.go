// Package neigh is the neighbour table: which Ethernet address a next hop or
// an on-link host has, and the life cycle that finds it out.
//
// Each neighbour owns one adjacency of the FIB. What the table learns goes
// into that adjacency, so that a worker sees it in the record it looks up
// anyway, and a change costs one record however many routes use it.
//
// Whether a neighbour is used is asked only while it is stale: its adjacency
// then has the state fib.Stale, at which a worker notes the use in memory of
// its own (Uses) and sends the packet all the same.
//
// Find, Busy, Generation and Counts take no lock and may be called by any
// worker on the packet path. All other methods take the table's lock; workers
// call them only for ARP frames and for the first packet to a neighbour.
package neigh

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"sync/atomic"

	"gorouter/fib"
	"gorouter/internal/inet"
)

// Question is a request that the caller has to send.
type Question struct {
	Port uint16
	Addr netip.Addr
	To   inet.MAC // the known address, or broadcast
}

type entry struct {
	port uint16
	addr netip.Addr
	v4   uint32
	adj  uint32
	next atomic.Pointer[entry]

	// Guarded by the table's lock.
	state     State
	mac       inet.MAC
	since     int64 // when the state began
	confirmed int64 // when the address was last learned or confirmed
	due       int64 // when the state has to change or a question is repeated
	asked     int   // questions without an answer

	in         *list // the list it is on, or nil
	prev, succ *entry
}

const buckets = 4096

// Table is the neighbour table of a router.
type Table struct {
	Counts Counts

	fib  *fib.FIB
	opts Options
	gen  atomic.Uint64
	dry  atomic.Int64 // until then no new neighbour may be asked for

	mu      sync.Mutex
	now     int64 // the latest time that it was told
	count   int
	states  [numStates]int
	waiting list // without a usable address, the oldest first
	unused  list // stale, the longest unused first
	paid    int64
	macs    map[uint16]inet.MAC // of our own ports
	byAdj   []*entry
	hash    [buckets]atomic.Pointer[entry]
	random  func(n int64) int64 // 0 to n-1

	// Of Tick alone.
	cursor    int // next bucket to visit
	questions []Question
}

// New returns an empty table over a FIB. The options must be within the limits
// of OptionTable.
func New(f *fib.FIB, o Options) *Table {
	return &Table{fib: f, opts: o, macs: map[uint16]inet.MAC{}, random: rand.Int64N}
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

// add makes an entry of state None; nil when the FIB is full, or the table and
// none in it may go.
func (t *Table) add(port uint16, addr netip.Addr) *entry {
	if t.count >= t.opts.Max && !t.evict() {
		t.Counts.Full.Add(1)
		return nil
	}
	adj := t.fib.AcquireAdjacency(port, addr)
	if adj == fib.AdjMiss {
		t.Counts.Full.Add(1)
		return nil
	}
	e := &entry{port: port, addr: addr, v4: v4of(addr), adj: adj, since: t.now}
	head := &t.hash[bucket(port, e.v4)]
	e.next.Store(head.Load())
	head.Store(e)
	t.count++
	t.states[None]++
	for int(adj) >= len(t.byAdj) {
		t.byAdj = append(t.byAdj, nil)
	}
	t.byAdj[adj] = e
	return e
}

// remove unlinks an entry. Workers that still see it find an adjacency which
// is unresolved, until the FIB's readers have moved on.
func (t *Table) remove(e *entry) {
	t.become(e, None)
	p := &t.hash[bucket(e.port, e.v4)]
	for p.Load() != e {
		p = &p.Load().next
	}
	p.Store(e.next.Load())
	t.count--
	t.states[None]--
	t.byAdj[e.adj] = nil
	t.fib.ReleaseAdjacency(e.adj)
}

// become changes an entry's state, with all that hangs on it: the lists, the
// adjacency, and the packets that wait.
func (t *Table) become(e *entry, s State) {
	was := e.state
	t.states[was]--
	t.states[s]++
	e.state, e.since = s, t.now
	e.move(t.listOf(s))
	if was.shown() == s.shown() {
		return
	}
	t.publish(e)
	if !was.Usable() && s != Incomplete {
		t.gen.Add(1) // nothing that waits moves because somebody asks
	}
}

// publish writes the entry into its adjacency.
func (t *Table) publish(e *entry) {
	own := t.macs[e.port]
	t.fib.SetAdjacency(e.adj, func(a *fib.Adjacency) {
		a.State = e.state.shown()
		a.RewriteLen = 0
		if e.state.Usable() {
			a.RewriteLen = inet.EthHeaderLen
			copy(a.Rewrite[0:], e.mac[:])
			copy(a.Rewrite[6:], own[:])
			a.Rewrite[12], a.Rewrite[13] = inet.EtherIPv4>>8, inet.EtherIPv4&0xff
		}
	})
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
		if e.port == port && e.state.Usable() {
			t.publish(e)
		}
	})
}

// FlushPort forgets what was learned by a port: its link went down, and whoever
// is behind it afterwards may be somebody else. Configured neighbours stay.
func (t *Table) FlushPort(port uint16) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.each(func(e *entry) {
		if e.port == port && e.state != Permanent {
			t.remove(e)
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
			return fmt.Errorf("neighbour %v: the table is full at %d entries: raise neigh.max", addr, t.count)
		}
	}
	changed := e.mac != mac && e.state.shown() == fib.Reachable
	e.mac, e.confirmed, e.asked = mac, t.now, 0
	t.become(e, Permanent)
	if changed {
		t.publish(e)
	}
	return nil
}

// Delete forgets a neighbour, a configured one too; it reports whether there
// was one.
func (t *Table) Delete(port uint16, addr netip.Addr) bool {
	if !addr.Is4() {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.find(port, addr)
	if e != nil {
		t.remove(e)
	}
	return e != nil
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

// tell takes in what time it is. Workers differ a little in that.
func (t *Table) tell(now int64) { t.now = max(t.now, now) }
