package model

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"unsafe"

	"gorouter/nic/e1000/regs"
	"gorouter/skb"
)

// breakRule is a way to break a rule, on a chip that is up with a ring of 16,
// 8 receive buffers and a cable.
type breakRule struct {
	rule Rule
	name string
	do   func(d *driver, s *station)
	down bool // the chip has not been brought up
	chip string
	bus  string
}

// endAt queues a transmit buffer whose last byte has the low bits given.
func endAt(low uint64, n int) func(*driver, *station) {
	return func(d *driver, _ *station) {
		i := d.queue(makeFrame(farMAC, n, 0), testCmd)
		d.tx[i].addr += 16 + low - (d.tx[i].addr+uint64(n)-1)%8
		d.bell()
		d.step()
	}
}

func ringWrite(off, v uint32) func(*driver, *station) {
	return func(d *driver, _ *station) { d.chip.Write(off, v) }
}

func (d *driver) bytes(h skb.Handle) []byte {
	return unsafe.Slice((*byte)(d.arena.Head(h)), 64)
}

// queueWord queues a good frame and changes its descriptor before hand-over.
func queueWord(change func(*desc)) func(*driver, *station) {
	return func(d *driver, _ *station) {
		i := d.queue(makeFrame(farMAC, 80, 0), testCmd)
		change(&d.tx[i])
		d.bell()
		d.step()
	}
}

// fillWord does the same with a receive descriptor.
func fillWord(change func(*desc)) func(*driver, *station) {
	return func(d *driver, s *station) {
		h := d.alloc()
		d.rxBuf[d.rxFill] = h
		d.rx[d.rxFill] = desc{addr: d.arena.Bus(h)}
		change(&d.rx[d.rxFill])
		d.rxFill = d.after(d.rxFill)
		d.chip.Write(regs.RDT, d.rxFill)
		for range 9 {
			s.out = append(s.out, makeFrame(testMAC, 80, 0))
		}
		d.step()
	}
}

