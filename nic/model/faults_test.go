package model

import (
	"strings"
	"testing"

	"gorouter/nic/e1000/regs"
	"gorouter/skb"
)

// scene is a fault with what a driver sees of it.
type scene struct {
	name  string
	fault Fault
	see   func(d *driver, s *station)
}

func (d *driver) inject(f Fault) {
	d.t.Helper()
	if err := d.chip.Inject(f); err != nil {
		d.t.Fatal(err)
	}
}

// expect compares a value that the driver or the far end sees.
func (d *driver) expect(what string, got, want any) {
	d.t.Helper()
	if got != want {
		d.t.Errorf("%s: %v, expected %v", what, got, want)
	}
}

// sendN sends frames one by one and returns how many the station got.
func (d *driver) sendN(s *station, n int) int {
	had := len(s.got)
	for range n {
		d.send(makeFrame(farMAC, 60, 0))
		d.step()
	}
	return len(s.got) - had
}

// receiveN does the same the other way.
func (d *driver) receiveN(s *station, n int) int {
	for range n {
		s.out = append(s.out, makeFrame(d.chip.MAC(), 60, 0))
	}
	d.step()
	got := len(d.recv())
	d.fill(got)
	return got
}

// again resets the chip and brings it up, with its rings from the beginning.
func (d *driver) again() {
	d.resetBy()
	d.EachHeld(d.cache.Free)
	for i := range d.rxBuf {
		d.rxBuf[i], d.txBuf[i] = skb.None, skb.None
	}
	d.rxNext, d.rxFill, d.txNext, d.txClean = 0, 0, 0, 0
	d.chip.Write(regs.CTRLEXT, regs.CtrlExtEERST)
	d.start().fill(15)
}

func hangsTx(d *driver, s *station) {
	d.expect("frames sent of 5", d.sendN(s, 5), 2)
	d.expect("TDH", d.chip.Read(regs.TDH), uint32(2))
	d.expect("TDT", d.chip.Read(regs.TDT), uint32(5))
	d.expect("DD", [3]bool{d.done(1), d.done(2), d.done(4)}, [3]bool{true, false, false})
	d.expect("link", d.chip.Link(), true)
	d.expect("received of 2", d.receiveN(s, 2), 2)
	d.wait(5e9)
	d.expect("TDH after 5 s", d.chip.Read(regs.TDH), uint32(2))
	d.again()
	d.expect("frames sent of 5 after a reset", d.sendN(s, 5), 5)
	d.expect("faults after a reset", len(d.chip.Faults()), 0)
}

