package e1000_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gorouter/nic/e1000"
	"gorouter/nic/e1000/regs"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// The order of register accesses is what section 14 of the manual prescribes;
// the golden files were read against it.
func TestBringUpOrder(t *testing.T) {
	for _, c := range []struct {
		file string
		mac  regs.MACType
		id   uint16
		io   bool
	}{
		{"82540EM", regs.MAC82540, 0x100E, true},
		{"82545GM-fiber", regs.MAC82545Rev3, 0x1027, false},
		{"82541EI", regs.MAC82541, 0x1013, false},
		{"82544EI", regs.MAC82544, 0x1008, true},
	} {
		t.Run(c.file, func(t *testing.T) {
			f := newFake(c.mac)
			cfg := fakeConfig(t, f, c.id)
			if c.io {
				cfg.IO = &io{f: f}
			}
			var got []string
			phase := func(name string, err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, "== "+name)
				got = append(got, shorten(f.took())...)
			}
			d, err := e1000.Open(cfg)
			phase("open", err)
			phase("start", d.Start())
			phase("start again", d.Start())
			phase("stop", d.Stop())
			phase("stop again", d.Stop())
			phase("close", d.Close())
			phase("close again", d.Close())
			golden(t, "bringup-"+c.file+".txt", strings.Join(got, "\n")+"\n")
		})
	}
}

// shorten leaves one EEPROM word of the many, and of statistics the number.
func shorten(log []string) []string {
	var out []string
	words, stats := 0, 0
	end := func() {
		if stats > 0 {
			out = append(out, "read all statistics")
			stats = 0
		}
	}
	for _, l := range log {
		reg := strings.TrimPrefix(l, "read ")
		if r, _, ok := regs.ByName(reg); ok && l != reg && r.Mode == regs.RC {
			stats++
			continue
		}
		end()
		if strings.HasPrefix(l, "EERD = ") || strings.HasPrefix(l, "EECD = ") || l == "read EERD" || l == "read EECD" {
			if words++; words == 3 {
				out = append(out, "…")
			}
			if words > 2 {
				continue
			}
		} else if words > 2 && l == "read STATUS" && strings.HasPrefix(out[len(out)-1], "…") {
			continue
		}
		out = append(out, l)
	}
	end()
	return out
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	path := filepath.Join("testdata", file)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (-want +got):\n%s", file, d)
	}
}

