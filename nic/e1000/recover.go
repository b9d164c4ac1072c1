package e1000

import (
	"errors"
	"fmt"
	"time"
)

const (
	// maxResets in resetWindow are tried before the port is set down: a device
	// that hangs again and again must not keep its worker resetting it.
	maxResets   = 5
	resetWindow = int64(time.Minute)

	// A port that was set down is tried again after firstRetry, and then after
	// twice as long each time. One that ran for calmAfter starts anew.
	firstRetry = int64(10 * time.Second)
	lastRetry  = int64(10 * time.Minute)
	calmAfter  = int64(10 * time.Minute)
)

// recovery is what Housekeep remembers of resets and of a port set down.
type recovery struct {
	times   [maxResets]int64 // of the last resets, circular
	next    int
	count   int
	down    bool
	gone    bool  // it is down because it did not answer
	started int64 // when it last came up
	wait    int64 // before the next try
	retryAt int64
}

// allow takes a reset from the budget.
func (r *recovery) allow(now int64) bool {
	if r.count == maxResets && now-r.times[r.next] < resetWindow {
		return false
	}
	r.times[r.next] = now
	r.next = (r.next + 1) % maxResets
	r.count = min(r.count+1, maxResets)
	return true
}

// backOff sets the time of the next try and returns how far off it is.
func (r *recovery) backOff(now int64) time.Duration {
	switch {
	case r.wait == 0 || !r.down && now-r.started >= calmAfter:
		r.wait = firstRetry
	default:
		r.wait = min(2*r.wait, lastRetry)
	}
	r.retryAt = now + r.wait
	return time.Duration(r.wait)
}

// recover brings a device back that was found hanging: everything known of it
// is logged, then it is reset and started with empty rings, each frame that
// was on them counted (TxAborted, RxAborted).
func (d *Device) recover(now int64, what hang, age int64) error {
	if err := d.alive(); err != nil {
		return err // all ones is no hang
	}
	if what == hangTransmit {
		d.txHangs.Add(1)
	} else {
		d.rxStalls.Add(1)
	}
	r := d.report(what, now, age)
	d.lastHang.Store(r)
	reset := d.recovery.allow(now)
	d.log.Error(what.String(), "for", r.For, "rx", d.rxq.Owned(), "tx", d.txq.Pending(), "reset", reset, "report", r.String())
	if !reset {
		return d.setDown(now, fmt.Sprintf("%d resets in %v did not cure it", maxResets, time.Duration(resetWindow)))
	}
	d.resets.Add(1)
	err := d.stop()
	if err == nil {
		err = d.start()
	}
	switch {
	case errors.Is(err, ErrGone):
		return err
	case err != nil:
		return d.setDown(now, fmt.Sprintf("the reset failed: %v", err))
	}
	return nil
}

// setDown stops the device and gives its port up until the next try. The
// frames on its rings are dropped with their names, so that their buffers
// serve others.
func (d *Device) setDown(now int64, why string) error {
	err := d.stop()
	switch {
	case errors.Is(err, ErrGone):
		return err
	case err != nil:
		why += fmt.Sprintf(", and it cannot be stopped: %v", err)
	default:
		d.restartRings()
	}
	wait := d.recovery.backOff(now)
	d.recovery.down = true
	d.due.Store(d.recovery.retryAt)
	d.downs.Add(1)
	d.log.Error("port set down", "why", why, "retry_in", wait, "remedy", "see the report of the hang; replace card or cable if it comes back")
	return nil
}

// vanish takes notice of a device whose registers read as all ones. Nothing
// of it is touched any more but for a read of STATUS at each retry. The rings
// keep their buffers: what cannot be reached may still be writing to them.
// Their Close, after the device's, gives them back.
func (d *Device) vanish(now int64, err error) error {
	d.running, d.link = false, Link{}
	d.live.Store(false)
	wait := d.recovery.backOff(now)
	d.recovery.down, d.recovery.gone = true, true
	d.due.Store(d.recovery.retryAt)
	d.downs.Add(1)
	d.log.Error("port set down", "why", err, "retry_in", wait)
	return err
}

// retry tries to start a port that was set down.
func (d *Device) retry(now int64) {
	r := &d.recovery
	wasGone := r.gone
	err := d.start() // clears r.down
	if err == nil {
		d.log.Warn("port started again", "after", time.Duration(r.wait))
		return
	}
	wait := r.backOff(now)
	d.due.Store(r.retryAt)
	r.gone = errors.Is(err, ErrGone)
	if !wasGone || !r.gone {
		d.log.Error("port is still down", "err", err, "retry_in", wait)
	}
}