var scenes = []scene{
	{"transmit hang", Fault{Kind: FaultTxHang, After: 2}, hangsTx},
	{"prefetch hang with prefetching", Fault{Kind: FaultPrefetchHang, After: 2}, func(d *driver, s *station) {
		d.chip.Write(regs.TXDMAC, 0)
		hangsTx(d, s)
	}},
	{"no prefetch hang without prefetching", Fault{Kind: FaultPrefetchHang}, func(d *driver, s *station) {
		d.expect("TXDMAC", d.chip.Read(regs.TXDMAC), regs.TxdmacDPP)
		d.expect("frames sent of 5", d.sendN(s, 5), 5)
		d.chip.Write(regs.TXDMAC, 0)
		d.expect("frames sent of 5 with prefetching", d.sendN(s, 5), 0)
		d.chip.Write(regs.TXDMAC, regs.TxdmacDPP)
		d.expect("frames sent of 5 when it is too late", d.sendN(s, 5), 0)
	}},
	{"transmit hang that comes back", Fault{Kind: FaultTxHang, After: 3, Repeat: true}, func(d *driver, s *station) {
		for range 3 {
			d.expect("frames sent of 5", d.sendN(s, 5), 3)
			d.again()
		}
		d.expect("strikes", d.chip.FaultStats().Struck[FaultTxHang], uint64(3))
		d.chip.Clear(FaultTxHang)
		d.expect("frames sent of 5 after Clear", d.sendN(s, 5), 5)
	}},
	{"receive hang", Fault{Kind: FaultRxHang, After: 3}, func(d *driver, s *station) {
		d.expect("received of 10", d.receiveN(s, 10), 3)
		d.expect("RDH", d.chip.Read(regs.RDH), uint32(3))
		d.expect("missed", d.stat(regs.MPC), uint32(7))
		d.expect("frames sent of 5", d.sendN(s, 5), 5)
		d.again()
		d.expect("received of 10 after a reset", d.receiveN(s, 10), 10)
	}},
	{"one DD not written on transmit", Fault{Kind: FaultTxNoWriteBack, After: 1, Times: 1}, func(d *driver, s *station) {
		d.expect("frames sent of 4", d.sendN(s, 4), 4)
		d.expect("DD", [4]bool{d.done(0), d.done(1), d.done(2), d.done(3)}, [4]bool{true, false, true, true})
		d.expect("TDH", d.chip.Read(regs.TDH), uint32(4))
		d.expect("reclaimed", d.reclaim(), 1)
		d.expect("faults left", len(d.chip.Faults()), 0)
	}},
	{"no DD written on transmit", Fault{Kind: FaultTxNoWriteBack}, func(d *driver, s *station) {
		d.expect("frames sent of 4", d.sendN(s, 4), 4)
		d.expect("reclaimed", d.reclaim(), 0)
		d.again()
		d.sendN(s, 4)
		d.expect("reclaimed after a reset", d.reclaim(), 4)
	}},
	{"no DD written through a threshold", Fault{Kind: FaultTxNoWriteBack}, func(d *driver, s *station) {
		d.chip.Write(regs.TXDCTL, 2<<regs.TxdctlWTHRESHShift|regs.TxdctlGRAN)
		d.sendN(s, 4)
		d.expect("strikes", d.chip.FaultStats().Struck[FaultTxNoWriteBack], uint64(4))
		d.expect("reclaimed", d.reclaim(), 0)
	}},
	{"one DD not written on receive", Fault{Kind: FaultRxNoWriteBack, After: 2, Times: 1}, func(d *driver, s *station) {
		d.expect("received of 6", d.receiveN(s, 6), 2)
		d.expect("later DD", d.rx[3].load().word&rxDD != 0, true)
		d.expect("RDH", d.chip.Read(regs.RDH), uint32(6))
		d.expect("GPRC", d.stat(regs.GPRC), uint32(6))
	}},
	{"no DD written on receive", Fault{Kind: FaultRxNoWriteBack}, func(d *driver, s *station) {
		d.expect("received of 6", d.receiveN(s, 6), 0)
		d.again()
		d.expect("received of 6 after a reset", d.receiveN(s, 6), 6)
	}},
	{"interrupt lost", Fault{Kind: FaultLostInterrupt, After: 1, Times: 1}, func(d *driver, s *station) {
		calls := 0
		d.chip.cfg.Interrupt = func() { calls++ }
		d.chip.Read(regs.ICR)
		d.chip.Write(regs.IMS, regs.IcrRXT0)
		var seen []int
		for range 3 {
			d.receiveN(s, 1)
			d.receiveN(s, 1)
			seen = append(seen, calls)
			d.expect("cause", d.chip.Read(regs.ICR)&regs.IcrRXT0, regs.IcrRXT0)
			d.step()
		}
		d.expect("calls after 1st, 2nd, 3rd", [3]int(seen), [3]int{1, 1, 2})
	}},
	{"interrupt lost until the fault is cleared", Fault{Kind: FaultLostInterrupt}, func(d *driver, s *station) {
		d.chip.Read(regs.ICR)
		d.chip.Write(regs.IMS, regs.IcrRXT0)
		d.receiveN(s, 1)
		d.expect("asserted", d.chip.Asserted(), false)
		d.chip.Clear(FaultLostInterrupt)
		d.expect("asserted after Clear", d.chip.Asserted(), true)
	}},
	{"interrupt without a cause", Fault{Kind: FaultSpuriousInterrupt, Times: 3}, func(d *driver, _ *station) {
		calls := 0
		d.chip.cfg.Interrupt = func() { calls++; d.expect("cause", d.chip.irq.cause&d.chip.irq.mask, uint32(0)) }
		for range 10 {
			d.step()
		}
		d.expect("calls", calls, 3)
		d.expect("asserted", d.chip.Asserted(), false)
	}},
	{"interrupt line stuck", Fault{Kind: FaultStuckInterrupt}, func(d *driver, s *station) {
		d.chip.Read(regs.ICR)
		d.chip.Write(regs.IMS, regs.IcrRXT0)
		d.expect("asserted before", d.chip.Asserted(), false)
		d.receiveN(s, 1)
		d.chip.Read(regs.ICR)
		d.chip.Write(regs.IMC, regs.IMCAll)
		d.step()
		d.expect("asserted with all masked", d.chip.Asserted(), true)
		d.again()
		d.expect("asserted after a reset", d.chip.Asserted(), false)
	}},
	{"wrong EEPROM checksum", Fault{Kind: FaultEEPROMChecksum}, func(d *driver, _ *station) {
		sum := func() (v uint16) {
			for i := range uint32(64) {
				v += d.readWord(i)
			}
			return v
		}
		d.expect("right sum", sum() == 0xBABA, false)
		d.expect("address word", d.readWord(0), uint16(0x0002))
		d.again()
		d.expect("right sum after a reset", sum() == 0xBABA, false)
		d.chip.Clear(FaultEEPROMChecksum)
		d.expect("sum after Clear", sum(), uint16(0xBABA))
	}},
	{"EEPROM never done", Fault{Kind: FaultEEPROMStuck}, func(d *driver, _ *station) {
		l, _ := regs.EERDLayoutFor(regs.MAC82540)
		for range 2 {
			d.chip.Write(regs.EERD, l.Command(0))
			for range 1000 {
				d.expect("done", l.IsDone(d.chip.Read(regs.EERD)), false)
			}
		}
		d.chip.Write(regs.EECD, regs.EecdREQ)
		d.expect("granted", d.chip.Read(regs.EECD)&regs.EecdGNT, uint32(0))
		d.chip.Write(regs.EECD, 0)
		d.chip.Clear(FaultEEPROMStuck)
		d.expect("word after Clear", d.readWord(0), uint16(2))
	}},
	{"MDIC never ready", Fault{Kind: FaultMDICStuck}, func(d *driver, s *station) {
		for range 2 {
			d.chip.Write(regs.MDIC, regs.MdicOPRead|1<<21|2<<16)
			for range 1000 {
				d.expect("ready", d.chip.Read(regs.MDIC)&regs.MdicREADY, uint32(0))
			}
		}
		d.expect("frames sent of 3", d.sendN(s, 3), 3)
		d.chip.Clear(FaultMDICStuck)
		d.expect("PHY after Clear", d.mdic(regs.MdicOPRead, 1, regs.PhyID1, 0)&0xFFFF, uint32(0x141))
	}},
	{"surprise removal", Fault{Kind: FaultMasterAbort, After: 4}, func(d *driver, s *station) {
		d.expect("frames sent of 3", d.sendN(s, 3), 3)
		d.expect("received of 3", d.receiveN(s, 3), 1)
		for _, off := range []uint32{regs.CTRL, regs.STATUS, regs.ICR, regs.RDH, regs.GPRC, 0x5F0C} {
			d.expect("register", d.chip.Read(off), uint32(allOnes))
		}
		d.expect("I/O window", d.chip.IO().Read(regs.IODATA), uint32(allOnes))
		d.expect("frames sent of 3 when gone", d.sendN(s, 3), 0)
		d.chip.Write(regs.CTRL, regs.CtrlRST)
		d.wait(1e9)
		d.expect("STATUS after a reset", d.chip.Read(regs.STATUS), uint32(allOnes))
		rx, tx := d.chip.Holds()
		d.expect("descriptors held", rx+tx, 0)
		d.chip.Clear(FaultMasterAbort)
		d.expect("STATUS when back", d.chip.Read(regs.STATUS)&regs.StatusLU, uint32(0))
		d.expect("ring when back", d.chip.Read(regs.TDLEN), uint32(0))
		d.again()
		d.expect("frames sent of 3 when back", d.sendN(s, 3), 3)
		d.expect("received of 3 when back", d.receiveN(s, 3), 3)
	}},
}

