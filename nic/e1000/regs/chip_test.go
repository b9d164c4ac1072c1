package regs

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestStats(t *testing.T) {
	stats := Stats()
	covered := map[uint32]bool{}
	for _, s := range stats {
		for _, off := range []uint32{s.Lo, s.Hi} {
			if off != 0 {
				covered[off] = true
			}
		}
		if !s.ClearsHW || s.Help == "" || !strings.HasPrefix(s.Section, "13.7.") {
			t.Errorf("%s is incomplete: %+v", s.Name, s)
		}
		if s.Wide() != (s.Unit == Bytes) || s.Wide() && s.Hi != s.Lo+4 {
			t.Errorf("%s: only byte counters are wide", s.Name)
		}
		if got, ok := StatByName(s.Name); !ok || got != s {
			t.Errorf("StatByName(%s) = %+v, %v", s.Name, got, ok)
		}
	}
	// The block is dense but for these holes, which the chips leave reserved.
	holes := map[uint32]bool{0x4024: true, 0x402C: true, 0x4044: true, 0x4084: true, 0x4098: true, 0x409C: true}
	for off := CRCERRS; off <= TSCTFC; off += 4 {
		if covered[off] == holes[off] {
			t.Errorf("offset %#x: covered %v", off, covered[off])
		}
	}
	if _, ok := StatByName("nothing"); ok {
		t.Error("found a statistic that does not exist")
	}
}

func TestStatsOnQEMU(t *testing.T) {
	for name, clears := range map[string]bool{
		"GPRC": true, "GOTC": true, "TPT": true, "PRC64": true, "RUC": true, "BPRC": true,
		"CRCERRS": false, "MPC": false, "RNBC": false, "COLC": false, "XOFFRXC": false, "TSCTFC": false,
	} {
		if s, ok := StatByName(name); !ok || s.ClearsQEMU != clears {
			t.Errorf("%s: ClearsQEMU = %v, want %v", name, s.ClearsQEMU, clears)
		}
	}
}

func TestStatReadOrder(t *testing.T) {
	s, _ := StatByName("GORC")
	var order []uint32
	got := s.Read(func(off uint32) uint32 { order = append(order, off); return map[uint32]uint32{GORCL: 7, GORCH: 2}[off] })
	if got != 2<<32|7 || len(order) != 2 || order[0] != GORCL {
		t.Errorf("Read = %#x in order %#x", got, order)
	}
	n, _ := StatByName("GPRC")
	if got := n.Read(func(off uint32) uint32 { return off }); got != uint64(GPRC) {
		t.Errorf("32-bit Read = %#x", got)
	}
}

func TestDevices(t *testing.T) {
	last := uint16(0)
	for _, d := range Devices() {
		if d.ID <= last {
			t.Errorf("%#x is out of order", d.ID)
		}
		last = d.ID
		// The chip number starts both the name and the generation.
		if d.MAC == MACUnknown || d.Name[:5] != d.MAC.String()[:5] {
			t.Errorf("%#x: %q has MAC type %v", d.ID, d.Name, d.MAC)
		}
		if fiber := strings.Contains(d.Name, "fiber"); fiber != (d.Media == Fiber) {
			t.Errorf("%#x: %q has medium %v", d.ID, d.Name, d.Media)
		}
		if got, ok := LookupDevice(VendorIntel, d.ID); !ok || got != d {
			t.Errorf("LookupDevice(%#x) = %+v, %v", d.ID, got, ok)
		}
	}
	for _, c := range [][2]uint16{{VendorIntel, 0x1000}, {VendorIntel, 0x10D3}, {0x1AF4, 0x100E}} {
		if d, ok := LookupDevice(c[0], c[1]); ok {
			t.Errorf("LookupDevice(%#x, %#x) = %+v", c[0], c[1], d)
		}
	}
}

func TestEERDLayoutAgreesWithTable(t *testing.T) {
	r, _, _ := Lookup(EERD)
	for mac := MACUnknown; mac <= MAC82547Rev2; mac++ {
		l, ok := EERDLayoutFor(mac)
		if want := mac != MACUnknown && mac != MAC82544; ok != want {
			t.Errorf("%v: layout known = %v", mac, ok)
		}
		if !ok {
			continue
		}
		fields := r.FieldsFor(mac)
		addr, data := findField(fields, "ADDR"), findField(fields, "DATA")
		if l.Start != findField(fields, "START").Mask() || l.Done != findField(fields, "DONE").Mask() ||
			l.AddrShift != addr.Shift || l.AddrWidth != addr.Width || l.DataShift != data.Shift {
			t.Errorf("%v: layout %+v is not that of the table", mac, l)
		}
	}
}

func TestEERDRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mac := rapid.SampledFrom([]MACType{MAC82540, MAC82545, MAC82546Rev3, MAC82541, MAC82547Rev2}).Draw(t, "mac")
		l, _ := EERDLayoutFor(mac)
		word, data := rapid.Uint16Range(0, 255).Draw(t, "word"), rapid.Uint16().Draw(t, "data")
		cmd := l.Command(word)
		if l.IsDone(cmd) || cmd&l.Start == 0 || l.Addr(cmd) != word {
			t.Fatalf("command for word %d is %#x", word, cmd)
		}
		v := l.Reply(word, data)
		if !l.IsDone(v) || l.Addr(v) != word || l.Data(v) != data || v&l.Start != 0 {
			t.Fatalf("reply for word %d, data %#x is %#x", word, data, v)
		}
	})
}

func TestEEPROMChecksum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.Uint16(), EEPROMChecksum, EEPROMChecksum).Draw(t, "words")
		words = append(words, EEPROMChecksumFor(words))
		if len(words) != EEPROMChecksumSpan || EEPROMSumOf(words) != EEPROMSum {
			t.Fatalf("sum of %d words is %#x", len(words), EEPROMSumOf(words))
		}
	})
}

func TestNames(t *testing.T) {
	for got, want := range map[string]string{
		MAC82546Rev3.String(): "82546-rev3", MACType(99).String(): "MACType(99)",
		RCW1C.String(): "RC/W1C", Mode(99).String(): "Mode(99)",
		SerDes.String(): "serdes", Tx.String(): "tx", Events.String(): "events",
	} {
		if got != want {
			t.Errorf("name %q, want %q", got, want)
		}
	}
}
