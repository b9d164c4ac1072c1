package reasons

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"gorouter/clock"
	"gorouter/dataplane"
	"gorouter/dataplane/neigh"
	"gorouter/fib"
	"gorouter/internal/inet"
	"gorouter/nic/e1000"
	"gorouter/nic/e1000/regs"
	"gorouter/nic/model"
	"gorouter/port"
	"gorouter/rx"
	"gorouter/skb"
	"gorouter/tx"
)

const (
	ports         = 2
	picosPerMicro = 1e6
)

var (
	networks  = [ports]string{"192.0.2.1/24", "198.51.100.1/24"}
	hostAddr  = [ports]string{"192.0.2.2", "198.51.100.2"}
	routerMAC = [ports]inet.MAC{{2, 0, 0, 0, 0, 0x10}, {2, 0, 0, 0, 0, 0x11}}
	hostMAC   = [ports]inet.MAC{{2, 0, 0, 0, 0, 0x20}, {2, 0, 0, 0, 0, 0x21}}
)

// host is the far end of a cable.
type host struct{ in, out [][]byte }

func (h *host) Deliver(f []byte) bool {
	h.out = append(h.out, bytes.Clone(f))
	return true
}

func (h *host) Next(int64) []byte {
	if len(h.in) == 0 {
		return nil
	}
	f := h.in[0]
	h.in = h.in[1:]
	return f
}

// rig is a router between two hosts, each port a driven software chip. The
// test's goroutine does everything; time passes only when it says so.
type rig struct {
	t       *testing.T
	clk     *clock.Clock
	arena   *skb.Arena
	fib     *fib.FIB
	workers []*dataplane.Worker
	router  *dataplane.Router
	ports   [ports]*port.Port
	chip    [ports]*model.Chip
	dev     [ports]*e1000.Device
	cable   [ports]*model.Cable
	host    [ports]*host
	still   [ports]bool // the chip does nothing
}

// setup is what a scenario wants other than usual.
type setup struct {
	workers int // 2: each has a port
	buffers int
	txRing  int
	mtu     int // of port 1
	neigh   func(*neigh.Options)
	short   []byte // a frame that port 0's queue has besides those of the ring
}

func newRig(t *testing.T, s setup) *rig {
	t.Helper()
	if s.buffers == 0 {
		s.buffers = 512
	}
	// The stride leaves room for the 2048 bytes that a chip may store once
	// long or bad frames are asked for.
	arena, err := skb.NewArena(skb.Options{Buffers: s.buffers, Stride: 4096})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, arena: arena, clk: clock.Virtual(), fib: fib.New(fib.Options{Seed: 1})}
	r.workers = dataplane.NewWorkers(arena, r.fib, r.clk, max(s.workers, 1))
	c := dataplane.Config{Arena: arena, FIB: r.fib, Clock: r.clk, Workers: r.workers,
		Options: dataplane.OptionTable.Defaults(), Neigh: neigh.DefaultOptions()}
	c.Neigh.Announce = 0
	if s.neigh != nil {
		s.neigh(&c.Neigh)
	}
	for i := range ports {
		worker := i * (len(r.workers) - 1)
		r.openPort(i, r.workers[worker].Cache(), s)
		c.Ports = append(c.Ports, r.ports[i])
		c.Assign = append(c.Assign, worker)
	}
	if s.short != nil {
		r.ports[0].Rx[0] = &shortQueue{Queue: r.ports[0].Rx[0], frame: s.short, cache: r.workers[0].Cache()}
	}
	if r.router, err = dataplane.New(c); err != nil {
		t.Fatal(err)
	}
	for i := range ports {
		if err := r.router.AddAddress(uint16(i), netip.MustParsePrefix(networks[i])); err != nil {
			t.Fatal(err)
		}
		if err := r.router.Neighbours().SetPermanent(uint16(i), netip.MustParseAddr(hostAddr[i]), hostMAC[i]); err != nil {
			t.Fatal(err)
		}
		if err := r.dev[i].Start(); err != nil {
			t.Fatal(err)
		}
	}
	for prefix, kind := range map[string]fib.Kind{"10.9.0.0/16": fib.Blackhole, "10.8.0.0/16": fib.Unreachable, "10.7.0.0/16": fib.Prohibit} {
		r.route(fib.Route{Prefix: netip.MustParsePrefix(prefix), Kind: kind})
	}
	r.route(fib.Route{Prefix: netip.MustParsePrefix("10.0.0.0/8"), Kind: fib.Forward,
		NextHops: []fib.NextHop{{Port: 1, Via: netip.MustParseAddr(hostAddr[1])}}})
	return r
}