// TestFaults plays every scene on a chip of each kind of reset.
func TestFaults(t *testing.T) {
	played := map[FaultKind]bool{FaultEarlyWriteBack: true} // has tests of its own
	for _, k := range scenes {
		played[k.fault.Kind] = true
		for _, chip := range []string{"82540EM", "82546GB"} {
			t.Run(strings.ReplaceAll(k.name, " ", "_")+"/"+chip, func(t *testing.T) {
				d := newDriver(t, nil, 16, Config{Chip: chip, CheckContent: true}).start().fill(15)
				s := d.plug(CableOptions{})
				d.inject(k.fault)
				k.see(d, s)
				d.clean()
				if _, err := d.arena.Audit(d); err != nil {
					t.Error(err)
				}
			})
		}
	}
	for k := range FaultKind(NumFaults) {
		if !played[k] {
			t.Errorf("no scene has %v", k)
		}
	}
}

func TestBitBangedEEPROMFaults(t *testing.T) {
	d := newDriver(t, nil, 16, Config{Chip: "82544EI"})
	d.inject(Fault{Kind: FaultEEPROMChecksum, Times: 1})
	good := d.chip.eeprom[63]
	if v := d.readWord(63); v == good {
		t.Error("the checksum word is right")
	}
	d.inject(Fault{Kind: FaultEEPROMStuck, Times: 1})
	d.chip.Write(regs.EECD, regs.EecdREQ)
	for range 100 {
		d.expect("granted", d.chip.Read(regs.EECD)&regs.EecdGNT, uint32(0))
	}
	d.chip.Write(regs.EECD, 0)
	d.expect("word afterwards", d.readWord(63), good)
	d.clean()
}

