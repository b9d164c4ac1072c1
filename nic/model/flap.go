package model

import (
	"fmt"
	"time"
)

// Flap is a schedule by which a cable is pulled out and plugged in again.
// Times are those of the cable's steps.
type Flap struct {
	First time.Duration // when it is pulled out, from the first step
	Down  time.Duration // how long it stays out; more than 0
	Every time.Duration // from one pull to the next; 0: once
	Count int           // pulls in all; 0: no end
}

func (f *Flap) check() error {
	if f.First < 0 || f.Down <= 0 || f.Every < 0 || f.Count < 0 || f.Every != 0 && f.Every <= f.Down {
		return fmt.Errorf("cable: flap %+v: times are not negative, Down is more than 0 and less than Every", *f)
	}
	return nil
}

// out tells whether the cable is out at a time since the first step.
func (f *Flap) out(t time.Duration) bool {
	if t -= f.First; t < 0 {
		return false
	}
	if f.Every == 0 {
		return t < f.Down
	}
	if f.Count > 0 && t/f.Every >= time.Duration(f.Count) {
		return false
	}
	return t%f.Every < f.Down
}

// SetLink pulls the cable out or plugs it in again. Frames do not move while
// it is out and those under way are lost; chips see it in STATUS.LU and
// ICR.LSC. A schedule that has the cable out at the time wins. Safe for
// concurrent use.
func (c *Cable) SetLink(up bool) {
	c.pulled.Store(!up)
	c.tellLink()
}

// Up reports whether the cable is in at both ends and both are alive. Safe for
// concurrent use.
func (c *Cable) Up() bool { return c.up.Load() }

// tellLink brings both ends up to date. No chip may be locked.
func (c *Cable) tellLink() {
	c.linkMu.Lock()
	defer c.linkMu.Unlock()
	in := !c.pulled.Load() && !c.flapped.Load()
	gone := [2]bool{c.a.gone(), c.b.gone()}
	c.up.Store(in && !gone[0] && !gone[1])
	c.told.Store(gone[0] || gone[1])
	for i, e := range []end{c.a, c.b} {
		if e.chip != nil {
			e.chip.plug(in && !gone[1-i])
		}
	}
}

// gone reports whether a chip is off its bus, and with it its PHY.
func (e *end) gone() bool {
	if e.chip == nil {
		return false
	}
	e.chip.mu.Lock()
	defer e.chip.mu.Unlock()
	return e.chip.gone
}

// flap follows the schedule.
func (c *Cable) flap(now int64) {
	if !c.stepped {
		c.stepped, c.begun = true, now
	}
	out := false
	for i := range c.opts.Flaps {
		out = out || c.opts.Flaps[i].out(time.Duration(now-c.begun))
	}
	if out != c.flapped.Load() {
		c.flapped.Store(out)
		if out {
			c.flaps.Add(1)
		}
		c.tellLink()
	}
}

// Flaps is how often the schedule pulled the cable out. Safe for concurrent
// use.
func (c *Cable) Flaps() uint64 { return c.flaps.Load() }
