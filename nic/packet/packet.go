// Package packet is a port over a kernel network interface: AF_PACKET sockets
// with mapped TPACKET_V2 rings. It works on every Ethernet interface, veth
// included, and copies each frame once a direction.
//
// # The kernel's own stack
//
// A packet socket gets a copy; the kernel goes on with the original and would
// answer or forward it a second time. Opening a port therefore makes the kernel
// drop everything that arrives on the interface right after the socket has
// seen it, by a two-instruction BPF program at the interface's traffic-control
// ingress. It is attached through a BPF link (tcx, Linux 6.6), which dies with
// the process whatever kills it, or on older kernels as a filter of a clsact
// qdisc, which carries our name, is taken away by Close, and is replaced at
// the next start when a killed run left it. Addresses, routes and settings
// such as ip_forward stay as they are, so programs of this machine can still
// be configured from them; but nothing that arrives on the interface reaches
// these programs while the port is open. An XDP program could not do it: it
// runs before packet sockets.
//
// # What is changed and undone
//
// Receive and segmentation offloads of the interface are turned off, for they
// make frames that were never on a wire; an interface that is down is set up;
// promiscuous mode is asked for when the port has another MAC address than the
// interface. Close undoes each of these.
package packet

import (
	"fmt"
	"log/slog"
	"net"
	"sync"

	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"gorouter/internal/inet"
	"gorouter/port"
	"gorouter/rx"
	"gorouter/skb"
	"gorouter/tx"
)

// Driver is the name of this kind of port in the configuration.
const Driver = "af_packet"

// What becomes of super-frames: several segments in one frame, as senders on
// this machine leave them to segmenting devices.
const (
	// SuperFramesSegment cuts them into the frames that their sender meant.
	// The receive slots are 64 KiB for it, 17 MiB for a ring of 256.
	SuperFramesSegment = "segment"
	// SuperFramesDrop drops them as rx_super_frame; the slots are as long as
	// the interface's MTU asks.
	SuperFramesDrop = "drop"
)

// Config says what to open. The zero values of MTU, MAC, Isolation,
// SuperFrames and Log mean their defaults.
type Config struct {
	Interface   string   // the kernel's name
	Name        string   // the port's; the interface's when empty
	Index       uint16   // place in the router's list of ports
	MTU         int      // longest IP packet sent; 0: the interface's, which is also the most
	MAC         inet.MAC // zero: the interface's
	Rx          rx.Options
	Tx          tx.Options
	Cache       *skb.Cache // of the worker that drives the port
	Isolation   string     // IsolationAuto when empty
	SuperFrames string     // SuperFramesSegment when empty
	Log         *slog.Logger
}

// Device is the control side of the port.
type Device struct {
	cfg  Config
	port *port.Port
	log  *slog.Logger
	nl   *netlink.Handle
	eth  *ethtool.Ethtool

	rx, tx socket
	rxq    *rx.Packet
	txq    *tx.Packet
	watch  *watcher

	mu       sync.Mutex // guards what follows
	on       *attachment
	opening  bool // inside Open
	started  bool
	closed   bool
	given    bool   // back for good
	changes  uint64 // link events that changed something
	missed   uint64 // PACKET_STATISTICS is cleared by reading it
	received uint64
}

// Open opens the interface and returns a port with one receive and one
// transmit queue; its Device is a *Device. Frames flow after Start. It must be
// called in the network namespace of the interface. The error is one line that
// names the interface and the remedy; nothing is left behind then.
func Open(c Config) (*port.Port, error) {
	if c.Name == "" {
		c.Name = c.Interface
	}
	d := &Device{cfg: c, log: c.Log}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	d.log = d.log.With("port", c.Name, "interface", c.Interface)
	d.rx.fd, d.tx.fd = -1, -1
	if err := d.open(); err != nil {
		_ = d.Close()
		return nil, fmt.Errorf("port %s: %w", c.Name, err)
	}
	return d.port, nil
}

func (d *Device) open() error {
	c := &d.cfg
	if errs := append(rx.OptionTable.Check(&c.Rx), tx.OptionTable.Check(&c.Tx)...); len(errs) > 0 {
		return errs[0]
	}
	if c.SuperFrames == "" {
		c.SuperFrames = SuperFramesSegment
	}
	if c.SuperFrames != SuperFramesSegment && c.SuperFrames != SuperFramesDrop {
		return fmt.Errorf("super-frames %q: expected %s or %s", c.SuperFrames, SuperFramesSegment, SuperFramesDrop)
	}
	var err error
	if d.nl, err = netlink.NewHandle(unix.NETLINK_ROUTE); err != nil {
		return fmt.Errorf("open a netlink socket: %w", err)
	}
	link, err := d.find()
	if err != nil {
		return err
	}
	linkMTU := link.Attrs().MTU
	mtu := linkMTU
	if c.MTU > mtu {
		return fmt.Errorf("MTU %d is above the %d of interface %s (ip link set %s mtu %d)", c.MTU, mtu, c.Interface, c.Interface, c.MTU)
	}
	if c.MTU != 0 {
		mtu = c.MTU
	}
	if err := d.openSockets(mtu, linkMTU); err != nil {
		return err
	}
	if d.eth, err = ethtool.NewEthtool(); err != nil {
		return fmt.Errorf("open an ethtool socket: %w", err)
	}
	d.port = &port.Port{
		Name: c.Name, Index: c.Index, MTU: mtu, Device: d,
		Rx: []rx.Queue{d.rxq}, Tx: []tx.Queue{d.txq},
	}
	d.port.Events = port.FileEvents(d.rx.fd, d.port.Rx, d.port.Tx)
	// The watcher subscribes before the state is read, so that no change falls
	// in between.
	if d.watch, err = newWatcher(d); err != nil {
		return err
	}
	d.mu.Lock()
	d.opening = true
	err = d.attach(link)
	d.opening = false
	d.mu.Unlock()
	if err != nil {
		return err
	}
	d.refresh()
	d.watch.start()
	return nil
}

