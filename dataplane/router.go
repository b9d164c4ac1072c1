// Package dataplane is the forwarding plane: workers with a NAPI-style poll
// list take frames from receive queues, run them through the stages and send
// them out. It does not know which kind of device a port is.
//
// One worker runs a trip of up to a vector of frames from receive to transmit.
// A transmit queue belongs to one worker; others hand frames over through
// single-producer single-consumer rings.
package dataplane

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"gorouter/clock"
	"gorouter/dataplane/neigh"
	"gorouter/fib"
	"gorouter/port"
	"gorouter/skb"
)

// Config is what a router is made of.
type Config struct {
	Arena *skb.Arena
	FIB   *fib.FIB
	Clock *clock.Clock
	Log   *slog.Logger
	// Ports in the order of their Index. Their queues must have been opened
	// with the cache of the worker that Assign names.
	Ports []*port.Port
	// Workers are made by NewWorkers before the ports are opened.
	Workers []*Worker
	// Assign is the worker of each port: it steps the port's device, hears its
	// events and owns its queues.
	Assign []int
	// Spread gives the queues of single ports to several workers; nil, or a
	// zero Owners for a port, leaves all of them to the worker in Assign.
	Spread []Owners
	// Weights are the weights of each port's receive queues in frames a turn;
	// 0, and nil for all, means Options.Weight.
	Weights []int
	Options Options
	Neigh   neigh.Options
	IP      IPOptions // the zero value means the defaults
	// OnPanic, if set, is called by a worker that panics before the program
	// ends of it: to give back what the program has taken from the system. The
	// other workers run on meanwhile, so it must not touch queues.
	OnPanic func()
}

// Owners are the workers of one port's queues, by the queues' place in the
// port: as many as the port has, or nil for the port's worker. Frames leave by
// the transmit queue of the worker that received them, where it has one.
type Owners struct{ Rx, Tx []int }

// Router is the forwarding plane. Its methods are safe for concurrent use
// unless they say otherwise.
type Router struct {
	arena   *skb.Arena
	fib     *fib.FIB
	neigh   *neigh.Table
	claims  claims
	clk     *clock.Clock
	log     *slog.Logger
	ports   []*port.Port
	workers []*Worker
	rxOwner [][]*Worker // of each port's receive queues
	txOwner [][]*Worker // of each port's transmit queues
	conf    settings

	ifaces  atomic.Pointer[ifaceSet]
	follows []*followed // routes that follow links, guarded by ifMu
	ifMu    sync.Mutex  // writers of ifaces

	onPanic  func()
	stop     atomic.Bool
	stopped  sync.Once
	live     atomic.Int32 // workers that may still hand frames to others
	running  sync.WaitGroup
	sleepMax time.Duration
	seen     uint64 // generation of the neighbours at the last Housekeep
}

// NewWorkers makes n workers with their buffer caches.
func NewWorkers(a *skb.Arena, f *fib.FIB, c *clock.Clock, n int) []*Worker {
	ws := make([]*Worker, n)
	for i := range ws {
		ws[i] = newWorker(a, f, c, i)
	}
	return ws
}

// New joins workers and ports. Nothing runs yet.
func New(c Config) (*Router, error) {
	if errs := OptionTable.Check(&c.Options); len(errs) > 0 {
		return nil, fmt.Errorf("poll: %w", errs[0])
	}
	if errs := neigh.OptionTable.Check(&c.Neigh); len(errs) > 0 {
		return nil, fmt.Errorf("neigh: %w", errs[0])
	}
	n := len(c.Ports)
	if n == 0 || len(c.Workers) == 0 || len(c.Assign) != n {
		return nil, errors.New("a router needs at least one port and one worker, and a worker for every port")
	}
	if c.Spread != nil && len(c.Spread) != n || c.Weights != nil && len(c.Weights) != n {
		return nil, fmt.Errorf("a router of %d ports needs as many owners and weights, or none", n)
	}
	r := &Router{
		arena: c.Arena, fib: c.FIB, clk: c.Clock, log: c.Log, ports: c.Ports, workers: c.Workers,
		neigh: neigh.New(c.FIB, c.Neigh), claims: claims{times: c.Neigh.Announce}, sleepMax: sleepMax,
		onPanic: c.OnPanic,
	}
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	for i, p := range c.Ports {
		if len(p.Tx) == 0 {
			return nil, fmt.Errorf("port %s has no transmit queue", p.Name)
		}
		if int(p.Index) != i {
			return nil, fmt.Errorf("port %s has index %d at place %d", p.Name, p.Index, i)
		}
		var o Owners
		if c.Spread != nil {
			o = c.Spread[i]
		}
		rxs, err := ownersOf(&c, i, o.Rx, len(p.Rx), "receive")
		if err != nil {
			return nil, err
		}
		txs, err := ownersOf(&c, i, o.Tx, len(p.Tx), "transmit")
		if err != nil {
			return nil, err
		}
		r.rxOwner, r.txOwner = append(r.rxOwner, rxs), append(r.txOwner, txs)
	}
	if err := r.conf.init(&c); err != nil {
		return nil, err
	}
	r.ifaces.Store(newIfaceSet(r, nil))
	for _, w := range c.Workers {
		w.attach(r, c.Options)
		if err := w.SetIPOptions(c.IP); err != nil {
			return nil, fmt.Errorf("ip: %w", err)
		}
		w.held.setDepth(c.Neigh.Hold)
	}
	for i, p := range c.Ports {
		p.Watch(r.portChanged)
		r.portChanged(p)
		for _, w := range c.Workers {
			if slices.Contains(r.rxOwner[i], w) {
				w.adopt(p, r.rxOwner[i])
			}
		}
	}
	for _, w := range c.Workers {
		for _, q := range w.queues {
			q.weight = r.conf.ports[q.port].weight
		}
	}
	return r, nil
}