var breaks = []breakRule{
	{rule: RuleRingLength, name: "rx zero", down: true, do: func(d *driver, _ *station) {
		d.chip.Write(regs.RDBAL, uint32(d.rxMem.Bus))
		d.chip.Write(regs.RCTL, regs.RctlEN)
	}},
	{rule: RuleRingLength, name: "rx 200 bytes", down: true, do: ringWrite(regs.RDLEN, 200)},
	{rule: RuleRingLength, name: "tx too long", down: true, do: ringWrite(regs.TDLEN, 65536+128)},
	{rule: RuleRingBase, name: "rx", down: true, do: ringWrite(regs.RDBAL, 0x10000008)},
	{rule: RuleRingBase, name: "tx", down: true, do: ringWrite(regs.TDBAL, 0x10000008)},
	{rule: RuleRingMemory, name: "outside", down: true, do: func(d *driver, _ *station) {
		d.chip.Write(regs.TDBAL, 0x1000)
		d.chip.Write(regs.TDLEN, 128)
		d.chip.Write(regs.TCTL, regs.TctlEN)
	}},
	{rule: RuleRingMemory, name: "in a buffer", down: true, do: func(d *driver, _ *station) {
		d.chip.Write(regs.RDBAL, uint32(d.arena.BusAt(5, 0)))
		d.chip.Write(regs.RDLEN, 128)
		d.chip.Write(regs.RCTL, regs.RctlEN)
	}},
	{rule: RuleRingEnabled, name: "rx base", do: ringWrite(regs.RDBAL, 0)},
	{rule: RuleRingEnabled, name: "rx length", do: ringWrite(regs.RDLEN, 256)},
	{rule: RuleRingEnabled, name: "tx high base", do: ringWrite(regs.TDBAH, 0)},
	{rule: RuleRingEnabled, name: "tx length", do: ringWrite(regs.TDLEN, 256)},
	{rule: RuleHeadEnabled, name: "rx", do: ringWrite(regs.RDH, 0)},
	{rule: RuleHeadEnabled, name: "tx", do: ringWrite(regs.TDH, 0)},
	{rule: RuleIndexRange, name: "tail", down: true, do: func(d *driver, _ *station) {
		d.chip.Write(regs.TDBAL, uint32(d.txMem.Bus))
		d.chip.Write(regs.TDLEN, 256)
		d.chip.Write(regs.TDH, 16)
		d.chip.Write(regs.TDT, 16)
		d.chip.Write(regs.TCTL, regs.TctlEN)
	}},
	{rule: RuleTailRange, name: "tx", do: ringWrite(regs.TDT, 16)},
	{rule: RuleTailRange, name: "rx", do: func(d *driver, _ *station) {
		for h := d.rxFill; h < 16; h++ {
			d.rxBuf[h] = d.alloc()
			d.rx[h] = desc{addr: d.arena.Bus(d.rxBuf[h])}
		}
		d.chip.Write(regs.RDT, 16) // meant the end, is the beginning
	}},
	{rule: RuleTailPastHead, name: "tx", do: func(d *driver, _ *station) {
		for range 20 {
			d.queue(makeFrame(farMAC, 60, 0), testCmd)
			if d.txNext == 13 || d.txNext == 2 {
				d.bell()
			}
		}
		d.bell()
	}},
	{rule: RuleTailPastHead, name: "rx", do: func(d *driver, _ *station) {
		for i := range uint32(16) {
			if d.rxBuf[i] == skb.None {
				d.rxBuf[i] = d.alloc()
				d.rx[i] = desc{addr: d.arena.Bus(d.rxBuf[i])}
			}
		}
		d.chip.Write(regs.RDT, 1)
	}},
	{rule: RuleFullRing, name: "tx", do: func(d *driver, _ *station) {
		for range 12 {
			d.queue(makeFrame(farMAC, 60, 0), testCmd)
		}
		d.bell()
		for range 4 {
			d.queue(makeFrame(farMAC, 60, 0), testCmd)
		}
		d.bell()
	}},
	{rule: RuleFullRing, name: "rx", do: func(d *driver, _ *station) {
		for i := d.rxFill; i < 16; i++ {
			d.rxBuf[i] = d.alloc()
			d.rx[i] = desc{addr: d.arena.Bus(d.rxBuf[i])}
		}
		d.chip.Write(regs.RDT, 0)
	}},
	{rule: RuleDescriptorChanged, name: "tx before fetch", do: func(d *driver, _ *station) {
		d.send(makeFrame(farMAC, 80, 0))
		d.tx[0].word ^= 1 << 48
		d.step()
	}},
	{rule: RuleDescriptorChanged, name: "rx", do: func(d *driver, s *station) {
		d.rx[0].addr += 2
		s.out = [][]byte{makeFrame(testMAC, 80, 0)}
		d.step()
	}},
	{rule: RuleDescriptorChanged, name: "tx before write-back", do: func(d *driver, _ *station) {
		d.send(makeFrame(farMAC, 80, 0))
		d.chip.Next(0)
		d.tx[0].word ^= 1 << 48
		d.step()
	}},
	{rule: RuleRxStatus, name: "stale DD", do: fillWord(func(d *desc) { d.word |= rxDD })},
	{rule: RuleTxStatus, name: "stale DD", do: queueWord(func(d *desc) { d.word |= txDD })},
	{rule: RuleNullAddress, name: "rx", do: fillWord(func(d *desc) { d.addr = 0 })},
	{rule: RuleNullAddress, name: "tx", do: queueWord(func(d *desc) { d.addr = 0 })},
	{rule: RuleOutsideMemory, name: "rx", do: fillWord(func(d *desc) { d.addr = 0x1000 })},
	{rule: RuleOutsideMemory, name: "tx", do: queueWord(func(d *desc) { d.addr = 1 << 33 })},
	{rule: RuleOutsideMemory, name: "tx from a ring", do: func(d *driver, _ *station) {
		queueWord(func(x *desc) { x.addr = d.rxMem.Bus })(d, nil)
	}},
	{rule: RuleBufferOverrun, name: "rx", do: fillWord(func(d *desc) { d.addr += 1000 })},
	{rule: RuleBufferOverrun, name: "tx", do: queueWord(func(d *desc) { d.word += 1900 })},
	{rule: RuleBufferOverrun, name: "rx size raised", do: ringWrite(regs.RCTL, regs.RctlEN|regs.RctlLPE)},
	{rule: RuleBufferFreed, name: "tx at hand-over", do: func(d *driver, _ *station) {
		i := d.queue(makeFrame(farMAC, 80, 0), testCmd)
		d.cache.Free(d.txBuf[i])
		d.bell()
	}},
	{rule: RuleBufferFreed, name: "tx before fetch", do: func(d *driver, _ *station) {
		d.send(makeFrame(farMAC, 80, 0))
		d.cache.Free(d.txBuf[0])
		d.step()
	}},
	{rule: RuleBufferFreed, name: "tx before write-back", do: func(d *driver, _ *station) {
		d.send(makeFrame(farMAC, 80, 0))
		d.chip.Next(0)
		d.cache.Free(d.txBuf[0])
		d.step()
	}},
	{rule: RuleBufferFreed, name: "rx", do: func(d *driver, s *station) {
		d.cache.Free(d.rxBuf[0])
		s.out = [][]byte{makeFrame(testMAC, 80, 0)}
		d.step()
	}},
	{rule: RuleTxContent, name: "one byte", do: func(d *driver, _ *station) {
		d.send(makeFrame(farMAC, 63, 0))
		d.bytes(d.txBuf[0])[62]++
		d.step()
	}},
	{rule: RuleTxContent, name: "second part", do: func(d *driver, _ *station) {
		f := makeFrame(farMAC, 120, 0)
		d.queue(f[:60], 0)
		d.queue(f[60:], testCmd)
		d.bell()
		d.bytes(d.txBuf[1])[0]++
		d.step()
	}},
	{rule: RuleRxContent, name: "one byte", do: func(d *driver, s *station) {
		d.bytes(d.rxBuf[0])[3]++
		s.out = [][]byte{makeFrame(testMAC, 80, 0)}
		d.step()
	}},
	{rule: RuleTxLength, name: "zero", do: queueWord(func(d *desc) { d.word &^= txLength })},
	{rule: RuleTxLength, name: "huge", do: queueWord(func(d *desc) { d.word |= 0xF000 })},
	{rule: RuleTxLength, name: "huge in parts", do: func(d *driver, _ *station) {
		for range 10 {
			d.queue(make([]byte, 1700), 0)
		}
		d.queue(make([]byte, 100), testCmd)
		d.bell()
		d.step()
	}},
	{rule: RuleShortFrame, name: "59", do: func(d *driver, _ *station) {
		d.chip.Write(regs.TCTL, regs.TctlEN)
		d.send(makeFrame(farMAC, 59, 0))
		d.step()
	}},
	{rule: RuleExtendedDescriptor, name: "data", do: queueWord(func(d *desc) { d.word |= txDEXT })},
	{rule: RuleCommandBits, name: "RPS", do: queueWord(func(d *desc) { d.word |= txRPS })},
	{rule: RuleDelayWithoutTimer, name: "IDE", do: queueWord(func(d *desc) { d.word |= txIDE })},
	{rule: RuleReportWithThreshold, name: "no RS", do: func(d *driver, s *station) {
		d.chip.Write(regs.TXDCTL, 1<<regs.TxdctlWTHRESHShift)
		queueWord(func(d *desc) { d.word &^= txRS })(d, s)
	}},
	{rule: RuleReadOnly, name: "STATUS", do: ringWrite(regs.STATUS, 1)},
	{rule: RuleReadOnly, name: "GPRC", do: ringWrite(regs.GPRC, 0)},
	{rule: RuleUnknownRegister, name: "hole", do: ringWrite(0x0000C, 1)},
	{rule: RuleUnknownRegister, name: "unaligned", do: ringWrite(regs.RCTL+2, 1)},
	{rule: RuleUnknownRegister, name: "read beyond", do: func(d *driver, _ *station) { d.chip.Read(0x30000) }},
	{rule: RuleReservedValue, name: "RCTL bit", do: ringWrite(regs.RCTL, regs.RctlEN|1<<31)},
	{rule: RuleReservedValue, name: "RCTL size", do: ringWrite(regs.RCTL, regs.RctlBSEX)},
	{rule: RuleReservedValue, name: "TCTL bit", do: ringWrite(regs.TCTL, regs.TctlEN|1)},
	{rule: RuleBusy, name: "MDIC", do: func(d *driver, _ *station) {
		d.chip.Write(regs.MDIC, regs.MdicOPRead|1<<21)
		d.chip.Write(regs.MDIC, regs.MdicOPRead|1<<21)
	}},
	{rule: RuleBusy, name: "EERD", do: func(d *driver, _ *station) {
		d.chip.Write(regs.EERD, 1)
		d.chip.Write(regs.EERD, 1)
	}},
	{rule: RuleResetPending, name: "write", do: func(d *driver, _ *station) {
		d.chip.Write(regs.CTRL, regs.CtrlRST)
		d.chip.Write(regs.IMC, regs.IMCAll)
	}},
	{rule: RuleResetPending, name: "read", do: func(d *driver, _ *station) {
		d.chip.Write(regs.CTRL, regs.CtrlRST)
		d.chip.Read(regs.STATUS)
	}},
	{rule: RuleClosed, name: "read", do: func(d *driver, _ *station) {
		_ = d.chip.Close()
		d.chip.Read(regs.STATUS)
	}},
	{rule: RuleClosed, name: "tail", do: func(d *driver, _ *station) {
		_ = d.chip.Close()
		d.chip.Write(regs.TDT, 1)
	}},
	{rule: RuleUnsupported, name: "loopback", do: ringWrite(regs.RCTL, regs.RctlEN|regs.RctlLBMMAC)},
	{rule: RuleUnsupported, name: "SPI EEPROM", chip: "82541GI", do: func(d *driver, _ *station) {
		d.chip.Write(regs.EECD, regs.EecdREQ)
		d.chip.Write(regs.EECD, regs.EecdREQ|regs.EecdCS)
	}},
	{rule: RuleUnsupported, name: "EEPROM write", do: func(d *driver, _ *station) {
		d.bitBang(5<<6, 3+6, 0) // start, 01
	}},
	{rule: RuleEEPROMGrant, name: "not asked for", do: ringWrite(regs.EECD, regs.EecdCS)},
	{rule: RuleEEPROMGrant, name: "not granted", do: func(d *driver, _ *station) {
		_ = d.chip.Inject(Fault{Kind: FaultEEPROMStuck})
		d.chip.Write(regs.EECD, regs.EecdREQ)
		d.chip.Write(regs.EECD, regs.EecdREQ|regs.EecdCS)
	}},
	{rule: RuleResetMethod, name: "in memory on a wide bus", chip: "82544EI", do: ringWrite(regs.CTRL, regs.CtrlRST)},
	{rule: RuleResetMethod, name: "second copy on a wide bus", chip: "82545EM", do: ringWrite(regs.CTRLDUP, regs.CtrlRST)},
	{rule: RuleResetMethod, name: "first copy", chip: "82546GB", do: ringWrite(regs.CTRL, regs.CtrlRST)},
	{rule: RuleResetMethod, name: "I/O window of a GB", chip: "82546GB", do: func(d *driver, _ *station) {
		d.chip.IO().Write(regs.IOADDR, regs.CTRL)
		d.chip.IO().Write(regs.IODATA, regs.CtrlRST)
	}},
	{rule: RulePHYReset, name: "MAC alone", chip: "82541EI", do: ringWrite(regs.CTRL, regs.CtrlRST)},
	{rule: RuleEvenEnd, name: "on 0", chip: "82544EI", bus: "pcix133", do: endAt(0, 60)},
	{rule: RuleEvenEnd, name: "on 3", chip: "82544GC", bus: "pcix66", do: endAt(3, 97)},
	{rule: RuleFirstLength, name: "2016", chip: "82545EM", bus: "pcix133", do: func(d *driver, _ *station) {
		d.queue(make([]byte, 1000), 0)
		d.queue(make([]byte, 1400), testCmd)
		d.tx[0].word += 1016
		d.tx[0].addr = d.arena.BusAt(d.txBuf[0], 0)
		d.bell()
	}},
	{rule: RuleUnknownRegister, name: "ITR of an 82544", chip: "82544EI", do: ringWrite(regs.ITR, 1)},
	{rule: RuleUnknownRegister, name: "EERD of an 82544", chip: "82544GC", do: ringWrite(regs.EERD, 1)},
	{rule: RuleBoundary64K, name: "ring", chip: "82546GB", down: true, do: func(d *driver, _ *station) {
		m, _ := d.arena.AllocRing(65536)
		d.chip.Write(regs.TDBAL, uint32(m.Bus)-128)
		d.chip.Write(regs.TDLEN, 256)
		d.chip.Write(regs.TCTL, regs.TctlEN)
	}},
	{rule: RuleUnsupported, name: "pause frame", do: ringWrite(regs.TCTL, regs.TctlEN|regs.TctlSWXOFF)},
	{rule: RuleBoundary64K, name: "tx", chip: "82545EM", do: func(d *driver, _ *station) {
		for {
			i := d.queue(makeFrame(farMAC, 80, 0), testCmd)
			h := d.txBuf[i]
			if at := d.arena.BusAt(h, 0); at>>16 != (at+4095)>>16 {
				d.tx[i].addr = at + uint64(d.arena.Stride()) - 32
				d.bell()
				d.step()
				return
			}
			d.txNext = i // did not fit, try the next buffer
		}
	}},
}

