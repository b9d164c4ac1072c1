package model

import (
	"fmt"
	"slices"
	"strings"
)

// How a chip behaves.
const (
	ModeLax    = "lax"    // like hardware, saying nothing
	ModeStrict = "strict" // like hardware, and every breach of a rule is reported
	ModeQEMU   = "qemu"   // like the e1000 of QEMU, see qemu.go
)

// Modes lists the modes.
func Modes() []string { return []string{ModeStrict, ModeLax, ModeQEMU} }

// qemuChips are the chips that QEMU has.
var qemuChips = []string{"82540EM", "82544GC", "82545EM"}

// setMode works out what Config.Mode and Config.Strict ask for.
func (c *Chip) setMode() error {
	switch c.cfg.Mode {
	case "":
	case ModeStrict:
		c.cfg.Strict = true
	case ModeLax:
		if c.cfg.Strict {
			return fmt.Errorf("model %s: mode is %s, but Strict is set", c.cfg.Name, ModeLax)
		}
	case ModeQEMU:
		if !slices.Contains(qemuChips, c.info.Name) {
			return fmt.Errorf("model %s: QEMU has no %s, it has %s", c.cfg.Name, c.info.Name, strings.Join(qemuChips, ", "))
		}
		c.qemu = true
		// What QEMU does not know of the chips.
		i := &c.info
		i.Wide, i.Reset, i.Boundary64K, i.EvenEnd = false, ResetAny, false, false
		i.BitBanged, i.ReloadByHand, i.TablePairs, i.absent = false, false, false, nil
	default:
		return fmt.Errorf("model %s: mode is %q, expected one of %s", c.cfg.Name, c.cfg.Mode, strings.Join(Modes(), ", "))
	}
	c.strict = c.cfg.Strict
	return nil
}
