package e1000_test

import (
	"slices"
	"strings"
	"testing"
	"unsafe"

	"gorouter/internal/inet"
	"gorouter/nic/e1000"
	"gorouter/nic/e1000/regs"
	"gorouter/skb"
	"gorouter/tx"
)

func TestRefusedConfigurations(t *testing.T) {
	group := inet.MAC{1, 2, 3, 4, 5, 6}
	for _, c := range []struct {
		name string
		set  func(*e1000.Config)
		want string
	}{
		{"unknown chip", func(c *e1000.Config) { c.DeviceID = 0x10D3 }, "8086:10d3"},
		{"unknown chip lists the known", func(c *e1000.Config) { c.DeviceID = 0x10D3 }, "82540EM (100e)"},
		{"no name", func(c *e1000.Config) { c.Name = "" }, "name"},
		{"no cache", func(c *e1000.Config) { c.TxCache = nil }, "caches"},
		{"group address", func(c *e1000.Config) { c.MAC = &group }, "unicast"},
		{"radv alone", func(c *e1000.Config) { c.Interrupts.RADV = 8 }, "set rdtr"},
		{"tadv alone", func(c *e1000.Config) { c.Interrupts.TADV = 8 }, "set tidv"},
		{"timer too long", func(c *e1000.Config) { c.Interrupts.ITR = 1 << 16 }, "itr is 65536"},
		{"timer the chip lacks", func(c *e1000.Config) { c.DeviceID = 0x1008; c.Interrupts.ITR = 5 }, "82544EI"},
		{"MTU too small", func(c *e1000.Config) { c.MTU = 67 }, "below the 68"},
		{"MTU beyond the stride", func(c *e1000.Config) { c.MTU = 1501 }, "raise the buffers' stride to 4096"},
		{"MTU beyond any stride", func(c *e1000.Config) { c.MTU = 9000 }, "no stride is large enough"},
		{"ring size", func(c *e1000.Config) { c.Rx.Ring = 100 }, "p0 rx: ring is 100"},
		{"transmit ring size", func(c *e1000.Config) { c.Tx.Ring = 72 }, "p0 tx: ring is 72"},
		{"ring larger than the arena", func(c *e1000.Config) { c.Rx.Ring = 2048 }, "raise buffers count"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFake(regs.MAC82540)
			cfg := fakeConfig(t, f, 0x100E)
			c.set(&cfg)
			_, err := e1000.Open(cfg)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
			if _, err := cfg.Arena.Audit(); err != nil {
				t.Errorf("after the failure: %v", err)
			}
		})
	}
}

