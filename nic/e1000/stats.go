package e1000

import (
	"sync/atomic"

	"gorouter/nic/e1000/regs"
)

// statMode is what reading a statistics register does to it. The manual clears
// all of them (13.7); QEMU clears some and keeps the others as running totals,
// and its versions differ, so each register is settled at run time.
type statMode uint8

const (
	statUnknown statMode = iota
	statClears
	statRuns
)

// counter is one statistic in 64 bits. Until its mode is known both
// possibilities are kept: sum adds what was read, run follows a running total.
// sum is never below run, so the published value never falls.
type counter struct {
	stat  regs.Stat
	mode  statMode
	agree int    // rounds that looked like a running total
	last  uint64 // last value read
	sum   uint64
	run   uint64
	total atomic.Uint64
}

// agreeRuns rounds of "did not clear" settle a register as a running total.
// One is not enough on a running device: a register that was cleared may have
// counted again before the second read.
const agreeRuns = 2

// statistics are all counters of a device. prime and collect are called by one
// goroutine at a time; the totals may be read by any.
type statistics struct {
	counters []counter
	frames   []*counter // those that count frames meant for the rings
}

func newStatistics() *statistics {
	rows := regs.Stats()
	s := &statistics{counters: make([]counter, len(rows))}
	for i := range rows {
		s.counters[i].stat = rows[i]
		switch rows[i].Name {
		case "GPRC", "MPC", "RNBC":
			s.frames = append(s.frames, &s.counters[i])
		}
	}
	return s
}

// prime forgets what the registers hold, which is undefined after power-on and
// must be read away before the units are enabled (13.7). While they are off
// nothing counts, so a second look tells the mode for certain.
func (s *statistics) prime(read func(uint32) uint32) {
	for i := range s.counters {
		c := &s.counters[i]
		v := c.stat.Read(read)
		c.last = v
		if v == 0 || c.mode != statUnknown {
			continue
		}
		w := c.stat.Read(read)
		c.last = w
		if w < v {
			c.settle(statClears)
		} else {
			c.settle(statRuns)
		}
	}
}

// collect takes over what was counted since the last time.
func (s *statistics) collect(read func(uint32) uint32) {
	for i := range s.counters {
		s.counters[i].collect(read)
	}
}

func (c *counter) collect(read func(uint32) uint32) {
	v := c.stat.Read(read)
	switch c.mode {
	case statClears:
		c.sum += v
	case statRuns:
		c.follow(v)
	default:
		c.probe(v, read)
	}
	c.publish()
}

// probe handles a reading while the mode is unknown: it reads a second time,
// back to back. Comparing with the last round is not enough, since a register
// that was cleared can have counted past its old value by now.
func (c *counter) probe(v uint64, read func(uint32) uint32) {
	fell := v < c.last
	c.sum += v
	c.follow(v)
	if fell {
		c.settle(statClears)
		return
	}
	if v == 0 {
		return
	}
	w := c.stat.Read(read)
	c.sum += w
	if w < v {
		c.settle(statClears)
		return
	}
	c.follow(w)
	if c.agree++; c.agree == agreeRuns {
		c.settle(statRuns)
	}
}

// follow moves the running total on to v. A narrow register may have wrapped.
func (c *counter) follow(v uint64) {
	step := v - c.last
	if !c.stat.Wide() {
		step = uint64(uint32(step))
	}
	c.run += step
	c.last = v
}

func (c *counter) settle(m statMode) { c.mode = m }

func (c *counter) publish() {
	if c.mode == statClears {
		c.total.Store(c.sum)
	} else {
		c.total.Store(c.run)
	}
}

// arrivals grows with every frame that the device received or missed.
func (s *statistics) arrivals() (n uint64) {
	for _, c := range s.frames {
		n += c.total.Load()
	}
	return n
}

// values adds the totals to a map under their names in the manual.
func (s *statistics) values(m map[string]uint64) {
	for i := range s.counters {
		m[s.counters[i].stat.Name] = s.counters[i].total.Load()
	}
}
