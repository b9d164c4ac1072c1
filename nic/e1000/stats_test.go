package e1000

import (
	"testing"

	"pgregory.net/rapid"

	"gorouter/nic/e1000/regs"
)

// register is one statistic of a device: it clears when it is read or not, and
// counts by itself between two reads.
type register struct {
	clears bool
	value  uint64
	busy   []uint64 // what is counted right after each of the next reads
}

func (r *register) read(stat regs.Stat) func(uint32) uint32 {
	return func(off uint32) uint32 {
		switch off {
		case stat.Lo:
			v := r.value
			if !stat.Wide() {
				r.after()
			}
			return uint32(v)
		case stat.Hi:
			v := r.value
			r.after()
			return uint32(v >> 32)
		}
		return 0
	}
}

func (r *register) after() {
	if r.clears {
		r.value = 0
	}
	if len(r.busy) > 0 {
		r.value += r.busy[0]
		r.busy = r.busy[1:]
	}
}

func one(name string) (*counter, regs.Stat) {
	s, _ := regs.StatByName(name)
	return &counter{stat: s}, s
}

// Whichever kind a register is and however it counts, the total is right once
// the kind is settled, never falls, and never runs ahead.
func TestStatisticsOfBothKinds(t *testing.T) {
	for _, name := range []string{"GPRC", "GORC"} {
		rapid.Check(t, func(t *rapid.T) {
			stat, _ := regs.StatByName(name)
			r := &register{clears: rapid.Bool().Draw(t, "clears"), value: rapid.Uint64Range(0, 1000).Draw(t, "old")}
			s := &statistics{counters: []counter{{stat: stat}}}
			c := &s.counters[0]
			s.prime(r.read(stat))
			counted, last := uint64(0), uint64(0)
			for range rapid.IntRange(1, 30).Draw(t, "rounds") {
				n := rapid.Uint64Range(0, 5000).Draw(t, "counted")
				r.value += n
				counted += n
				// A real register cannot count up to its old value in the
				// microsecond between two reads twice in a row.
				if n > 100 {
					r.busy = []uint64{rapid.Uint64Range(0, 3).Draw(t, "busy")}
				} else {
					r.busy = nil
				}
				for _, b := range r.busy {
					counted += b
				}
				s.collect(r.read(stat))
				got := c.total.Load()
				if got < last || got > counted {
					t.Fatalf("total %d after %d, %d were counted (mode %d)", got, last, counted, c.mode)
				}
				last = got
			}
			if c.mode == statClears != r.clears && c.mode != statUnknown {
				t.Fatalf("a register that clears=%v was settled as mode %d", r.clears, c.mode)
			}
			r.busy = nil
			s.collect(r.read(stat))
			s.collect(r.read(stat))
			if got := c.total.Load(); got != counted {
				t.Fatalf("total %d, counted %d (mode %d)", got, counted, c.mode)
			}
		})
	}
}

// A register that was cleared and counts one frame between the two reads looks
// once like a running total; one round must not settle it.
func TestStatisticsAreNotFooledByTraffic(t *testing.T) {
	c, stat := one("GPRC")
	r := &register{clears: true, value: 1, busy: []uint64{1}}
	c.collect(r.read(stat))
	if c.mode != statUnknown {
		t.Fatalf("settled as mode %d after one look", c.mode)
	}
	r.value += 1000
	c.collect(r.read(stat))
	if c.mode != statClears {
		t.Fatalf("mode %d after the second look", c.mode)
	}
	if got := c.total.Load(); got != 1002 {
		t.Errorf("total %d, want 1002", got)
	}
}

// A cleared register that rises past its last value between two rounds must
// not be taken for a running total.
func TestStatisticsThatRisePastTheLastValue(t *testing.T) {
	c, stat := one("TPR")
	r := &register{clears: true}
	total := uint64(0)
	for _, n := range []uint64{10, 20, 40, 80} {
		r.value += n
		total += n
		c.collect(r.read(stat))
	}
	if got := c.total.Load(); got != total {
		t.Errorf("total %d, want %d", got, total)
	}
}

func TestStatisticsRunningTotalWraps(t *testing.T) {
	s := &statistics{}
	stat, _ := regs.StatByName("MPC")
	s.counters = []counter{{stat: stat}}
	r := &register{value: 1<<32 - 5}
	s.prime(r.read(stat))
	r.value = 7 // wrapped in 32 bits
	s.collect(r.read(stat))
	if got := s.counters[0].total.Load(); got != 12 {
		t.Errorf("total %d, want 12", got)
	}
}

// After a reset that keeps the registers, as QEMU's does, or clears them, as
// hardware does, totals go on from where they were.
func TestStatisticsOverReset(t *testing.T) {
	for _, clears := range []bool{false, true} {
		for _, kept := range []bool{false, true} {
			s := &statistics{}
			stat, _ := regs.StatByName("GPTC")
			s.counters = []counter{{stat: stat}}
			r := &register{clears: clears}
			s.prime(r.read(stat))
			for range 3 {
				r.value += 100
				s.collect(r.read(stat))
			}
			if !kept {
				r.value = 0
			}
			s.prime(r.read(stat))
			r.value += 11
			s.collect(r.read(stat))
			if got := s.counters[0].total.Load(); got != 311 {
				t.Errorf("clears %v, kept over reset %v: total %d, want 311", clears, kept, got)
			}
		}
	}
}
