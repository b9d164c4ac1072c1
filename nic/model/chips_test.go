package model

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"gorouter/internal/inet"
	"gorouter/nic/e1000/regs"
	"gorouter/skb"
)

var update = flag.Bool("update", false, "rewrite testdata/tour.txt")

// readWord reads a word of the EEPROM in the way that the chip has.
func (d *driver) readWord(word uint32) uint16 {
	d.t.Helper()
	l, ok := regs.EERDLayoutFor(d.chip.info.MAC)
	if !ok {
		return uint16(d.bitBang(microwireRead<<microwireBits|word, 3+microwireBits, 16))
	}
	d.chip.Write(regs.EERD, l.Command(uint16(word)))
	for range 10 {
		if v := d.chip.Read(regs.EERD); l.IsDone(v) {
			return l.Data(v)
		}
	}
	d.t.Fatal("EERD is never done")
	return 0
}

// resetBy orders a reset in the way that is right for the chip.
func (d *driver) resetBy() {
	if d.chip.info.PHYFirst {
		d.chip.Write(regs.CTRL, regs.CtrlPHYRST)
	}
	switch d.chip.info.Reset {
	case ResetIO:
		d.chip.IO().Write(regs.IOADDR, regs.CTRL)
		d.chip.IO().Write(regs.IODATA, regs.CtrlRST)
	case ResetDup:
		d.chip.Write(regs.CTRLDUP, regs.CtrlRST)
	default:
		d.chip.Write(regs.CTRL, regs.CtrlRST)
	}
	d.clock.Advance(2e6)
}

// start brings the link up on any medium.
func (d *driver) start() *driver {
	d.up()
	if d.chip.info.Media != regs.Copper {
		d.chip.Write(regs.TXCW, regs.TxcwANE|regs.TxcwFD)
	}
	return d
}

// reached tells which ways of ordering a reset the chip takes without a
// breach, and whether it is still there after each.
func reached(t *testing.T, c ChipInfo, bus string) string {
	var s []string
	for _, way := range []string{"CTRL", "CTRLDUP", "I/O window"} {
		d := newDriver(t, nil, 8, Config{Chip: c.Name, Bus: bus})
		d.chip.Write(regs.CTRL, regs.CtrlPHYRST)
		d.chip.Write(regs.TIPG, 5)
		switch way {
		case "CTRL":
			d.chip.Write(regs.CTRL, regs.CtrlRST)
		case "CTRLDUP":
			d.chip.Write(regs.CTRLDUP, regs.CtrlRST)
		default:
			d.chip.IO().Write(regs.IOADDR, regs.CTRL)
			d.chip.IO().Write(regs.IODATA, regs.CtrlRST)
		}
		d.clock.Advance(2e6)
		what := "ok"
		if len(d.breaches) > 0 {
			what = "breach"
		}
		switch d.chip.Read(regs.TIPG) {
		case allOnes:
			what += ", bus hangs"
		case 5:
			what += ", not reset"
		}
		s = append(s, way+": "+what)
		_ = d.chip.Close()
	}
	return strings.Join(s, "; ")
}