// find looks the interface up and refuses what cannot be a port.
func (d *Device) find() (netlink.Link, error) {
	name := d.cfg.Interface
	link, err := d.nl.LinkByName(name)
	if err != nil {
		if _, gone := err.(netlink.LinkNotFoundError); gone {
			return nil, fmt.Errorf("no interface %q; there are: %s", name, d.interfaces())
		}
		return nil, fmt.Errorf("look up interface %s: %w", name, err)
	}
	if a := link.Attrs(); a.EncapType != "ether" || a.Flags&net.FlagLoopback != 0 || len(a.HardwareAddr) != len(inet.MAC{}) {
		return nil, fmt.Errorf("interface %s is not Ethernet but %s; choose another", name, a.EncapType)
	}
	return link, nil
}

// Driver implements port.Device.
func (d *Device) Driver() string { return Driver }

// FD is the receive socket, for sleeping in poll(2) until a frame waits. All
// slots must have been given back before (rx.Queue.EndTurn with idle), or it
// looks readable all the time.
func (d *Device) FD() int { return d.rx.fd }

// Start implements port.Device.
func (d *Device) Start() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.started {
		return nil
	}
	d.started = true
	if d.on == nil {
		return nil // the interface went away meanwhile; the watcher waits for it
	}
	if err := d.rx.bind(unix.ETH_P_ALL, d.on.index); err != nil {
		return fmt.Errorf("port %s: receive from interface %s: %w", d.cfg.Name, d.cfg.Interface, err)
	}
	return nil
}

// Stop implements port.Device.
func (d *Device) Stop() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.stop()
}

func (d *Device) stop() error {
	if !d.started {
		return nil
	}
	d.started = false
	if err := d.rx.deafen(); err != nil {
		return fmt.Errorf("port %s: stop receiving: %w", d.cfg.Name, err)
	}
	return nil
}

// Close implements port.Device. The worker must have let go of the queues.
func (d *Device) Close() error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil
	}
	d.closed = true
	first := d.stop()
	keep := func(err error) {
		if first == nil && err != nil {
			first = fmt.Errorf("port %s: %w", d.cfg.Name, err)
		}
	}
	d.readStatistics()
	if d.on != nil {
		keep(d.detach())
	}
	d.mu.Unlock()

	if d.watch != nil {
		keep(d.watch.close()) // waits for a refresh, which takes the lock
	}
	if d.rxq != nil {
		d.rxq.Close()
	}
	if d.txq != nil {
		d.txq.Close()
	}
	d.mu.Lock() // against Stats
	keep(d.rx.close())
	keep(d.tx.close())
	d.mu.Unlock()
	if d.eth != nil {
		d.eth.Close()
	}
	if d.nl != nil {
		d.nl.Close()
	}
	if d.port != nil {
		d.port.SetUp(false)
	}
	return first
}

// GiveBack undoes what Open changed on the interface and leaves the rest as it
// is: the last act of a program that ends of a panic, whose workers still use
// the queues. Safe for concurrent use; Close frees the rest.
func (d *Device) GiveBack() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.given = true // the watcher does not attach it again
	if d.on == nil {
		return nil
	}
	if err := d.detach(); err != nil {
		return fmt.Errorf("port %s: %w", d.cfg.Name, err)
	}
	return nil
}

// Stats implements port.Device: rx_missed are frames for which no slot was
// free, the tx_ ones what the kernel answered to send calls.
func (d *Device) Stats() map[string]uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.readStatistics()
	e := d.txq.Errors()
	s := map[string]uint64{
		port.RxMissed: d.missed, "rx_received": d.received,
		"tx_again": e.Again.Load(), "tx_no_buffers": e.NoBufs.Load(), "tx_net_down": e.NetDown.Load(),
		"tx_wrong_format": e.WrongFormat.Load(), "tx_other_errors": e.Other.Load(),
		"link_changes": d.changes,
	}
	if d.on != nil {
		s["link_mtu"] = uint64(d.on.mtu)
	}
	return s
}

// readStatistics adds up what the kernel counted since the last time.
func (d *Device) readStatistics() {
	if d.rx.fd < 0 {
		return
	}
	if s, err := unix.GetsockoptTpacketStats(d.rx.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS); err == nil {
		// The kernel's packets include its drops.
		d.received += uint64(s.Packets - s.Drops)
		d.missed += uint64(s.Drops)
	}
}