// TestRemovalTakesTheOtherEndsLink: the far end of the cable loses its link
// with the card, and gets it back.
func TestRemovalTakesTheOtherEndsLink(t *testing.T) {
	for _, how := range []string{"at once", "after frames"} {
		a, b, c := pair(t, 32, Config{}, CableOptions{})
		if how == "at once" {
			a.inject(Fault{Kind: FaultMasterAbort})
		} else {
			a.inject(Fault{Kind: FaultMasterAbort, After: 3})
			f := makeFrame(b.chip.MAC(), 60, 0)
			a.send(f, f, f, f, f)
			c.Step(0, 64)
			b.expect("frames before", len(b.recv()), 3)
		}
		b.chip.Read(regs.ICR)
		b.expect("link of the other end", b.chip.Link(), false)
		b.expect("cable", c.Up(), false)
		a.chip.Clear(FaultMasterAbort)
		b.expect("link when back", b.chip.Link(), true)
		b.expect("cause", b.chip.Read(regs.ICR)&regs.IcrLSC, regs.IcrLSC)
		b.clean()
	}
}

// TestEarlyWriteBackCorruptsUnlessASentinelFollows: with DD before the fetch a
// driver that reuses its buffer sends other bytes. A last descriptor of four
// bytes, which is reported in time, prevents it.
func TestEarlyWriteBackCorruptsUnlessASentinelFollows(t *testing.T) {
	for _, sentinel := range []bool{false, true} {
		d := newDriver(t, nil, 16, Config{Chip: "82546GB", CheckContent: true}).start().fill(15)
		s := d.plug(CableOptions{})
		d.inject(Fault{Kind: FaultEarlyWriteBack})
		for i := range 20 {
			f := makeFrame(farMAC, 1000, byte(i))
			n := len(f)
			if sentinel {
				n -= 4
				d.queue(f[:n], 0)
				d.queue(f[n:], testCmd)
			} else {
				d.queue(f, testCmd)
			}
			d.bell()
			last := (d.txNext + d.n - 1) % d.n
			d.step()
			if !d.done(last) {
				t.Fatal("not reported at the first step")
			}
			// The buffers are someone else's now.
			others := make([]skb.Handle, d.reclaim())
			for i := range others {
				others[i] = d.alloc()
				clear(d.arena.Put(others[i], 1000))
			}
			d.step()
			d.cache.FreeBatch(others)
			if len(s.got) != i+1 {
				t.Fatalf("%d frames sent, expected %d", len(s.got), i+1)
			}
			if same := string(s.got[i]) == string(f); same != sentinel {
				t.Errorf("sentinel %v: frame unchanged %v", sentinel, same)
			}
		}
		want := uint64(20)
		if sentinel {
			want = 0
		}
		d.expect("stale frames", d.chip.FaultStats().Stale, want)
		d.chip.Clear(FaultEarlyWriteBack)
		d.step()
		d.expect("frames sent of 3 after Clear", d.sendN(s, 3), 3)
		d.clean()
	}
}

