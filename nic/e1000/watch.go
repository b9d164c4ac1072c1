package e1000

import "time"

// housekeepEvery is how often the link and the statistics are looked at. Both
// cost register reads, microseconds each on a real bus; a 32-bit statistic
// takes 48 minutes of shortest frames at 1 Gb/s to overflow.
const housekeepEvery = int64(time.Second)

// Housekeep does what is due by time and returns at once when nothing is: it
// watches the link and collects the statistics, once a second each. now is in
// nanoseconds of the device's clock. The control side calls it, often and
// never on the packet path. The error wraps ErrGone when the device was
// removed; calling on is harmless.
func (d *Device) Housekeep(now int64) error {
	d.mu.Lock()
	if !d.running || now < d.due {
		d.mu.Unlock()
		return nil
	}
	d.due = now + housekeepEvery
	err := d.observe()
	d.mu.Unlock()
	d.tellLink()
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
// manual (13.7), as of the last Housekeep, and how often the link changed and
// the device was reset since Open. Safe from any goroutine at any time.
func (d *Device) Stats() map[string]uint64 {
	m := make(map[string]uint64, len(d.stats.counters)+2)
	d.stats.values(m)
	m["link_changes"] = d.linkChanges.Load()
	m["resets"] = d.resets.Load()
	return m
}
