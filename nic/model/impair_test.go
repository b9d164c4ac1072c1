package model

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"gorouter/nic/e1000/regs"
)

// numbered is a frame that carries its number.
func numbered(i int) []byte {
	f := makeFrame(testMAC, 64, 0)
	binary.BigEndian.PutUint32(f[14:], uint32(i))
	return f
}

func numberOf(f []byte) int { return int(binary.BigEndian.Uint32(f[14:])) }

// through sends n numbered frames over an impaired cable, one a microsecond,
// and returns what came out and the statistics.
func through(t testing.TB, n int, o CableOptions) (*station, WireStats) {
	t.Helper()
	a, b := &station{}, &station{keep: true}
	c, err := NewCable(a, b, o)
	if err != nil {
		t.Fatal(err)
	}
	now := int64(0)
	for i := range n {
		a.out = append(a.out, numbered(i))
		c.Step(now, 64)
		now += 1000
	}
	for range 3 {
		now += 1e9
		for c.Step(now, 64) > 0 {
		}
	}
	s, back := c.Wires()
	if s.Unaccounted() != 0 || s.InFlight != 0 || s.Sent != uint64(n) {
		t.Errorf("frames are not conserved: %+v", s)
	}
	if back != (WireStats{}) {
		t.Errorf("the other direction counts %+v", back)
	}
	if uint64(len(b.got)) != s.Delivered {
		t.Errorf("%d frames came out, %d are counted", len(b.got), s.Delivered)
	}
	return b, s
}

// near tells whether k of n is what a chance per million would give, within
// five standard deviations.
func near(k uint64, n, chance int) bool {
	p := float64(chance) / perMillion
	mean := float64(n) * p
	return math.Abs(float64(k)-mean) <= 5*math.Sqrt(mean*(1-p))+1
}

func TestImpairmentStatistics(t *testing.T) {
	const n = 20000
	for _, chance := range []int{1000, 50_000, 500_000} {
		for seed := range uint64(3) {
			o := CableOptions{Seed: seed, AToB: Impairment{Loss: chance}}
			if got, s := through(t, n, o); !near(s.Lost, n, chance) || len(got.got) != n-int(s.Lost) {
				t.Errorf("loss %d: %+v", chance, s)
			}
			o.AToB = Impairment{Duplicate: chance}
			if _, s := through(t, n, o); !near(s.Duplicated, n, chance) || s.Delivered != n+s.Duplicated {
				t.Errorf("duplicate %d: %+v", chance, s)
			}
			o.AToB = Impairment{Corrupt: chance}
			got, s := through(t, n, o)
			if !near(s.Corrupted, n, chance) {
				t.Errorf("corrupt %d: %+v", chance, s)
			}
			bad := uint64(0)
			for i, f := range got.got {
				changed := string(f) != string(numbered(i))
				if changed && got.gotE[i] != ErrCRC {
					t.Fatalf("frame %d has flipped bits and no error", i)
				}
				if got.gotE[i] == ErrCRC {
					bad++
				}
			}
			if bad != s.Corrupted {
				t.Errorf("%d frames have errors, %d are counted", bad, s.Corrupted)
			}
			o.AToB = Impairment{Reorder: chance, ReorderBy: 10 * time.Microsecond}
			got, s = through(t, n, o)
			late, highest := uint64(0), -1
			for _, f := range got.got {
				if i := numberOf(f); i < highest {
					late++
				} else {
					highest = i
				}
			}
			if !near(s.HeldUp, n, chance) || late != s.Reordered || late == 0 || late > s.HeldUp {
				t.Errorf("reorder %d: %d came late, %+v", chance, late, s)
			}
		}
	}
}

