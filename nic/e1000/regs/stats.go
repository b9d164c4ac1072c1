package regs

import "slices"

// Offsets of the statistics registers (13.7). The 64-bit counters have a low
// and a high word, the names ending in L and H.
const (
	CRCERRS  uint32 = 0x04000
	ALGNERRC uint32 = 0x04004
	SYMERRS  uint32 = 0x04008
	RXERRC   uint32 = 0x0400C
	MPC      uint32 = 0x04010
	SCC      uint32 = 0x04014
	ECOL     uint32 = 0x04018
	MCC      uint32 = 0x0401C
	LATECOL  uint32 = 0x04020
	COLC     uint32 = 0x04028
	DC       uint32 = 0x04030
	TNCRS    uint32 = 0x04034
	SEC      uint32 = 0x04038
	CEXTERR  uint32 = 0x0403C
	RLEC     uint32 = 0x04040
	XONRXC   uint32 = 0x04048
	XONTXC   uint32 = 0x0404C
	XOFFRXC  uint32 = 0x04050
	XOFFTXC  uint32 = 0x04054
	FCRUC    uint32 = 0x04058
	PRC64    uint32 = 0x0405C
	PRC127   uint32 = 0x04060
	PRC255   uint32 = 0x04064
	PRC511   uint32 = 0x04068
	PRC1023  uint32 = 0x0406C
	PRC1522  uint32 = 0x04070
	GPRC     uint32 = 0x04074
	BPRC     uint32 = 0x04078
	MPRC     uint32 = 0x0407C
	GPTC     uint32 = 0x04080
	GORCL    uint32 = 0x04088
	GORCH    uint32 = 0x0408C
	GOTCL    uint32 = 0x04090
	GOTCH    uint32 = 0x04094
	RNBC     uint32 = 0x040A0
	RUC      uint32 = 0x040A4
	RFC      uint32 = 0x040A8
	ROC      uint32 = 0x040AC
	RJC      uint32 = 0x040B0
	MGTPRC   uint32 = 0x040B4
	MGTPDC   uint32 = 0x040B8
	MGTPTC   uint32 = 0x040BC
	TORL     uint32 = 0x040C0
	TORH     uint32 = 0x040C4
	TOTL     uint32 = 0x040C8
	TOTH     uint32 = 0x040CC
	TPR      uint32 = 0x040D0
	TPT      uint32 = 0x040D4
	PTC64    uint32 = 0x040D8
	PTC127   uint32 = 0x040DC
	PTC255   uint32 = 0x040E0
	PTC511   uint32 = 0x040E4
	PTC1023  uint32 = 0x040E8
	PTC1522  uint32 = 0x040EC
	MPTC     uint32 = 0x040F0
	BPTC     uint32 = 0x040F4
	TSCTC    uint32 = 0x040F8
	TSCTFC   uint32 = 0x040FC
)

// Unit is what a statistic counts.
type Unit uint8

// Units.
const (
	Packets Unit = iota
	Bytes
	Events
)

// String returns "packets", "bytes" or "events".
func (u Unit) String() string { return [...]string{"packets", "bytes", "events"}[min(u, Events)] }

// Direction is the side of the port a statistic belongs to.
type Direction uint8

// Directions.
const (
	Rx Direction = iota
	Tx
)

// String returns "rx" or "tx".
func (d Direction) String() string { return [...]string{"rx", "tx"}[min(d, Tx)] }

// Stat is one counter of the statistics block.
type Stat struct {
	Name   string
	Lo, Hi uint32 // offsets; Hi is 0 for a 32-bit counter
	Unit   Unit
	Dir    Direction
	// ClearsHW tells whether a read clears the counter on hardware. The manual
	// says so of all (13.7).
	ClearsHW bool
	// ClearsQEMU tells the same of QEMU's e1000 model, which keeps some as
	// running totals. It is a hint: versions differ, so a driver should find
	// out from the device.
	ClearsQEMU bool
	Section    string
	Help       string
}

// Wide reports whether the counter has 64 bits.
func (s *Stat) Wide() bool { return s.Hi != 0 }

// Read reads the counter through read, which gets register offsets. Of a wide
// counter the low word is read first, because the read of the high word clears
// both (13.7).
func (s *Stat) Read(read func(off uint32) uint32) uint64 {
	lo := uint64(read(s.Lo))
	if s.Hi == 0 {
		return lo
	}
	return uint64(read(s.Hi))<<32 | lo
}

// Stats returns the statistics in order of offset. The slice is the caller's.
func Stats() []Stat { return slices.Clone(statRows[:]) }

// StatByName finds a statistic by its name, such as "GPRC" or "GORC".
func StatByName(name string) (Stat, bool) {
	for i := range statRows {
		if statRows[i].Name == name {
			return statRows[i], true
		}
	}
	return Stat{}, false
}

func statRegs() []Reg {
	var out []Reg
	for i := range statRows {
		s := &statRows[i]
		if !s.Wide() {
			out = append(out, Reg{Name: s.Name, Offset: s.Lo, Mode: RC, Section: s.Section, Help: s.Help})
			continue
		}
		out = append(out,
			Reg{Name: s.Name + "L", Offset: s.Lo, Mode: RC, Section: s.Section, Help: s.Help + ", low word"},
			Reg{Name: s.Name + "H", Offset: s.Hi, Mode: RC, Section: s.Section, Help: s.Help + ", high word"})
	}
	return out
}
