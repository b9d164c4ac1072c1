package model

import (
	"encoding/binary"
	"strings"
	"testing"

	"gorouter/nic/e1000/regs"
)

// difference is one thing that a driver sees differently on QEMU. see runs on
// a chip that was brought up, with 15 receive buffers, and returns what it
// saw; a second after bring-up unless early is set.
type difference struct {
	name         string
	early        bool
	see          func(d *driver, s *station) any
	strict, qemu any
}

var differences = []difference{
	{name: "reset through the I/O window", strict: uint32(0), qemu: regs.TIPGCopper, see: func(d *driver, _ *station) any {
		d.chip.IO().Write(regs.IOADDR, regs.CTRL)
		d.chip.IO().Write(regs.IODATA, regs.CtrlRST)
		d.clock.Advance(2e6)
		return d.chip.Read(regs.TIPG)
	}},
	{name: "I/O window reads", strict: regs.TIPGCopper, qemu: uint32(0), see: func(d *driver, _ *station) any {
		d.chip.IO().Write(regs.IOADDR, regs.TIPG)
		return d.chip.IO().Read(regs.IODATA)
	}},
	{name: "reset in memory leaves the rings", strict: [3]uint32{0, 0, 0}, qemu: [3]uint32{3, 256, 15}, see: func(d *driver, _ *station) any {
		f := makeFrame(farMAC, 60, 0)
		d.send(f, f, f)
		d.step()
		d.chip.Write(regs.CTRL, regs.CtrlRST)
		d.clock.Advance(2e6)
		return [3]uint32{d.chip.Read(regs.TDH), d.chip.Read(regs.TDLEN), d.chip.Read(regs.RDT)}
	}},
	{name: "RST clears itself at once", strict: true, qemu: false, see: func(d *driver, _ *station) any {
		d.chip.Write(regs.CTRL, regs.CtrlRST)
		return d.chip.Read(regs.CTRL)&regs.CtrlRST != 0
	}},
	{name: "second copy of CTRL", strict: regs.CtrlSLU, qemu: uint32(0), see: func(d *driver, _ *station) any {
		d.chip.Write(regs.CTRL, regs.CtrlSLU)
		return d.chip.Read(regs.CTRLDUP)
	}},
	{name: "reception in the second after RCTL", strict: [3]int{1, 1, 1}, qemu: [3]int{0, 0, 1}, early: true, see: func(d *driver, s *station) any {
		d.clock.Advance(2e12) // the link is up, RCTL was long ago
		d.step()
		d.chip.Write(regs.RCTL, d.rctl)
		var got [3]int
		for i, wait := range []int64{0, 999e6, 1e6} {
			d.wait(wait)
			s.out = [][]byte{makeFrame(testMAC, 60, 0)}
			d.step()
			got[i] = len(d.recv())
		}
		return got
	}},
	{name: "refused frames are not counted", strict: [2]uint32{1, 1}, qemu: [2]uint32{0, 0}, see: func(d *driver, s *station) any {
		d.chip.Write(regs.RCTL, d.rctl)
		s.out = [][]byte{makeFrame(testMAC, 60, 0)}
		d.step()
		return [2]uint32{d.stat(regs.TPR), d.stat(regs.GPRC)}
	}},
	{name: "room while refused", strict: 15, qemu: 0, see: func(d *driver, _ *station) any {
		d.chip.Write(regs.RCTL, d.rctl)
		return d.chip.Room()
	}},
	{name: "without bus mastering frames are missed", strict: uint32(1), qemu: uint32(0), see: func(d *driver, s *station) any {
		d.chip.SetBusMaster(false)
		s.out = [][]byte{makeFrame(testMAC, 60, 0)}
		d.step()
		return d.stat(regs.MPC)
	}},
	{name: "DD when the tail write returns", strict: [2]bool{false, false}, qemu: [2]bool{true, true}, see: func(d *driver, _ *station) any {
		f := makeFrame(farMAC, 60, 0)
		d.send(f, f)
		return [2]bool{d.done(0), d.done(1)}
	}},
	{name: "TCTL sends too", strict: false, qemu: true, see: func(d *driver, _ *station) any {
		tctl := d.chip.Read(regs.TCTL)
		d.chip.Write(regs.TCTL, tctl&^regs.TctlEN)
		d.send(makeFrame(farMAC, 60, 0))
		d.chip.Write(regs.TCTL, tctl)
		return d.done(0)
	}},
	{name: "write-back threshold", strict: false, qemu: true, see: func(d *driver, _ *station) any {
		d.chip.Write(regs.TXDCTL, 8<<regs.TxdctlWTHRESHShift|regs.TxdctlGRAN)
		d.send(makeFrame(farMAC, 60, 0))
		d.step()
		return d.done(0)
	}},
	{name: "half a frame", strict: uint32(0), qemu: uint32(1), see: func(d *driver, _ *station) any {
		d.queue(makeFrame(farMAC, 60, 0), 0)
		d.bell()
		d.step()
		return d.chip.Read(regs.TDH)
	}},
	{name: "sent without a link", strict: [2]any{false, 1}, qemu: [2]any{true, 0}, see: func(d *driver, s *station) any {
		d.chip.cable.SetLink(false)
		d.send(makeFrame(farMAC, 60, 0))
		done := d.done(0)
		d.chip.cable.SetLink(true)
		d.clock.Advance(1e12)
		d.step()
		return [2]any{done, len(s.got)}
	}},
	{name: "length of a 100 byte frame without SECRC", strict: [2]any{104, true}, qemu: [2]any{104, false}, early: true, see: func(d *driver, s *station) any {
		d.chip.Write(regs.RCTL, d.rctl&^regs.RctlSECRC)
		d.clock.Advance(2e12)
		f := makeFrame(testMAC, 100, 0)
		s.out = [][]byte{f}
		d.step()
		got := d.recv()
		if len(got) != 1 {
			return got
		}
		return [2]any{len(got[0].data), binary.LittleEndian.Uint32(got[0].data[100:]) == fcsOf(f, 0)}
	}},
	{name: "IXSM with checksum offload", strict: false, qemu: true, see: func(d *driver, s *station) any {
		d.chip.Write(regs.RXCSUM, regs.RxcsumIPOFLD|regs.RxcsumTUOFLD)
		s.out = [][]byte{makeFrame(testMAC, 60, 0)}
		d.step()
		return d.recv()[0].status&rxIXSM != 0
	}},
	{name: "packet checksum", strict: true, qemu: false, see: func(d *driver, s *station) any {
		s.out = [][]byte{makeFrame(testMAC, 60, 0)}
		d.step()
		return d.recv()[0].status>>rxSumShift&0xFFFF != 0
	}},
	{name: "statistics of a second read", strict: [3]uint32{0, 0, 0}, qemu: [3]uint32{0, 1, 1}, see: func(d *driver, s *station) any {
		for range 16 {
			s.out = append(s.out, makeFrame(testMAC, 60, 0))
		}
		d.step()
		for _, off := range []uint32{regs.GPRC, regs.MPC, regs.RNBC} {
			if d.stat(off) == 0 {
				d.t.Errorf("register %#x did not count", off)
			}
		}
		return [3]uint32{d.stat(regs.GPRC), d.stat(regs.MPC), d.stat(regs.RNBC)}
	}},
	{name: "total counters and the filter", strict: uint32(2), qemu: uint32(1), see: func(d *driver, s *station) any {
		s.out = [][]byte{makeFrame(otherMAC, 60, 0), makeFrame(testMAC, 60, 0)}
		d.step()
		return d.stat(regs.TPR)
	}},
	{name: "breach by a ring of 200 bytes", strict: [2]any{uint32(128), true}, qemu: [2]any{uint32(128), false}, see: func(d *driver, _ *station) any {
		d.chip.Write(regs.RCTL, 0)
		d.chip.Write(regs.RDLEN, 200)
		broken := len(d.breaches) > 0
		d.breaches = nil
		return [2]any{d.chip.Read(regs.RDLEN), broken}
	}},
	{name: "link after plugging in, at once, at 499 ms and at 500 ms", early: true, strict: [3]bool{true, true, true}, qemu: [3]bool{false, false, true}, see: func(d *driver, _ *station) any {
		d.clock.Advance(2e12)
		d.step()
		d.chip.cable.SetLink(false)
		d.chip.cable.SetLink(true)
		var up [3]bool
		for i, wait := range []int64{0, 499e6, 1e6} {
			d.clock.Advance(wait * 1000)
			up[i] = d.chip.Read(regs.STATUS)&regs.StatusLU != 0
		}
		return up
	}},
	{name: "link after a restart of autonegotiation", strict: [2]bool{true, true}, qemu: [2]bool{false, true}, see: func(d *driver, _ *station) any {
		d.mdic(regs.MdicOPWrite, 1, regs.PhyCTRL, regs.PhyCtrlANEN|regs.PhyCtrlANRST)
		now := d.chip.Link()
		d.wait(500e6)
		return [2]bool{now, d.chip.Link()}
	}},
	{name: "link without SLU", strict: false, qemu: true, see: func(d *driver, _ *station) any {
		d.chip.Write(regs.CTRL, 0)
		return d.chip.Link()
	}},
	{name: "ICS reads", strict: uint32(0), qemu: regs.IcrRXO, see: func(d *driver, _ *station) any {
		d.chip.Read(regs.ICR)
		d.chip.Write(regs.ICS, regs.IcrRXO)
		return d.chip.Read(regs.ICS)
	}},
	{name: "MDIC and EERD at once", strict: [2]bool{false, false}, qemu: [2]bool{true, true}, see: func(d *driver, _ *station) any {
		d.chip.Write(regs.MDIC, regs.MdicOPRead|1<<21|2<<16)
		d.chip.Write(regs.EERD, 1)
		return [2]bool{d.chip.Read(regs.MDIC)&regs.MdicREADY != 0, d.chip.Read(regs.EERD)&(1<<4) != 0}
	}},
	{name: "EECD granted without a request", strict: false, qemu: true, see: func(d *driver, _ *station) any {
		return d.chip.Read(regs.EECD)&regs.EecdGNT != 0
	}},
	{name: "a short frame is padded on the way out", strict: 60, qemu: 20, see: func(d *driver, s *station) any {
		d.send(makeFrame(farMAC, 20, 0))
		d.step()
		return len(s.got[0])
	}},
	{name: "and on the way in", strict: 0, qemu: 60, see: func(d *driver, s *station) any {
		s.out = [][]byte{makeFrame(testMAC, 20, 0)}
		d.step()
		n := 0
		for _, f := range d.recv() {
			n += len(f.data)
		}
		return n
	}},
	{name: "longest frame without LPE", strict: [2]int{1518, 1}, qemu: [2]int{1522, 1}, see: func(d *driver, s *station) any {
		longest, n := 0, 0
		for k := 1516; k < 1530; k++ {
			s.out = [][]byte{makeFrame(testMAC, k, 0)}
			d.step()
			if got := d.recv(); len(got) == 1 {
				longest, n = k, got[0].parts
			}
			d.fill(15)
		}
		return [2]int{longest, n}
	}},
	{name: "interrupts in a burst", strict: 3, qemu: 1, see: func(d *driver, _ *station) any {
		n := 0
		d.chip.cfg.Interrupt = func() { n++ }
		d.chip.Read(regs.ICR)
		d.chip.Write(regs.IMS, regs.IcrRXO)
		for range 3 {
			d.chip.Write(regs.ICS, regs.IcrRXO)
			d.chip.Read(regs.ICR)
		}
		return n
	}},
	{name: "interrupts 200 us apart with ITR 256 us", strict: 2, qemu: 2, see: func(d *driver, _ *station) any {
		n := 0
		d.chip.cfg.Interrupt = func() { n++ }
		d.chip.Read(regs.ICR)
		d.chip.Write(regs.ITR, 1000)
		d.chip.Write(regs.IMS, regs.IcrRXO)
		for range 3 {
			d.chip.Write(regs.ICS, regs.IcrRXO)
			d.wait(0)
			d.chip.Read(regs.ICR)
			d.wait(200_000)
		}
		return n
	}},
	{name: "size counter without SECRC", early: true, strict: [2]uint32{1, 0}, qemu: [2]uint32{1, 0}, see: func(d *driver, s *station) any {
		d.chip.Write(regs.RCTL, d.rctl&^regs.RctlSECRC)
		d.wait(2e9)
		s.out = [][]byte{makeFrame(testMAC, 62, 0)}
		d.step()
		return [2]uint32{d.stat(regs.PRC127), d.stat(regs.PRC64)}
	}},
	{name: "size counter with SECRC", strict: [2]uint32{1, 0}, qemu: [2]uint32{0, 1}, see: func(d *driver, s *station) any {
		s.out = [][]byte{makeFrame(testMAC, 62, 0)}
		d.step()
		return [2]uint32{d.stat(regs.PRC127), d.stat(regs.PRC64)}
	}},
	{name: "damaged frames", strict: uint32(1), qemu: uint32(0), see: func(d *driver, s *station) any {
		s.out, s.bad = [][]byte{makeFrame(testMAC, 60, 0)}, []FrameError{ErrCRC}
		d.step()
		return d.stat(regs.CRCERRS)
	}},
}

