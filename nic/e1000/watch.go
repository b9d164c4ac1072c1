package e1000

import (
	"errors"
	"math"

	"gorouter/port"
)

// never is a time that does not come.
const never = math.MaxInt64

// Housekeep does what is due by time and returns at once when nothing is: ten
// times a second the watchdog looks at both rings; once a second the link and
// the statistics are looked at. A unit that hangs is logged and the device
// reset, which takes some 25 ms; a port that was set down is tried again when
// its time has come. now is in nanoseconds of the device's clock.
//
// Since it may reset the rings, it has to be called by the worker that owns
// both queues, between its rounds. The error, which is logged already, comes
// once: wrapping ErrGone when the device does not answer any more. Calling on
// is harmless.
func (d *Device) Housekeep(now int64) error {
	if now < d.due.Load() {
		return nil
	}
	d.mu.Lock()
	err := d.keepHouse(now)
	d.mu.Unlock()
	d.tellLink()
	return err
}

func (d *Device) keepHouse(now int64) error {
	switch {
	case d.recovery.down:
		d.retry(now)
		return nil
	case !d.running:
		d.due.Store(never)
		return nil
	}
	d.due.Store(now + lookEvery)
	fresh := now >= d.observeAt || d.observeSoon.Swap(false)
	var err error
	if fresh {
		d.observeAt = now + observeEvery
		err = d.observe()
	}
	if err == nil {
		err = d.inspect(now, fresh)
	}
	if errors.Is(err, ErrGone) {
		return d.vanish(now, err)
	}
	return err
}

// CheckLink looks at the link and the statistics now, whatever the time: after
// a link interrupt (ICR.LSC), or before counters are shown.
func (d *Device) CheckLink() error {
	d.mu.Lock()
	var err error
	if d.running {
		err = d.observe()
	}
	d.mu.Unlock()
	d.tellLink()
	return err
}

// observe looks once. The link comes first: on a device that is gone the
// statistics would read as ones.
func (d *Device) observe() error {
	if err := d.sampleLink(); err != nil {
		return err
	}
	d.stats.collect(d.read)
	return nil
}

// tellLink brings the port's link state up to date. The lock must not be held:
// the port's watcher may call the device.
func (d *Device) tellLink() { d.port.SetUp(d.Link().Up) }

// Link is the link as last seen.
func (d *Device) Link() Link {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.link
}

// Stats implements port.Device: the chip's counters under their names in the
// manual (13.7), as of the last Housekeep, and since Open: how often the link
// changed, the device was reset, a transmit hang or a receive stall was found,
// and the port was set down. Safe from any goroutine at any time.
func (d *Device) Stats() map[string]uint64 {
	m := make(map[string]uint64, len(d.stats.counters)+5)
	d.stats.values(m)
	m[port.RxMissed] = m["MPC"] // RNBC counts frames that may have got a buffer later
	m["link_changes"] = d.linkChanges.Load()
	m["resets"] = d.resets.Load()
	m["tx_hangs"] = d.txHangs.Load()
	m["rx_stalls"] = d.rxStalls.Load()
	m["downs"] = d.downs.Load()
	return m
}