func (b *breakRule) run(t *testing.T, cfg Config) *driver {
	cfg.CheckContent = b.rule == RuleTxContent || b.rule == RuleRxContent
	cfg.Chip, cfg.Bus = b.chip, b.bus
	d := newDriver(t, nil, 16, cfg)
	s := &station{}
	if !b.down {
		d.up().fill(8)
		s = d.plug(CableOptions{})
	}
	d.clean()
	b.do(d, s)
	return d
}

func TestEveryRuleHasABreachAndAWaiver(t *testing.T) {
	broken := map[Rule]bool{}
	for _, b := range breaks {
		broken[b.rule] = true
		t.Run(b.rule.String()+"/"+b.name, func(t *testing.T) {
			// What crosses a 64 KiB boundary also leaves its buffer, as far as
			// an arena with strides of a power of two goes.
			var waived []Rule
			if b.rule == RuleBoundary64K {
				waived = []Rule{RuleBufferOverrun}
			}
			d := b.run(t, Config{Waivers: waived})
			d.only(b.rule)
			if !errors.As(d.chip.Err(), new(Breach)) {
				t.Error("Err does not give the breach")
			}
			b.run(t, Config{Waivers: append(waived, b.rule)}).clean()
		})
	}
	for r := range Rule(NumRules) {
		if !broken[r] {
			t.Errorf("nothing breaks rule %v", r)
		}
	}
}

