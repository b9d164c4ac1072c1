package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"gorouter/clock"
	"gorouter/config"
	"gorouter/dataplane"
	"gorouter/fib"
	"gorouter/nic/model"
	"gorouter/pktgen"
	"gorouter/port"
	"gorouter/skb"
)

// box is everything that runs: opened from a configuration, closed in the
// reverse order.
type box struct {
	cfg     *config.Config
	log     *slog.Logger
	clk     *clock.Clock
	arena   *skb.Arena
	fib     *fib.FIB
	workers []*dataplane.Worker
	assign  []int
	ports   []*port.Port
	router  *dataplane.Router

	chips    map[string]*model.Chip  // software chips by port
	cables   map[string]*model.Cable // software cables by the port that steps them
	threads  []*model.Thread
	stations []*station
	undo     []func() error // to close what was opened, last first

	stop    chan struct{}
	stopped chan struct{}
	running bool

	began, ended int64 // what the counters cover, by clk
}

// station is a generator and sink at the far end of a port's cable.
type station struct {
	port string
	*pktgen.Station
}

// openBox opens everything that the configuration names. On an error nothing
// stays open.
func openBox(cfg *config.Config, log *slog.Logger) (*box, error) {
	b, err := newBox(cfg, log)
	if err == nil {
		if err = b.open(); err == nil {
			return b, nil
		}
		_ = b.close()
	}
	return nil, err
}

// newBox makes what every use of ports needs: memory, FIB and workers.
func newBox(cfg *config.Config, log *slog.Logger) (*box, error) {
	if err := precheck(cfg); err != nil {
		return nil, err
	}
	b := &box{cfg: cfg, log: log, clk: clock.Machine(), chips: map[string]*model.Chip{}, cables: map[string]*model.Cable{}}
	var err error
	if b.arena, err = skb.NewArena(cfg.Buffers); err != nil {
		return nil, err
	}
	b.onClose(b.arena.Close)
	if cfg.Buffers.HugePages && !b.arena.Huge() {
		log.Debug("no huge pages are free; using ordinary ones", "remedy", "sysctl vm.nr_hugepages=N")
	}
	b.fib = fib.New(fib.Options{})
	b.workers = dataplane.NewWorkers(b.arena, b.fib, b.clk, len(cfg.Workers))
	for i, w := range cfg.Workers {
		b.workers[i].CPU = w.CPU
	}
	return b, nil
}

// open opens the ports and joins them to a router.
func (b *box) open() error {
	cfg := b.cfg
	var weights []int
	for i := range cfg.Ports {
		p, err := b.openPort(uint16(i))
		if err != nil {
			return cfg.Errorf(cfg.Ports[i].Pos, "%w", err)
		}
		b.ports = append(b.ports, p)
		b.assign = append(b.assign, cfg.Ports[i].Worker)
		weights = append(weights, cfg.Ports[i].Weight)
	}
	err := b.joinCables()
	if err != nil {
		return err
	}
	b.router, err = dataplane.New(dataplane.Config{
		Arena: b.arena, FIB: b.fib, Clock: b.clk, Log: b.log, Ports: b.ports,
		Workers: b.workers, Assign: b.assign, Weights: weights, Options: cfg.Poll, IP: cfg.IP, Neigh: cfg.Neigh,
		OnPanic: b.giveBack,
	})
	if err != nil {
		return err
	}
	for i := range cfg.Streams {
		if s := &cfg.Streams[i]; cfg.Ports[cfg.PortIndex(s.Port)].Driver != config.DriverModel {
			b.log.Warn("the stream is not sent while routing; it is for gorouter pktgen", "stream", s.Name, "port", s.Port)
		}
	}
	for _, line := range unused(cfg) {
		b.log.Warn(line)
	}
	return b.configure()
}

// onClose has f run when the box is closed, before what was opened earlier.
func (b *box) onClose(f func() error) { b.undo = append(b.undo, f) }

