package main

import (
	"fmt"

	"gorouter/config"
	"gorouter/internal/inet"
	"gorouter/nic/e1000"
	"gorouter/nic/loop"
	"gorouter/nic/model"
	"gorouter/nic/packet"
	"gorouter/pktgen"
	"gorouter/port"
)

// openPort opens the port at place i of the configuration.
func (b *box) openPort(i uint16) (*port.Port, error) {
	c := &b.cfg.Ports[i]
	switch c.Driver {
	case config.DriverModel:
		return b.openModel(c, i)
	case config.DriverAFPacket:
		p, err := packet.Open(packet.Config{
			Interface: c.Interface, Name: c.Name, Index: i, MTU: c.MTU, MAC: c.MAC,
			Rx: c.Rx, Tx: c.Tx, Cache: b.workers[c.Worker].Cache(),
			Isolation: c.Packet.Isolation, SuperFrames: c.Packet.SuperFrames, Log: b.log,
		})
		return b.own(p, err)
	case config.DriverPcap:
		mac := c.MAC
		if mac == (inet.MAC{}) {
			mac = portMAC(i)
		}
		p, err := loop.Open(loop.Config{
			File: c.File, Output: c.Output, Loop: c.Loop, Name: c.Name, Index: i, MAC: mac, MTU: c.MTU,
			Rx: c.Rx, Tx: c.Tx, Arena: b.arena, Cache: b.workers[c.Worker].Cache(),
		})
		return b.own(p, err)
	}
	return nil, fmt.Errorf("port %s: driver %q is not in this build", c.Name, c.Driver)
}

// own notes how the port is closed: the device first, then its queues.
func (b *box) own(p *port.Port, err error) (*port.Port, error) {
	if err != nil {
		return nil, err
	}
	b.onClose(func() error {
		err := p.Device.Close()
		for _, q := range p.Rx {
			q.Close()
		}
		for _, q := range p.Tx {
			q.Close()
		}
		return err
	})
	return p, nil
}

// portMAC is the address of a software port that is given none: locally
// administered, different for each port.
func portMAC(i uint16) inet.MAC { return inet.MAC{2, 0, 0, 0, byte(i >> 8), byte(i) + 1} }

// stationMAC is the address of the station at the far end of a port's cable.
func stationMAC(i uint16) inet.MAC { return inet.MAC{2, 0, 0, 1, byte(i >> 8), byte(i) + 1} }

// openModel makes a software chip and has the driver bring it up.
func (b *box) openModel(c *config.Port, i uint16) (*port.Port, error) {
	mac := c.MAC
	if mac == (inet.MAC{}) {
		mac = portMAC(i)
	}
	mc := model.Config{
		Name: c.Name, Arena: b.arena, Clock: b.clk, MAC: mac, Mode: c.Model.Mode, Chip: c.Model.Chip,
		TDH: c.Model.TDH, Threaded: c.Model.Thread, Seed: uint64(c.Model.Seed), Log: b.log,
	}
	if c.Model.Bus != config.UsualBus {
		mc.Bus = c.Model.Bus
	}
	var irq *port.Signal
	if c.Model.Thread {
		// A chip that runs inline does nothing while its worker sleeps, so
		// only one on a thread can interrupt.
		var err error
		if irq, err = port.NewSignal(); err != nil {
			return nil, fmt.Errorf("port %s: %w", c.Name, err)
		}
		b.onClose(irq.Close)
		mc.Interrupt = irq.Raise
	}
	chip, err := model.New(mc)
	if err != nil {
		return nil, fmt.Errorf("port %s: %w", c.Name, err)
	}
	b.onClose(chip.Close)
	b.chips[c.Name] = chip
	cache := b.workers[c.Worker].Cache()
	ec := e1000.Config{
		Name: c.Name, Index: i, Regs: chip, IO: chip.IO(), Arena: b.arena, Clock: b.clk, DeviceID: chip.Info().Device,
		MTU: c.MTU, Rx: c.Rx, Tx: c.Tx, RxCache: cache, TxCache: cache, Log: b.log,
	}
	if irq != nil {
		ec.IRQ = irq
	}
	dev, err := e1000.Open(ec)
	if err != nil {
		return nil, err
	}
	p := dev.Port()
	// The device logs what goes wrong, and recovers on the worker that owns
	// its rings.
	p.Step = func(now int64) { _ = dev.Housekeep(now) }
	return b.own(p, nil)
}