func TestDelayAndJitterKeepTheOrder(t *testing.T) {
	a, b := &station{}, &station{keep: true}
	c, err := NewCable(a, b, CableOptions{AToB: Impairment{Delay: time.Millisecond, Jitter: 500 * time.Microsecond}})
	if err != nil {
		t.Fatal(err)
	}
	spread := map[int]int{}
	for i := range 6000 {
		now := int64(i) * 10_000
		if i < 1000 {
			a.out = append(a.out, numbered(i))
		}
		had := len(b.got)
		c.Step(now, 64)
		for k := had; k < len(b.got); k++ {
			if numberOf(b.got[k]) != k {
				t.Fatalf("frame %d came as number %d", numberOf(b.got[k]), k)
			}
			took := i - k // of 10 us
			if took < 100 || took > 150 {
				t.Fatalf("frame %d took %d us", k, took*10)
			}
			spread[took/10]++
		}
	}
	if len(b.got) != 1000 || len(spread) < 4 {
		t.Errorf("%d frames, delays %v", len(b.got), spread)
	}
}

func TestCableLimitOverflows(t *testing.T) {
	_, s := through(t, 1000, CableOptions{AToB: Impairment{Delay: time.Millisecond, Limit: 100}})
	if s.Overflow == 0 || s.Lost != 0 {
		t.Errorf("%+v", s)
	}
}

func TestImpairmentsFollowTheSeed(t *testing.T) {
	all := Impairment{Loss: 1e5, Corrupt: 1e5, Duplicate: 1e5, Reorder: 1e5, Delay: 50 * time.Microsecond, Jitter: 30 * time.Microsecond}
	run := func(seed uint64) string {
		got, s := through(t, 2000, CableOptions{Seed: seed, AToB: all})
		return fmt.Sprintf("%+v %x", s, got.got)
	}
	first, again, other := run(1), run(1), run(2)
	if first != again {
		t.Error("the same seed gives another run")
	}
	if first == other {
		t.Error("two seeds give the same run")
	}
}

// TestCorruptedFramesAtTheChip: dropped and counted; with RCTL.SBP they come
// with CE set.
func TestCorruptedFramesAtTheChip(t *testing.T) {
	for _, sbp := range []bool{false, true} {
		d := newDriver(t, nil, 64, Config{})
		if sbp {
			d.rctl |= regs.RctlSBP | regs.RctlUPE | regs.RctlMPE
		}
		d.up().fill(63)
		s := &station{keep: true}
		c, err := NewCable(s, d.chip, CableOptions{AToB: Impairment{Corrupt: 300_000}})
		if err != nil {
			t.Fatal(err)
		}
		good, bad := 0, 0
		for i := range 500 {
			s.out = append(s.out, numbered(i))
			c.Step(int64(i)*1000, 64)
			for _, f := range d.recv() {
				if f.status>>rxErrorShift&1 != 0 {
					bad++
				} else {
					good++
				}
			}
			d.fill(63)
		}
		w, _ := c.Wires()
		if n := uint64(d.stat(regs.CRCERRS)); n != w.Corrupted || n == 0 {
			t.Errorf("SBP %v: CRCERRS %d, %+v", sbp, n, w)
		}
		if want := int(w.Corrupted); !sbp && bad != 0 || sbp && bad != want || good != 500-want {
			t.Errorf("SBP %v: %d good, %d bad, %+v", sbp, good, bad, w)
		}
		if refused := w.Refused; sbp && refused != 0 || !sbp && refused != w.Corrupted || w.Unaccounted() != 0 {
			t.Errorf("SBP %v: %+v", sbp, w)
		}
		d.clean()
	}
}

func TestLosslessAndDelayed(t *testing.T) {
	a, b, c := pair(t, 64, Config{}, CableOptions{Lossless: true, AToB: Impairment{Delay: 20 * time.Microsecond}})
	sent, got := 0, 0
	for i := range 3000 {
		if sent < 1000 && a.after(a.txNext) != a.txClean {
			a.send(makeFrame(b.chip.MAC(), 60, byte(sent)))
			sent++
		}
		c.Step(int64(i)*1000, 64)
		a.reclaim()
		if i%70 == 0 { // long pauses, so that the ring runs empty
			for _, f := range b.recv() {
				if string(f.data) != string(makeFrame(b.chip.MAC(), 60, byte(got))) {
					t.Fatalf("frame %d changed", got)
				}
				got++
			}
			b.fill(64)
		}
	}
	w, _ := c.Wires()
	if b.stat(regs.MPC) != 0 || w.Refused != 0 || w.Unaccounted() != 0 || got < 500 {
		t.Errorf("%d of %d, %+v", got, sent, w)
	}
	a.clean()
	b.clean()
}