// TestFaultsByChanceFollowTheSeed: the same seed strikes at the same frames,
// about as often as asked.
func TestFaultsByChanceFollowTheSeed(t *testing.T) {
	run := func(seed uint64) (missing string, n uint64) {
		d := newDriver(t, nil, 16, Config{Seed: seed}).start().fill(15)
		s := d.plug(CableOptions{})
		d.inject(Fault{Kind: FaultTxNoWriteBack, Chance: 200_000})
		var b strings.Builder
		for range 500 {
			i := d.txNext
			d.sendN(s, 1)
			if d.done(i) {
				b.WriteByte('.')
			} else {
				b.WriteByte('x')
			}
			d.cache.Free(d.txBuf[i])
			d.txBuf[i], d.txClean = skb.None, d.txNext
		}
		d.clean()
		return b.String(), d.chip.FaultStats().Struck[FaultTxNoWriteBack]
	}
	a, n := run(7)
	if again, _ := run(7); again != a {
		t.Error("the same seed strikes elsewhere")
	}
	if other, _ := run(8); other == a {
		t.Error("another seed strikes at the same frames")
	}
	if got := strings.Count(a, "x"); uint64(got) != n || got < 60 || got > 140 {
		t.Errorf("struck %d of 500, counted %d", got, n)
	}
}

func TestInjectRefusals(t *testing.T) {
	d := newDriver(t, nil, 8, Config{})
	for name, f := range map[string]Fault{
		"unknown":         {Kind: NumFaults},
		"chance":          {Kind: FaultTxHang, Chance: 1_000_001},
		"negative chance": {Kind: FaultTxHang, Chance: -1},
		"repeat":          {Kind: FaultMasterAbort, Repeat: true},
	} {
		if d.chip.Inject(f) == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	d.chip.Clear(NumFaults)
	if len(d.chip.Faults()) != 0 {
		t.Error("something is injected")
	}
}

func TestFaultsHaveNames(t *testing.T) {
	for k := range FaultKind(NumFaults) {
		i := k.Info()
		if i.Name == "" || i.Text == "" || i.Event == "" {
			t.Errorf("fault %d is not described", k)
		}
		if back, ok := FaultByName(i.Name); !ok || back != k {
			t.Errorf("%s is not found by name", i.Name)
		}
	}
	if _, ok := FaultByName("nonsense"); ok || FaultKind(99).String() != "fault-99" {
		t.Error("unknown faults have names")
	}
}