// tour is everything that tells one chip from another, as a driver finds it.
func tour(t *testing.T, c ChipInfo) string {
	var b strings.Builder
	pr := func(f string, a ...any) { fmt.Fprintf(&b, f+"\n", a...) }
	pr("%s  %04x:%04x rev %d  %v %v  ports %d", c.Name, regs.VendorIntel, c.Device, c.Revision, c.MAC, c.Media, c.Ports)
	for _, bus := range Buses() {
		chip, err := New(Config{Chip: c.Name, Bus: bus.Name, Arena: newArena(t, skb.Options{Buffers: 256})})
		if err != nil {
			pr("  %-9s refused", bus.Name)
			continue
		}
		pr("  %-9s STATUS %s", bus.Name, regs.DecodeFor(c.MAC, regs.STATUS, chip.Read(regs.STATUS)))
		_ = chip.Close()
	}
	for port := range c.Ports {
		d := newDriver(t, nil, 16, Config{Chip: c.Name, Port: port, MAC: inet.MAC{2, 0, 0, 0, 7, 0x10}})
		var words []uint16
		for i := range uint32(eepromWords) {
			words = append(words, d.readWord(i))
		}
		l, ok := regs.EERDLayoutFor(c.MAC)
		how := "EECD, bit by bit"
		if ok {
			how = fmt.Sprintf("EERD, done %#x, number from bit %d", l.Done, l.AddrShift)
		}
		pr("  port %d: address %v, RAL %08x %08x", port, d.chip.MAC(), d.chip.Read(regs.RAL), d.chip.Read(regs.RAH))
		pr("    EEPROM by %s: %04x %04x %04x, device %04x, sum %04x", how, words[0], words[1], words[2], words[regs.EEPROMDevice], regs.EEPROMSumOf(words))
		d.start()
		d.plug(CableOptions{})
		pr("    STATUS with link %s", regs.DecodeFor(c.MAC, regs.STATUS, d.chip.Read(regs.STATUS)))
		if c.Media == regs.Copper {
			read := func(r uint32) uint16 { return uint16(d.mdic(regs.MdicOPRead, 1, r, 0)) }
			pr("    PHY %04x%04x, status %s", read(regs.PhyID1), read(regs.PhyID2), regs.DecodePHYFor(c.MAC, regs.PhyPSSTAT, read(regs.PhyPSSTAT)))
		} else {
			pr("    PHY: error %v; RXCW %s", d.mdic(regs.MdicOPRead, 1, 2, 0)&regs.MdicERROR != 0, regs.DecodeFor(c.MAC, regs.RXCW, d.chip.Read(regs.RXCW)))
		}
		d.resetBy()
		lo, hi := d.chip.Read(regs.RAL), d.chip.Read(regs.RAH)
		d.chip.Write(regs.CTRLEXT, regs.CtrlExtEERST)
		pr("    RAL after reset %08x %08x, after EERST %08x %08x, EERST reads %v", lo, hi, d.chip.Read(regs.RAL), d.chip.Read(regs.RAH), d.chip.Read(regs.CTRLEXT)&regs.CtrlExtEERST != 0)
		d.chip.Write(regs.MTA, 1)
		d.chip.Write(regs.MTA+4, 2)
		pr("    MTA written 1, 2 reads %d, %d", d.chip.Read(regs.MTA), d.chip.Read(regs.MTA+4))
		d.clean()
		var absent []string
		for _, r := range regs.All() {
			if r.Mode != regs.RW || r.Offset/4 >= regWords || r.Offset == regs.EECD {
				continue
			}
			n := len(d.breaches)
			if d.chip.Write(r.Offset, 0); len(d.breaches) > n {
				absent = append(absent, r.Name)
			}
		}
		pr("    registers it lacks: %s", strings.Join(absent, " "))
		_ = d.chip.Close()
	}
	pr("  reset by %s", reached(t, c, ""))
	if c.Wide {
		pr("  on pci33 by %s", reached(t, c, "pci33"))
	}
	for _, bus := range Buses() {
		if _, err := c.bus(bus.Name); err != nil || bus.Name != "pci33" && bus.Name != "pcix133" {
			continue
		}
		pr("  %-9s transmit buffers: end on 0 %s, end on 7 %s, first of 2015 %s, of 2016 %s; rx across 64 KiB %s", bus.Name,
			verdict(t, c, bus, 2, 0), verdict(t, c, bus, 2, 7), verdict(t, c, bus, 2015, 7), verdict(t, c, bus, 2016, 7), boundary(t, c, bus))
	}
	return b.String()
}

// verdict is what a strict chip says of a buffer of 100+n bytes whose last
// byte has the low bits given.
func verdict(t *testing.T, c ChipInfo, bus Bus, n int, low uint64) string {
	d := newDriver(t, newArena(t, skb.Options{Buffers: 256, Stride: 4096}), 16, Config{Chip: c.Name, Bus: bus.Name})
	defer d.chip.Close()
	d.start()
	if n < 1000 {
		n += 100
	}
	i := d.queue(make([]byte, n), testCmd)
	d.tx[i].addr += 16 + low - (d.tx[i].addr+uint64(n)-1)%8
	d.bell()
	return names(d.breaches)
}