func (k *difference) run(t *testing.T, mode string) any {
	d := newDriver(t, nil, 16, Config{Mode: mode})
	d.up().fill(15)
	s := d.plug(CableOptions{})
	if !k.early {
		d.clock.Advance(2e12)
		d.step()
	}
	v := k.see(d, s)
	d.clean()
	return v
}

// TestQEMUDifferences: each is there, and is none of the chip's. Some rows
// show how far a difference goes: there both are alike.
func TestQEMUDifferences(t *testing.T) {
	for _, k := range differences {
		t.Run(strings.ReplaceAll(k.name, " ", "_"), func(t *testing.T) {
			if got := k.run(t, ModeStrict); got != k.strict {
				t.Errorf("strict: %v, expected %v", got, k.strict)
			}
			if got := k.run(t, ModeQEMU); got != k.qemu {
				t.Errorf("qemu: %v, expected %v", got, k.qemu)
			}
		})
	}
}

// TestQEMUFCSIsNotStored: the four bytes that the length counts are what was
// in the buffer before.
func TestQEMUFCSIsNotStored(t *testing.T) {
	for _, size := range []uint32{regs.RctlBSIZE2048, regs.RctlBSIZE256} {
		d := newDriver(t, nil, 16, Config{Mode: ModeQEMU})
		d.rctl = d.rctl&^regs.RctlSECRC | size
		d.up().fill(15)
		for i := range 2 {
			b := d.arena.DMA(d.rx[i].addr, 600)
			for k := range b {
				b[k] = 0xEE
			}
		}
		s := d.plug(CableOptions{})
		d.wait(2e9)
		// With 254 bytes the second of two small buffers has only FCS in it.
		s.out = [][]byte{makeFrame(testMAC, 254, 0)}
		d.step()
		got := d.recv()
		if len(got) != 1 || len(got[0].data) != 258 || string(got[0].data[:254]) != string(makeFrame(testMAC, 254, 0)) {
			t.Fatalf("got %v", got)
		}
		if v := got[0].data[254:256]; v[0] != 0xEE || v[1] != 0xEE {
			t.Errorf("FCS bytes are %x, not what was there", v)
		}
		if want := 1 + int(size>>17&1); got[0].parts != want {
			t.Errorf("%d descriptors, expected %d", got[0].parts, want)
		}
		d.clean()
	}
}

