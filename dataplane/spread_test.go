package dataplane

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"gorouter/clock"
	"gorouter/dataplane/neigh"
	"gorouter/fib"
	"gorouter/internal/stat"
	"gorouter/port"
	"gorouter/rx"
	"gorouter/skb"
	"gorouter/tx"
)

// multi is a router of two ports with several queues each, over several
// workers: queue k of either port belongs to worker k, but the transmit queues
// may be fewer.
type multi struct {
	*lab
	rx, tx [2][]*wire
}

func newMulti(t testing.TB, workers, txQueues int, clk *clock.Clock) *multi {
	t.Helper()
	arena, err := skb.NewArena(skb.Options{Buffers: 8192})
	if err != nil {
		t.Fatal(err)
	}
	m := &multi{lab: &lab{t: t, arena: arena, fib: fib.New(fib.Options{Seed: 1}), clk: clk}}
	ws := NewWorkers(arena, m.fib, clk, workers)
	c := Config{Arena: arena, FIB: m.fib, Clock: clk, Workers: ws, Assign: []int{0, 0}, Options: OptionTable.Defaults(), Neigh: neigh.DefaultOptions()}
	for i := range 2 {
		p := &port.Port{Name: fmt.Sprintf("p%d", i), Index: uint16(i), MTU: 1500}
		p.SetMAC(routerMAC[i])
		p.SetUp(true)
		var o Owners
		for k := range workers {
			q := &wire{arena: arena, cache: ws[k].Cache(), port: uint16(i), rxStats: stat.New[rx.Counters](), txStats: stat.New[tx.Counters]()}
			m.rx[i], m.wires = append(m.rx[i], q), append(m.wires, q)
			p.Rx, o.Rx = append(p.Rx, q.rxq()), append(o.Rx, k)
			if k < txQueues {
				m.tx[i] = append(m.tx[i], q)
				p.Tx, o.Tx = append(p.Tx, q.txq()), append(o.Tx, k)
			}
		}
		c.Ports, c.Spread = append(c.Ports, p), append(c.Spread, o)
	}
	if m.r, err = New(c); err != nil {
		t.Fatal(err)
	}
	for i, a := range []string{"192.0.2.1/24", "198.51.100.1/24"} {
		if err := m.r.AddAddress(uint16(i), netip.MustParsePrefix(a)); err != nil {
			t.Fatal(err)
		}
	}
	for i, a := range []string{"192.0.2.2", "198.51.100.2"} {
		if err := m.r.Neighbours().SetPermanent(uint16(i), netip.MustParseAddr(a), hostMAC[i]); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(m.close)
	return m
}

// Ports whose queues belong to several workers: everything that crosses comes
// out in the order of its flow, by the worker's own transmit queue or by
// another's.
func TestQueuesOverSeveralWorkers(t *testing.T) {
	for _, c := range []struct{ workers, txQueues int }{{2, 2}, {2, 1}, {4, 4}, {4, 2}, {4, 1}} {
		t.Run(fmt.Sprintf("%d workers, %d transmit queues", c.workers, c.txQueues), func(t *testing.T) {
			defer goleak.VerifyNone(t)
			m := newMulti(t, c.workers, c.txQueues, clock.Machine())
			defer m.close()
			const each = 400
			total := uint64(0)
			for seq := range uint32(each) {
				for k := range c.workers {
					for flow := range uint16(2) {
						id := uint16(k)*10 + flow
						m.rx[0][k].in = append(m.rx[0][k].in, sequenced(t, 0, "192.0.2.2", "198.51.100.2", id, seq))
						m.rx[1][k].in = append(m.rx[1][k].in, sequenced(t, 1, "198.51.100.2", "192.0.2.2", id, seq))
						total += 2
					}
				}
			}
			m.start()
			until(t, "all frames to be taken", func() bool {
				var n uint64
				for _, q := range m.wires {
					c := q.rxStats.Read()
					n += c.Packets
				}
				return n == total
			})
			m.r.Stop()
			out := uint64(0)
			for i := range 2 {
				for k, q := range m.tx[i] {
					last := map[uint16]int64{}
					for _, f := range q.out {
						flow, seq := binary.BigEndian.Uint16(f[34:]), int64(binary.BigEndian.Uint32(f[42:]))
						if was, ok := last[flow]; ok && seq <= was {
							t.Fatalf("port %d queue %d flow %d: %d after %d", i, k, flow, seq, was)
						}
						last[flow] = seq
						if own := int(flow/10) % c.txQueues; own != k {
							t.Fatalf("a frame of worker %d left by queue %d", flow/10, k)
						}
					}
					out += uint64(len(q.out))
				}
			}
			s := m.liveStats()
			if lost := s.Drops[skb.HandoffFull]; out+lost != total || s.Drops.Total() != lost {
				t.Errorf("%d of %d out, drops %v", out, total, s.Drops.Map())
			}
			if (s.Handed > 0) != (c.txQueues < c.workers) {
				t.Errorf("%d frames handed over", s.Handed)
			}
			if err := checkConservation(m.lab); err != nil {
				t.Error(err)
			}
			if err := checkStages(m.lab); err != nil {
				t.Error(err)
			}
			sum := uint64(0)
			for i, w := range m.r.WorkerStats() {
				if w.Worker != i || strings.Join(w.Ports, " ") != "p0 p1" || w.Received != 4*each {
					t.Errorf("%+v", w)
				}
				sum += w.Forwarded
			}
			if sum != s.Forwarded || s.Forwarded != total {
				t.Errorf("workers forwarded %d, together %d, want %d", sum, s.Forwarded, total)
			}
		})
	}
}

func TestHandingOverAllocatesNothing(t *testing.T) {
	m := newMulti(t, 2, 1, clock.Virtual())
	for i := range 2 {
		for k := range 2 {
			q := m.rx[i][k]
			q.loop, q.discard = true, true
			q.in = [][]byte{sequenced(t, i, []string{"192.0.2.2", "198.51.100.2"}[i], []string{"198.51.100.2", "192.0.2.2"}[i], 1, 1)}
		}
	}
	round := func() {
		for _, w := range m.r.workers {
			w.Round()
		}
	}
	for range 3 {
		round() // slices find their size
	}
	if n := testing.AllocsPerRun(100, round); n != 0 {
		t.Errorf("%v allocations a round", n)
	}
	if s := m.liveStats(); s.Handed == 0 {
		t.Error("nothing was handed over")
	}
}

// What several workers share one event source of, none of them can sleep on.
func TestASharedPortIsMute(t *testing.T) {
	m := newMulti(t, 2, 2, clock.Virtual())
	sig, err := port.NewSignal()
	if err != nil {
		t.Fatal(err)
	}
	defer sig.Close()
	for i, p := range m.r.ports {
		p.Events = &source{wireRx: wireRx{m.rx[i][0]}, sig: sig}
	}
	for _, w := range m.r.workers {
		if events, mute := w.sources(); len(events) != 0 || strings.Join(mute, " ") != "p0 p1" {
			t.Errorf("worker %d: %d sources, mute %v", w.id, len(events), mute)
		}
	}
}

func TestWrongOwnersAreRefused(t *testing.T) {
	base := func() Config {
		arena, err := skb.NewArena(skb.Options{Buffers: 512})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = arena.Close() })
		f := fib.New(fib.Options{})
		clk := clock.Virtual()
		c := Config{Arena: arena, FIB: f, Clock: clk, Workers: NewWorkers(arena, f, clk, 2), Assign: []int{0}, Options: OptionTable.Defaults(), Neigh: neigh.DefaultOptions()}
		q := &wire{arena: arena, cache: c.Workers[0].Cache(), rxStats: stat.New[rx.Counters](), txStats: stat.New[tx.Counters]()}
		c.Ports = []*port.Port{{Name: "p0", MTU: 1500, Rx: []rx.Queue{q.rxq()}, Tx: []tx.Queue{q.txq()}}}
		return c
	}
	for want, change := range map[string]func(*Config){
		"":                                 func(*Config) {},
		"worker 2 of 2":                    func(c *Config) { c.Assign[0] = 2 },
		"worker -1 of 2":                   func(c *Config) { c.Spread = []Owners{{Rx: []int{-1}}} },
		"worker 7 of 2":                    func(c *Config) { c.Spread = []Owners{{Tx: []int{7}}} },
		"workers for 2 receive queues, it": func(c *Config) { c.Spread = []Owners{{Rx: []int{0, 1}}} },
		"workers for 0 transmit queues":    func(c *Config) { c.Spread = []Owners{{Tx: []int{}}} },
		"as many owners and weights":       func(c *Config) { c.Spread = []Owners{{}, {}} },
		"needs as many owners":             func(c *Config) { c.Weights = []int{1, 2} },
		"weight is 5000, expected 1 to":    func(c *Config) { c.Weights = []int{5000} },
	} {
		c := base()
		change(&c)
		if _, err := New(c); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
