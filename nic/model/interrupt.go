package model

import (
	"sync/atomic"

	"gorouter/nic/e1000/regs"
)

// interrupt is the cause and mask registers with their timers (3.2.7, 3.4.5).
// Times are in nanoseconds; a timer that is zero does not run.
type interrupt struct {
	cause, mask  uint32
	asserted     atomic.Bool
	call         bool  // the line rose and nobody was told yet
	lost         bool  // a fault keeps it quiet until the causes are cleared
	delayed      bool  // QEMU: a descriptor with IDE was sent
	quiet        int64 // ITR: not asserted again before
	rxDue, rxAbs int64
	txDue, txAbs int64
}

func (q *interrupt) reset() {
	q.cause, q.mask, q.quiet, q.lost, q.delayed = 0, 0, 0, false, false
	q.rxDue, q.rxAbs, q.txDue, q.txAbs = 0, 0, 0, 0
	q.asserted.Store(false)
}

// take tells once that Config.Interrupt is to be called.
func (q *interrupt) take() bool {
	call := q.call
	q.call = false
	return call
}

// Asserted reports whether the interrupt line is asserted: an unmasked cause
// is set. Safe for concurrent use.
func (c *Chip) Asserted() bool { return c.irq.asserted.Load() }

// evaluate sets the line from cause and mask, not faster than ITR allows.
func (c *Chip) evaluate() {
	q := &c.irq
	if c.faulty&(1<<FaultStuckInterrupt) != 0 && c.fault[FaultStuckInterrupt].on {
		q.asserted.Store(true)
		return
	}
	if q.cause&q.mask == 0 {
		q.lost = false
		if q.asserted.Load() {
			q.asserted.Store(false)
		}
		return
	}
	if q.asserted.Load() || c.now < q.quiet || q.lost {
		return
	}
	if c.faulty != 0 {
		if c.strike(FaultLostInterrupt) {
			q.lost = true
			return
		}
		c.strike(FaultStuckInterrupt)
	}
	q.asserted.Store(true)
	q.call = c.cfg.Interrupt != nil
	if c.qemu {
		q.quiet = c.now + c.qemuMitigation()
		return
	}
	q.quiet = c.now + int64(c.raw[regs.ITR/4]&0xFFFF)*regs.ITRUnitNanos
}

// expire runs the delay timers.
func (c *Chip) expire() {
	q := &c.irq
	if q.rxDue|q.rxAbs != 0 && (due(q.rxDue, c.now) || due(q.rxAbs, c.now)) {
		c.rxTimer()
	}
	if q.txDue|q.txAbs != 0 && (due(q.txDue, c.now) || due(q.txAbs, c.now)) {
		q.txDue, q.txAbs = 0, 0
		q.cause |= regs.IcrTXDW
		c.flushTx()
	}
}

func due(t, now int64) bool { return t != 0 && now >= t }

// rxTimer is the end of a receive delay: held descriptors are written back.
func (c *Chip) rxTimer() {
	c.irq.rxDue, c.irq.rxAbs = 0, 0
	c.irq.cause |= regs.IcrRXT0
	c.flushRx()
}

// delay starts a packet timer again and, unless it runs, an absolute one.
// units are those of the delay registers.
func (c *Chip) delay(packet, abs *int64, units, absUnits uint32) {
	*packet = c.now + int64(units)*regs.DelayUnitNanos
	if *abs == 0 && absUnits != 0 {
		*abs = c.now + int64(absUnits)*regs.DelayUnitNanos
	}
}