// TestLosslessWaitsUnderWay: a frame that finds no room when it is due waits
// on the cable.
func TestLosslessWaitsUnderWay(t *testing.T) {
	a, b := &station{}, &limited{station{keep: true, space: 8}}
	c, err := NewCable(a, b, CableOptions{Lossless: true, AToB: Impairment{Delay: time.Microsecond}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		a.out = append(a.out, numbered(i))
	}
	c.Step(0, 64)
	w, _ := c.Wires()
	if w.InFlight != 8 {
		t.Errorf("%d under way, there is room for 8", w.InFlight)
	}
	b.space = 3 // someone else filled it
	c.Step(1e6, 64)
	if w, _ = c.Wires(); w.Delivered != 3 || w.InFlight != 5 || w.Unaccounted() != 0 {
		t.Errorf("with room for 3: %+v", w)
	}
	for len(b.got) < 20 {
		b.space = 4
		c.Step(int64(len(b.got))*1e6+2e6, 64)
		b.space = 4
		c.Step(int64(len(b.got))*1e6+3e6, 64)
	}
	for i, f := range b.got {
		if numberOf(f) != i {
			t.Fatalf("frame %d came as number %d", numberOf(f), i)
		}
	}
}

func TestFlapSchedule(t *testing.T) {
	d := newDriver(t, nil, 64, Config{}).up().fill(63)
	s := &station{keep: true}
	c, err := NewCable(d.chip, s, CableOptions{
		AToB:  Impairment{Delay: time.Millisecond},
		Flaps: []Flap{{First: 10 * time.Millisecond, Down: 2 * time.Millisecond, Every: 10 * time.Millisecond, Count: 3}},
	})
	if err != nil {
		t.Fatal(err)
	}
	begin := int64(5e9)
	down, changes, was := 0, 0, true
	for ms := range 60 {
		d.send(makeFrame(farMAC, 60, byte(ms)))
		c.Step(begin+int64(ms)*1e6, 64)
		d.reclaim()
		up := d.chip.Read(regs.STATUS)&regs.StatusLU != 0
		if !up {
			down++
		}
		if up != was {
			changes++
			was = up
			if d.chip.Read(regs.ICR)&regs.IcrLSC == 0 {
				t.Errorf("no LSC at %d ms", ms)
			}
		}
		if want := (ms < 10 || ms%10 >= 2) || ms >= 40; up != want {
			t.Errorf("at %d ms the link is up: %v", ms, up)
		}
	}
	w, _ := c.Wires()
	if down != 6 || changes != 6 || c.Flaps() != 3 || w.LinkDown == 0 || w.Unaccounted() != 0 {
		t.Errorf("down %d ms, %d changes, %d flaps, %+v", down, changes, c.Flaps(), w)
	}
	// A cable pulled by hand stays out whatever the schedule says.
	c.SetLink(false)
	c.Step(begin+100e6, 64)
	if c.Up() || d.chip.Link() {
		t.Error("the schedule plugs in what was pulled out by hand")
	}
	d.clean()
}

func TestImpairmentsAreChecked(t *testing.T) {
	for name, o := range map[string]CableOptions{
		"loss":           {AToB: Impairment{Loss: perMillion + 1}},
		"negative":       {BToA: Impairment{Corrupt: -1}},
		"delay":          {AToB: Impairment{Delay: -time.Second}},
		"flap for ever":  {Flaps: []Flap{{}}},
		"flap overlaps":  {Flaps: []Flap{{Down: 5, Every: 5}}},
		"flap backwards": {Flaps: []Flap{{First: -1, Down: 5}}},
	} {
		if _, err := NewCable(&station{}, &station{}, o); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	def := ImpairmentTable.Defaults()
	if errs := ImpairmentTable.Check(&def); len(errs) > 0 || def.active() {
		t.Errorf("defaults: %v", errs)
	}
}

// TestCableConservesFrames does random things to a cable and accounts for
// every frame after each.
func TestCableConservesFrames(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		ppm := rapid.SampledFrom([]int{0, 0, 10_000, 300_000, perMillion})
		us := rapid.SampledFrom([]time.Duration{0, time.Microsecond, 50 * time.Microsecond})
		side := func(name string) Impairment {
			return Impairment{
				Loss: ppm.Draw(rt, name+" loss"), Corrupt: ppm.Draw(rt, name+" corrupt"), Duplicate: ppm.Draw(rt, name+" duplicate"),
				Reorder: ppm.Draw(rt, name+" reorder"), Delay: us.Draw(rt, name+" delay"), Jitter: us.Draw(rt, name+" jitter"),
				Limit: rapid.SampledFrom([]int{0, 1, 10}).Draw(rt, name+" limit"),
			}
		}
		ends := [2]*limited{{station{keep: true, space: 1 << 30}}, {station{keep: true, space: 1 << 30}}}
		c, err := NewCable(ends[0], ends[1], CableOptions{
			Seed: rapid.Uint64().Draw(rt, "seed"), AToB: side("a"), BToA: side("b"),
			Lossless: rapid.Bool().Draw(rt, "lossless"),
		})
		if err != nil {
			rt.Fatal(err)
		}
		now, given := int64(0), [2]int{}
		rt.Repeat(map[string]func(*rapid.T){
			"send": func(rt *rapid.T) {
				i := rapid.IntRange(0, 1).Draw(rt, "end")
				for range rapid.IntRange(1, 30).Draw(rt, "frames") {
					ends[i].out = append(ends[i].out, numbered(given[i]))
					given[i]++
				}
			},
			"step": func(rt *rapid.T) {
				now += int64(rapid.IntRange(0, 30_000).Draw(rt, "ns"))
				c.Step(now, rapid.IntRange(1, 64).Draw(rt, "burst"))
			},
			"plug": func(rt *rapid.T) { c.SetLink(rapid.Bool().Draw(rt, "in")) },
			"room": func(rt *rapid.T) {
				ends[rapid.IntRange(0, 1).Draw(rt, "end")].space = rapid.IntRange(0, 20).Draw(rt, "room")
			},
			"": func(rt *rapid.T) {
				ab, ba := c.Wires()
				for i, s := range []WireStats{ab, ba} {
					if s.Unaccounted() != 0 {
						rt.Fatalf("unaccounted: %+v", s)
					}
					if int(s.Sent) != given[i]-len(ends[i].out) || int(s.Delivered) != len(ends[1-i].got) {
						rt.Fatalf("%d taken, %d came: %+v", given[i]-len(ends[i].out), len(ends[1-i].got), s)
					}
				}
			},
		})
	})
}

// TestImpairedStepDoesNotAllocate in its steady state.
func TestImpairedStepDoesNotAllocate(t *testing.T) {
	a, b := &pump{}, &deaf{}
	c, err := NewCable(a, b, CableOptions{AToB: Impairment{Loss: 1e4, Duplicate: 1e4, Reorder: 1e4, Delay: 50 * time.Microsecond, Jitter: 9 * time.Microsecond}})
	if err != nil {
		t.Fatal(err)
	}
	now := int64(0)
	round := func() {
		now += 10_000
		a.left = 32
		c.Step(now, 64)
	}
	for range 500 {
		round()
	}
	if n := testing.AllocsPerRun(200, round); n != 0 {
		t.Errorf("%v allocations a step", n)
	}
	if b.n == 0 {
		t.Error("nothing came through")
	}
}

// pump sends the same frame again and again.
type pump struct {
	left int
	f    [60]byte
}

func (p *pump) Deliver([]byte) bool { return true }
func (p *pump) Next(int64) []byte {
	if p.left == 0 {
		return nil
	}
	p.left--
	return p.f[:]
}