func boundary(t *testing.T, c ChipInfo, bus Bus) string {
	d := newDriver(t, newArena(t, skb.Options{Buffers: 256}), 16, Config{Chip: c.Name, Bus: bus.Name, Waivers: []Rule{RuleBufferOverrun}})
	defer d.chip.Close()
	d.start()
	for {
		h := d.alloc()
		if at := d.arena.BusAt(h, 0); at>>16 != (at+4095)>>16 {
			d.rx[0] = desc{addr: at + uint64(d.arena.Stride()) - 32}
			d.chip.Write(regs.RDT, 1)
			return names(d.breaches)
		}
	}
}

func names(b []Breach) string {
	if len(b) == 0 {
		return "ok"
	}
	return b[0].Rule.String()
}

// TestTourOfChips compares what a driver finds on each chip with a reviewed
// file.
func TestTourOfChips(t *testing.T) {
	var b strings.Builder
	for _, c := range Chips() {
		b.WriteString(tour(t, c) + "\n")
	}
	const file = "testdata/tour.txt"
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got, exp := strings.Split(b.String(), "\n"), strings.Split(string(want), "\n")
	for i := range min(len(got), len(exp)) {
		if got[i] != exp[i] {
			t.Errorf("line %d:\n%s\nexpected\n%s", i+1, got[i], exp[i])
		}
	}
	if len(got) != len(exp) {
		t.Errorf("%d lines, expected %d (-update writes the file anew)", len(got), len(exp))
	}
}

// TestEveryChipSendsAndReceives brings each chip up on each bus and moves
// frames of every size class both ways.
func TestEveryChipSendsAndReceives(t *testing.T) {
	for _, c := range Chips() {
		for _, bus := range Buses() {
			if _, err := c.bus(bus.Name); err != nil {
				continue
			}
			t.Run(c.Name+"/"+bus.Name, func(t *testing.T) {
				d := newDriver(t, nil, 32, Config{Chip: c.Name, Bus: bus.Name, Port: c.Ports - 1, CheckContent: true})
				d.resetBy()
				d.chip.Write(regs.CTRLEXT, regs.CtrlExtEERST)
				d.start().fill(31)
				s := d.plug(CableOptions{})
				for i, n := range []int{60, 61, 64, 65, 97, 128, 511, 1514} {
					out := makeFrame(farMAC, n, byte(i))
					d.queueSplit(out, testCmd)
					d.bell()
					s.out = append(s.out, makeFrame(d.chip.MAC(), n, byte(i)))
					s.got = nil
					d.step()
					d.reclaim()
					if len(s.got) != 1 || string(s.got[0]) != string(out) {
						t.Errorf("%d bytes: %d frames went out", n, len(s.got))
					}
					if got := d.recv(); len(got) != 1 || string(got[0].data) != string(makeFrame(d.chip.MAC(), n, byte(i))) {
						t.Errorf("%d bytes: %d frames came in", n, len(got))
					}
					d.fill(31)
				}
				d.clean()
			})
		}
	}
}

// queueSplit queues a frame as the chip's bus asks for it.
func (d *driver) queueSplit(f []byte, cmd uint64) {
	for first := true; ; first = false {
		h := d.alloc()
		n, at := len(f), d.arena.Bus(h)
		if d.chip.bus.PCIX && first {
			n = min(n, maxFirst)
		}
		if d.chip.bus.PCIX && d.chip.info.EvenEnd && n > 4 && (at+uint64(n)-1)&4 == 0 {
			n -= 4
		}
		d.cache.Free(h) // it is the next that queue takes
		if n == len(f) {
			d.queue(f, cmd)
			return
		}
		d.queue(f[:n], cmd&^(txEOP|txRS))
		f = f[n:]
	}
}