// configure sets addresses, neighbours and routes.
func (b *box) configure() error {
	for i := range b.cfg.Ports {
		for _, a := range b.cfg.Ports[i].Addresses {
			if err := b.router.AddAddress(uint16(i), a.Prefix); err != nil {
				return b.cfg.Errorf(a.Pos, "%w", err)
			}
		}
	}
	for i := range b.cfg.Neighbors {
		n := &b.cfg.Neighbors[i]
		if n.Address.Is6() {
			continue // unused says so
		}
		if err := b.router.Neighbours().SetPermanent(uint16(b.cfg.PortIndex(n.Port)), n.Address, n.MAC); err != nil {
			return b.cfg.Errorf(n.Pos, "%w", err)
		}
	}
	return b.loadRoutes()
}

// start lets frames flow.
func (b *box) start() error {
	b.began = b.clk.Now()
	for _, p := range b.ports {
		if err := p.Device.Start(); err != nil {
			return fmt.Errorf("start port %s: %w", p.Name, err)
		}
		b.onClose(p.Device.Stop)
	}
	if err := b.router.Start(); err != nil {
		return err
	}
	b.running = true
	b.stop, b.stopped = make(chan struct{}), make(chan struct{})
	go b.housekeep()
	return nil
}

// housekeep does the router's timed work outside the workers.
func (b *box) housekeep() {
	defer close(b.stopped)
	defer b.onPanic()()
	t := time.NewTicker(100 * time.Millisecond)
	defer t.Stop()
	for {
		select {
		case <-b.stop:
			return
		case <-t.C:
			b.router.Housekeep()
		}
	}
}

// halt stops the workers and the devices; the rings keep their frames until
// close, so that buffers can be counted. It is idempotent.
func (b *box) halt() {
	if !b.running && b.router != nil {
		b.router.Stop() // idempotent
	}
	if b.running {
		b.running = false
		ended, moved := b.settle()
		close(b.stop)
		<-b.stopped
		b.router.Stop()
		if b.ended = b.clk.Now(); b.moved() == moved && ended != 0 {
			b.ended = ended // nothing more came while it was waited for that
		}
		for _, t := range b.threads {
			t.Stop() // idempotent; publishing is for one goroutine
		}
		b.lookAgain()
		for _, st := range b.stations {
			st.Publish()
		}
	}
}

// covered is the time that the counters of a halted box cover.
func (b *box) covered() time.Duration { return time.Duration(b.ended - b.began) }

// lookAgain has the devices take over what their chips have counted, which
// they do but once a second. The workers must have stopped.
func (b *box) lookAgain() {
	for _, p := range b.ports {
		if d, ok := p.Device.(interface{ CheckLink() error }); ok {
			if err := d.CheckLink(); err != nil {
				b.log.Warn("the device's statistics are not the last", "port", p.Name, "error", err)
			}
		}
	}
}

// moved is the number of frames that have come in and gone out.
func (b *box) moved() uint64 {
	n := uint64(0)
	for _, p := range b.ports {
		for _, q := range p.Rx {
			n += q.Counters().Read().Packets
		}
		for _, q := range p.Tx {
			n += q.Counters().Read().Packets
		}
	}
	return n
}

// close ends everything; it is idempotent.
func (b *box) close() error {
	b.halt()
	var errs []error
	for i := len(b.undo) - 1; i >= 0; i-- {
		errs = append(errs, b.undo[i]())
	}
	b.undo = nil
	return errors.Join(errs...)
}

// failure is the first breach or failure of a software chip, nil while all is
// well.
func (b *box) failure() error {
	for i := range b.cfg.Ports {
		name := b.cfg.Ports[i].Name // not every port need be open
		if c := b.chips[name]; c != nil {
			if err := c.Err(); err != nil {
				return fmt.Errorf("port %s: %w", name, err)
			}
		}
	}
	return nil
}

// networks are the port's connected IPv4 networks.
func networks(p *config.Port) []netip.Prefix {
	var ns []netip.Prefix
	for _, a := range p.Addresses {
		if a.Prefix.Addr().Is4() {
			ns = append(ns, a.Prefix.Masked())
		}
	}
	return ns
}

// addresses are the port's own addresses.
func addresses(p *config.Port) []netip.Addr {
	var as []netip.Addr
	for _, a := range p.Addresses {
		as = append(as, a.Prefix.Addr())
	}
	return as
}
