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
	"sync"
	"sync/atomic"

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
	// Assign is the worker of each port.
	Assign  []int
	Options Options
	Neigh   neigh.Options
	IP      IPOptions // the zero value means the defaults
}

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
	owner   []*Worker // of each port's transmit queue

	ifaces atomic.Pointer[ifaceSet]
	ifMu   sync.Mutex // writers of ifaces

	stop    atomic.Bool
	stopped sync.Once
	live    atomic.Int32 // workers that may still hand frames to others
	running sync.WaitGroup
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
	if len(c.Ports) == 0 || len(c.Workers) == 0 || len(c.Assign) != len(c.Ports) {
		return nil, errors.New("a router needs at least one port and one worker, and a worker for every port")
	}
	r := &Router{
		arena: c.Arena, fib: c.FIB, clk: c.Clock, log: c.Log, ports: c.Ports, workers: c.Workers,
		neigh: neigh.New(c.FIB, c.Neigh), claims: claims{times: c.Neigh.Announce},
	}
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	for i, k := range c.Assign {
		if k < 0 || k >= len(c.Workers) {
			return nil, fmt.Errorf("port %s: worker %d of %d", c.Ports[i].Name, k, len(c.Workers))
		}
		if len(c.Ports[i].Tx) == 0 {
			return nil, fmt.Errorf("port %s has no transmit queue", c.Ports[i].Name)
		}
		if int(c.Ports[i].Index) != i {
			return nil, fmt.Errorf("port %s has index %d at place %d", c.Ports[i].Name, c.Ports[i].Index, i)
		}
		r.owner = append(r.owner, c.Workers[k])
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
		r.owner[i].adopt(p)
	}
	return r, nil
}

// Neighbours is the neighbour table.
func (r *Router) Neighbours() *neigh.Table { return r.neigh }

// portChanged follows a port's link state and MAC address.
func (r *Router) portChanged(p *port.Port) {
	// Whoever comes last must also have looked at the port last.
	r.ifMu.Lock()
	defer r.ifMu.Unlock()
	r.neigh.SetPortMAC(p.Index, p.MAC())
	if !p.Up() {
		r.neigh.FlushPort(p.Index)
	}
	r.fib.SetPortState(p.Index, p.Up())
	r.ifaces.Store(newIfaceSet(r, r.ifaces.Load()))
}

// Start runs the workers, each on its own thread, pinned where it was asked.
// On an error none is left running. A router runs once: after Stop it cannot be
// started again.
func (r *Router) Start() error {
	if r.stop.Load() {
		return errors.New("this router was stopped; make a new one")
	}
	for _, w := range r.workers {
		ready := make(chan error, 1)
		r.running.Go(func() { w.run(ready) })
		if err := <-ready; err != nil {
			r.Stop()
			return err
		}
	}
	return nil
}

// Stop ends the workers. Frames in the rings are sent first, as far as the
// devices do it soon; frames waiting inside the router are dropped under
// Shutdown. It is idempotent.
func (r *Router) Stop() {
	r.stop.Store(true)
	r.running.Wait()
	r.stopped.Do(func() {
		for _, w := range r.workers {
			w.abandon()
		}
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
		w := r.owner[q.Port]
		w.Do(func() { w.sendRequest(q) })
	})
	r.claim(now)
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
