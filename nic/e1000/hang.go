package e1000

import (
	"fmt"
	"strings"
	"time"

	"gorouter/nic/e1000/regs"
)

// hang is what the watchdog found.
type hang uint8

const (
	hangTransmit hang = iota
	stallReceive
)

func (h hang) String() string {
	if h == hangTransmit {
		return "transmit hang"
	}
	return "receive stall"
}

// HangReport is what was known of a device when it was found hanging.
type HangReport struct {
	What string        // "transmit hang" or "receive stall"
	At   time.Duration // of the device's clock
	For  time.Duration // it had been standing still for so long

	Registers []regs.Line   // decoded
	Changed   []regs.Change // since they were looked at in good health
	Rings     []string      // both rings, decoded where they stand
}

// String is the report in lines.
func (r *HangReport) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s for %v\n", r.What, r.For)
	b.WriteString("registers that changed since the last look in good health:\n")
	for _, c := range r.Changed {
		fmt.Fprintf(&b, "  %s\n", c)
	}
	b.WriteString("rings:\n")
	for _, l := range r.Rings {
		fmt.Fprintf(&b, "  %s\n", l)
	}
	b.WriteString("registers:\n")
	_ = regs.Write(&b, r.Registers, false) // a strings.Builder does not fail
	return b.String()
}

// LastHang is the report of the last hang or stall, nil when there was none.
// Safe from any goroutine.
func (d *Device) LastHang() *HangReport { return d.lastHang.Load() }

// around is how many descriptors a report shows on either side of a place.
const around = 8

func (d *Device) report(what hang, now, age int64) *HangReport {
	r := &HangReport{What: what.String(), At: time.Duration(now), For: time.Duration(age)}
	r.Registers = d.dump(d.read)
	if d.watch.look.valid {
		r.Changed = regs.DiffDump(d.watch.look.lines(d), r.Registers)
	}
	r.Rings = append(d.txq.Describe(around), d.rxq.Describe(around)...)
	return r
}

// lookRegisters is how many registers a look in good health reads: all of them
// at once would keep the worker from its rings for the time of hundreds of
// frames.
const lookRegisters = 8

// rollingLook is the registers as they were in good health, refreshed a few at
// a time. What is read is what Dump reads.
type rollingLook struct {
	valid   bool
	offsets []uint32
	values  map[uint32]uint32
	next    int
}

func (l *rollingLook) refresh(d *Device) {
	if l.offsets == nil {
		d.dump(func(off uint32) uint32 { l.offsets = append(l.offsets, off); return 0 })
		l.values = make(map[uint32]uint32, len(l.offsets))
	}
	n := lookRegisters
	if !l.valid {
		// Just started: the rings have no load yet worth waiting for.
		l.valid, l.next, n = true, 0, len(l.offsets)
	}
	for range n {
		off := l.offsets[l.next]
		l.values[off] = d.read(off)
		l.next = (l.next + 1) % len(l.offsets)
	}
}

func (l *rollingLook) lines(d *Device) []regs.Line {
	return d.dump(func(off uint32) uint32 { return l.values[off] })
}
