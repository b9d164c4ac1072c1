package neigh

import (
	"net/netip"
	"testing"
	"time"

	"pgregory.net/rapid"

	"gorouter/fib"
	"gorouter/internal/inet"
)

// modelEntry is a neighbour as a plain map holds it.
type modelEntry struct {
	state     State
	mac       inet.MAC
	due       int64
	since     int64
	confirmed int64
	asked     int
	rank      int // order of becoming unresolved, or stale
}

type modelKey struct {
	port uint16
	addr netip.Addr
}

// machine compares the table with a map after every step.
type machine struct {
	fib    *fib.FIB
	reader *fib.Reader
	tab    *Table
	opts   Options
	now    int64
	model  map[modelKey]*modelEntry
	macs   [2]inet.MAC
	rank   int
}

func (m *machine) key(t *rapid.T) modelKey {
	return modelKey{uint16(rapid.IntRange(0, 1).Draw(t, "port")),
		netip.AddrFrom4([4]byte{10, 0, 0, byte(rapid.IntRange(1, 4).Draw(t, "host"))})}
}

func drawMAC(t *rapid.T) inet.MAC {
	return inet.MAC{2, 0, 0, 0, 0, byte(rapid.IntRange(1, 3).Draw(t, "mac"))}
}

// group says who makes room: 0 first, then 1; others never.
func group(s State) int {
	switch s {
	case Incomplete, Failed:
		return 0
	case Stale:
		return 1
	}
	return 2
}

// set changes an entry's state in the model.
func (m *machine) set(e *modelEntry, s State) {
	if group(e.state) != group(s) || e.rank == 0 {
		m.rank++
		e.rank = m.rank
	}
	e.state, e.since = s, m.now
}

// fresh makes an entry in the model, in place of another if need be; nil when
// there is no room.
func (m *machine) fresh(k modelKey) *modelEntry {
	if len(m.model) >= m.opts.Max {
		var worst *modelEntry
		var at modelKey
		for k, e := range m.model {
			if group(e.state) == 2 {
				continue
			}
			if worst == nil || group(e.state) < group(worst.state) || group(e.state) == group(worst.state) && e.rank < worst.rank {
				worst, at = e, k
			}
		}
		if worst == nil {
			return nil
		}
		delete(m.model, at)
	}
	m.model[k] = &modelEntry{}
	return m.model[k]
}

func (m *machine) Need(t *rapid.T) {
	k := m.key(t)
	known := m.model[k] != nil
	_, q, ask, ok := m.tab.Need(k.port, k.addr, m.now)
	if known {
		if ask || !ok {
			t.Fatalf("need %v: ask %v, ok %v", k, ask, ok)
		}
		return
	}
	e := m.fresh(k)
	if ask != (e != nil) || ok != (e != nil) {
		t.Fatalf("need %v: ask %v, ok %v", k, ask, ok)
	}
	if ask {
		if q != (Question{k.port, k.addr, inet.Broadcast}) {
			t.Fatalf("question %+v", q)
		}
		m.set(e, Incomplete)
		e.asked, e.due = 1, m.now+int64(m.opts.Retransmit)
	}
}

func (m *machine) Hear(t *rapid.T) {
	k := m.key(t)
	h := Heard{Port: k.port, Addr: k.addr, MAC: drawMAC(t), Reply: rapid.Bool().Draw(t, "reply"),
		ForUs: rapid.Bool().Draw(t, "forUs"), Gratuitous: rapid.Bool().Draw(t, "gratuitous")}
	e := m.model[k]
	if e == nil && !h.Reply && h.ForUs {
		e = m.fresh(k)
	}
	want := e != nil && e.state != Permanent
	known := want && group(e.state) != 0 && e.state != None
	if known && e.mac != h.MAC && !h.Gratuitous && m.now < e.confirmed+int64(m.opts.Lock) {
		want = false
	}
	if got := m.tab.Hear(h, m.now); got != want {
		t.Fatalf("hear %+v: %v", h, got)
	}
	if !want {
		return
	}
	answer := h.Reply && h.ForUs
	switch {
	case answer:
		m.set(e, Reachable)
		e.due = m.now + int64(m.opts.Reachable)
	case !known || e.mac != h.MAC:
		m.set(e, Stale)
	default:
		return
	}
	e.mac, e.asked, e.confirmed = h.MAC, 0, m.now
}

