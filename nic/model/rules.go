package model

import (
	"fmt"

	"gorouter/nic/e1000/regs"
)

// Rule is one rule of the protocol between driver and chip.
type Rule uint8

// The rules. Text and manual section of each are in its Info.
const (
	RuleRingLength Rule = iota
	RuleRingBase
	RuleRingMemory
	RuleRingEnabled
	RuleHeadEnabled
	RuleIndexRange
	RuleTailRange
	RuleTailPastHead
	RuleFullRing
	RuleDescriptorChanged
	RuleRxStatus
	RuleTxStatus
	RuleNullAddress
	RuleOutsideMemory
	RuleBufferOverrun
	RuleBoundary64K
	RuleBufferFreed
	RuleTxContent
	RuleRxContent
	RuleTxLength
	RuleShortFrame
	RuleExtendedDescriptor
	RuleCommandBits
	RuleDelayWithoutTimer
	RuleReportWithThreshold
	RuleReadOnly
	RuleUnknownRegister
	RuleReservedValue
	RuleBusy
	RuleResetPending
	RuleResetMethod
	RulePHYReset
	RuleEEPROMGrant
	RuleEvenEnd
	RuleFirstLength
	RuleClosed
	RuleUnsupported

	// NumRules is the number of rules.
	NumRules = iota
)

// RuleInfo describes a rule.
type RuleInfo struct {
	Name    string // as in configurations and reports
	Text    string // what the driver has to do
	Section string // of the manual; empty where it is common sense
}

var rules = [NumRules]RuleInfo{
	RuleRingLength:          {"ring-length", "a ring is 128 to 65536 bytes long, in multiples of 128", "13.4.27, 13.4.38"},
	RuleRingBase:            {"ring-base", "a ring begins at a multiple of 16 bytes", "13.4.25, 13.4.36"},
	RuleRingMemory:          {"ring-memory", "the whole ring lies in DMA memory outside the buffers", "3.2.6, 3.4"},
	RuleRingEnabled:         {"ring-enabled", "base and length of a ring stay while its unit is enabled", "14.4, 14.5"},
	RuleHeadEnabled:         {"head-enabled", "software writes a head register only between reset and enable", "13.4.28, 13.4.39"},
	RuleIndexRange:          {"index-range", "head and tail are inside the ring when its unit is enabled", "13.4.28, 13.4.39"},
	RuleTailRange:           {"tail-range", "a tail written is inside the ring", "13.4.29, 13.4.40"},
	RuleTailPastHead:        {"tail-past-head", "a tail write hands over no descriptor that the device still owns", "3.2.6, 3.4"},
	RuleFullRing:            {"full-ring", "one descriptor stays software's: tail equal to head means an empty ring", "3.2.6, 3.4"},
	RuleDescriptorChanged:   {"descriptor-changed", "software leaves a descriptor alone while the device owns it", "3.2.6, 3.4"},
	RuleRxStatus:            {"rx-status", "the status of a receive descriptor is zero when it is handed over", "3.2.3.1"},
	RuleTxStatus:            {"tx-status", "the status of a transmit descriptor is zero when it is handed over", "3.3.3.2"},
	RuleNullAddress:         {"null-address", "a descriptor handed over points to a buffer", "3.2.6, 3.3.3"},
	RuleOutsideMemory:       {"outside-memory", "a buffer lies inside the memory mapped for DMA", ""},
	RuleBufferOverrun:       {"buffer-overrun", "what the device may read or write ends inside the buffer", "3.2.2, 13.4.22"},
	RuleBoundary64K:         {"boundary-64k", "a buffer does not cross a 64 KiB boundary (82545 and 82546 erratum 23)", ""},
	RuleBufferFreed:         {"buffer-freed", "a buffer is not freed while the device owns it", ""},
	RuleTxContent:           {"tx-content", "a frame is not changed between hand-over and fetch", ""},
	RuleRxContent:           {"rx-content", "a receive buffer is not written while the device owns it", ""},
	RuleTxLength:            {"tx-length", "a descriptor has 1 to 16288 bytes, and so has a frame", "3.3.3"},
	RuleShortFrame:          {"short-frame", "frames under 60 bytes need TCTL.PSP", "13.4.33"},
	RuleExtendedDescriptor:  {"extended-descriptor", "only legacy transmit descriptors are used (DEXT is zero)", "3.3.4"},
	RuleCommandBits:         {"command-bits", "no reserved command bit is set in a transmit descriptor", "3.3.3.1"},
	RuleDelayWithoutTimer:   {"delay-without-timer", "IDE in a descriptor needs a TIDV that is not zero", "13.4.41"},
	RuleReportWithThreshold: {"report-with-threshold", "every frame reports status (RS) while TXDCTL.WTHRESH is not zero", "3.4.3"},
	RuleReadOnly:            {"read-only", "a register that cannot be written is not written", "13.4"},
	RuleUnknownRegister:     {"unknown-register", "only registers that the chip has are accessed, 32 bits at a time", "13.3"},
	RuleReservedValue:       {"reserved-value", "no reserved value is written to a field", "13.4"},
	RuleBusy:                {"busy", "MDIC and EERD are not written before the last access has finished", "13.4.4, 13.4.7"},
	RuleResetPending:        {"reset-pending", "only CTRL is read until a reset has finished", "13.4.1"},
	RuleResetMethod:         {"reset-method", "a chip is reset in the one way that is safe for it: CTRLDUP, or the I/O window on a 64-bit bus", "13.2.2, 14.3"},
	RulePHYReset:            {"phy-reset", "CTRL.PHYRST comes before CTRL.RST (82541EI)", "13.4.1"},
	RuleEEPROMGrant:         {"eeprom-grant", "the lines of EECD are moved only while the EEPROM is granted", "13.4.3"},
	RuleEvenEnd:             {"even-end", "a transmit buffer of more than 4 bytes ends in the upper half of eight bytes (82544 on PCI-X)", ""},
	RuleFirstLength:         {"first-length", "the first descriptor of a frame has at most 2015 bytes (PCI-X, erratum 10)", ""},
	RuleClosed:              {"closed", "no register is accessed after the device was given up", ""},
	RuleUnsupported:         {"unsupported", "the feature is not modelled", ""},
}

