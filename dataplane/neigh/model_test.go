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
	state State
	mac   inet.MAC
	due   int64
	asked int
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
}

func (m *machine) key(t *rapid.T) modelKey {
	return modelKey{uint16(rapid.IntRange(0, 1).Draw(t, "port")),
		netip.AddrFrom4([4]byte{10, 0, 0, byte(rapid.IntRange(1, 4).Draw(t, "host"))})}
}

func drawMAC(t *rapid.T) inet.MAC {
	return inet.MAC{2, 0, 0, 0, 0, byte(rapid.IntRange(1, 3).Draw(t, "mac"))}
}

// room says whether the model takes one more.
func (m *machine) room() bool { return len(m.model) < m.opts.Max }

func (m *machine) Need(t *rapid.T) {
	k := m.key(t)
	e := m.model[k]
	_, q, ask, ok := m.tab.Need(k.port, k.addr, m.now)
	if wantAsk := e == nil && m.room(); ask != wantAsk || ok != (e != nil || m.room()) {
		t.Fatalf("need %v: ask %v, ok %v", k, ask, ok)
	}
	if ask {
		if q != (Question{k.port, k.addr, inet.Broadcast}) {
			t.Fatalf("question %+v", q)
		}
		m.model[k] = &modelEntry{state: Incomplete, asked: 1, due: m.now + int64(m.opts.Retransmit)}
	}
}

func (m *machine) Hear(t *rapid.T) {
	k := m.key(t)
	h := Heard{Port: k.port, Addr: k.addr, MAC: drawMAC(t), Reply: rapid.Bool().Draw(t, "reply"), ForUs: rapid.Bool().Draw(t, "forUs")}
	e := m.model[k]
	want := e != nil && e.state != Permanent || e == nil && !h.Reply && h.ForUs && m.room()
	if got := m.tab.Hear(h, m.now); got != want {
		t.Fatalf("hear %+v: %v", h, got)
	}
	if want {
		m.model[k] = &modelEntry{state: Reachable, mac: h.MAC, due: m.now + int64(m.opts.Reachable)}
	}
}

func (m *machine) SetPermanent(t *rapid.T) {
	k := m.key(t)
	mac := drawMAC(t)
	err := m.tab.SetPermanent(k.port, k.addr, mac)
	if want := m.model[k] != nil || m.room(); (err == nil) != want {
		t.Fatalf("permanent %v: %v", k, err)
	}
	if err == nil {
		m.model[k] = &modelEntry{state: Permanent, mac: mac}
	}
}

func (m *machine) SetPortMAC(t *rapid.T) {
	p := rapid.IntRange(0, 1).Draw(t, "port")
	m.macs[p] = drawMAC(t)
	m.tab.SetPortMAC(uint16(p), m.macs[p])
}

func (m *machine) Tick(t *rapid.T) {
	m.now += int64(rapid.IntRange(0, 16).Draw(t, "quarters")) * int64(time.Second/4)
	got := map[Question]int{}
	m.tab.Tick(m.now, func(q Question) { got[q]++ })
	m.reader.Quiescent()
	want := map[Question]int{}
	for k, e := range m.model {
		if e.state == Permanent || m.now < e.due {
			continue
		}
		ask := func(to inet.MAC) {
			e.asked++
			e.due = m.now + int64(m.opts.Retransmit)
			want[Question{k.port, k.addr, to}]++
		}
		fail := func() { e.state, e.due = Failed, m.now+int64(m.opts.Negative) }
		switch {
		case e.state == Failed:
			delete(m.model, k)
		case e.state == Incomplete && e.asked == m.opts.Broadcast:
			fail()
		case e.state == Incomplete:
			ask(inet.Broadcast)
		case e.state == Reachable:
			e.state, e.asked = Probe, 0
			ask(e.mac)
		case e.asked < m.opts.Unicast:
			ask(e.mac)
		case e.asked < m.opts.Unicast+m.opts.Broadcast:
			ask(inet.Broadcast)
		default:
			fail()
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
}

func (m *machine) Check(t *rapid.T) {
	all := m.tab.All()
	if len(all) != len(m.model) {
		t.Fatalf("%d entries, want %d", len(all), len(m.model))
	}
	seen := map[uint32]bool{}
	for _, n := range all {
		e := m.model[modelKey{n.Port, n.Addr}]
		if e == nil || e.state != n.State || (n.State != Incomplete && n.State != Failed && e.mac != n.MAC) {
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
		}
		if a.State != want {
			t.Fatalf("%+v: adjacency is %v", n, a.State)
		}
		if want == fib.Reachable && (inet.MAC(a.Rewrite[0:6]) != n.MAC || inet.MAC(a.Rewrite[6:12]) != m.macs[n.Port] || a.RewriteLen != 14) {
			t.Fatalf("%+v: rewrite %x", n, a.Rewrite)
		}
	}
	if s := m.fib.Stats(); s.Misuses != 0 || s.Adjacencies != len(all)+4 {
		t.Fatalf("%d adjacencies for %d neighbours, %d misuses", s.Adjacencies, len(all), s.Misuses)
	}
}

func TestTableAgainstAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := DefaultOptions()
		o.Max = rapid.IntRange(1, 8).Draw(t, "max")
		f := fib.New(fib.Options{Seed: 1})
		m := &machine{fib: f, reader: f.NewReader(), opts: o, tab: New(f, o), model: map[modelKey]*modelEntry{}}
		t.Repeat(rapid.StateMachineActions(m))
	})
}
