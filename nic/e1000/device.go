package e1000

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"gorouter/clock"
	"gorouter/internal/inet"
	"gorouter/mmio"
	"gorouter/nic/e1000/regs"
	"gorouter/port"
	"gorouter/rx"
	"gorouter/skb"
	"gorouter/tx"
)

const driverName = "e1000"

// Device is one port of an 8254x. It implements port.Device. The package
// comment says which goroutines may call what.
type Device struct {
	name   string
	cfg    Config
	quirks Quirks
	regs   mmio.Registers
	io     IOWindow
	irq    IRQ
	arena  *skb.Arena
	clock  *clock.Clock
	log    *slog.Logger

	port *port.Port
	rxq  *rx.E1000
	txq  *tx.E1000

	macSource   MACSource
	pcix        bool
	stats       *statistics
	linkChanges atomic.Uint64
	resets      atomic.Uint64
	txHangs     atomic.Uint64
	rxStalls    atomic.Uint64
	downs       atomic.Uint64
	lastHang    atomic.Pointer[HangReport]
	live        atomic.Bool  // running, for those who do not hold the lock
	due         atomic.Int64 // when Housekeep looks next, nanoseconds
	observeSoon atomic.Bool  // Housekeep looks at the link next time

	mu      sync.Mutex // held by every control operation
	layout  layout
	link    Link
	fresh   bool // reset and not used since
	used    bool // the rings have seen frames since their last reset
	running bool
	closed  bool

	observeAt int64 // when Housekeep looks at link and statistics next
	watch     watchdog
	recovery  recovery
	groups    []inet.MAC
	mta       [regs.MTACount]uint32
}

var _ port.Device = (*Device)(nil)

// Open resets the device, reads its EEPROM, chooses its address and makes its
// two queues. The device stays quiet until Start. On an error nothing is held.
// During Open nobody else may use the two caches.
func Open(c Config) (*Device, error) {
	c.fillDefaults()
	q, err := Probe(c.DeviceID)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Name, err)
	}
	if err := c.validate(&q); err != nil {
		return nil, err
	}
	d := &Device{
		name: c.Name, cfg: c, quirks: q, regs: c.Regs, io: c.IO, irq: c.IRQ, arena: c.Arena, clock: c.Clock, log: c.Log,
		port: &port.Port{Name: c.Name, Index: c.Index, MTU: c.MTU}, stats: newStatistics(),
	}
	if err := d.probeHardware(); err != nil {
		return nil, err
	}
	if err := d.makeQueues(); err != nil {
		return nil, err
	}
	d.port.Device = d
	if d.irq != nil {
		d.port.Events = d
	}
	d.port.Rx = []rx.Queue{d.rxq}
	d.port.Tx = []tx.Queue{d.txq}
	d.log.Info("device opened", "chip", q.Device.Name, "media", q.Device.Media, "reset", d.resetMethod(),
		"mac", d.port.MAC(), "mac_from", d.macSource, "mtu", c.MTU, "long_frames", d.layout.long, "device_strips_fcs", d.stripsFCS())
	return d, nil
}

// probeHardware is the part of Open that talks to the device.
func (d *Device) probeHardware() (err error) {
	if err := d.alive(); err != nil {
		return err
	}
	d.pcix = d.quirks.FirstMaxPCIX != 0 && d.read(regs.STATUS)&regs.StatusPCIXMODE != 0
	if d.layout, err = d.plan(d.cfg.MTU); err != nil {
		return err
	}
	before := d.receiveAddress() // what firmware left; a reset may lose it
	if err := d.resetHardware(); err != nil {
		return err
	}
	d.fresh = true
	words, err := d.readEEPROM()
	switch {
	case errors.Is(err, ErrGone):
		return err
	case err != nil:
		d.log.Warn("the EEPROM could not be read", "err", err)
		words = nil
	default:
		d.checkEEPROM(words)
	}
	mac, from, err := d.chooseMAC(d.cfg.MAC, words, d.receiveAddress(), before)
	if err != nil {
		return err
	}
	if from > MACEEPROM {
		d.log.Warn("no usable Ethernet address in the EEPROM", "mac", mac, "mac_from", from)
	}
	d.port.SetMAC(mac)
	d.macSource = from
	return nil
}

func (d *Device) resetMethod() ResetMethod {
	if d.quirks.Reset == ResetIO && d.io == nil {
		return ResetMMIO
	}
	return d.quirks.Reset
}

func (d *Device) makeQueues() (err error) {
	d.rxq, err = rx.NewE1000(rx.E1000Config{
		Name: d.name + " rx", Port: d.cfg.Index, Arena: d.arena, Cache: d.cfg.RxCache,
		Regs: d.regs, Tail: regs.RDT, KeepsFCS: !d.stripsFCS(), Options: d.cfg.Rx,
	})
	if err != nil {
		return err
	}
	c := tx.E1000Config{
		Name: d.name + " tx", Arena: d.arena, Cache: d.cfg.TxCache,
		Regs: d.regs, Tail: regs.TDT, MaxFrame: d.layout.maxFrame, Options: d.cfg.Tx,
		Delayed: d.timers().TIDV != 0,
	}
	if d.pcix {
		c.FirstMax, c.SplitEven = d.quirks.FirstMaxPCIX, d.quirks.SplitEvenPCIX
	}
	d.txq, err = tx.NewE1000(c)
	if err != nil {
		d.rxq.Close()
	}
	return err
}

// Port is the port with its queues. It is the same for the device's life.
func (d *Device) Port() *port.Port { return d.port }

