package e1000

import (
	"errors"
	"fmt"
	"time"

	"gorouter/nic/e1000/regs"
)

// ErrGone says that the registers read as all ones: the device was removed,
// lost power, or its memory space was switched off (a PCI master abort).
var ErrGone = errors.New("the device does not answer (all registers read as ones)")

// ErrTimeout says that the device did not do in time what it was told.
var ErrTimeout = errors.New("the device did not finish in time")

const allOnes = 0xffffffff

func (d *Device) read(off uint32) uint32     { return d.regs.Read(off) }
func (d *Device) write(off uint32, v uint32) { d.regs.Write(off, v) }

// flush makes sure that earlier writes have reached the device: a read pushes
// posted writes out (section 13.1). It belongs before every timed wait, never
// on the packet path.
func (d *Device) flush() { d.read(regs.STATUS) }

// alive checks that the device is still on the bus. STATUS never reads as all
// ones on a working chip: its reserved bits are zero (13.4.2).
func (d *Device) alive() error {
	if d.read(regs.STATUS) == allOnes {
		return d.gone()
	}
	return nil
}

func (d *Device) gone() error {
	return fmt.Errorf("%s: STATUS: %w; check that the card is seated and powered, and that memory space is enabled in its PCI command register", d.name, ErrGone)
}

// Waits start short and double up to a step that no longer matters.
const (
	firstNap = 2 * time.Microsecond
	longNap  = time.Millisecond
)

// waitFor reads register off until done, napping longer each time, for at most
// ceiling. remedy says what a person can do about a time-out. Registers that
// read as all ones end it at once.
func (d *Device) waitFor(what string, off uint32, done func(v uint32) bool, ceiling time.Duration, remedy string) (uint32, error) {
	nap := firstNap
	for waited := time.Duration(0); ; waited += nap {
		v := d.read(off)
		if v == allOnes {
			return v, d.gone()
		}
		if done(v) {
			return v, nil
		}
		if waited >= ceiling {
			return v, fmt.Errorf("%s: %s: %w (%v): %s; %s", d.name, what, ErrTimeout, ceiling, d.show(off, v), remedy)
		}
		if waited > 0 {
			nap = min(2*nap, longNap)
		}
		d.clock.Sleep(nap)
	}
}

// show is a register with its decoded value, for messages.
func (d *Device) show(off, v uint32) string {
	name := fmt.Sprintf("register %#x", off)
	if r, elem, ok := regs.Lookup(off); ok {
		name = r.ElemName(elem)
	}
	return fmt.Sprintf("%s is 0x%08x [%s]", name, v, regs.DecodeFor(d.quirks.Device.MAC, off, v))
}