// cableBatch is how many frames a cable moves each way in one step.
const cableBatch = 256

// joinCables plugs a cable into every software port: to another port, or to a
// station that generates the port's streams and takes in what comes out. The
// poll loop of the port's worker steps chip and cable once a round, unless the
// port asks for a thread.
func (b *box) joinCables() error {
	done := map[string]bool{}
	for i := range b.cfg.Ports {
		c := &b.cfg.Ports[i]
		if c.Driver != config.DriverModel || done[c.Name] {
			continue
		}
		near := b.chips[c.Name]
		work := []model.Stepper{near}
		var far model.Endpoint
		if c.Cable != "" {
			other := b.chips[c.Cable]
			done[c.Cable] = true
			far = other
			work = append(work, other)
		} else {
			st, err := b.newStation(c, uint16(i))
			if err != nil {
				return b.cfg.Errorf(c.Pos, "port %s: %w", c.Name, err)
			}
			far = st
		}
		o := model.CableOptions{Lossless: true, Clock: b.clk, BToA: c.Impair, Seed: uint64(c.Model.Seed), Flaps: flaps(c)}
		if c.Cable != "" {
			other := &b.cfg.Ports[b.cfg.PortIndex(c.Cable)]
			o.AToB = other.Impair
			o.Flaps = append(o.Flaps, flaps(other)...)
		}
		cable, err := model.NewCable(near, far, o)
		if err != nil {
			return b.cfg.Errorf(c.Pos, "port %s: %w", c.Name, err)
		}
		b.cables[c.Name] = cable
		if err := b.drive(i, work, cable); err != nil {
			return b.cfg.Errorf(c.Pos, "port %s: %w", c.Name, err)
		}
	}
	return nil
}

// flaps is the port's schedule of pulling the cable out, if it has one.
func flaps(c *config.Port) []model.Flap {
	if c.Flap.Down == 0 {
		return nil
	}
	return []model.Flap{c.Flap}
}

// cableStepper steps a cable by a bounded number of frames.
type cableStepper struct{ *model.Cable }

func (s cableStepper) Step(now int64) int { return s.Cable.Step(now, cableBatch) }

// drive has chips and cable stepped, by the worker of port i or by a thread.
func (b *box) drive(i int, chips []model.Stepper, cable *model.Cable) error {
	work := append(chips, cableStepper{cable})
	if b.cfg.Ports[i].Model.Thread {
		t, err := model.StartThread(b.clk, work...)
		if err != nil {
			return err
		}
		b.threads = append(b.threads, t)
		b.onClose(func() error { t.Stop(); return nil })
		return nil
	}
	p := b.ports[i]
	house := p.Step
	p.Step = func(now int64) {
		for _, s := range work {
			s.Step(now)
		}
		house(now)
	}
	return nil
}

func (b *box) newStation(c *config.Port, i uint16) (model.Endpoint, error) {
	streams, err := streamsOf(b.cfg, c.Name)
	if err != nil {
		return nil, err
	}
	var all []*pktgen.Stream
	for k := range b.cfg.Streams {
		s := b.cfg.Streams[k].Stream
		all = append(all, &s)
	}
	st, err := pktgen.NewStation(pktgen.StationConfig{
		MAC: stationMAC(i), Addrs: networks(c), Except: addresses(c), Streams: streams, Peer: b.ports[i].MAC(),
		Sink: pktgen.NewSink(pktgen.SinkConfig{Streams: all}),
	})
	if err != nil {
		return nil, err
	}
	b.stations = append(b.stations, &station{port: c.Name, Station: st})
	return st, nil
}
