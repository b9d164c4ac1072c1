package fib_test

import (
	"net/netip"
	"testing"

	"pgregory.net/rapid"

	"gorouter/fib"
)

// world draws from small sets, so that operations meet each other.
var (
	worldTables  = []uint32{254, 10, 4000000000}
	worldMetrics = []uint32{0, 100, 1024}
	worldAddrs   = []netip.Addr{
		ip("0.0.0.0"), ip("10.0.0.0"), ip("10.1.2.3"), ip("10.1.2.255"), ip("10.128.0.0"), ip("172.16.5.1"),
		ip("200.0.0.1"), ip("200.0.1.1"), ip("10.1.2.128"), ip("10.1.3.0"), ip("255.255.255.255"),
		ip("::"), ip("2001:db8::1"), ip("2001:db8:0:1::"), ip("2001:db8:0:1:8000::"), ip("2001:db8:ffff::1"), ip("2001:d00::"), ip("2000::"), ip("3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
		ip("fe80::1"), ip("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
	}
	worldVias4 = []netip.Addr{ip("192.0.2.1"), ip("192.0.2.2"), ip("192.0.2.3")}
	worldVias6 = []netip.Addr{ip("fe80::1"), ip("fe80::2"), ip("2001:db8::99")}
)

// source of choices: rapid or fuzz bytes.
type chooser interface{ below(n int) int }

type rapidChooser struct{ t *rapid.T }

func (c rapidChooser) below(n int) int { return rapid.IntRange(0, n-1).Draw(c.t, "choice") }

// byteChooser reads its choices from fuzz input; at the end it gives zeros.
type byteChooser struct{ data []byte }

func (c *byteChooser) below(n int) int {
	if len(c.data) == 0 {
		return 0
	}
	b := c.data[0]
	c.data = c.data[1:]
	return int(b) % n
}

func choose[T any](c chooser, list []T) T { return list[c.below(len(list))] }

func choosePrefix(c chooser) netip.Prefix {
	a := choose(c, worldAddrs)
	bits := c.below(a.BitLen() + 1)
	if raceEnabled && a.Is4() && bits > 0 {
		bits = max(bits, 12) // the detector makes a million stores too slow
	}
	return netip.PrefixFrom(a, bits).Masked()
}

func chooseRoute(c chooser) fib.Route {
	r := fib.Route{Table: choose(c, worldTables), Prefix: choosePrefix(c), Metric: choose(c, worldMetrics),
		Kind: fib.Kind(1 + c.below(6))}
	if c.below(8) == 0 {
		r.TOS = 0x10
	}
	switch r.Kind {
	case fib.Forward:
		vias := worldVias6
		if r.Prefix.Addr().Is4() && c.below(4) > 0 {
			vias = worldVias4
		}
		r.NextHops = append(r.NextHops, fib.NextHop{Port: uint16(c.below(4)), Via: choose(c, vias), Weight: uint16(c.below(5))})
		for range c.below(4) {
			h := fib.NextHop{Port: uint16(c.below(4)), Weight: uint16(c.below(5))}
			if c.below(4) > 0 {
				h.Via = choose(c, vias)
			}
			r.NextHops = append(r.NextHops, h)
		}
	case fib.Connected:
		for range 1 + c.below(3) {
			r.NextHops = append(r.NextHops, fib.NextHop{Port: uint16(c.below(4))})
		}
	case fib.Local:
		r.NextHops = []fib.NextHop{{Port: uint16(c.below(4))}}
	}
	return r
}

// chooseKey prefers keys that exist.
func chooseKey(c chooser, o *oracle) fib.Key {
	if len(o.routes) > 0 && c.below(4) > 0 {
		return o.routes[c.below(len(o.routes))].Key()
	}
	return fib.Key{Table: choose(c, worldTables), Prefix: choosePrefix(c), Metric: choose(c, worldMetrics)}
}

type fataler interface {
	Helper()
	Fatalf(string, ...any)
}

// machine applies the same operations to a FIB and to the oracle.
type machine struct {
	f      *fib.FIB
	r      *fib.Reader
	o      *oracle
	held   []uint32
	absent uint64
}

// worldSizes make tables of the world promote, overflow and demote.
var worldSizes = []fib.Sizes{
	{},
	{Promote4: 1, Promote6: 1},
	{Promote4: 4, Promote6: 4},
	{Promote4: 1, Promote6: 8, Groups16: 1, Groups32: 1},
	{Promote4: 5, Promote6: 1, Results16: 4, Groups32: 4},
}

func newMachine(sizes fib.Sizes) *machine {
	f := fib.NewForTest(7, sizes)
	return &machine{f: f, r: f.NewReader(), o: newOracle()}
}

func (m *machine) replace(t fataler, c chooser) {
	t.Helper()
	r := chooseRoute(c)
	if err := m.f.Replace(r); err != nil {
		t.Fatalf("Replace(%v): %v", r, err)
	}
	m.o.replace(r)
}

func (m *machine) delete(t fataler, c chooser) {
	t.Helper()
	k := chooseKey(c, m.o)
	want := m.o.delete(k)
	if got := m.f.Delete(k); got != want {
		t.Fatalf("Delete(%v) = %v, want %v", k, got, want)
	}
	if !want {
		m.absent++
	}
	if got := m.f.Stats().DeletesAbsent; got != m.absent {
		t.Fatalf("DeletesAbsent = %d, want %d", got, m.absent)
	}
}

func (m *machine) deleteTable(t fataler, c chooser) {
	t.Helper()
	id := choose(c, worldTables)
	want := m.o.deleteTable(id)
	if got := m.f.DeleteTable(id); got != want {
		t.Fatalf("DeleteTable(%d) = %d, want %d", id, got, want)
	}
}

func (m *machine) batch(t fataler, c chooser) {
	t.Helper()
	err := m.f.Batch(func(tx *fib.Tx) error {
		if c.below(6) == 0 {
			id := choose(c, worldTables)
			tx.DeleteTable(id)
			m.o.deleteTable(id)
		}
		for range c.below(12) {
			if c.below(3) == 0 {
				k := chooseKey(c, m.o)
				tx.Delete(k)
				if !m.o.delete(k) {
					m.absent++
				}
				continue
			}
			r := chooseRoute(c)
			if err := tx.Replace(r); err != nil {
				return err
			}
			m.o.replace(r)
			clear(r.NextHops) // the caller's again
		}
		return nil
	})
	if err != nil {
		t.Fatalf("Batch: %v", err)
	}
}

func (m *machine) portState(_ fataler, c chooser) {
	port, up := uint16(c.below(4)), c.below(2) == 0
	m.f.SetPortState(port, up)
	m.o.down[port] = !up
}

func (m *machine) acquire(t fataler, c chooser) {
	t.Helper()
	port, via := uint16(c.below(4)), choose(c, worldVias4)
	idx := m.f.AcquireAdjacency(port, via)
	if a := m.r.Adjacency(idx); a.Kind != fib.Forward || a.Port != port || a.NextHop != via {
		t.Fatalf("AcquireAdjacency(%d, %s) = %d: %v", port, via, idx, a)
	}
	m.held = append(m.held, idx)
}

func (m *machine) release(_ fataler, c chooser) {
	if len(m.held) > 0 {
		i := c.below(len(m.held))
		m.f.ReleaseAdjacency(m.held[i])
		m.held = append(m.held[:i], m.held[i+1:]...)
	}
}

// reader lets the reader pass quiescent points now and then.
func (m *machine) reader(_ fataler, c chooser) {
	switch c.below(3) {
	case 0:
		m.r.Quiescent()
	case 1:
		m.r.Offline()
	case 2:
		m.r.Online()
	}
}

func (m *machine) operations() []func(fataler, chooser) {
	return []func(fataler, chooser){m.replace, m.replace, m.replace, m.delete, m.delete,
		m.deleteTable, m.batch, m.portState, m.acquire, m.release, m.reader}
}

func (m *machine) check(t fataler) {
	t.Helper()
	for _, table := range worldTables {
		for _, a := range worldAddrs {
			if err := m.o.check(m.f, m.r, table, a); err != nil {
				t.Fatalf("%v", err)
			}
		}
		if err := m.o.checkTable(m.f, table); err != nil {
			t.Fatalf("%v", err)
		}
	}
}

// end removes everything and checks that nothing is left behind.
func (m *machine) end(t fataler) {
	t.Helper()
	for _, idx := range m.held {
		m.f.ReleaseAdjacency(idx)
	}
	for _, table := range worldTables {
		m.f.DeleteTable(table)
	}
	m.r.Online()
	m.f.Reclaim()
	s := m.f.Stats()
	if s.Adjacencies != 4 || s.Groups != 0 || s.Retired+s.Parked != 0 || s.Routes4+s.Routes6 != 0 || s.Misuses != 0 {
		t.Fatalf("not empty at the end: %+v", s)
	}
	m.r.Close()
}

func TestAgainstOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := rapidChooser{t}
		m := newMachine(choose(c, worldSizes))
		if raceEnabled && c.below(4) != 0 {
			return // tables of 32 MiB are slow to make on the Go heap
		}
		act := func(op func(fataler, chooser)) func(*rapid.T) { return func(t *rapid.T) { op(t, c) } }
		t.Repeat(map[string]func(*rapid.T){
			"replace":     act(m.replace),
			"delete":      act(m.delete),
			"deleteTable": act(m.deleteTable),
			"batch":       act(m.batch),
			"portState":   act(m.portState),
			"acquire":     act(m.acquire),
			"release":     act(m.release),
			"reader":      act(m.reader),
			"":            func(t *rapid.T) { m.check(t) },
		})
		m.end(t)
	})
}