// On PCI-X, and only there, what is sent obeys the chips' rules.
func TestPCIXRules(t *testing.T) {
	const n = 2034 // both its end and that of its first 2015 bytes fall into even doublewords
	for _, c := range []struct {
		name string
		id   uint16
		mac  regs.MACType
		pcix uint32
		want []int
	}{
		{"82544 on PCI-X", 0x1008, regs.MAC82544, regs.StatusPCIXMODE, []int{2011, 19, 4}},
		{"82544 on PCI", 0x1008, regs.MAC82544, 0, []int{n}},
		{"82545 on PCI-X", 0x100F, regs.MAC82545, regs.StatusPCIXMODE, []int{2015, 19}},
		{"82546GB on PCI-X", 0x1079, regs.MAC82546Rev3, regs.StatusPCIXMODE, []int{2015, 19}},
		{"82545 on PCI", 0x100F, regs.MAC82545, 0, []int{n}},
	} {
		f := newFake(c.mac)
		f.val[regs.STATUS] |= c.pcix
		cfg := fakeConfig(t, f, c.id)
		cfg.Arena = testArena(t, 1024, 4096, 0)
		cfg.RxCache, cfg.TxCache = cfg.Arena.NewCache("w"), cfg.Arena.NewCache("w")
		cfg.MTU = 2026
		d, err := e1000.Open(cfg)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if err := d.Start(); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		q := d.Port().Tx[0].(*tx.E1000)
		h := cfg.TxCache.Alloc()
		// The payload starts on a multiple of 8 plus 2.
		shift := (2 - int(cfg.Arena.BusAt(h, int(cfg.Arena.Meta(h).Data)))&7 + 8) & 7
		cfg.Arena.Put(h, n+shift)
		cfg.Arena.Pull(h, shift)
		var b skb.Batch
		b.Add(h)
		q.Send(&b, false)
		var got []int
		ring := unsafe.Slice((*[2]uint64)(q.Memory().Base), cfg.Tx.Ring)
		for i := range int(f.val[regs.TDT]) {
			got = append(got, int(ring[i][1]&tx.DescLengthMask))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: descriptors of %d bytes, want %d", c.name, got, c.want)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		q.Close()
	}
}

// Every device identifier has a complete record.
func TestQuirkTable(t *testing.T) {
	for _, dev := range regs.Devices() {
		q, err := e1000.Probe(dev.ID)
		if err != nil {
			t.Errorf("%s: %v", dev.Name, err)
			continue
		}
		if q.Device != dev || q.ReloadWait == 0 || q.TIPG == 0 {
			t.Errorf("%s: incomplete record %+v", dev.Name, q)
		}
		if _, eerd := regs.EERDLayoutFor(dev.MAC); eerd != (q.EEPROM == e1000.ReadEERD) {
			t.Errorf("%s: EEPROM access %v", dev.Name, q.EEPROM)
		}
		if q.ReloadByHand && dev.MAC != regs.MAC82544 {
			t.Errorf("%s reloads by hand", dev.Name)
		}
		if (dev.ID == 0x1099 || dev.ID == 0x10B5) != q.NoRelaxed {
			t.Errorf("%s: relaxed ordering %v", dev.Name, q.NoRelaxed)
		}
		for _, e := range q.Errata {
			if e.Ref == "" || e.Rule == "" || e.Obeyed == "" {
				t.Errorf("%s: erratum without source, rule or place: %+v", dev.Name, e)
			}
		}
	}
	for id, want := range map[uint16]e1000.ResetMethod{
		0x100E: e1000.ResetIO, 0x1008: e1000.ResetIO, 0x100F: e1000.ResetIO, 0x1010: e1000.ResetIO, 0x1076: e1000.ResetIO,
		0x1026: e1000.ResetDup, 0x1079: e1000.ResetDup, 0x1019: e1000.ResetMMIO, 0x1075: e1000.ResetMMIO,
	} {
		if q, _ := e1000.Probe(id); q.Reset != want {
			t.Errorf("%s resets by %v, want %v", q.Device.Name, q.Reset, want)
		}
	}
}

// What RCTL announces never lets the device write beyond a buffer, and LPE is
// set only for long MTUs.
func TestReceiveControl(t *testing.T) {
	for _, c := range []struct {
		stride, headroom, mtu int
		set                   func(*e1000.Config)
		want                  string
	}{
		{0, 0, 1500, nil, "EN BAM BSIZE=2048 SECRC"},
		{2048, 512, 1500, nil, "EN BAM BSIZE=2048 SECRC"},
		{4096, 0, 1500, nil, "EN BAM BSIZE=2048 SECRC"},
		{4096, 0, 2026, nil, "EN LPE BAM BSIZE=2048 SECRC"},
		{8192, 0, 4074, nil, "EN LPE BAM BSIZE=4096 BSEX SECRC"},
		{16384, 0, 8170, nil, "EN LPE BAM BSIZE=8192 BSEX SECRC"},
		{0, 0, 1500, func(c *e1000.Config) { c.Promisc = true }, "EN UPE BAM BSIZE=2048 SECRC"},
		{0, 0, 1500, func(c *e1000.Config) { c.AllMulti = true }, "EN MPE BAM BSIZE=2048 SECRC"},
		{0, 0, 1500, func(c *e1000.Config) { c.KeepFCS = true }, "EN BAM BSIZE=2048"},
		{0, 0, 1500, func(c *e1000.Config) { c.DeviceID = 0x1008 }, "EN BAM BSIZE=2048"},
	} {
		f := newFake(regs.MAC82540)
		cfg := fakeConfig(t, f, 0x100E)
		cfg.Arena = testArena(t, 512, c.stride, c.headroom)
		cfg.RxCache, cfg.TxCache = cfg.Arena.NewCache("w"), cfg.Arena.NewCache("w")
		cfg.MTU = c.mtu
		if c.set != nil {
			c.set(&cfg)
			q, _ := e1000.Probe(cfg.DeviceID)
			f.mac = q.Device.MAC
		}
		d, err := e1000.Open(cfg)
		if err != nil {
			t.Errorf("stride %d MTU %d: %v", c.stride, c.mtu, err)
			continue
		}
		writes := 0
		f.onWrite[regs.RCTL] = func(v uint32) { writes++; f.val[regs.RCTL] = v }
		if err := d.Start(); err != nil {
			t.Fatal(err)
		}
		got := strings.ReplaceAll(strings.ReplaceAll(regs.Decode(regs.RCTL, f.val[regs.RCTL]), " RDMTS=half", ""), " MO=47:36", "")
		if got != c.want {
			t.Errorf("stride %d headroom %d MTU %d: RCTL %s, want %s", c.stride, c.headroom, c.mtu, got, c.want)
		}
		if writes != 1 {
			t.Errorf("start wrote RCTL %d times: each write blocks reception for a second on QEMU", writes)
		}
	}
	// One byte more does not fit in each case.
	for _, c := range []struct{ stride, mtu int }{{2048, 1501}, {4096, 2027}, {8192, 4075}, {16384, 8171}} {
		f := newFake(regs.MAC82540)
		cfg := fakeConfig(t, f, 0x100E)
		cfg.Arena = testArena(t, 512, c.stride, 0)
		cfg.RxCache, cfg.TxCache = cfg.Arena.NewCache("w"), cfg.Arena.NewCache("w")
		cfg.MTU = c.mtu
		if _, err := e1000.Open(cfg); err == nil || !strings.Contains(err.Error(), "lower the MTU to") {
			t.Errorf("stride %d MTU %d: %v", c.stride, c.mtu, err)
		}
	}
}
