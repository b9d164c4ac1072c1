package model

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"gorouter/clock"
	"gorouter/internal/inet"
	"gorouter/skb"
)

// What the transmit head register shows.
const (
	TDHSent    = "sent"    // the first descriptor whose frame has not left yet
	TDHFetched = "fetched" // the first descriptor not yet in the chip's cache
)

// Config is what a chip is made of. Arena is required; the rest has defaults.
type Config struct {
	Name  string // for reports; default is the chip's name
	Chip  string // name in Chips; default 82540EM
	Bus   string // name in Buses; default depends on the chip
	Port  int    // which of the chip's ports, from 0; they share an EEPROM's content
	Arena *skb.Arena
	Clock *clock.Clock // default is the machine's
	// MAC is written to the EEPROM; zero gives 02:00:00:00:00:01. Port 1 has
	// the same with the last bit flipped, see Chip.MAC.
	MAC inet.MAC

	// Mode is ModeStrict, ModeLax or ModeQEMU. Empty is strict or lax by Strict.
	Mode string
	// Strict makes the chip watch the rules, those in Waivers excepted. With
	// ModeQEMU it watches those that QEMU has an equivalent for.
	Strict  bool
	Waivers []Rule
	// CheckContent makes strictness extend to the bytes of buffers that the
	// device owns, at the price of a pass over them at hand-over and at use.
	CheckContent bool
	// OnBreach is called for every breach, and the chip then goes on as
	// hardware would. Without it the first breach is logged and stops the
	// chip. It is called with the chip locked and must call no method of it
	// but Err.
	OnBreach func(Breach)

	TDH      string // TDHSent (default) or TDHFetched
	Threaded bool   // the chip is stepped by another goroutine than the driver's

	// Seed decides what faults that strike by chance do.
	Seed uint64

	// Interrupt is called, without any lock held, each time the interrupt
	// line goes from quiet to asserted. It runs on whichever goroutine did it.
	Interrupt func()
	Log       *slog.Logger
}

// Chip is one software controller. It implements mmio.Registers for the
// driver and Endpoint for the cable. Read and Write may be called from any
// goroutine, the writes of one tail register from one at a time. Deliver, Next
// and Step belong to the goroutine that steps the chip.
type Chip struct {
	cfg      Config
	info     ChipInfo
	arena    *skb.Arena
	threaded bool
	strict   bool
	content  bool
	qemu     bool
	bus      Bus
	busRules bool   // the bus limits transmit descriptors
	armed    uint64 // rules that are watched, one bit each

	rx, tx ring
	rxNeed atomic.Uint32 // bytes that a receive buffer must have room for
	txRule atomic.Uint32 // txNeedsRS, txNoTimer

	first   atomic.Pointer[Breach]
	stopped atomic.Bool

	// What follows is guarded by mu. A step holds it for one batch.
	mu         sync.Mutex
	raw        []uint32 // registers without behaviour of their own
	stats      [statWords]uint64
	now        int64 // of the last step
	rctl       uint32
	closed     bool
	resetUntil int64
	cable      *Cable
	plugged    bool   // the cable has a link partner
	link       bool   // STATUS.LU
	faulty     uint32 // faults that are injected, one bit each, and noDMA

	eeprom   [eepromWords]uint16
	eerdBusy bool
	wire     microwire
	phy      phy
	phyReset bool // the PHY was reset since the chip was
	gone     bool // off the bus
	viaIO    bool // the register write under way came through the I/O window
	ioAddr   uint32
	irq      interrupt
	rxState  rxState
	txState  txState
	filter   filter
	thread   *Thread

	fault      [NumFaults]faultState
	faultStats FaultStats
	rng        *rand.Rand

	rxRefuse int64 // QEMU refuses reception until then
	linkDue  int64 // QEMU's link comes up then
	anDone   bool  // and its PHY says so
	outbox   outbox
}

