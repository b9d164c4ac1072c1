package model

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"gorouter/nic/e1000/regs"
)

// FaultKind is a way in which a chip fails.
type FaultKind uint8

// Faults. What each does, and what ends it, is in its Info.
const (
	FaultTxHang FaultKind = iota
	FaultRxHang
	FaultPrefetchHang
	FaultTxNoWriteBack
	FaultRxNoWriteBack
	FaultEarlyWriteBack
	FaultLostInterrupt
	FaultSpuriousInterrupt
	FaultStuckInterrupt
	FaultEEPROMChecksum
	FaultEEPROMStuck
	FaultMDICStuck
	FaultMasterAbort

	// NumFaults is the number of faults.
	NumFaults = iota
)

// FaultInfo describes a fault.
type FaultInfo struct {
	Name  string // as in configurations and reports
	Text  string
	Event string // what Fault.After, Chance and Times count
	Reset bool   // a device reset ends it
}

var faultInfos = [NumFaults]FaultInfo{
	FaultTxHang:            {"tx-hang", "the transmitter stands still: TDH does not move and nothing is written back", "frame to send", true},
	FaultRxHang:            {"rx-hang", "the receiver stands still: RDH does not move and frames are missed (MPC)", "frame received", true},
	FaultPrefetchHang:      {"prefetch-hang", "as tx-hang, but struck only while prefetching is on (TXDMAC.DPP is zero)", "frame to send", true},
	FaultTxNoWriteBack:     {"tx-no-write-back", "a frame is sent, but DD is not written", "transmit report", true},
	FaultRxNoWriteBack:     {"rx-no-write-back", "a frame is stored, but its descriptor is not written", "receive descriptor", true},
	FaultEarlyWriteBack:    {"early-write-back", "DD is written before the data is fetched, unless the frame's last descriptor has at most 8 bytes", "frame to send", false},
	FaultLostInterrupt:     {"lost-interrupt", "causes are set, but the interrupt line does not rise until they were cleared and set anew", "interrupt", false},
	FaultSpuriousInterrupt: {"spurious-interrupt", "interrupts come that have no cause", "step", false},
	FaultStuckInterrupt:    {"stuck-interrupt", "the interrupt line stays asserted whatever ICR and IMC are", "interrupt", true},
	FaultEEPROMChecksum:    {"eeprom-checksum", "the checksum word of the EEPROM reads wrong", "checksum read", false},
	FaultEEPROMStuck:       {"eeprom-stuck", "a read through EERD never ends, a request in EECD is never granted", "read or request", false},
	FaultMDICStuck:         {"mdic-stuck", "an access to the PHY never ends", "access", false},
	FaultMasterAbort:       {"master-abort", "the device is gone from the bus: reads give ones, writes do nothing, the link is down", "frame either way", false},
}

// Info describes the fault.
func (k FaultKind) Info() FaultInfo {
	if int(k) < NumFaults {
		return faultInfos[k]
	}
	return FaultInfo{Name: fmt.Sprintf("fault-%d", uint8(k))}
}

// String is the fault's name.
func (k FaultKind) String() string { return k.Info().Name }

// FaultByName finds a fault.
func FaultByName(name string) (FaultKind, bool) {
	for k := range faultInfos {
		if faultInfos[k].Name == name {
			return FaultKind(k), true
		}
	}
	return 0, false
}

// Fault is a fault to inject. Of the events of its kind, see FaultInfo, the
// first After are spared; then it strikes on every one, or by Chance.
type Fault struct {
	Kind   FaultKind
	After  uint64 // events that are spared
	Chance int    // per million events; 0 strikes on every one
	Times  uint64 // it is over after as many strikes; 0 is never. Hangs strike once
	Repeat bool   // where a reset ends it, it is injected again by that
}

// faultState is what became of an injected fault.
type faultState struct {
	fault  Fault
	seen   uint64 // events since it was injected
	struck uint64 // of them
	on     bool   // it hangs
}

// noDMA among the armed faults says that bus mastering is off.
const noDMA = 1 << 31

// hangs are the faults that strike once and stay.
const hangs = 1<<FaultTxHang | 1<<FaultRxHang | 1<<FaultPrefetchHang | 1<<FaultStuckInterrupt

const (
	txFaults = 1<<FaultTxHang | 1<<FaultPrefetchHang | 1<<FaultMasterAbort | noDMA
	rxFaults = 1<<FaultRxHang | 1<<FaultMasterAbort | noDMA
)

// Inject makes the chip fail. A fault of the same kind that is there already
// is replaced. Safe for concurrent use.
func (c *Chip) Inject(f Fault) error {
	switch {
	case int(f.Kind) >= NumFaults:
		var names []string
		for _, i := range faultInfos {
			names = append(names, i.Name)
		}
		return fmt.Errorf("model %s: unknown fault %d, known are %s", c.cfg.Name, f.Kind, strings.Join(names, ", "))
	case f.Chance < 0 || f.Chance > 1e6:
		return fmt.Errorf("model %s: chance of %v is %d, expected 0 to 1000000 in a million", c.cfg.Name, f.Kind, f.Chance)
	case f.Repeat && !f.Kind.Info().Reset:
		return fmt.Errorf("model %s: %v is not ended by a reset and cannot repeat", c.cfg.Name, f.Kind)
	}
	c.mu.Lock()
	if c.rng == nil {
		c.rng = rand.New(rand.NewPCG(c.cfg.Seed, 0x8254))
	}
	c.fault[f.Kind] = faultState{fault: f}
	c.faulty |= 1 << f.Kind
	if f.Kind == FaultMasterAbort && f.After == 0 && f.Chance == 0 {
		c.strike(FaultMasterAbort)
	}
	c.changed()
	return nil
}

