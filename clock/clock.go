// Package clock is time behind one type: the machine's, or a virtual one that
// only moves when it is told to. Code that waits or measures takes a *Clock
// and does not ask which it is.
package clock

import (
	"sync/atomic"
	"time"
)

// Clock gives the time in whole nanoseconds since an arbitrary start; it never
// goes back. A virtual clock counts picoseconds inside, in integers, so that
// it moves the same on every machine. All methods are safe for concurrent use.
type Clock struct {
	start   time.Time
	virtual bool
	ps      atomic.Int64
}

// Machine is the monotonic clock of this machine.
func Machine() *Clock { return &Clock{start: time.Now()} }

// Virtual is a clock at zero that stands still until Advance or Sleep.
func Virtual() *Clock { return &Clock{virtual: true} }

// IsVirtual reports which kind it is, for reports.
func (c *Clock) IsVirtual() bool { return c.virtual }

// Now is the time in nanoseconds.
func (c *Clock) Now() int64 {
	if c.virtual {
		return c.ps.Load() / 1000
	}
	return int64(time.Since(c.start))
}

// DayMillis is the time of day in milliseconds since midnight UT. For a virtual
// clock the first day began at its start.
func (c *Clock) DayMillis() uint32 {
	ms := c.Now() / 1e6
	if !c.virtual {
		ms = time.Now().UnixMilli()
	}
	return uint32(ms % (24 * 60 * 60 * 1000))
}

// Picoseconds is the time of a virtual clock in picoseconds; a machine clock
// gives its nanoseconds times a thousand.
func (c *Clock) Picoseconds() int64 {
	if c.virtual {
		return c.ps.Load()
	}
	return int64(time.Since(c.start)) * 1000
}

// Sleep waits for d. A virtual clock moves on by d at once.
func (c *Clock) Sleep(d time.Duration) {
	if d <= 0 {
		return
	}
	if c.virtual {
		c.ps.Add(int64(d) * 1000)
		return
	}
	time.Sleep(d)
}

// Advance moves a virtual clock on by ps picoseconds; it panics on a machine
// clock or a negative step, both programming errors.
func (c *Clock) Advance(ps int64) {
	if !c.virtual || ps < 0 {
		panic("clock: only a virtual clock is moved by hand, and only forward")
	}
	c.ps.Add(ps)
}
