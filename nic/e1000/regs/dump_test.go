package regs

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// fakeChip holds register values and records what was read.
type fakeChip struct {
	values map[uint32]uint32
	reads  map[uint32]int
}

func newFakeChip() *fakeChip {
	return &fakeChip{reads: map[uint32]int{}, values: map[uint32]uint32{
		CTRL:         CtrlSLU | CtrlASDE | CtrlSPEED1000,
		STATUS:       0x80080783,
		EECD:         EecdPRES | EecdGNT,
		EERD:         0xBABA3F10,
		MDIC:         MdicREADY | MdicOPRead | PhyAddr<<MdicPHYADDShift | PhyPSSTAT<<MdicREGADDShift | 0xAC00,
		FCAL:         FCALValue,
		FCAH:         FCAHValue,
		FCT:          FCTValue,
		ICR:          IcrTXDW | IcrRXT0,
		IMS:          IcrLSC,
		RCTL:         RctlEN | RctlBAM | RctlSECRC,
		TCTL:         TctlEN | TctlPSP | CollisionThreshold<<TctlCTShift | CollisionDistanceFull<<TctlCOLDShift,
		TIPG:         TIPGCopper,
		LEDCTL:       0x602,
		PBA:          16<<PbaTXAShift | 48,
		RDBAL:        0x00100000,
		RDLEN:        4096,
		RDT:          255,
		TDLEN:        4096,
		TDH:          7,
		TDT:          7,
		TXDCTL:       TxdctlRSV22 | TxdctlGRAN | 8,
		RAL:          0x12005452,
		RAH:          RahAV | 0x5634,
		RAL + 15*8:   0xDEADBEEF,
		MTA + 4*5:    1 << 3,
		GPRC:         11,
		GORCH:        1,
		WUC:          WucPMEEN,
		MANC:         MancENMNG2HOST | MancRCVTCOEN | MancARPEN,
		TDFPC:        2,
		RXCSUM:       RxcsumIPOFLD,
		RADV:         8,
		CTRLEXT:      0xC00000,
		VET:          VETValue,
		VFTA + 4*127: 1 << 31,
		TXCW:         TxcwANE,
	}}
}

func (c *fakeChip) read(off uint32) uint32 {
	c.reads[off]++
	return c.values[off]
}

func TestGoldenDump(t *testing.T) {
	c := newFakeChip()
	var buf bytes.Buffer
	if err := Write(&buf, Dump(c.read, DumpOptions{MAC: MAC82540, Tables: true, Clearing: true}), false); err != nil {
		t.Fatal(err)
	}
	const golden = "testdata/dump.golden"
	if *update {
		if err := os.WriteFile(golden, buf.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), buf.String()); d != "" {
		t.Errorf("dump differs (-want +got):\n%s", d)
	}
}

func TestDumpReadsNothingThatClears(t *testing.T) {
	c := newFakeChip()
	lines := Dump(c.read, DumpOptions{Tables: true})
	for off, n := range c.reads {
		r, elem, ok := Lookup(off)
		if !ok || !r.Mode.ReadSafe() || n != 1 {
			t.Errorf("read %s (%v) at %#x %d times", r.ElemName(elem), r.Mode, off, n)
		}
	}
	skipped := map[string]string{}
	for _, l := range lines {
		if l.Skipped != "" {
			skipped[l.Name] = l.Skipped
		}
	}
	for name, why := range map[string]string{"ICR": "reading clears it", "GPRC": "reading clears it", "IMC": "write-only"} {
		if skipped[name] != why {
			t.Errorf("%s is marked %q, want %q", name, skipped[name], why)
		}
	}
}

func TestDumpClearingReadsStatisticsLowWordFirst(t *testing.T) {
	var order []uint32
	lines := Dump(func(off uint32) uint32 { order = append(order, off); return 0 }, DumpOptions{Clearing: true})
	at := map[uint32]int{}
	for i, off := range order {
		at[off] = i + 1
	}
	if at[ICR] == 0 || at[GPRC] == 0 {
		t.Error("the clearing registers were not read")
	}
	if at[IMC] != 0 || at[ICS] != 0 {
		t.Error("a write-only register was read")
	}
	if at[MTA] != 0 || at[VFTA] != 0 {
		t.Error("tables were read without being asked for")
	}
	for _, s := range Stats() {
		if s.Wide() && at[s.Lo] > at[s.Hi] {
			t.Errorf("%s: the high word was read first", s.Name)
		}
	}
	if len(lines) != len(order)+2 {
		t.Errorf("%d lines for %d reads and two write-only registers", len(lines), len(order))
	}
}

func TestDiffDump(t *testing.T) {
	c := newFakeChip()
	before := Dump(c.read, DumpOptions{Tables: true})
	c.values[RCTL] |= RctlUPE
	c.values[MTA+4*9] = 0x10
	c.values[GPRC] = 99 // not read, so not a difference
	c.values[EERD] = 0
	changes := DiffDump(before, Dump(c.read, DumpOptions{Tables: true}))
	var got []string
	for _, ch := range changes {
		got = append(got, strings.Join(strings.Fields(ch.String()), " "))
	}
	want := []string{
		"EERD DONE 1->0, ADDR 63->0, DATA 0xbaba->0x0",
		"RCTL UPE 0->1",
		"MTA[9] 0x00000000->0x00000010",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("changes (-want +got):\n%s", d)
	}
	if d := DiffDump(before, before); d != nil {
		t.Errorf("a dump differs from itself: %v", d)
	}
}

type brokenWriter struct{}

var errBroken = errors.New("broken")

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

func TestWrite(t *testing.T) {
	lines := Dump(newFakeChip().read, DumpOptions{})
	if err := Write(brokenWriter{}, lines, false); !errors.Is(err, errBroken) {
		t.Errorf("Write = %v, want the writer's error", err)
	}
	var some, all bytes.Buffer
	if err := errors.Join(Write(&some, lines, false), Write(&all, lines, true)); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(all.String(), "\n"); n != len(lines) {
		t.Errorf("all: %d lines of %d", n, len(lines))
	}
	for _, hidden := range []string{"not read", "RAL[3]"} {
		if strings.Contains(some.String(), hidden) || !strings.Contains(all.String(), hidden) {
			t.Errorf("%q must be shown only with all", hidden)
		}
	}
}