// TestQEMUChipToChip moves frames between two of them, VLAN tags and parts
// included, with the rules watched.
func TestQEMUChipToChip(t *testing.T) {
	a, b, c := pair(t, 64, Config{Mode: ModeQEMU, Strict: true, CheckContent: true}, CableOptions{Lossless: true})
	a.clock.Advance(3e12)
	b.clock.Advance(3e12)
	sent, got := 0, 0
	for range 30 {
		for range 40 {
			f := makeFrame(b.chip.MAC(), 60+sent%1400, byte(sent))
			cut := 20 + sent%40
			a.queue(f[:cut], 0)
			a.bell()
			a.queue(f[cut:], testCmd)
			a.bell()
			if a.reclaim() != 2 {
				t.Fatal("not done when the tail write returned")
			}
			sent++
		}
		for c.Step(0, 64) > 0 {
			for _, f := range b.recv() {
				if string(f.data) != string(makeFrame(b.chip.MAC(), 60+got%1400, byte(got))) {
					t.Fatalf("frame %d changed", got)
				}
				got++
			}
			b.fill(64)
		}
	}
	if tpt := a.stat(regs.TPT); tpt != uint32(sent) {
		t.Errorf("TPT is %d of %d", tpt, sent)
	}
	if got != sent || a.stat(regs.GPTC) != uint32(sent) || a.chip.Discards() != (Discards{}) {
		t.Errorf("%d of %d", got, sent)
	}
	a.clean()
	b.clean()
}

