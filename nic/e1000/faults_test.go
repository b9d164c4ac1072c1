package e1000_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"gorouter/nic/e1000"
	"gorouter/nic/model"
	"gorouter/port"
	"gorouter/skb"
)

// scenario is a rig under load in both directions.
type scenario struct {
	*rig
	log      strings.Builder
	offered  [2]uint64 // by sender
	received [2]uint64 // by receiver
	lastRx   [2]int64  // when a frame was received last
	gap      [2]int64  // longest time without one
	err      [2]error  // what Housekeep said
}

// someChips runs f on one chip of each kind, on PCI-X where that has rules.
func someChips(t *testing.T, f func(t *testing.T, o rigOptions)) {
	for _, c := range [][2]string{{"82540EM", ""}, {"82541GI", ""}, {"82544EI", "pcix133"}, {"82545EM", "pcix133"}, {"82546GB", ""}} {
		t.Run(c[0], func(t *testing.T) {
			o := defaultRig()
			o.chip = func(_ int, m *model.Config) { m.Chip, m.Bus, m.CheckContent = c[0], c[1], false }
			f(t, o)
		})
	}
}

const tick = 10 * time.Millisecond

func newScenario(t *testing.T, o rigOptions) *scenario {
	s := &scenario{}
	o.lossless = false
	o.device = func(_ int, c *e1000.Config) {
		c.Log = slog.New(slog.NewTextHandler(&s.log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	s.rig = newRig(t, o)
	return s
}

// load sends ten frames each way every 10 ms, and does all that workers do.
func (s *scenario) load(d time.Duration) {
	s.t.Helper()
	for range d / tick {
		for p := range 2 {
			if s.dev[p].Port().Up() {
				s.send(p, make60(10)...)
				s.offered[p] += 10
			}
		}
		s.work()
	}
}

// rest lets time go by without new frames.
func (s *scenario) rest(d time.Duration) {
	for range d / tick {
		s.work()
	}
}

func (s *scenario) work() {
	s.clk.Sleep(tick)
	now := s.clk.Now()
	s.step()
	for p := range 2 {
		s.err[p] = errors.Join(s.err[p], s.dev[p].Housekeep(now))
		if n := s.receive(p, nil); n > 0 {
			if s.lastRx[p] != 0 {
				s.gap[p] = max(s.gap[p], now-s.lastRx[p])
			}
			s.lastRx[p] = now
		}
		s.tx[p].Tick(now)
		s.tx[p].Reclaim()
	}
	s.received[0], s.received[1] = s.rx[0].Counters().Live.Packets, s.rx[1].Counters().Live.Packets
}

// books checks that no frame of the sender's is unaccounted for: what the
// sending ring counts is what was offered, and what it counts as sent came
// out, or was counted by the receiving ring or chip, or by the fault itself.
// A frame that left and was not reported as sent counts as aborted, though it
// came out.
func (s *scenario) books(from int, lost uint64) {
	s.t.Helper()
	s.audit()
	to := 1 - from
	if err := s.dev[to].CheckLink(); err != nil {
		s.t.Error(err)
	}
	tc, rc := &s.tx[from].Counters().Live, &s.rx[to].Counters().Live
	if got := tc.Packets + tc.Drops.Total(); got != s.offered[from] {
		s.t.Errorf("p%d: %d frames offered, %d sent and %v dropped", from, s.offered[from], tc.Packets, tc.Drops.Map())
	}
	came := rc.Packets + rc.Drops.Total() + s.dev[to].Stats()["MPC"] + lost
	if came < tc.Packets || came > tc.Packets+tc.Drops[skb.TxAborted] {
		s.t.Errorf("p%d: %d sent, %d aborted; p%d: %d received, dropped %v, missed %d, lost by the fault %d", from, tc.Packets,
			tc.Drops[skb.TxAborted], to, rc.Packets, rc.Drops.Map(), s.dev[to].Stats()["MPC"], lost)
	}
}

func (s *scenario) stats(p int, hangs, stalls, resets uint64) {
	s.t.Helper()
	st := s.dev[p].Stats()
	if st["tx_hangs"] != hangs || st["rx_stalls"] != stalls || st["resets"] != resets {
		s.t.Errorf("p%d: %d hangs, %d stalls, %d resets, want %d, %d, %d\n%s", p, st["tx_hangs"], st["rx_stalls"], st["resets"],
			hangs, stalls, resets, s.lines())
	}
}

// lines is the log without the registers of reports.
func (s *scenario) lines() string {
	var b strings.Builder
	for _, l := range strings.Split(s.log.String(), "\n") {
		l, _, _ = strings.Cut(l, "\\nregisters:")
		b.WriteString(l + "\n")
	}
	return b.String()
}

func (s *scenario) inject(p int, f model.Fault) {
	s.t.Helper()
	if err := s.chip[p].Inject(f); err != nil {
		s.t.Fatal(err)
	}
}

// A chip whose transmitter or receiver stands still, or that does not report
// what it did, is back within the time on every chip, without a leak and
// without a frame lost unnamed.
func TestUnitsThatHangAreCured(t *testing.T) {
	for _, c := range []struct {
		name          string
		fault         model.Fault
		hangs, stalls uint64
		within        time.Duration
	}{
		{"transmitter hangs", model.Fault{Kind: model.FaultTxHang, After: 505}, 1, 0, 1300 * time.Millisecond},
		{"receiver hangs", model.Fault{Kind: model.FaultRxHang, After: 505}, 0, 1, 3300 * time.Millisecond},
		{"a transmit report is lost", model.Fault{Kind: model.FaultTxNoWriteBack, After: 50, Times: 1}, 1, 0, 1300 * time.Millisecond},
		{"a receive report is lost", model.Fault{Kind: model.FaultRxNoWriteBack, After: 505, Times: 1}, 0, 1, 3300 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			someChips(t, func(t *testing.T, o rigOptions) {
				s := newScenario(t, o)
				defer s.close()
				s.inject(0, c.fault)
				s.load(5 * time.Second)
				s.rest(300 * time.Millisecond)
				s.stats(0, c.hangs, c.stalls, 1)
				s.stats(1, 0, 0, 0)
				if struck := s.chip[0].FaultStats().Struck[c.fault.Kind]; struck != 1 {
					t.Errorf("the fault struck %d times", struck)
				}
				lost := uint64(0)
				if c.fault.Kind == model.FaultRxNoWriteBack {
					lost = 1
				}
				s.books(0, 0)
				s.books(1, lost)
				for p, gap := range s.gap {
					if gap > int64(c.within) {
						t.Errorf("p%d: nothing was received for %v", p, time.Duration(gap))
					}
				}
				if s.received[0] < 1000 || s.received[1] < 1000 {
					t.Errorf("received %v of %v", s.received, s.offered)
				}
				if n := strings.Count(s.log.String(), "level=ERROR"); n != 1 {
					t.Errorf("%d errors logged:\n%s", n, s.lines())
				}
				if err := errors.Join(s.err[:]...); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A chip that hangs whenever it is reset is set down, and is back when the
// fault is over.
func TestChipThatHangsForever(t *testing.T) {
	s := newScenario(t, defaultRig())
	defer s.close()
	s.inject(0, model.Fault{Kind: model.FaultTxHang, After: 20, Repeat: true})
	s.load(10 * time.Second)
	s.stats(0, 6, 0, 5)
	if s.dev[0].Port().Up() {
		t.Fatal("the port is still up")
	}
	s.books(0, 0)
	s.chip[0].Clear(model.FaultTxHang)
	s.load(15 * time.Second)
	if !s.dev[0].Port().Up() {
		t.Fatal("the port did not come back")
	}
	before := s.received[1]
	s.load(time.Second)
	s.rest(200 * time.Millisecond)
	if s.received[1] != before+1000 {
		t.Errorf("%d of 1000 frames arrive", s.received[1]-before)
	}
	s.stats(0, 6, 0, 5)
	s.books(0, 0)
}

// A device that falls off the bus takes its port down, its process lives, the
// other port works on, and closing takes no time.
func TestMasterAbort(t *testing.T) {
	someChips(t, func(t *testing.T, o rigOptions) {
		s := newScenario(t, o)
		defer s.close()
		s.load(500 * time.Millisecond)
		s.inject(0, model.Fault{Kind: model.FaultMasterAbort, After: 105})
		s.load(3 * time.Second)
		if !errors.Is(s.err[0], e1000.ErrGone) || strings.Count(s.err[0].Error(), "STATUS") != 1 {
			t.Errorf("p0: %v", s.err[0])
		}
		if s.err[1] != nil {
			t.Errorf("p1: %v", s.err[1])
		}
		if s.dev[0].Port().Up() || s.dev[1].Port().Up() {
			t.Error("a port is up without a link")
		}
		if n := strings.Count(s.log.String(), "level=ERROR"); n != 1 {
			t.Errorf("%d errors logged:\n%s", n, s.lines())
		}
		s.stats(0, 0, 0, 0)
		s.stats(1, 0, 0, 0)
		s.audit()
		before := s.clk.Now()
		if err := s.dev[0].Close(); err != nil {
			t.Error(err)
		}
		if d := time.Duration(s.clk.Now() - before); d > time.Millisecond {
			t.Errorf("closing took %v", d)
		}
	})
}

// A device that comes back is brought up again.
func TestMasterAbortAndReturn(t *testing.T) {
	s := newScenario(t, defaultRig())
	defer s.close()
	s.load(500 * time.Millisecond)
	s.inject(0, model.Fault{Kind: model.FaultMasterAbort})
	s.load(2 * time.Second)
	s.chip[0].Clear(model.FaultMasterAbort)
	s.load(20 * time.Second)
	if !s.dev[0].Port().Up() {
		t.Fatalf("not back:\n%s", s.lines())
	}
	before := s.received
	s.load(time.Second)
	s.rest(200 * time.Millisecond)
	if s.received[0] != before[0]+1000 || s.received[1] != before[1]+1000 {
		t.Errorf("received %v after %v", s.received, before)
	}
	s.books(0, 0)
}

func TestWrongEEPROMChecksumIsAWarning(t *testing.T) {
	someChips(t, func(t *testing.T, o rigOptions) {
		var log strings.Builder
		o.device = func(i int, c *e1000.Config) {
			c.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
			if err := c.Regs.(*model.Chip).Inject(model.Fault{Kind: model.FaultEEPROMChecksum}); err != nil {
				t.Fatal(err)
			}
		}
		r := newRig(t, o)
		defer r.close()
		if n := strings.Count(log.String(), "wrong EEPROM checksum"); n != 2 || strings.Count(log.String(), "level=") != 2 {
			t.Errorf("log:\n%s", log.String())
		}
		for _, d := range r.dev {
			if d.MACSource() != e1000.MACEEPROM {
				t.Errorf("the address is from %v", d.MACSource())
			}
		}
		r.send(0, 60)
		r.step()
		if r.receive(1, nil) != 1 {
			t.Error("the frame did not arrive")
		}
	})
}

// An EEPROM that does not answer is named with what was read, how long it was
// waited for and what to do, and does not keep the device from running.
func TestStuckEEPROM(t *testing.T) {
	for _, c := range []struct{ chip, want string }{
		{"82540EM", "EEPROM word 0x0: the device did not finish in time (10ms): EERD is "},
		{"82541GI", "EEPROM word 0x0: the device did not finish in time (10ms): EERD is "},
		{"82544EI", "EEPROM request: the device did not finish in time (5ms): EECD is "},
	} {
		t.Run(c.chip, func(t *testing.T) {
			a, err := skb.NewArena(skb.Options{Buffers: 1024, RingBytes: 2 << 20})
			if err != nil {
				t.Fatal(err)
			}
			defer a.Close()
			f := newFake(0)
			chip, err := model.New(model.Config{Chip: c.chip, Arena: a, Clock: f.clk, Strict: true})
			if err != nil {
				t.Fatal(err)
			}
			if err := chip.Inject(model.Fault{Kind: model.FaultEEPROMStuck}); err != nil {
				t.Fatal(err)
			}
			var log strings.Builder
			cfg := fakeConfig(t, f, chip.Info().Device)
			cfg.Regs, cfg.IO, cfg.Log, cfg.Arena = chip, chip.IO(), capture(&log), a
			cfg.RxCache, cfg.TxCache = a.NewCache("w"), a.NewCache("w")
			before := f.clk.Now()
			d, err := e1000.Open(cfg)
			if err != nil {
				t.Fatal(err)
			}
			if took := time.Duration(f.clk.Now() - before); took > 200*time.Millisecond {
				t.Errorf("open took %v", took)
			}
			if !strings.Contains(log.String(), c.want) || !strings.Contains(log.String(), "set the port's mac") {
				t.Errorf("no %q in the log:\n%s", c.want, log.String())
			}
			if s := d.MACSource(); s != e1000.MACFirmware && s != e1000.MACRandom {
				t.Errorf("the address is from %v", s)
			}
			if err := d.Start(); err != nil {
				t.Error(err)
			}
			if err := errors.Join(d.Close(), chip.Err()); err != nil {
				t.Error(err)
			}
			d.Port().Rx[0].Close()
			d.Port().Tx[0].Close()
		})
	}
}

// Interrupts that get lost cost time, never frames: the sleep ends, and the
// queues are looked at.
func TestLostInterruptsCostOnlyTime(t *testing.T) {
	o := defaultRig()
	o.irq, o.threaded = true, true
	r := newRig(t, o)
	defer r.close()
	for _, c := range r.chip {
		if err := c.Inject(model.Fault{Kind: model.FaultLostInterrupt, Chance: 300_000}); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.chip[0].Start(); err != nil {
		t.Fatal(err)
	}
	defer r.chip[0].Stop()
	s, err := port.NewSleeper()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, d := range r.dev {
		s.Add(d.Port().Events)
	}
	const total = 300
	sent, got := 0, 0
	for got < total || r.tx[0].Pending() > 0 {
		if sent == got && sent < total {
			r.send(0, 60)
			sent++
		}
		n := r.receive(1, nil)
		got += n
		r.tx[0].Reclaim()
		if n == 0 {
			if _, err := s.Sleep(2*time.Millisecond, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	if r.chip[1].FaultStats().Struck[model.FaultLostInterrupt] == 0 {
		t.Error("no interrupt was lost")
	}
}