func (m *machine) Used(t *rapid.T) {
	k := m.key(t)
	adj, ok := m.tab.Find(k.port, v4of(k.addr))
	if !ok {
		return
	}
	m.tab.Used(adj, m.now)
	if e := m.model[k]; e.state == Stale {
		m.set(e, Delay)
		e.due = m.now + int64(m.opts.Delay)
	}
}

func (m *machine) SetPermanent(t *rapid.T) {
	k := m.key(t)
	mac := drawMAC(t)
	err := m.tab.SetPermanent(k.port, k.addr, mac)
	e := m.model[k]
	if e == nil {
		e = m.fresh(k)
	}
	if (err == nil) != (e != nil) {
		t.Fatalf("permanent %v: %v", k, err)
	}
	if err == nil {
		m.set(e, Permanent)
		e.mac, e.asked = mac, 0
	}
}

func (m *machine) Delete(t *rapid.T) {
	k := m.key(t)
	if got := m.tab.Delete(k.port, k.addr); got != (m.model[k] != nil) {
		t.Fatalf("delete %v: %v", k, got)
	}
	delete(m.model, k)
}

func (m *machine) FlushPort(t *rapid.T) {
	p := uint16(rapid.IntRange(0, 1).Draw(t, "port"))
	m.tab.FlushPort(p)
	for k, e := range m.model {
		if k.port == p && e.state != Permanent {
			delete(m.model, k)
		}
	}
}

func (m *machine) SetPortMAC(t *rapid.T) {
	p := rapid.IntRange(0, 1).Draw(t, "port")
	m.macs[p] = drawMAC(t)
	m.tab.SetPortMAC(uint16(p), m.macs[p])
}

// Tick has time pass. The table visits entries in an order that the model does
// not know, so entries that become ready for removal at the same moment are told
// apart by nothing later.
func (m *machine) Tick(t *rapid.T) {
	m.now += int64(rapid.IntRange(0, 40).Draw(t, "quarters")) * int64(time.Second/4)
	got := map[Question]int{}
	m.tab.Tick(m.now, func(q Question) { got[q]++ })
	m.reader.Quiescent()
	want := map[Question]int{}
	for k, e := range m.model {
		ask := func(to inet.MAC) {
			e.asked++
			e.due = m.now + int64(m.opts.Retransmit)
			want[Question{k.port, k.addr, to}]++
		}
		fail := func() {
			m.set(e, Failed)
			e.due = m.now + int64(m.opts.Negative)
		}
		unused := m.opts.GCStale
		if m.opts.GCSoft == 0 {
			unused = min(unused, 5*time.Second)
		}
		switch {
		case e.state == Permanent:
		case e.state == Stale:
			if m.opts.GCMin == 0 && m.now-e.since >= int64(unused) {
				delete(m.model, k)
			}
		case m.now < e.due:
		case e.state == Failed:
			delete(m.model, k)
		case e.state == Incomplete && e.asked >= m.opts.Broadcast:
			fail()
		case e.state == Incomplete:
			ask(inet.Broadcast)
		case e.state == Reachable:
			m.set(e, Stale)
		default:
			if e.state == Delay {
				m.set(e, Probe)
				e.asked = 0
			}
			switch {
			case e.asked < m.opts.Unicast:
				ask(e.mac)
			case e.asked < m.opts.Unicast+m.opts.Broadcast:
				ask(inet.Broadcast)
			default:
				fail()
			}
		}
	}
	if len(got) != len(want) {
		t.Fatalf("asked %v, want %v", got, want)
	}
	for q := range want {
		if got[q] != 1 {
			t.Fatalf("asked %v, want %v", got, want)
		}
	}
	m.rerank()
}