func (r *rig) openPort(i int, cache *skb.Cache, s setup) {
	r.t.Helper()
	name := []string{"p0", "p1"}[i]
	chip, err := model.New(model.Config{Name: name, Arena: r.arena, Clock: r.clk, MAC: routerMAC[i], Strict: true, CheckContent: true})
	if err != nil {
		r.t.Fatal(err)
	}
	o := e1000.Config{Name: name, Index: uint16(i), Regs: chip, IO: chip.IO(), Arena: r.arena, Clock: r.clk,
		DeviceID: chip.Info().Device, Rx: rx.OptionTable.Defaults(), Tx: tx.OptionTable.Defaults(), RxCache: cache, TxCache: cache,
		Promisc: true} // or no frame for another host comes up to the router
	o.Rx.Ring, o.Tx.Ring = rx.MinRing, max(tx.MinRing, s.txRing)
	if i == 1 {
		o.MTU = s.mtu
	}
	dev, err := e1000.Open(o)
	if err != nil {
		r.t.Fatal(err)
	}
	r.host[i], r.chip[i], r.dev[i], r.ports[i] = &host{}, chip, dev, dev.Port()
	if r.cable[i], err = model.NewCable(chip, r.host[i], model.CableOptions{Lossless: true}); err != nil {
		r.t.Fatal(err)
	}
	r.ports[i].Step = func(now int64) {
		if !r.still[i] {
			r.cable[i].Step(now, model.DefaultBurst)
		}
		if err := dev.Housekeep(now); err != nil {
			r.t.Error(err)
		}
	}
}

func (r *rig) route(n fib.Route) {
	r.t.Helper()
	if err := r.fib.Replace(n); err != nil {
		r.t.Fatal(err)
	}
}

// storeOdd has the chip of port 0 store what it would discard: bad, short and
// long frames.
func (r *rig) storeOdd() {
	c := r.chip[0]
	c.Write(regs.RCTL, c.Read(regs.RCTL)|regs.RctlSBP|regs.RctlLPE)
}

// run works until all is quiet.
func (r *rig) run(ws ...*dataplane.Worker) {
	r.t.Helper()
	if len(ws) == 0 {
		ws = r.workers
	}
	quiet := 0
	for range 10000 {
		r.clk.Advance(picosPerMicro)
		quiet++
		for _, w := range ws {
			if w.Round() {
				quiet = 0
			}
		}
		if quiet > 3 && !r.busy() {
			return
		}
	}
	r.t.Fatal("the router never comes to rest")
}

// busy reports whether frames are under way outside the router.
func (r *rig) busy() bool {
	for i, p := range r.ports {
		if len(r.host[i].in) > 0 || !r.still[i] && p.Up() && p.Tx[0].Pending() > 0 {
			return true
		}
	}
	return false
}

// from puts frames on the cable of port i and runs.
func (r *rig) from(i int, frames ...[]byte) {
	r.t.Helper()
	r.host[i].in = append(r.host[i].in, frames...)
	r.run()
}

// bad hands port 0 a frame that suffered on the cable, and runs.
func (r *rig) bad(e model.FrameError, f []byte) {
	r.t.Helper()
	r.storeOdd()
	if !r.chip[0].DeliverBad(f, e) {
		r.t.Fatal("the chip did not store the frame")
	}
	r.run()
}

// pass lets time go by.
func (r *rig) pass(d time.Duration) {
	r.t.Helper()
	const step = 100 * time.Millisecond
	for ; d > 0; d -= step {
		r.clk.Advance(picosPerMicro * step.Microseconds())
		r.router.Housekeep()
		r.run()
	}
}

// drain takes all free buffers but so many; the function returned gives them
// back.
func (r *rig) drain(left int) func() {
	cache := r.workers[0].Cache()
	var taken []skb.Handle
	for h := cache.Alloc(); h != skb.None; h = cache.Alloc() {
		taken = append(taken, h)
	}
	cache.FreeBatch(taken[:left])
	return func() { cache.FreeBatch(taken[left:]) }
}

// close ends everything and returns what was dropped. No buffer may be
// missing, before and after.
func (r *rig) close() (d skb.DropCounts) {
	r.t.Helper()
	audit := func(hs ...skb.Holder) skb.Census {
		c, err := r.arena.Audit(hs...)
		if err != nil {
			r.t.Error(err)
		}
		return c
	}
	audit(r.router.Holders()...)
	r.router.Stop()
	for i := range ports {
		if err := r.dev[i].Close(); err != nil {
			r.t.Error(err)
		}
		r.ports[i].Rx[0].Close()
		r.ports[i].Tx[0].Close()
		d.Add(&r.ports[i].Rx[0].Counters().Live.Drops)
		d.Add(&r.ports[i].Tx[0].Counters().Live.Drops)
		if err := r.chip[i].Err(); err != nil {
			r.t.Error(err)
		}
		if err := r.chip[i].Close(); err != nil {
			r.t.Error(err)
		}
	}
	if c := audit(); c.Free+c.Cached != c.Total {
		r.t.Errorf("%d of %d buffers are free at the end", c.Free+c.Cached, c.Total)
	}
	if err := r.arena.Close(); err != nil {
		r.t.Error(err)
	}
	s := r.router.Stats()
	d.Add(&s.Drops)
	return d
}