// Clear ends a fault. A chip that was gone comes back as after power-up. Safe
// for concurrent use.
func (c *Chip) Clear(k FaultKind) {
	if int(k) >= NumFaults {
		return
	}
	c.mu.Lock()
	c.faulty &^= 1 << k
	c.fault[k].on = false
	if k == FaultMasterAbort && c.gone && !c.closed {
		c.gone = false
		c.phy.reset(c.info.PHY)
		c.reset()
		c.loadAddress()
	}
	c.irq.lost = c.irq.lost && k != FaultLostInterrupt
	c.changed()
}

// changed ends a control operation that may have moved link or interrupt line;
// it gives the lock up.
func (c *Chip) changed() {
	c.setLink()
	c.evaluate()
	call, cable := c.irq.take(), c.cable
	c.mu.Unlock()
	if call {
		c.cfg.Interrupt()
	}
	if cable != nil {
		cable.tellLink()
	}
}

// Faults lists the faults that are injected and not over. Safe for concurrent
// use.
func (c *Chip) Faults() (list []FaultKind) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for k := range FaultKind(NumFaults) {
		if c.faulty&(1<<k) != 0 {
			list = append(list, k)
		}
	}
	return list
}

// FaultStats counts what faults did.
type FaultStats struct {
	Struck [NumFaults]uint64 // by kind
	// Stale are frames whose bytes changed between an early write-back and the
	// fetch.
	Stale uint64
}

// FaultStats is what faults did since the chip was made. Safe for concurrent
// use.
func (c *Chip) FaultStats() FaultStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.faultStats
}

// SetBusMaster is the bit of the PCI command register that lets the chip do
// DMA; it is on after New. Without it no descriptor moves; received frames are
// missed.
func (c *Chip) SetBusMaster(on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faulty &^= noDMA
	if !on {
		c.faulty |= noDMA
	}
}

// strike tells whether a fault strikes on this event of its kind.
func (c *Chip) strike(k FaultKind) bool {
	if c.faulty&(1<<k) == 0 {
		return false
	}
	s := &c.fault[k]
	if s.on {
		return true
	}
	s.seen++
	if f := &s.fault; s.seen <= f.After && f.After > 0 || f.Chance > 0 && c.rng.IntN(1e6) >= f.Chance {
		return false
	}
	s.struck++
	c.faultStats.Struck[k]++
	switch {
	case 1<<k&hangs != 0:
		s.on = true
	case k == FaultMasterAbort:
		c.vanish()
	case s.struck == s.fault.Times:
		c.faulty &^= 1 << k
	}
	return true
}

// endFaults is what a device reset does to faults that struck.
func (c *Chip) endFaults() {
	for k := range FaultKind(NumFaults) {
		s := &c.fault[k]
		if c.faulty&(1<<k) == 0 || !faultInfos[k].Reset || s.struck == 0 {
			continue
		}
		*s = faultState{fault: s.fault}
		if !s.fault.Repeat {
			c.faulty &^= 1 << k
		}
	}
}

// vanish takes the chip off the bus.
func (c *Chip) vanish() {
	c.gone = true
	c.faulty |= 1 << FaultMasterAbort
	c.fault[FaultMasterAbort].on = true
	c.rx.on.Store(false)
	c.tx.on.Store(false)
	c.txState.drop()
	c.irq.reset()
	c.setLink()
	c.irq.cause = 0
}

// txFault tells whether a fault keeps the frame at the ring's head from being
// sent.
func (c *Chip) txFault() bool {
	return c.faulty&noDMA != 0 || c.strike(FaultMasterAbort) || c.strike(FaultTxHang) ||
		(c.fault[FaultPrefetchHang].on || c.raw[regs.TXDMAC/4]&regs.TxdmacDPP == 0) && c.strike(FaultPrefetchHang)
}

// rxFault tells whether a fault keeps a frame from being received; it is
// missed then.
func (c *Chip) rxFault() bool {
	if c.strike(FaultMasterAbort) {
		return true
	}
	if c.faulty&noDMA != 0 || c.strike(FaultRxHang) {
		if !c.qemu || c.faulty&noDMA == 0 {
			c.stats[sMPC]++
		}
		return true
	}
	return false
}

// writeBack publishes a descriptor's second word, unless a fault of that kind
// strikes.
func (c *Chip) writeBack(slot *uint64, word uint64, k FaultKind) {
	if c.faulty == 0 || !c.strike(k) {
		c.publish64(slot, word)
	}
}
