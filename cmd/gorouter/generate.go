package main

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"gorouter/config"
	"gorouter/internal/inet"
	"gorouter/nic/model"
	"gorouter/pktgen"
	"gorouter/port"
	"gorouter/skb"
)

// openGenerator opens only the port at place i, as a generator's way out, and
// returns the streams it has to send. On an error nothing stays open.
func openGenerator(cfg *config.Config, i int, log *slog.Logger) (*box, []*pktgen.Stream, error) {
	c := &cfg.Ports[i]
	streams, err := streamsOf(cfg, c.Name)
	if err != nil {
		return nil, nil, err
	}
	for _, s := range streams {
		// A stream's configured addresses are those of the far end; here the
		// port itself is the sender.
		s.SrcMAC = inet.MAC{}
	}
	if len(streams) == 0 {
		return nil, nil, fmt.Errorf("port %s has no streams in %s (add one under pktgen: streams:)", c.Name, cfg.File)
	}
	b, err := newBox(cfg, log)
	if err != nil {
		return nil, nil, err
	}
	if err := b.openOne(i, streams); err != nil {
		_ = b.close()
		return nil, nil, err
	}
	return b, streams, nil
}

// openOne opens the port at place i; a counting station takes what a software
// port sends.
func (b *box) openOne(i int, streams []*pktgen.Stream) error {
	c := &b.cfg.Ports[i]
	p, err := b.openPort(uint16(i))
	if err != nil {
		return b.cfg.Errorf(c.Pos, "%w", err)
	}
	b.ports = make([]*port.Port, i+1)
	b.ports[i] = p
	if chip := b.chips[c.Name]; chip != nil {
		return b.sinkAt(i, chip, streams)
	}
	return nil
}

// sinkAt plugs a counting station into a software port.
func (b *box) sinkAt(i int, chip *model.Chip, streams []*pktgen.Stream) error {
	st, err := pktgen.NewStation(pktgen.StationConfig{
		MAC: stationMAC(uint16(i)), Peer: b.ports[i].MAC(), Sink: pktgen.NewSink(pktgen.SinkConfig{Streams: streams}),
	})
	if err != nil {
		return err
	}
	b.stations = append(b.stations, &station{port: b.cfg.Ports[i].Name, Station: st})
	cable, err := model.NewCable(chip, st, model.CableOptions{Clock: b.clk})
	if err != nil {
		return err
	}
	return b.drive(i, []model.Stepper{chip}, cable)
}

// peer is the destination of streams that leave theirs out: the station on a
// software port, else the port's first configured neighbour.
func (b *box) peer(i int) inet.MAC {
	c := &b.cfg.Ports[i]
	if b.chips[c.Name] != nil {
		return stationMAC(uint16(i))
	}
	for k := range b.cfg.Neighbors {
		if b.cfg.Neighbors[k].Port == c.Name {
			return b.cfg.Neighbors[k].MAC
		}
	}
	return inet.MAC{}
}

// generate sends the streams and reports.
func (b *box) generate(cmd *cobra.Command, streams []*pktgen.Stream, d time.Duration) (*pktgen.Report, error) {
	i := len(b.ports) - 1
	p, c := b.ports[i], &b.cfg.Ports[i]
	peer := b.peer(i)
	for _, s := range streams {
		if s.DstMAC == (inet.MAC{}) && peer == (inet.MAC{}) {
			return nil, fmt.Errorf("stream %q: port %s has no known neighbour to send to (give the stream a dst_mac, or the port a neighbour)", s.Name, c.Name)
		}
	}
	if err := p.Device.Start(); err != nil {
		return nil, fmt.Errorf("start port %s: %w", p.Name, err)
	}
	b.onClose(p.Device.Stop)
	rep, err := pktgen.Port(cmd.Context(), pktgen.PortConfig{
		Streams: streams, Port: p, Cache: b.workers[c.Worker].Cache(), Clock: b.clk, Peer: peer, Duration: d,
		Holders: []skb.Holder{p.Rx[0], p.Tx[0]},
	})
	if err != nil {
		return nil, errors.Join(err, b.failure())
	}
	// What the far end of a cable counted says more than what came back.
	for _, st := range b.stations {
		st.Publish()
		rep.Sink, rep.Totals = st.Sink().Results(), st.Sink().Totals()
		for k := range rep.Sink {
			for _, s := range rep.Streams {
				if s.Stream == rep.Sink[k].Stream {
					rep.Sink[k].Account(s.Sent)
				}
			}
		}
	}
	return &rep, b.failure()
}