func FuzzOperations(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("replace delete replace batch"))
	f.Add([]byte{0, 0, 1, 8, 0, 0, 1, 0, 2, 1, 3, 3, 2, 1, 1, 1, 2, 7, 2, 1, 3, 0, 0, 6, 9, 9, 9, 5, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		c := &byteChooser{data: data[:min(len(data), 1000)]}
		m := newMachine(choose(c, worldSizes))
		ops := m.operations()
		for len(c.data) > 0 {
			ops[c.below(len(ops))](t, c)
		}
		m.check(t)
		m.end(t)
	})
}

// Covering and Covered against the oracle, on their own because they need many
// nested prefixes.
func TestCoveringAndCovered(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(fib.Sizes{})
		c := rapidChooser{t}
		for range rapid.IntRange(0, 30).Draw(t, "routes") {
			m.replace(t, c)
		}
		table, p := choose(c, worldTables), choosePrefix(c)
		want := m.o.covering(table, p)
		got := m.f.Covering(table, p)
		if len(got) != len(want) {
			t.Fatalf("Covering(%s) = %v, want %v", p, got, want)
		}
		for i := range got {
			if !equalRoutes(got[i], want[i]) {
				t.Fatalf("Covering(%s)[%d] = %v, want %v", p, i, got[i], want[i])
			}
		}
		n := 0
		for _, r := range m.f.Covered(table, p) {
			if m.o.find(r.Key()) < 0 || !p.Overlaps(r.Prefix) || r.Prefix.Bits() < p.Bits() {
				t.Fatalf("Covered(%s) has %v", p, r)
			}
			n++
		}
		for _, r := range m.o.sorted(table) {
			if p.Overlaps(r.Prefix) && r.Prefix.Bits() >= p.Bits() {
				n--
			}
			if got := m.f.Get(table, r.Prefix); len(got) == 0 || got[0].Metric > r.Metric {
				t.Fatalf("Get(%s) = %v misses %v", r.Prefix, got, r)
			}
		}
		if n != 0 {
			t.Fatalf("Covered(%s) is off by %d routes", p, n)
		}
	})
}