// TestLengthLimitIsOfTheFirstDescriptor and of no other.
func TestLengthLimitIsOfTheFirstDescriptor(t *testing.T) {
	arena := newArena(t, skb.Options{Buffers: 256, Stride: 8192})
	d := newDriver(t, arena, 16, Config{Chip: "82545EM", Bus: "pcix133"}).up()
	d.queue(make([]byte, 100), 0)
	d.queue(make([]byte, 3000), testCmd)
	d.queue(make([]byte, 2015), 0)
	d.bell()
	d.queue(make([]byte, 3000), testCmd) // the same frame, by another tail write
	d.bell()
	d.clean()
	d.queue(make([]byte, 3000), testCmd)
	d.bell()
	d.only(RuleFirstLength)
}

func TestPHYIsResetBeforeEveryReset(t *testing.T) {
	d := newDriver(t, nil, 8, Config{Chip: "82541EI"})
	d.resetBy()
	d.clean()
	d.chip.Write(regs.CTRL, regs.CtrlRST)
	d.only(RulePHYReset)
}

// TestBitBangedReadRunsOn: without a new command the next word follows, and
// after the last the first.
func TestBitBangedReadRunsOn(t *testing.T) {
	for _, chip := range []string{"82544EI", "82540EM"} {
		d := newDriver(t, nil, 8, Config{Chip: chip})
		v := d.bitBang(microwireRead<<microwireBits|13, 3+microwireBits, 32)
		if want := uint32(d.chip.eeprom[13])<<16 | uint32(d.chip.eeprom[14]); v != want {
			t.Errorf("%s: words 13 and 14 are %08x, expected %08x", chip, v, want)
		}
		v = d.bitBang(microwireRead<<microwireBits|63, 3+microwireBits, 32)
		if want := uint32(d.chip.eeprom[63])<<16 | uint32(d.chip.eeprom[0]); v != want {
			t.Errorf("%s: words 63 and 0 are %08x, expected %08x", chip, v, want)
		}
		// Zeros before the start bit do not count.
		if v := d.bitBang(microwireRead<<microwireBits|13, 5+microwireBits, 16); uint16(v) != d.chip.eeprom[13] {
			t.Errorf("%s: after two zeros word 13 is %04x", chip, v)
		}
		d.clean()
	}
}

func TestChipConfigIsChecked(t *testing.T) {
	a := newArena(t, skb.Options{Buffers: 256})
	for name, c := range map[string]Config{
		"PCI-X on a PCI chip":  {Chip: "82540EM", Bus: "pcix133"},
		"wide bus":             {Chip: "82541PI", Bus: "pci64-66"},
		"unknown bus":          {Chip: "82545EM", Bus: "isa"},
		"second port":          {Chip: "82545EM", Port: 1},
		"third port":           {Chip: "82546GB", Port: 2},
		"unknown mode":         {Mode: "vmware"},
		"lax and strict":       {Mode: ModeLax, Strict: true},
		"QEMU without a chip":  {Mode: ModeQEMU, Chip: "82546GB"},
		"QEMU without a PCI-X": {Mode: ModeQEMU, Chip: "82545EM", Bus: "pcix133"},
	} {
		c.Arena = a
		if _, err := New(c); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	for _, m := range append(Modes(), "") {
		chip, err := New(Config{Arena: a, Mode: m})
		if err != nil || chip.strict != (m == ModeStrict) || chip.qemu != (m == ModeQEMU) {
			t.Errorf("mode %q: %v", m, err)
		}
	}
}

// TestMemoryResetOnAWideBusHangs: without strictness the bus is gone after it.
func TestMemoryResetOnAWideBusHangs(t *testing.T) {
	d := newDriver(t, nil, 16, Config{Chip: "82544EI", Mode: ModeLax})
	d.chip.Write(regs.CTRL, regs.CtrlRST)
	d.clock.Advance(1e12)
	if d.chip.Read(regs.STATUS) != allOnes {
		t.Error("the bus does not hang")
	}
	d.chip.Clear(FaultMasterAbort)
	d.start()
	d.plug(CableOptions{})
	if d.chip.Read(regs.STATUS)&regs.StatusLU == 0 {
		t.Error("a power cycle does not bring it back")
	}
}
