package e1000_test

import (
	"strings"
	"testing"

	"gorouter/nic/e1000"
	"gorouter/nic/e1000/regs"
	"gorouter/port"
)

func TestLinkWatch(t *testing.T) {
	f := newFake(regs.MAC82540)
	f.val[regs.STATUS] = 0
	cfg := fakeConfig(t, f, 0x100E)
	var log strings.Builder
	cfg.Log = capture(&log)
	d, err := e1000.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var told []bool
	d.Port().Watch(func(p *port.Port) {
		told = append(told, p.Up())
		_ = d.Link() // a watcher may ask the device
	})
	if err := d.Start(); err != nil {
		t.Fatal(err)
	}
	if d.Port().Up() {
		t.Fatal("link up without a partner")
	}
	now := f.clk.Now()
	step := func(status uint32, want e1000.Link) {
		t.Helper()
		f.val[regs.STATUS] = status
		now += 1e9
		if err := d.Housekeep(now); err != nil {
			t.Fatal(err)
		}
		if got := d.Link(); got != want || d.Port().Up() != want.Up {
			t.Errorf("STATUS %#x: link %+v, port up %v, want %+v", status, got, d.Port().Up(), want)
		}
	}
	step(regs.StatusLU|regs.StatusFD|regs.StatusSPEED1000, e1000.Link{Up: true, Mbps: 1000, FullDuplex: true})
	step(regs.StatusLU|regs.StatusSPEED100, e1000.Link{Up: true, Mbps: 100})
	step(0, e1000.Link{})
	step(regs.StatusLU|regs.StatusFD|regs.StatusSPEED10, e1000.Link{Up: true, Mbps: 10, FullDuplex: true})
	step(regs.StatusLU|regs.StatusFD|regs.StatusTBIMODE, e1000.Link{Up: true, Mbps: 1000, FullDuplex: true})
	if got := d.Stats()["link_changes"]; got != 5 {
		t.Errorf("%d link changes counted", got)
	}
	for _, want := range []string{"mbps=1000", "mbps=100", "half duplex is not supported", "link down"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not say %q", want)
		}
	}
	// Between two looks no register is touched.
	f.took()
	for range 10 {
		now += 1e6
		if err := d.Housekeep(now); err != nil {
			t.Fatal(err)
		}
	}
	if l := f.took(); len(l) != 0 {
		t.Errorf("registers accessed before it was due: %v", l)
	}
	// A link interrupt does not wait for the second to pass.
	f.val[regs.STATUS] = 0
	if err := d.CheckLink(); err != nil {
		t.Fatal(err)
	}
	if d.Port().Up() {
		t.Error("still up after CheckLink")
	}
	if err := d.Stop(); err != nil {
		t.Fatal(err)
	}
	want := []bool{true, false, true, false}
	if len(told) != len(want) {
		t.Fatalf("the watcher was told %v, want %v", told, want)
	}
	for i := range want {
		if told[i] != want[i] {
			t.Fatalf("the watcher was told %v, want %v", told, want)
		}
	}
}

// The PHY is woken when it sleeps and left alone when it negotiates already.
func TestPHYIsWokenOnlyWhenNeeded(t *testing.T) {
	for _, c := range []struct {
		name string
		ctrl uint32
		want uint32
	}{
		{"negotiates", regs.PhyCtrlANEN | regs.PhyCtrlFD, regs.PhyCtrlANEN | regs.PhyCtrlFD},
		{"powered down", regs.PhyCtrlANEN | regs.PhyCtrlPWRDN, regs.PhyCtrlANEN | regs.PhyCtrlANRST},
		{"forced", regs.PhyCtrlSPEEDMSB, regs.PhyCtrlSPEEDMSB | regs.PhyCtrlANEN | regs.PhyCtrlANRST},
		{"isolated", regs.PhyCtrlANEN | regs.PhyCtrlISOLATE, regs.PhyCtrlANEN | regs.PhyCtrlANRST},
	} {
		f := newFake(regs.MAC82540)
		f.phy[regs.PhyCTRL] = uint16(c.ctrl)
		d, err := e1000.Open(fakeConfig(t, f, 0x100E))
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Start(); err != nil {
			t.Fatal(err)
		}
		if got := uint32(f.phy[regs.PhyCTRL]); got != c.want {
			t.Errorf("%s: PHY control %#x, want %#x", c.name, got, c.want)
		}
	}
}

// A PHY that does not answer costs a warning: the link may come up by itself.
func TestDeafPHYIsOnlyWarnedAbout(t *testing.T) {
	for name, answer := range map[string]func(v uint32) uint32{
		"never ready": func(v uint32) uint32 { return v },
		"error":       func(v uint32) uint32 { return v | regs.MdicREADY | regs.MdicERROR },
	} {
		f := newFake(regs.MAC82540)
		f.onWrite[regs.MDIC] = func(v uint32) { f.val[regs.MDIC] = answer(v) }
		cfg := fakeConfig(t, f, 0x100E)
		var log strings.Builder
		cfg.Log = capture(&log)
		d, err := e1000.Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Start(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !strings.Contains(log.String(), "PHY register CTRL") || !strings.Contains(log.String(), "MDIC is") {
			t.Errorf("%s: no warning in %s", name, log.String())
		}
	}
}

func TestDumpShowsDecodedDifferences(t *testing.T) {
	f := newFake(regs.MAC82540)
	d, err := e1000.Open(fakeConfig(t, f, 0x100E))
	if err != nil {
		t.Fatal(err)
	}
	old := d.Dump()
	if err := d.Start(); err != nil {
		t.Fatal(err)
	}
	f.took()
	now, diff := d.DiffDump(old)
	if len(now) != len(old) {
		t.Errorf("%d and %d lines", len(old), len(now))
	}
	found := false
	for _, c := range diff {
		found = found || c.Name == "RCTL" && strings.Contains(c.Text, "EN 0->1")
	}
	if !found {
		t.Errorf("RCTL.EN not in %v", diff)
	}
	for _, l := range f.took() {
		if l == "read ICR" || l == "read GPRC" || strings.Contains(l, "=") {
			t.Errorf("a dump did: %s", l)
		}
	}
}