func TestResetThatNeverEnds(t *testing.T) {
	f := newFake(regs.MAC82540)
	f.onWrite[regs.CTRL] = func(v uint32) { f.val[regs.CTRL] = v }
	cfg := fakeConfig(t, f, 0x100E)
	_, err := e1000.Open(cfg)
	if !errors.Is(err, e1000.ErrTimeout) {
		t.Fatalf("error %v, want a time-out", err)
	}
	for _, want := range []string{"p0", "reset", "CTRL is", "RST", "power the card off"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
	if ms := f.clk.Now() / 1e6; ms < 200 || ms > 1000 {
		t.Errorf("gave up after %d ms", ms)
	}
	if _, err := cfg.Arena.Audit(); err != nil {
		t.Error(err)
	}
}

func TestRemovedDeviceIsRecognised(t *testing.T) {
	wantGone := func(t *testing.T, err error) {
		t.Helper()
		if !errors.Is(err, e1000.ErrGone) {
			t.Fatalf("error %v, want that the device is gone", err)
		}
		if !strings.Contains(err.Error(), "p0") || !strings.Contains(err.Error(), "memory space") {
			t.Errorf("%q does not name device and remedy", err)
		}
	}
	t.Run("before open", func(t *testing.T) {
		f := newFake(regs.MAC82540)
		f.gone = true
		_, err := e1000.Open(fakeConfig(t, f, 0x100E))
		wantGone(t, err)
	})
	t.Run("while resetting", func(t *testing.T) {
		f := newFake(regs.MAC82540)
		f.onWrite[regs.CTRL] = func(uint32) { f.gone = true }
		_, err := e1000.Open(fakeConfig(t, f, 0x100E))
		wantGone(t, err)
	})
	t.Run("while reading the EEPROM", func(t *testing.T) {
		f := newFake(regs.MAC82540)
		f.onWrite[regs.EERD] = func(uint32) { f.gone = true }
		_, err := e1000.Open(fakeConfig(t, f, 0x100E))
		wantGone(t, err)
	})
	t.Run("while starting", func(t *testing.T) {
		f := newFake(regs.MAC82540)
		d, err := e1000.Open(fakeConfig(t, f, 0x100E))
		if err != nil {
			t.Fatal(err)
		}
		f.onWrite[regs.MDIC] = func(uint32) { f.gone = true }
		wantGone(t, d.Start())
		// A device that comes back is in an unknown state: it is reset first.
		delete(f.onWrite, regs.MDIC)
		f.gone = false
		f.took()
		if err := d.Start(); err != nil {
			t.Fatal(err)
		}
		if log := strings.Join(f.took(), "\n"); strings.Count(log, "CTRL = FD SLU RST") != 1 {
			t.Errorf("no reset before the second start:\n%s", log)
		}
	})
	t.Run("while running", func(t *testing.T) {
		f := newFake(regs.MAC82540)
		f.val[regs.GPRC] = 0
		d, err := e1000.Open(fakeConfig(t, f, 0x100E))
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Start(); err != nil {
			t.Fatal(err)
		}
		if !d.Port().Up() {
			t.Fatal("link not up after start")
		}
		f.gone = true
		wantGone(t, d.Housekeep(f.clk.Now()+2e9))
		if d.Port().Up() {
			t.Error("the link of a removed device is up")
		}
		if n := d.Stats()["GPRC"]; n != 0 {
			t.Errorf("ones were counted as %d packets", n)
		}
		if err := d.Stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
		if err := d.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
}

func TestClosedDeviceTouchesNothing(t *testing.T) {
	f := newFake(regs.MAC82540)
	d, err := e1000.Open(fakeConfig(t, f, 0x100E))
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Start(); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	f.took()
	if err := d.Start(); !errors.Is(err, e1000.ErrClosed) {
		t.Errorf("start: %v", err)
	}
	if err := d.SetMTU(1400); !errors.Is(err, e1000.ErrClosed) {
		t.Errorf("set MTU: %v", err)
	}
	if err := d.SetMAC(eepromAddress); !errors.Is(err, e1000.ErrClosed) {
		t.Errorf("set MAC: %v", err)
	}
	if err := d.Reset("test"); err == nil {
		t.Error("reset of a closed device")
	}
	if err := errors.Join(d.Housekeep(1e12), d.CheckLink(), d.Stop(), d.Close()); err != nil {
		t.Error(err)
	}
	if n := len(d.Dump()); n != 0 {
		t.Errorf("dump of %d lines", n)
	}
	if log := f.took(); len(log) != 0 {
		t.Errorf("a closed device was accessed: %v", log)
	}
}

// A device that will not stand still is reset all the same, and says so.
func TestStopOfADeviceThatKeepsMoving(t *testing.T) {
	f := newFake(regs.MAC82540)
	cfg := fakeConfig(t, f, 0x100E)
	var log strings.Builder
	cfg.Log = capture(&log)
	d, err := e1000.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Start(); err != nil {
		t.Fatal(err)
	}
	head := uint32(0)
	f.onRead[regs.RDH] = func() uint32 { head++; return head & 255 }
	before := f.clk.Now()
	if err := d.Stop(); err != nil {
		t.Fatal(err)
	}
	if ms := (f.clk.Now() - before) / 1e6; ms < 100 || ms > 300 {
		t.Errorf("waited %d ms", ms)
	}
	if !strings.Contains(log.String(), "transfers did not end") {
		t.Errorf("no warning in %s", log.String())
	}
	if f.val[regs.RCTL]&regs.RctlEN != 0 || f.val[regs.TCTL]&regs.TctlEN != 0 {
		t.Error("a unit is still enabled")
	}
}