// New makes a chip that has just been powered up.
func New(cfg Config) (*Chip, error) {
	if cfg.Chip == "" {
		cfg.Chip = chips[0].Name
	}
	if cfg.Name == "" {
		cfg.Name = cfg.Chip
	}
	if cfg.Arena == nil {
		return nil, fmt.Errorf("model %s: no arena to do DMA in", cfg.Name)
	}
	c := &Chip{cfg: cfg, arena: cfg.Arena, threaded: cfg.Threaded}
	var err error
	if c.info, err = chipByName(cfg.Chip); err != nil {
		return nil, fmt.Errorf("model %s: %w", cfg.Name, err)
	}
	if err = c.setMode(); err != nil {
		return nil, err
	}
	if c.bus, err = c.info.bus(cfg.Bus); err != nil {
		return nil, fmt.Errorf("model %s: %w", cfg.Name, err)
	}
	if cfg.Port < 0 || cfg.Port >= c.info.Ports {
		return nil, fmt.Errorf("model %s: port %d of a %s, which has %d", cfg.Name, cfg.Port, c.info.Name, c.info.Ports)
	}
	c.busRules = c.bus.PCIX && !c.qemu
	if cfg.TDH == "" {
		c.cfg.TDH = TDHSent
	}
	if c.cfg.TDH != TDHSent && c.cfg.TDH != TDHFetched {
		return nil, fmt.Errorf("model %s: tdh is %q, expected %s or %s", cfg.Name, cfg.TDH, TDHSent, TDHFetched)
	}
	if cfg.MAC == (inet.MAC{}) {
		c.cfg.MAC = inet.MAC{2, 0, 0, 0, 0, 1}
	}
	if c.cfg.MAC.IsMulticast() {
		return nil, fmt.Errorf("model %s: %v is a group address, a port needs a unicast one", cfg.Name, cfg.MAC)
	}
	if cfg.Clock == nil {
		c.cfg.Clock = clock.Machine()
	}
	if cfg.Log == nil {
		c.cfg.Log = slog.New(slog.DiscardHandler)
	}
	if c.strict {
		c.armed = 1<<NumRules - 1
		for _, r := range cfg.Waivers {
			if int(r) >= NumRules {
				return nil, fmt.Errorf("model %s: waiver for an unknown rule %d", cfg.Name, r)
			}
			c.armed &^= 1 << r
		}
		c.content = cfg.CheckContent
	}
	c.rx.init("rx", c.content)
	c.tx.init("tx", c.content)
	c.txState.buf = make([]byte, maxTxBuffer)
	c.raw = make([]uint32, regWords)
	c.loadEEPROM()
	c.phy.reset(c.info.PHY)
	c.reset()
	c.loadAddress()
	return c, nil
}

// Info identifies the chip.
func (c *Chip) Info() ChipInfo { return c.info }

// Bus is the bus that the chip is on.
func (c *Chip) Bus() Bus { return c.bus }

// MAC is the address of the chip's port: that of the EEPROM, with the last bit
// flipped on port 1 (5.6.1).
func (c *Chip) MAC() inet.MAC {
	m := c.cfg.MAC
	m[5] ^= byte(c.cfg.Port)
	return m
}

// Name is the name given in the configuration.
func (c *Chip) Name() string { return c.cfg.Name }

// Holds is the number of descriptors that the chip owns: handed over and not
// yet given back. Exact when neither driver nor chip is at work.
func (c *Chip) Holds() (rx, tx int) {
	if c.rx.on.Load() {
		rx = int(c.rx.owned())
	}
	if c.tx.on.Load() {
		tx = int(c.tx.owned())
	}
	return rx, tx
}

// ErrClosed is what use of a closed chip gives.
var ErrClosed = errors.New("device is closed")

// Close unplugs and stops the chip: it touches no memory afterwards, and any
// register access is a breach. It is idempotent.
func (c *Chip) Close() error {
	c.Stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.closed = true
		c.plugged = false
		c.txState.drop()
		c.rx.on.Store(false)
		c.tx.on.Store(false)
		c.setLink()
	}
	return nil
}

// Step does pending work up to a bound and reports how many frames moved. now
// is the time in nanoseconds. A chip on a cable steps the cable and with it
// the other end, so all chips that share one must be stepped by the same
// goroutine; a second call in a round does no harm.
func (c *Chip) Step(now int64) int {
	if c.cable != nil {
		return c.cable.Step(now, DefaultBurst)
	}
	c.mu.Lock()
	c.begin(now)
	c.end()
	call := c.irq.take()
	c.mu.Unlock()
	if call {
		c.cfg.Interrupt()
	}
	return 0
}

// begin opens a step; the lock is held.
func (c *Chip) begin(now int64) {
	if now > c.now {
		c.now = now
	}
	if c.linkDue != 0 {
		c.negotiated()
	}
}

// end closes a step: what was sent is given back, timers run.
func (c *Chip) end() {
	c.finishTx()
	c.expire()
	if c.faulty&(1<<FaultSpuriousInterrupt) != 0 && !c.gone && c.strike(FaultSpuriousInterrupt) {
		c.irq.call = c.cfg.Interrupt != nil
	}
	c.evaluate()
}

// Next implements Endpoint: it takes the next frame from the transmit ring.
// The frame's descriptor is given back by the next call or the next Step.
func (c *Chip) Next(now int64) []byte {
	c.mu.Lock()
	c.begin(now)
	f := c.next()
	c.mu.Unlock()
	return f
}

// Deliver implements Endpoint: a frame comes in from the cable.
func (c *Chip) Deliver(frame []byte) bool { return c.DeliverBad(frame, 0) }

// DeliverBad delivers a frame that suffered on the way. Such a frame is
// counted by its errors and goes to memory only while RCTL.SBP is set.
func (c *Chip) DeliverBad(frame []byte, e FrameError) bool {
	c.mu.Lock()
	ok := c.deliver(frame, e)
	c.mu.Unlock()
	return ok
}

// Errors tells what is wrong with the frame that Next gave last.
func (c *Chip) Errors() FrameError {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.txState.bad
}

// Room is the number of frames, of the longest kind that is enabled, for which
// the receive ring has descriptors now; 0 while the receiver is off.
func (c *Chip) Room() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.room()
}
