package regs

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestDecode(t *testing.T) {
	for _, c := range []struct {
		off, value uint32
		want       string
	}{
		{RCTL, 0, "RDMTS=half MO=47:36 BSIZE=2048"},
		{RCTL, RctlEN | RctlBAM | RctlSECRC, "EN RDMTS=half MO=47:36 BAM BSIZE=2048 SECRC"},
		{RCTL, RctlBSIZE4096 | RctlLBMMAC, "LBM=MAC RDMTS=half MO=47:36 BSIZE=4096 BSEX"},
		{RCTL, RctlBSEX, "RDMTS=half MO=47:36 BSEX"},
		{STATUS, StatusFD | StatusLU | StatusSPEED1000, "FD LU SPEED=1000"},
		{STATUS, 0x80080783, "FD LU SPEED=1000 ASDV=3 MTXCKOK other=0x80080000"},
		{STATUS, StatusPCIXMODE | StatusPCIXSPD133, "SPEED=10 PCIXMODE PCIXSPD=133"},
		{CTRL, 0, "0"},
		{CTRL, CtrlFRCSPD, "SPEED=10 FRCSPD"},
		{TCTL, TctlEN | TctlPSP | 15<<TctlCTShift | 0x40<<TctlCOLDShift, "EN PSP CT=15 COLD=64"},
		{ICR, IcrLSC | IcrRXT0, "LSC RXT0"},
		{RDBAL, 0x1234, "0x00001234"},
		{RAH + 8, RahAV | 0x5634, "ADDR=0x5634 AV"},
		{0x0000C, 7, "0x00000007"},
	} {
		if got := Decode(c.off, c.value); got != c.want {
			t.Errorf("Decode(%#x, %#x) = %q, want %q", c.off, c.value, got, c.want)
		}
	}
}

func TestDecodeByMACType(t *testing.T) {
	v := uint32(0xBEEF0002 | 5<<2)
	if got, want := DecodeFor(MAC82541, EERD, v), "DONE ADDR=5 DATA=0xbeef"; got != want {
		t.Errorf("82541: %q, want %q", got, want)
	}
	if got, want := DecodeFor(MAC82540, EERD, 0xBEEF0510), "DONE ADDR=5 DATA=0xbeef"; got != want {
		t.Errorf("82540: %q, want %q", got, want)
	}
	if got, want := DecodePHYFor(MAC82540, PhyPSSTAT, 0xAC00), "CABLE=<50 LINK RESOLVED FD SPEED=1000"; got != want {
		t.Errorf("PHY status: %q, want %q", got, want)
	}
	if got, want := DecodePHYFor(MAC82547, PhyPSSTAT, 0xC600), "FD LINK SPEED=1000"; got != want {
		t.Errorf("IGP PHY status: %q, want %q", got, want)
	}
	if got, want := DecodePHYFor(MAC82540, 30, 0xAB), "0x00ab"; got != want {
		t.Errorf("unknown PHY register: %q, want %q", got, want)
	}
}

func TestDiff(t *testing.T) {
	for _, c := range []struct {
		off, old, now uint32
		want          string
	}{
		{RCTL, RctlEN, RctlEN, ""},
		{RCTL, 0, RctlEN, "EN 0->1"},
		{RCTL, RctlEN | RctlUPE, RctlBSIZE256, "EN 1->0, UPE 1->0, BSIZE 2048->256"},
		{RCTL, RctlBSIZE1024, RctlBSIZE16384, "BSIZE 1024->16384, BSEX 0->1"},
		{RCTL, 0, 1 << 31, "other 0x0->0x80000000"},
		{TCTL, 0, 15 << TctlCTShift, "CT 0->15"},
		{RDBAL, 1, 2, "0x00000001->0x00000002"},
	} {
		if got := Diff(c.off, c.old, c.now); got != c.want {
			t.Errorf("Diff(%#x, %#x, %#x) = %q, want %q", c.off, c.old, c.now, got, c.want)
		}
	}
}

func drawReg(t *rapid.T) (Reg, uint32, MACType) {
	r := rapid.SampledFrom(All()).Draw(t, "register")
	off := r.At(rapid.IntRange(0, int(r.Len())-1).Draw(t, "element"))
	return r, off, rapid.SampledFrom([]MACType{MACUnknown, MAC82540, MAC82541, MAC82547Rev2}).Draw(t, "mac")
}

func TestParseIsTheReverseOfDecode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, off, mac := drawReg(t)
		v := rapid.Uint32().Draw(t, "value")
		text := DecodeFor(mac, off, v)
		got, err := ParseFor(mac, off, text)
		if err != nil || got != v {
			t.Fatalf("%s: %#x decodes to %q, which parses to %#x, %v", r.Name, v, text, got, err)
		}
	})
}

func TestDiffIsEmptyOnlyForEqualValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, off, mac := drawReg(t)
		old := rapid.Uint32().Draw(t, "old")
		now := old ^ 1<<rapid.IntRange(0, 31).Draw(t, "bit")
		if DiffFor(mac, off, old, now) == "" || DiffFor(mac, off, old, old) != "" {
			t.Fatalf("%s: Diff(%#x, %#x) = %q", r.Name, old, now, DiffFor(mac, off, old, now))
		}
	})
}

func TestParseErrors(t *testing.T) {
	for _, c := range []struct {
		off        uint32
		text, want string
	}{
		{0x0000C, "EN", "no register at offset 0xc"},
		{RCTL, "ENX", `no field "ENX"`},
		{RCTL, "BSIZE", "field BSIZE needs a value"},
		{RCTL, "BSIZE=4096", `"4096" is neither`},
		{RCTL, "MO=4", `"4" is neither`},
		{RCTL, "other=x", "not a number"},
		{RAL, "EN EN", `no field "EN"`},
	} {
		if _, err := Parse(c.off, c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Parse(%#x, %q) = %v, want an error with %q", c.off, c.text, err, c.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(RCTL, "EN BSIZE=4096 BSEX other=0x1")
	f.Add(CTRL, "0")
	f.Add(RDBAL, "0x1234")
	f.Fuzz(func(t *testing.T, off uint32, text string) {
		v, err := Parse(off, text)
		if err != nil {
			return
		}
		again, err := Parse(off, Decode(off, v))
		if err != nil || again != v {
			t.Errorf("%q is %#x, which decodes to %q = %#x, %v", text, v, Decode(off, v), again, err)
		}
	})
}