func TestBreachStopsTheChipAndIsLogged(t *testing.T) {
	var log strings.Builder
	d := newDriver(t, nil, 16, Config{Name: "p7", Log: slog.New(slog.NewTextHandler(&log, nil))})
	d.chip.cfg.OnBreach = nil
	d.up().fill(8)
	s := d.plug(CableOptions{})
	d.send(makeFrame(farMAC, 80, 0))
	d.tx[0].word ^= 1 << 48
	d.step()
	err := d.chip.Err()
	var b Breach
	if !errors.As(err, &b) || b.Rule != RuleDescriptorChanged || b.Ring != "tx" || b.Index != 0 || b.Chip != "p7" {
		t.Fatalf("error is %v", err)
	}
	for _, want := range []string{"p7", "descriptor-changed", "3.2.6"} {
		if !strings.Contains(err.Error(), want) || !strings.Contains(log.String(), want) {
			t.Errorf("%q is not in the error %q and the log %q", want, err, log.String())
		}
	}
	s.out = [][]byte{makeFrame(testMAC, 80, 0)}
	d.chip.Write(regs.RCTL, 0)
	d.chip.Write(regs.RCTL, d.rctl)
	d.chip.Write(regs.RDLEN, 3)
	d.send(makeFrame(farMAC, 80, 0))
	d.step()
	if len(s.got) != 0 || len(d.recv()) != 0 {
		t.Error("a stopped chip moves frames")
	}
	if d.chip.Err() != error(b) {
		t.Error("the first breach was replaced")
	}
}

func TestRulesHaveNames(t *testing.T) {
	for r := range Rule(NumRules) {
		i := r.Info()
		if i.Name == "" || i.Text == "" {
			t.Errorf("rule %d has no name or text", r)
		}
		if back, ok := RuleByName(i.Name); !ok || back != r {
			t.Errorf("%s is not found by name", i.Name)
		}
	}
	if _, ok := RuleByName("nonsense"); ok || Rule(200).String() != "rule-200" {
		t.Error("unknown rules have names")
	}
}

func TestLaxChipSaysNothing(t *testing.T) {
	for _, b := range breaks {
		t.Run(b.rule.String()+"/"+b.name, func(t *testing.T) {
			d := newDriver(t, nil, 16, Config{})
			lax, err := New(Config{Chip: b.chip, Bus: b.bus, Arena: d.arena, Clock: d.clock, OnBreach: func(x Breach) { t.Error(x) }})
			if err != nil {
				t.Fatal(err)
			}
			d.chip = lax
			s := &station{}
			if !b.down {
				d.up().fill(8)
				s = d.plug(CableOptions{})
			}
			b.do(d, s)
			if lax.Err() != nil {
				t.Error(lax.Err())
			}
		})
	}
}