// Driver implements port.Device.
func (d *Device) Driver() string { return driverName }

// Quirks is the record of the chip.
func (d *Device) Quirks() Quirks { return d.quirks }

// MACSource says where the port's address came from.
func (d *Device) MACSource() MACSource { return d.macSource }

// ErrClosed is what a closed device answers.
var ErrClosed = errors.New("the device was closed")

// Start brings the device up and lets frames flow. It does not wait for the
// link. After a Stop the rings begin anew: frames that were left on them are
// counted as dropped, under RxAborted and TxAborted. The queues' workers must
// not be running.
func (d *Device) Start() error {
	d.mu.Lock()
	err := d.start()
	d.mu.Unlock()
	d.tellLink()
	return err
}

func (d *Device) start() error {
	switch {
	case d.closed:
		return fmt.Errorf("%s: start: %w", d.name, ErrClosed)
	case d.running:
		return nil
	}
	if !d.fresh {
		if err := d.resetHardware(); err != nil {
			return fmt.Errorf("start: %w", err)
		}
	}
	d.fresh = false
	d.restartRings()
	d.setUpFilters()
	if err := d.setUpLink(); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	d.setUpReceive()
	d.setUpTransmit()
	if err := d.alive(); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	d.stats.prime(d.read)
	d.enableReceive()
	d.enableTransmit()
	d.used = true
	if err := d.sampleLink(); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	d.running, d.recovery.down, d.recovery.gone = true, false, false
	d.live.Store(true)
	now := d.clock.Now()
	d.recovery.started = now
	d.watch.restart(d.rxq.Counters().Live.Descriptors, d.stats.arrivals())
	d.observeAt = now + observeEvery
	d.due.Store(now + lookEvery)
	return nil
}

// restartRings takes both rings back to slot 0 with all buffers accounted for.
// The device must have been reset.
func (d *Device) restartRings() {
	if !d.used {
		return
	}
	d.rxq.Reset()
	d.txq.Reset()
	d.used = false
}

// Stop implements port.Device: interrupts are masked, receiver and transmitter
// are off, transfers under way have ended and the device has been reset, so
// that it touches no memory. Frames still on the rings stay there until Start,
// Reset or the queues' Close.
func (d *Device) Stop() error {
	d.mu.Lock()
	err := d.stop()
	d.mu.Unlock()
	d.tellLink()
	return err
}

func (d *Device) stop() error {
	d.recovery.down = false
	if !d.running {
		return nil
	}
	d.running = false
	d.live.Store(false)
	d.link = Link{}
	if err := d.alive(); err != nil {
		return fmt.Errorf("stop: %w", err)
	}
	moving := !d.quiesce()
	d.stats.collect(d.read)
	if moving {
		d.log.Warn("transfers did not end; the reset ends them", "ceiling", drainCeiling,
			"rdh", d.read(regs.RDH), "tdh", d.read(regs.TDH))
	}
	if err := d.resetHardware(); err != nil {
		return fmt.Errorf("stop: %w", err)
	}
	d.fresh = true
	return nil
}

// Close implements port.Device. The queues are their workers' to close, after
// this. No register is accessed afterwards.
func (d *Device) Close() error {
	d.mu.Lock()
	err := d.stop()
	d.closed = true
	d.mu.Unlock()
	d.tellLink()
	return err
}

// Reset brings a running device that misbehaves back: it is stopped, both
// rings are emptied with every frame counted (RxAborted and TxAborted) and
// every buffer accounted for, and it is started again. why is logged. The
// caller must own both queues or have stopped their workers.
func (d *Device) Reset(why string) error {
	d.mu.Lock()
	err := d.reset(why)
	d.mu.Unlock()
	d.tellLink()
	return err
}

func (d *Device) reset(why string) error {
	if !d.running {
		return fmt.Errorf("%s: reset: the device is not running (start it)", d.name)
	}
	d.log.Warn("device reset", "why", why)
	d.resets.Add(1)
	if err := d.stop(); err != nil {
		return fmt.Errorf("reset: %w", err)
	}
	if err := d.start(); err != nil {
		return fmt.Errorf("reset: %w", err)
	}
	return nil
}

// SetMTU changes the longest IP packet. The device must be stopped, since
// receive buffers and long packet enable depend on it; nothing changes on an
// error.
func (d *Device) SetMTU(mtu int) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.closed:
		return fmt.Errorf("%s: set MTU: %w", d.name, ErrClosed)
	case d.running:
		return fmt.Errorf("%s: the MTU cannot change while the device runs (stop it)", d.name)
	}
	l, err := d.plan(mtu)
	if err != nil {
		return err
	}
	d.layout = l
	d.cfg.MTU, d.port.MTU = mtu, mtu
	d.txq.SetMaxFrame(l.maxFrame)
	return nil
}

// SetMAC changes the port's address, on a running device too. A frame that
// comes in between the two register writes may be missed.
func (d *Device) SetMAC(m inet.MAC) error {
	if !usable(m) {
		return fmt.Errorf("%s: %v is no unicast Ethernet address (clear the lowest bit of the first byte)", d.name, m)
	}
	d.mu.Lock()
	switch {
	case d.closed:
		d.mu.Unlock()
		return fmt.Errorf("%s: set MAC: %w", d.name, ErrClosed)
	case d.running:
		d.setAddress(m)
	}
	d.macSource = MACConfigured
	d.mu.Unlock()
	d.port.SetMAC(m)
	return nil
}