func TestQEMUOutboxIsBounded(t *testing.T) {
	d := newDriver(t, nil, 64, Config{Mode: ModeQEMU}).up()
	s := &limited{station{keep: true}}
	c, err := NewCable(d.chip, s, CableOptions{Lossless: true})
	if err != nil {
		t.Fatal(err)
	}
	f := makeFrame(farMAC, 60, 0)
	for range qemuOutbox + 5 {
		d.send(f)
		d.reclaim()
	}
	if got := d.chip.Discards(); got != (Discards{Full: 5}) {
		t.Errorf("discards %+v", got)
	}
	s.space = 1 << 20
	for c.Step(0, 64) > 0 {
	}
	if len(s.got) != qemuOutbox {
		t.Errorf("%d frames came out", len(s.got))
	}
	c.SetLink(false)
	d.send(f)
	if got := d.chip.Discards(); got != (Discards{Full: 5, Unplugged: 1}) {
		t.Errorf("discards %+v", got)
	}
	d.clean()
}

func TestQEMUInsertsVLANTags(t *testing.T) {
	d := newDriver(t, nil, 16, Config{Mode: ModeQEMU}).up().fill(15)
	s := d.plug(CableOptions{})
	d.wait(2e9)
	d.chip.Write(regs.CTRL, regs.CtrlVME)
	d.queue(makeFrame(farMAC, 60, 0), testCmd|txVLE|5<<txVLANShift)
	d.bell()
	d.step()
	if f := s.got[0]; len(f) != 64 || binary.BigEndian.Uint32(f[12:]) != 0x81000005 {
		t.Errorf("sent %x", f)
	}
	in := append(makeFrame(testMAC, 12, 0), 0x81, 0, 0x60, 77)
	in = append(in, make([]byte, 60)...)
	s.out = [][]byte{in}
	d.step()
	got := d.recv()
	if len(got) != 1 || len(got[0].data) != 72 || got[0].status&rxVP == 0 || got[0].status>>rxVLANShift != 0x604D {
		t.Errorf("received %v", got)
	}
	d.chip.Write(regs.RCTL, d.rctl|regs.RctlVFE)
	d.wait(2e9)
	s.out = [][]byte{in}
	d.step()
	if len(d.recv()) != 0 {
		t.Error("VLAN 77 passes an empty table")
	}
	d.clean()
}