// rerank takes the order of the lists from the table, where several entries
// entered one in the same Tick; that each holds the right ones is checked here.
func (m *machine) rerank() {
	for _, l := range []*list{&m.tab.waiting, &m.tab.unused} {
		for e := l.first; e != nil; e = e.succ {
			m.rank++
			m.model[modelKey{e.port, e.addr}].rank = m.rank
		}
	}
}

func (m *machine) Check(t *rapid.T) {
	all := m.tab.All()
	if len(all) != len(m.model) {
		t.Fatalf("%d entries %v, want %d", len(all), all, len(m.model))
	}
	seen := map[uint32]bool{}
	states := map[string]int{}
	for _, n := range all {
		states[n.State.String()]++
		e := m.model[modelKey{n.Port, n.Addr}]
		if e == nil || e.state != n.State || e.asked != n.Asked || (n.State.Usable() && e.mac != n.MAC) || n.Age != time.Duration(m.now-e.since) {
			t.Fatalf("%+v, want %+v", n, e)
		}
		adj, ok := m.tab.Find(n.Port, v4of(n.Addr))
		a := m.reader.Adjacency(adj)
		if !ok || seen[adj] || a.Port != n.Port || a.NextHop != n.Addr {
			t.Fatalf("%+v has adjacency %d %+v", n, adj, a)
		}
		seen[adj] = true
		want := fib.Reachable
		switch n.State {
		case Incomplete:
			want = fib.Incomplete
		case Failed:
			want = fib.Failed
		case Stale:
			want = fib.Stale
		}
		if a.State != want {
			t.Fatalf("%+v: adjacency is %v", n, a.State)
		}
		if n.State.Usable() && (inet.MAC(a.Rewrite[0:6]) != n.MAC || inet.MAC(a.Rewrite[6:12]) != m.macs[n.Port] || a.RewriteLen != 14) {
			t.Fatalf("%+v: rewrite %x", n, a.Rewrite)
		}
	}
	for name, n := range m.tab.Stats().States {
		if states[name] != n {
			t.Fatalf("%d %s counted, there are %d", n, name, states[name])
		}
	}
	if s := m.fib.Stats(); s.Misuses != 0 || s.Adjacencies != len(all)+4 {
		t.Fatalf("%d adjacencies for %d neighbours, %d misuses", s.Adjacencies, len(all), s.Misuses)
	}
	// The lists hold what may make room, and nothing else.
	listed := 0
	for i, l := range []*list{&m.tab.waiting, &m.tab.unused} {
		last := 0
		for e := l.first; e != nil; e = e.succ {
			k := m.model[modelKey{e.port, e.addr}]
			if group(e.state) != i || k.rank <= last || e.succ == nil && l.last != e || e.succ != nil && e.succ.prev != e {
				t.Fatalf("list %d is out of order at %v", i, e.addr)
			}
			last = k.rank
			listed++
		}
	}
	for _, e := range m.model {
		if group(e.state) < 2 {
			listed--
		}
	}
	if listed != 0 {
		t.Fatalf("%d more on the lists than there should be", listed)
	}
}

func TestTableAgainstAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := DefaultOptions()
		o.RequestRate = 1000000 // the rate has its own tests
		o.Max = rapid.IntRange(1, 8).Draw(t, "max")
		gc := rapid.SampledFrom([][2]int{{0, 0}, {0, 100}, {100, 100}}).Draw(t, "gc")
		o.GCMin, o.GCSoft = gc[0], gc[1]
		o.Unicast = rapid.IntRange(0, 2).Draw(t, "unicast")
		o.Broadcast = rapid.IntRange(1, 2).Draw(t, "broadcast")
		f := fib.New(fib.Options{Seed: 1})
		m := &machine{fib: f, reader: f.NewReader(), opts: o, tab: New(f, o), model: map[modelKey]*modelEntry{}}
		m.tab.random = middle
		t.Repeat(rapid.StateMachineActions(m))
	})
}
