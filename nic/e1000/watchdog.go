package e1000

import (
	"time"

	"gorouter/nic/e1000/regs"
)

const (
	// lookEvery is how often the watchdog looks at the rings. As long as they
	// move it costs a few loads and lookRegisters register reads.
	lookEvery = int64(100 * time.Millisecond)
	// observeEvery is how often the link and the statistics are looked at.
	// Both cost register reads, microseconds each on a real bus; a 32-bit
	// statistic takes 48 minutes of shortest frames at 1 Gb/s to overflow.
	observeEvery = int64(time.Second)
	// hangAfter is how long a unit may stand still with work to do. A frame
	// takes 13 us at most at 1 Gb/s and 1.2 ms at 10 Mb/s.
	hangAfter = int64(time.Second)
)

// watchdog is what tells a unit that hangs from one that has nothing to do.
// All of it belongs to Housekeep.
type watchdog struct {
	// Transmit: the report that the device owes longest, and since when it
	// has been the same one.
	report uint64
	owing  bool
	since  int64

	// Receive: descriptors taken off the ring and frames that the device
	// counted at the last sign of progress, and since when it has counted
	// frames that do not show up; 0: it has not.
	taken   uint64
	counted uint64
	missing int64

	look rollingLook
}

// restart forgets everything, after a start.
func (w *watchdog) restart(taken, counted uint64) {
	w.owing, w.missing = false, 0
	w.taken, w.counted = taken, counted
	w.look.valid = false
}

// transmitHangs reports for how long the oldest unfinished descriptor has been
// the oldest, and whether that is a hang: longer than hangAfter although the
// link is up and the partner has not paused the device (13.4.2, TXOFF).
//
// It compares what it saw with what it saw at the last look, so a process that
// was stopped for a while takes nothing for a hang.
func (d *Device) transmitHangs(now int64) (age int64, hangs bool) {
	w := &d.watch
	report, owing := d.txq.Oldest()
	if !owing || !w.owing || report != w.report {
		w.report, w.owing, w.since = report, owing, now
		return 0, false
	}
	if age = now - w.since; age < hangAfter {
		return age, false
	}
	status := d.read(regs.STATUS)
	if status&regs.StatusLU == 0 || status&regs.StatusTXOFF != 0 {
		w.since = now
		return 0, false
	}
	return age, true
}

// receiveStalls tells whether the device has received for longer than
// hangAfter without handing a frame over: it has descriptors, none of them is
// done (DD), none was taken meanwhile, and yet either the counters of good or
// of missed frames have moved (13.7), or the device has used its descriptors
// up (RDH equals RDT, 3.2.6). Another place of RDH proves nothing: it stands
// still when nothing arrives, and may run ahead of the write-back. To be
// called when the statistics have just been collected.
func (d *Device) receiveStalls(now int64) (age int64, stalls bool) {
	w := &d.watch
	taken, counted := d.rxq.Counters().Live.Descriptors, d.stats.arrivals()
	switch {
	case taken != w.taken || d.rxq.Ready() || d.rxq.Owned() == 0:
		w.taken, w.counted, w.missing = taken, counted, 0
	case w.missing == 0 && counted == w.counted && d.read(regs.RDH) != d.rxq.Tail():
	case w.missing == 0:
		// What was counted a moment ago may be on its way to memory.
		w.missing = now
	default:
		age = now - w.missing
	}
	return age, age >= hangAfter
}

// inspect is the watchdog's look; fresh says that the statistics are new.
func (d *Device) inspect(now int64, fresh bool) error {
	txAge, hangs := d.transmitHangs(now)
	if hangs {
		return d.recover(now, hangTransmit, txAge)
	}
	if fresh {
		if age, stalls := d.receiveStalls(now); stalls {
			return d.recover(now, stallReceive, age)
		}
	}
	if txAge == 0 && d.watch.missing == 0 {
		d.watch.look.refresh(d)
	}
	return nil
}