// ownersOf are the workers of a port's queues of one direction.
func ownersOf(c *Config, port int, ids []int, queues int, what string) ([]*Worker, error) {
	name := c.Ports[port].Name
	if ids != nil && len(ids) != queues {
		return nil, fmt.Errorf("port %s: workers for %d %s queues, it has %d", name, len(ids), what, queues)
	}
	ws := make([]*Worker, queues)
	for k := range ws {
		id := c.Assign[port]
		if ids != nil {
			id = ids[k]
		}
		if id < 0 || id >= len(c.Workers) {
			return nil, fmt.Errorf("port %s: worker %d of %d", name, id, len(c.Workers))
		}
		ws[k] = c.Workers[id]
	}
	return ws, nil
}

// Neighbours is the neighbour table.
func (r *Router) Neighbours() *neigh.Table { return r.neigh }

// portChanged follows a port's link state, MAC address and MTU.
func (r *Router) portChanged(p *port.Port) {
	// Whoever comes last must also have looked at the port last.
	r.ifMu.Lock()
	defer r.ifMu.Unlock()
	r.neigh.SetPortMAC(p.Index, p.MAC())
	if !p.Up() {
		r.neigh.FlushPort(p.Index)
	}
	r.fib.SetPortState(p.Index, p.Up())
	r.followLinks()
	r.ifaces.Store(newIfaceSet(r, r.ifaces.Load()))
}

// Start runs the workers, each on its own thread, pinned where it was asked.
// On an error none is left running. A router runs once: after Stop it cannot be
// started again.
func (r *Router) Start() error {
	if err := r.launch(); err != nil {
		r.Stop()
		return err
	}
	return nil
}

func (r *Router) launch() error {
	r.conf.mu.Lock()
	defer r.conf.mu.Unlock()
	switch {
	case r.stop.Load():
		return errors.New("this router was stopped; make a new one")
	case r.conf.started:
		return errors.New("this router runs already")
	}
	r.conf.started = true
	if err := r.openSleepers(); err != nil {
		return err
	}
	for _, w := range r.workers {
		ready := make(chan error, 1)
		r.running.Go(func() { w.run(ready) })
		if err := <-ready; err != nil {
			return err
		}
	}
	if r.conf.poll.Idle == IdleInterrupt {
		r.explainIdle()
	}
	return nil
}

// Stop ends the workers. Frames in the rings are sent first, as far as the
// devices do it soon; frames waiting inside the router are dropped under
// Shutdown. It is idempotent.
func (r *Router) Stop() {
	r.stop.Store(true)
	for _, w := range r.workers {
		w.poke()
	}
	r.running.Wait()
	r.stopped.Do(func() {
		for _, w := range r.workers {
			w.abandon()
		}
		r.closeSleepers()
	})
}

// Housekeep does what is due by time outside the packet path: neighbours that
// are used or have to be asked, own addresses that have to be announced, freed
// adjacencies. Call it a few times a second from one goroutine.
func (r *Router) Housekeep() {
	now := r.clk.Now()
	for _, w := range r.workers {
		w.uses.Take(func(adj uint32) { r.neigh.Used(adj, now) })
	}
	r.neigh.Tick(now, func(q neigh.Question) {
		w := r.txOwner[q.Port][0]
		w.Do(func() { w.sendRequest(q) })
	})
	r.claim(now)
	if g := r.neigh.Generation(); g != r.seen {
		r.seen = g
		for _, w := range r.workers {
			if w.holding.Load() {
				w.poke()
			}
		}
	}
	r.fib.Reclaim()
}

// Do runs f on every worker between two rounds, for changes that only the
// owner of a queue may make, and waits until all have; workers that have
// stopped are left out. It must not be called before Start.
func (r *Router) Do(f func(*Worker)) {
	var wg sync.WaitGroup
	for _, w := range r.workers {
		wg.Add(1)
		if !w.post(func() { f(w); wg.Done() }) {
			wg.Done()
		}
	}
	wg.Wait()
}

// Holders are all places that hold buffers, for Audit and the census. The
// workers must stand still while the holders are asked.
func (r *Router) Holders() []skb.Holder {
	var hs []skb.Holder
	for _, p := range r.ports {
		for _, q := range p.Rx {
			hs = append(hs, q)
		}
		for _, q := range p.Tx {
			hs = append(hs, q)
		}
	}
	for _, w := range r.workers {
		hs = append(hs, w)
	}
	return hs
}
