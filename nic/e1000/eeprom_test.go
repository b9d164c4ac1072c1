package e1000_test

import (
	"strings"
	"testing"

	"gorouter/internal/inet"
	"gorouter/nic/e1000"
	"gorouter/nic/e1000/regs"
)

// Every chip reads its EEPROM in its own way and ends with the same address.
func TestEEPROMLayouts(t *testing.T) {
	for _, dev := range regs.Devices() {
		f := newFake(dev.MAC)
		d, err := e1000.Open(fakeConfig(t, f, dev.ID))
		if err != nil {
			t.Errorf("%s: %v", dev.Name, err)
			continue
		}
		if got := d.Port().MAC(); got != eepromAddress || d.MACSource() != e1000.MACEEPROM {
			t.Errorf("%s: address %v from %v", dev.Name, got, d.MACSource())
		}
		bitwise := false
		for _, l := range f.log {
			bitwise = bitwise || strings.HasPrefix(l, "EECD = ")
			if dev.MAC == regs.MAC82544 && strings.Contains(l, "EERD") {
				t.Errorf("%s: %s", dev.Name, l)
			}
		}
		if bitwise != (dev.MAC == regs.MAC82544) {
			t.Errorf("%s: EECD clocked: %v", dev.Name, bitwise)
		}
		if f.wire.granted {
			t.Errorf("%s: the EEPROM was not given back", dev.Name)
		}
	}
}

func TestAddressSources(t *testing.T) {
	own := inet.MAC{2, 0, 0, 0, 0, 9}
	left := inet.MAC{0x52, 0x54, 0, 0x12, 0x34, 0x56}
	setRAR := func(f *fake, m inet.MAC) {
		f.val[regs.RAL] = uint32(m[0]) | uint32(m[1])<<8 | uint32(m[2])<<16 | uint32(m[3])<<24
		f.val[regs.RAH] = uint32(m[4]) | uint32(m[5])<<8 | regs.RahAV
	}
	never := func(f *fake) {
		f.onWrite[regs.EERD] = func(v uint32) { f.val[regs.EERD] = v }
	}
	for _, c := range []struct {
		name string
		id   uint16
		mac  *inet.MAC
		prep func(f *fake)
		from e1000.MACSource
		want inet.MAC // zero: any
		log  string
	}{
		{name: "configured", id: 0x100E, mac: &own, prep: func(f *fake) { setRAR(f, left) }, from: e1000.MACConfigured, want: own},
		{name: "EEPROM before what firmware left", id: 0x100E, prep: func(f *fake) { setRAR(f, left) }, from: e1000.MACEEPROM, want: eepromAddress},
		{name: "checksum wrong, address good", id: 0x100E, prep: func(f *fake) { f.eeprom[regs.EEPROMChecksum]++ },
			from: e1000.MACEEPROM, want: eepromAddress, log: "wrong EEPROM checksum"},
		{name: "EEPROM blank", id: 0x100E, prep: func(f *fake) {
			for i := range f.eeprom {
				f.eeprom[i] = 0xffff
			}
			setRAR(f, left)
		}, from: e1000.MACFirmware, want: left, log: "no usable Ethernet address in the EEPROM"},
		{name: "EEPROM zero", id: 0x100E, prep: func(f *fake) {
			clear(f.eeprom)
			setRAR(f, left)
		}, from: e1000.MACFirmware, want: left, log: "wrong EEPROM checksum"},
		{name: "EERD never done", id: 0x100E, prep: func(f *fake) { never(f); setRAR(f, left) },
			from: e1000.MACFirmware, want: left, log: "EEPROM word 0x0: the device did not finish in time"},
		{name: "82541 EERD never done", id: 0x1076, prep: func(f *fake) { never(f); setRAR(f, left) },
			from: e1000.MACFirmware, want: left, log: "EERD is 0x00000001 [START]"},
		{name: "82544 EEPROM never granted", id: 0x1008, prep: func(f *fake) {
			f.onRead[regs.EECD] = func() uint32 { return regs.EecdPRES }
			setRAR(f, left)
		}, from: e1000.MACFirmware, want: left, log: "EEPROM request: the device did not finish in time"},
		{name: "reset loses what firmware left", id: 0x100E, prep: func(f *fake) {
			clear(f.eeprom)
			setRAR(f, left)
			f.onWrite[regs.CTRL] = func(v uint32) {
				f.val[regs.CTRL] = v &^ regs.CtrlRST
				if v&regs.CtrlRST != 0 {
					f.val[regs.RAH] = 0
				}
			}
		}, from: e1000.MACFirmware, want: left, log: "firmware"},
		{name: "nothing anywhere", id: 0x100E, prep: func(f *fake) { clear(f.eeprom) }, from: e1000.MACRandom, log: "random"},
		{name: "only a group address", id: 0x100E, prep: func(f *fake) {
			copy(f.eeprom, goodEEPROM(inet.MAC{1, 0, 0x5e, 0, 0, 1}))
		}, from: e1000.MACRandom, log: "random"},
		{name: "second port of a dual chip", id: 0x1010, prep: func(f *fake) { f.val[regs.STATUS] |= 1 << regs.StatusFUNCShift },
			from: e1000.MACEEPROM, want: inet.MAC{0x00, 0x1b, 0x21, 0x0a, 0x0b, 0x0d}},
		{name: "first port of a dual chip", id: 0x1010, from: e1000.MACEEPROM, want: eepromAddress},
	} {
		t.Run(c.name, func(t *testing.T) {
			q, err := e1000.Probe(c.id)
			if err != nil {
				t.Fatal(err)
			}
			f := newFake(q.Device.MAC)
			if c.prep != nil {
				c.prep(f)
			}
			cfg := fakeConfig(t, f, c.id)
			cfg.MAC = c.mac
			var log strings.Builder
			cfg.Log = capture(&log)
			d, err := e1000.Open(cfg)
			if err != nil {
				t.Fatal(err)
			}
			if d.MACSource() != c.from {
				t.Errorf("address from %v, want %v", d.MACSource(), c.from)
			}
			got := d.Port().MAC()
			if c.want != (inet.MAC{}) && got != c.want {
				t.Errorf("address %v, want %v", got, c.want)
			}
			if c.from == e1000.MACRandom && got[0]&3 != 2 {
				t.Errorf("%v is not a locally administered unicast address", got)
			}
			if !strings.Contains(log.String(), c.log) {
				t.Errorf("the log does not say %q:\n%s", c.log, log.String())
			}
			if err := d.Start(); err != nil {
				t.Fatal(err)
			}
			if f.val[regs.RAH] != uint32(got[4])|uint32(got[5])<<8|regs.RahAV || f.val[regs.RAL]>>24 != uint32(got[3]) {
				t.Errorf("receive address %08x %08x for %v", f.val[regs.RAL], f.val[regs.RAH], got)
			}
		})
	}
}
