package e1000

import (
	"errors"
	"fmt"
	"log/slog"

	"gorouter/clock"
	"gorouter/internal/inet"
	"gorouter/internal/option"
	"gorouter/mmio"
	"gorouter/rx"
	"gorouter/skb"
	"gorouter/tx"
)

// IOWindow is the device's I/O BAR, a pair of registers (address, data)
// through which some chips have to be reset (13.2.2). Any mmio.Registers is
// one.
type IOWindow interface {
	Write(off uint32, v uint32)
}

// Interrupts are the moderation timers. They are used only with Config.IRQ;
// a port that can only be polled leaves the registers zero.
type Interrupts struct {
	RDTR int // receive delay after the last frame, 1.024 us
	RADV int // receive delay after the first frame, 1.024 us
	ITR  int // shortest gap between interrupts, 256 ns
	TIDV int // transmit delay after the last descriptor, 1.024 us
	TADV int // transmit delay after the first descriptor, 1.024 us
}

const maxDelay = 0xffff

// InterruptTable lists the moderation timers for the configuration.
var InterruptTable = option.Table[Interrupts]{
	{Name: "rdtr", Unit: "times 1.024 us", Max: maxDelay,
		Help: "wait so long after the last received frame before interrupting; other than 0 is known to hang some chips",
		Int:  func(o *Interrupts) *int { return &o.RDTR }},
	{Name: "radv", Unit: "times 1.024 us", Max: maxDelay,
		Help: "bound on the delay of rdtr, counted from the first frame; needs rdtr",
		Int:  func(o *Interrupts) *int { return &o.RADV }},
	{Name: "itr", Unit: "times 256 ns", Max: maxDelay,
		Help: "shortest gap between two interrupts of any kind",
		Int:  func(o *Interrupts) *int { return &o.ITR }},
	{Name: "tidv", Unit: "times 1.024 us", Max: maxDelay,
		Help: "wait so long after the last sent descriptor before interrupting",
		Int:  func(o *Interrupts) *int { return &o.TIDV }},
	{Name: "tadv", Unit: "times 1.024 us", Max: maxDelay,
		Help: "bound on the delay of tidv, counted from the first descriptor; needs tidv",
		Int:  func(o *Interrupts) *int { return &o.TADV }},
}

// Config is what Open needs. Name, Regs, Arena, DeviceID, RxCache and TxCache
// must be set.
type Config struct {
	Name     string         // of the port, for logs, counters and errors
	Index    uint16         // of the port in the router's list
	Regs     mmio.Registers // BAR 0
	IO       IOWindow       // I/O BAR; nil resets in memory space whatever the chip
	IRQ      IRQ            // interrupt line; nil: the port can only be polled
	Arena    *skb.Arena
	Clock    *clock.Clock // nil: the machine's
	DeviceID uint16       // PCI device identifier, see Probe

	MAC *inet.MAC // nil: the EEPROM's, see Device.MACSource
	MTU int       // longest IP packet in bytes; 0: 1500

	Rx      rx.Options
	Tx      tx.Options
	RxCache *skb.Cache // of the worker that will poll
	TxCache *skb.Cache // of the worker that will send

	Promisc  bool // accept every unicast destination
	AllMulti bool // accept every multicast destination
	// KeepFCS leaves RCTL.SECRC off, so that software takes the frame check
	// sequence off instead of the chip. Both give the same frames.
	KeepFCS    bool
	Interrupts Interrupts

	Log *slog.Logger // nil: nothing is logged
}

const (
	defaultMTU = 1500
	minMTU     = 68 // RFC 791
)

func (c *Config) fillDefaults() {
	if c.Clock == nil {
		c.Clock = clock.Machine()
	}
	if c.MTU == 0 {
		c.MTU = defaultMTU
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	c.Log = c.Log.With("port", c.Name, "driver", driverName)
}

// validate checks everything that can be told without the device.
func (c *Config) validate(q *Quirks) error {
	switch {
	case c.Name == "":
		return errors.New("e1000: the port needs a name")
	case c.Regs == nil || c.Arena == nil || c.RxCache == nil || c.TxCache == nil:
		return fmt.Errorf("%s: registers, arena and both caches must be set", c.Name)
	case c.MAC != nil && !usable(*c.MAC):
		return fmt.Errorf("%s: %v is no unicast Ethernet address (clear the lowest bit of the first byte)", c.Name, *c.MAC)
	}
	if errs := InterruptTable.Check(&c.Interrupts); len(errs) > 0 {
		return fmt.Errorf("%s: %w", c.Name, errors.Join(errs...))
	}
	i := &c.Interrupts
	switch {
	case i.RADV != 0 && i.RDTR == 0:
		return fmt.Errorf("%s: radv is %d, but counts only with rdtr, which is 0 (13.4.31; set rdtr or clear radv)", c.Name, i.RADV)
	case i.TADV != 0 && i.TIDV == 0:
		return fmt.Errorf("%s: tadv is %d, but a delayed transmit interrupt with tidv 0 is forbidden (13.4.41; set tidv or clear tadv)", c.Name, i.TADV)
	case !q.Timers && (i.ITR != 0 || i.RADV != 0 || i.TADV != 0):
		return fmt.Errorf("%s: itr, radv and tadv do not exist on the %s (set them to 0)", c.Name, q.Device.Name)
	}
	return nil
}
