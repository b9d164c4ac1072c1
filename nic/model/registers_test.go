package model

import (
	"testing"

	"gorouter/internal/inet"
	"gorouter/mmio"
	"gorouter/nic/e1000/regs"
	"gorouter/skb"
)

var (
	_ mmio.Registers = (*Chip)(nil)
	_ Endpoint       = (*Chip)(nil)
	_ Roomer         = (*Chip)(nil)
	_ ErrorSource    = (*Chip)(nil)
	_ ErrorSink      = (*Chip)(nil)
)

func TestConfigIsChecked(t *testing.T) {
	a := newArena(t, skb.Options{Buffers: 256})
	for name, c := range map[string]Config{
		"no arena":      {},
		"unknown chip":  {Arena: a, Chip: "82599"},
		"tdh":           {Arena: a, TDH: "guessed"},
		"group address": {Arena: a, MAC: inet.MAC{1, 0, 0, 0, 0, 1}},
		"waiver":        {Arena: a, Strict: true, Waivers: []Rule{NumRules}},
	} {
		if _, err := New(c); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestResetValuesComeFromTheTable(t *testing.T) {
	d := newDriver(t, nil, 8, Config{})
	for _, r := range regs.All() {
		if r.HasReset && r.Mode.ReadSafe() && r.Offset < regWords*4 {
			if v := d.chip.Read(r.Offset); v != r.Reset {
				t.Errorf("%s is %#x after power-up, the table says %#x", r.Name, v, r.Reset)
			}
		}
	}
	d.clean()
}

func TestEveryKnownRegisterCanBeRead(t *testing.T) {
	d := newDriver(t, nil, 8, Config{})
	for _, r := range regs.All() {
		for i := range int(r.Len()) {
			d.chip.Read(r.At(i))
		}
	}
	d.clean()
}

func TestResetClearsItselfAndForgets(t *testing.T) {
	d := newDriver(t, nil, 8, Config{}).up()
	d.plug(CableOptions{})
	d.fill(4)
	d.chip.Write(regs.MTA, 5)
	d.chip.Write(regs.CTRL, regs.CtrlRST)
	if d.chip.Read(regs.CTRL)&regs.CtrlRST == 0 {
		t.Error("reset is over at once")
	}
	d.clock.Advance(2e6)
	if v := d.chip.Read(regs.CTRL); v&(regs.CtrlRST|regs.CtrlSLU) != 0 {
		t.Errorf("CTRL is %#x after reset", v)
	}
	for _, off := range []uint32{regs.RDT, regs.RCTL, regs.TCTL, regs.MTA, regs.STATUS, regs.IMS} {
		if v := d.chip.Read(off); v != 0 {
			t.Errorf("register %#x is %#x after reset", off, v)
		}
	}
	if rx, tx := d.chip.Holds(); rx != 0 || tx != 0 {
		t.Errorf("holds %d and %d descriptors after reset", rx, tx)
	}
	d.clean()
}

func TestEEPROMReadsThroughEERD(t *testing.T) {
	mac := inet.MAC{2, 0x11, 0x22, 0x33, 0x44, 0x55}
	d := newDriver(t, nil, 8, Config{MAC: mac})
	read := func(word uint32) uint16 {
		d.chip.Write(regs.EERD, 1|word<<8)
		polls := 0
		for d.chip.Read(regs.EERD)&(1<<4) == 0 {
			if polls++; polls > 10 {
				t.Fatal("EERD is never done")
			}
		}
		if polls == 0 {
			t.Error("EERD is done at once")
		}
		return uint16(d.chip.Read(regs.EERD) >> 16)
	}
	var words [64]uint16
	for i := range words {
		words[i] = read(uint32(i))
	}
	if words[0] != 0x1102 || words[1] != 0x3322 || words[2] != 0x5544 {
		t.Errorf("address words are %#x", words[:3])
	}
	if sum := regs.EEPROMSumOf(words[:]); sum != 0xBABA {
		t.Errorf("sum of the EEPROM is %#x", sum)
	}
	if words[regs.EEPROMDevice] != 0x100E {
		t.Errorf("device is %#x", words[regs.EEPROMDevice])
	}
	if lo, hi := d.chip.Read(regs.RAL), d.chip.Read(regs.RAH); lo != 0x33221102 || hi != 0x80005544 {
		t.Errorf("receive address 0 is %#x %#x after reset", lo, hi)
	}
	d.chip.SetEEPROM(3, 1)
	if read(3) != 1 {
		t.Error("SetEEPROM has no effect")
	}
	d.chip.Write(regs.EECD, regs.EecdREQ)
	if v := d.chip.Read(regs.EECD); v&regs.EecdGNT == 0 || v&regs.EecdPRES == 0 {
		t.Errorf("EECD is %#x, not granted", v)
	}
	d.clean()
}

func (d *driver) mdic(op, phy, reg, data uint32) uint32 {
	d.chip.Write(regs.MDIC, op|phy<<21|reg<<16|data)
	for range 10 {
		if v := d.chip.Read(regs.MDIC); v&regs.MdicREADY != 0 {
			return v
		}
	}
	d.t.Fatal("MDIC is never ready")
	return 0
}

func TestPHY(t *testing.T) {
	d := newDriver(t, nil, 8, Config{}).up()
	read := func(r uint32) uint32 { return d.mdic(regs.MdicOPRead, 1, r, 0) & 0xFFFF }
	if id := read(regs.PhyID1)<<16 | read(regs.PhyID2); id&regs.PhyIDMask != regs.PhyID82540 {
		t.Errorf("PHY identifier %#x", id)
	}
	if read(regs.PhySTATUS)&regs.PhyStatusLINK != 0 {
		t.Error("link without a cable")
	}
	d.plug(CableOptions{})
	if v := read(regs.PhySTATUS); v&regs.PhyStatusLINK != 0 {
		t.Error("link status does not latch low")
	}
	if v := read(regs.PhySTATUS); v&regs.PhyStatusLINK == 0 || v&regs.PhyStatusANDONE == 0 {
		t.Errorf("PHY status %#x with a cable", v)
	}
	if v := read(regs.PhyPSSTAT); v&regs.PhyPsstatSPEED != regs.PhyPsstatSPEED1000 || v&regs.PhyPsstatRESOLVED == 0 {
		t.Errorf("PHY-specific status %#x", v)
	}
	for _, r := range []uint32{regs.PhyLPA, regs.PhyANE, regs.PhyGSTATUS, regs.PhyESTATUS} {
		if read(r) == 0 {
			t.Errorf("PHY register %d is 0 with the link up", r)
		}
	}
	d.mdic(regs.MdicOPWrite, 1, regs.PhyANA, 0x01E1)
	if read(regs.PhyANA) != 0x01E1 {
		t.Error("advertisement is not kept")
	}
	d.mdic(regs.MdicOPWrite, 1, regs.PhyCTRL, regs.PhyCtrlPWRDN)
	if d.chip.Link() {
		t.Error("link with the PHY powered down")
	}
	d.mdic(regs.MdicOPWrite, 1, regs.PhyCTRL, regs.PhyCtrlRESET)
	if !d.chip.Link() {
		t.Error("no link after PHY reset")
	}
	if read(regs.PhyANA) == 0x01E1 {
		t.Error("PHY reset keeps registers")
	}
	d.mdic(regs.MdicOPWrite, 1, regs.PhyID1, 7)
	if read(regs.PhyID1) == 7 {
		t.Error("read-only PHY register written")
	}
	if v := d.mdic(regs.MdicOPRead, 2, 1, 0); v&regs.MdicERROR == 0 {
		t.Error("a PHY answers at address 2")
	}
	d.clean()
}

func TestLinkNeedsCableAndSLU(t *testing.T) {
	d := newDriver(t, nil, 8, Config{})
	s := &station{}
	cable, err := NewCable(d.chip, s, CableOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if d.chip.Read(regs.STATUS)&regs.StatusLU != 0 {
		t.Error("link without SLU")
	}
	d.up()
	v := d.chip.Read(regs.STATUS)
	if v&regs.StatusLU == 0 || v&regs.StatusFD == 0 || v&regs.StatusSPEED != regs.StatusSPEED1000 {
		t.Errorf("STATUS is %#x", v)
	}
	if d.chip.Read(regs.ICR)&regs.IcrLSC == 0 {
		t.Error("no LSC when the link came up")
	}
	cable.SetLink(false)
	if d.chip.Read(regs.STATUS)&regs.StatusLU != 0 {
		t.Error("link without a cable")
	}
	if d.chip.Read(regs.ICR) != regs.IcrLSC {
		t.Error("no LSC when the link went down")
	}
	d.send(makeFrame(testMAC, 60, 1))
	d.step()
	if _, tx := d.chip.Holds(); tx != 1 {
		t.Error("sent without a link")
	}
	cable.SetLink(true)
	d.step()
	if d.reclaim() != 1 {
		t.Error("not sent when the link is back")
	}
	d.chip.Write(regs.CTRL, regs.CtrlSLU|regs.CtrlPHYRST)
	if d.chip.Link() {
		t.Error("link with the PHY held in reset")
	}
	d.clean()
}

func TestInterruptCausesAndMask(t *testing.T) {
	calls := 0
	d := newDriver(t, nil, 8, Config{Interrupt: func() { calls++ }}).up()
	w, r := d.chip.Write, d.chip.Read
	r(regs.ICR)
	w(regs.ICS, regs.IcrTXDW)
	if d.chip.Asserted() || calls != 0 {
		t.Error("masked cause asserts")
	}
	w(regs.IMS, regs.IcrTXDW|regs.IcrLSC)
	if !d.chip.Asserted() || calls != 1 {
		t.Errorf("unmasking a set cause: asserted %v, %d calls", d.chip.Asserted(), calls)
	}
	w(regs.ICS, regs.IcrLSC)
	if calls != 1 {
		t.Error("called again while asserted")
	}
	if v := r(regs.IMS); v != regs.IcrTXDW|regs.IcrLSC {
		t.Errorf("IMS reads %#x", v)
	}
	if v := r(regs.ICR); v != regs.IcrTXDW|regs.IcrLSC {
		t.Errorf("ICR is %#x", v)
	}
	if r(regs.ICR) != 0 || d.chip.Asserted() {
		t.Error("ICR is not cleared by reading")
	}
	w(regs.ICS, regs.IcrLSC)
	w(regs.IMC, regs.IMCAll)
	if d.chip.Asserted() || r(regs.IMS) != 0 {
		t.Error("still asserted after IMC")
	}
	w(regs.ICR, regs.IcrLSC)
	if r(regs.ICR) != 0 {
		t.Error("writing a one to ICR does not clear it")
	}
	if r(regs.ICS) != 0 || r(regs.IMC) != 0 {
		t.Error("write-only registers read back")
	}
	d.clean()
}

func TestInterruptThrottle(t *testing.T) {
	calls := 0
	d := newDriver(t, nil, 8, Config{Interrupt: func() { calls++ }}).up()
	d.chip.Read(regs.ICR)
	d.chip.Write(regs.ITR, 100) // 25.6 us
	d.chip.Write(regs.IMS, regs.IcrRXT0)
	d.wait(1000)
	for range 5 {
		d.chip.Write(regs.ICS, regs.IcrRXT0)
		d.chip.Read(regs.ICR)
	}
	if calls != 1 {
		t.Errorf("%d interrupts inside the interval", calls)
	}
	d.chip.Write(regs.ICS, regs.IcrRXT0)
	d.wait(25600)
	if calls != 2 {
		t.Errorf("%d interrupts after the interval", calls)
	}
	d.clean()
}

func TestInterruptsComeFromSteps(t *testing.T) {
	calls := 0
	d := newDriver(t, nil, 16, Config{Interrupt: func() { calls++ }}).up().fill(15)
	s := d.plug(CableOptions{})
	d.chip.Read(regs.ICR)
	d.chip.Write(regs.IMS, regs.IcrRXT0|regs.IcrTXDW|regs.IcrMDAC)
	s.out = [][]byte{makeFrame(testMAC, 60, 0), makeFrame(testMAC, 60, 0)}
	d.send(makeFrame(farMAC, 60, 0))
	d.step()
	if calls != 1 || d.chip.Read(regs.ICR)&(regs.IcrRXT0|regs.IcrTXDW) != regs.IcrRXT0|regs.IcrTXDW {
		t.Errorf("%d interrupts", calls)
	}
	d.mdic(regs.MdicOPRead|regs.MdicINTEN, 1, regs.PhySTATUS, 0)
	if calls != 2 || d.chip.Read(regs.ICR)&regs.IcrMDAC == 0 {
		t.Error("no interrupt at the end of an MDIC access")
	}
	d.clean()
}

func TestIdentity(t *testing.T) {
	d := newDriver(t, nil, 8, Config{Name: "p0"})
	if d.chip.Name() != "p0" || d.chip.Info().Device != 0x100E || len(Chips()) == 0 {
		t.Errorf("%s is %+v", d.chip.Name(), d.chip.Info())
	}
	for _, c := range Chips() {
		dev, ok := regs.LookupDevice(regs.VendorIntel, c.Device)
		if !ok || dev.Name != c.Name || dev.MAC != c.MAC {
			t.Errorf("%+v is %+v in the table of devices", c, dev)
		}
	}
}

func TestPlainRegistersKeepTheirValue(t *testing.T) {
	d := newDriver(t, nil, 8, Config{})
	for _, off := range []uint32{regs.TIPG, regs.RADV, regs.TADV, regs.ITR, regs.MTA + 4*127, regs.VFTA + 4*5,
		regs.RAL + 8*15, regs.MANC, regs.FCAL, regs.TXDCTL, regs.RXDCTL, regs.TIDV, regs.FCRTL} {
		d.chip.Write(off, 0x01230120)
		if v := d.chip.Read(off); v != 0x01230120 {
			t.Errorf("register %#x reads %#x", off, v)
		}
	}
	d.chip.Write(regs.PBA, 40)
	if v := d.chip.Read(regs.PBA); v != 24<<16|40 {
		t.Errorf("PBA is %#x", v)
	}
	d.chip.Write(regs.CTRLDUP, regs.CtrlSLU)
	if d.chip.Read(regs.CTRL) != regs.CtrlSLU {
		t.Error("CTRLDUP is not CTRL")
	}
	d.chip.Write(regs.RDTR, 1<<31|5)
	if v := d.chip.Read(regs.RDTR); v != 5 {
		t.Errorf("RDTR is %#x: FPD does not clear itself", v)
	}
	d.clean()
}