// Info describes the rule.
func (r Rule) Info() RuleInfo {
	if int(r) < len(rules) {
		return rules[r]
	}
	return RuleInfo{Name: fmt.Sprintf("rule-%d", uint8(r))}
}

// String is the rule's name.
func (r Rule) String() string { return r.Info().Name }

// RuleByName finds a rule, for waivers in a configuration.
func RuleByName(name string) (Rule, bool) {
	for i := range rules {
		if rules[i].Name == name {
			return Rule(i), true
		}
	}
	return 0, false
}

// Breach is one breach of a rule. It is an error.
type Breach struct {
	Rule     Rule
	Chip     string // Config.Name
	Ring     string // "rx", "tx", or empty
	Index    int    // descriptor, when Ring is set
	Register string // name of the register written or read, or empty
	Detail   string
}

// Error names the chip, the place, the rule and where the manual has it.
func (b Breach) Error() string {
	i := b.Rule.Info()
	s := b.Chip
	if b.Ring != "" {
		s += fmt.Sprintf(" %s descriptor %d", b.Ring, b.Index)
	}
	if b.Register != "" {
		s += " register " + b.Register
	}
	s += fmt.Sprintf(": breach of %s: %s: %s", i.Name, b.Detail, i.Text)
	if i.Section != "" {
		s += " (section " + i.Section + ")"
	}
	return s
}

// breachRing reports a breach at a descriptor. True means that the chip has
// stopped; false that it goes on as hardware would.
//
//go:noinline
func (c *Chip) breachRing(r Rule, ring *ring, i uint32, format string, args ...any) bool {
	if c.armed&(1<<r) == 0 {
		return false
	}
	return c.report(Breach{Rule: r, Ring: ring.name, Index: int(i), Detail: fmt.Sprintf(format, args...)})
}

// breachReg does the same for a register access.
//
//go:noinline
func (c *Chip) breachReg(r Rule, off uint32, format string, args ...any) bool {
	if c.armed&(1<<r) == 0 {
		return false
	}
	name := fmt.Sprintf("%#05x", off)
	if reg, elem, ok := regs.Lookup(off); ok {
		name = reg.ElemName(elem)
	}
	return c.report(Breach{Rule: r, Register: name, Detail: fmt.Sprintf(format, args...)})
}

func (c *Chip) report(b Breach) bool {
	b.Chip = c.cfg.Name
	c.first.CompareAndSwap(nil, &b)
	if c.cfg.OnBreach != nil {
		c.cfg.OnBreach(b)
		return false
	}
	c.stopped.Store(true)
	c.rx.on.Store(false)
	c.tx.on.Store(false)
	c.cfg.Log.Error("strict model stopped", "chip", c.cfg.Name, "rule", b.Rule.String(), "breach", b.Error())
	return true
}

// Err is the first breach, nil when there was none. Safe for concurrent use.
func (c *Chip) Err() error {
	if b := c.first.Load(); b != nil {
		return *b
	}
	return nil
}
