package neigh

import (
	"net/netip"
	"sync/atomic"
	"time"

	"gorouter/internal/inet"
)

// Counts of the table. Safe for concurrent use.
type Counts struct {
	Requests  atomic.Uint64 // questions asked
	Failures  atomic.Uint64 // neighbours that did not answer
	Learned   atomic.Uint64 // neighbours that became known
	Moved     atomic.Uint64 // known neighbours with a new address
	Locked    atomic.Uint64 // changes refused because the address was fresh
	Conflicts atomic.Uint64 // frames of others with an address of ours
	Unasked   atomic.Uint64 // answers about unknown neighbours
	Full      atomic.Uint64 // neighbours for which there was no room
	Evicted   atomic.Uint64 // neighbours that made room for others
	Collected atomic.Uint64 // stale neighbours forgotten because nobody used them
	Announced atomic.Uint64 // announcements of own addresses, defences included
}

// Stats is the table in numbers. The JSON names are an interface.
type Stats struct {
	States    map[string]int `json:"states"` // neighbours by state
	Requests  uint64         `json:"requests"`
	Failures  uint64         `json:"failures"`
	Learned   uint64         `json:"learned"`
	Moved     uint64         `json:"moved"`
	Locked    uint64         `json:"locked"`
	Conflicts uint64         `json:"conflicts"`
	Unasked   uint64         `json:"unasked"`
	Full      uint64         `json:"full"`
	Evicted   uint64         `json:"evicted"`
	Collected uint64         `json:"collected"`
	Announced uint64         `json:"announced"`
}

// Stats reads all counters. Every state but none is in the map, also those
// without a neighbour.
func (t *Table) Stats() Stats {
	c := &t.Counts
	s := Stats{
		States:   map[string]int{},
		Requests: c.Requests.Load(), Failures: c.Failures.Load(), Learned: c.Learned.Load(), Moved: c.Moved.Load(),
		Locked: c.Locked.Load(), Conflicts: c.Conflicts.Load(), Unasked: c.Unasked.Load(), Full: c.Full.Load(),
		Evicted: c.Evicted.Load(), Collected: c.Collected.Load(), Announced: c.Announced.Load(),
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := None + 1; i < numStates; i++ {
		s.States[i.String()] = t.states[i]
	}
	return s
}

// Neighbour is a copy of one entry, for people.
type Neighbour struct {
	Port  uint16
	Addr  netip.Addr
	MAC   inet.MAC // meaningless in the states without an address
	State State
	// Age is how long the state has lasted, Confirmed how long ago the address
	// was learned or confirmed (0 when it never was). Both are as of the latest
	// Tick or frame.
	Age, Confirmed time.Duration
	// Asked is the number of questions without an answer.
	Asked int
}

func (t *Table) copyOf(e *entry) Neighbour {
	n := Neighbour{Port: e.port, Addr: e.addr, MAC: e.mac, State: e.state, Age: time.Duration(t.now - e.since), Asked: e.asked}
	if e.state.Usable() {
		n.Confirmed = time.Duration(t.now - e.confirmed)
	}
	return n
}

// All is a copy of the table in no particular order.
func (t *Table) All() []Neighbour {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make([]Neighbour, 0, t.count)
	t.each(func(e *entry) { out = append(out, t.copyOf(e)) })
	return out
}

// Get is a copy of one entry; ok is false when there is none.
func (t *Table) Get(port uint16, addr netip.Addr) (n Neighbour, ok bool) {
	if !addr.Is4() {
		return n, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.find(port, addr)
	if e == nil {
		return n, false
	}
	return t.copyOf(e), true
}
