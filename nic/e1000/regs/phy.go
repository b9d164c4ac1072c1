package regs

// PhyAddr is the MDIC address of the internal PHY (13.4.7).
const PhyAddr = 1

// Numbers of the PHY registers (13.4.7.1). 0 to 15 are those of IEEE 802.3
// clause 22, 16 and up belong to the PHY's maker.
const (
	PhyCTRL    uint32 = 0
	PhySTATUS  uint32 = 1
	PhyID1     uint32 = 2
	PhyID2     uint32 = 3
	PhyANA     uint32 = 4
	PhyLPA     uint32 = 5
	PhyANE     uint32 = 6
	PhyNPT     uint32 = 7
	PhyLPN     uint32 = 8
	PhyGCON    uint32 = 9
	PhyGSTATUS uint32 = 10
	PhyESTATUS uint32 = 15
	PhyPSCON   uint32 = 16
	PhyPSSTAT  uint32 = 17
	PhyPINTE   uint32 = 18
	PhyPINTS   uint32 = 19
	PhyEPSCON  uint32 = 20
	PhyPREC    uint32 = 21
)

// Bits of the PHY control register.
const (
	PhyCtrlSPEEDMSB uint32 = 1 << 6
	PhyCtrlCOLTEST  uint32 = 1 << 7
	PhyCtrlFD       uint32 = 1 << 8
	PhyCtrlANRST    uint32 = 1 << 9 // restart autonegotiation, clears itself
	PhyCtrlISOLATE  uint32 = 1 << 10
	PhyCtrlPWRDN    uint32 = 1 << 11
	PhyCtrlANEN     uint32 = 1 << 12 // autonegotiation enabled
	PhyCtrlSPEEDLSB uint32 = 1 << 13
	PhyCtrlLOOPBACK uint32 = 1 << 14
	PhyCtrlRESET    uint32 = 1 << 15 // clears itself
)

// Bits of the PHY status register. LINK latches low: the second of two reads
// tells the present state.
const (
	PhyStatusEXTCAP  uint32 = 1 << 0
	PhyStatusJABBER  uint32 = 1 << 1
	PhyStatusLINK    uint32 = 1 << 2
	PhyStatusANCAP   uint32 = 1 << 3
	PhyStatusRF      uint32 = 1 << 4
	PhyStatusANDONE  uint32 = 1 << 5
	PhyStatusMFPS    uint32 = 1 << 6
	PhyStatusEXTSTAT uint32 = 1 << 8
	PhyStatus10HD    uint32 = 1 << 11
	PhyStatus10FD    uint32 = 1 << 12
	PhyStatus100HD   uint32 = 1 << 13
	PhyStatus100FD   uint32 = 1 << 14
)

// Bits of the advertisement and, at the same places, of the link partner's
// ability register.
const (
	PhyAnaSELECTOR uint32 = 0x1F
	PhyAnaCSMACD   uint32 = 1 // SELECTOR value of IEEE 802.3
	PhyAna10HD     uint32 = 1 << 5
	PhyAna10FD     uint32 = 1 << 6
	PhyAna100HD    uint32 = 1 << 7
	PhyAna100FD    uint32 = 1 << 8
	PhyAnaPAUSE    uint32 = 1 << 10
	PhyAnaASMDIR   uint32 = 1 << 11
	PhyLpaACK      uint32 = 1 << 14
)

// Bits of the 1000BASE-T control and status registers.
const (
	PhyGconHD       uint32 = 1 << 8
	PhyGconFD       uint32 = 1 << 9
	PhyGconPORT     uint32 = 1 << 10
	PhyGconMASTER   uint32 = 1 << 11
	PhyGconMSMANUAL uint32 = 1 << 12
	PhyGstatusLPHD  uint32 = 1 << 10
	PhyGstatusLPFD  uint32 = 1 << 11
	PhyGstatusRROK  uint32 = 1 << 12
	PhyGstatusLROK  uint32 = 1 << 13
	PhyGstatusMSRES uint32 = 1 << 14
)

// Bits of the PHY-specific status register as the 82540, 82545 and 82546 lay
// it out. The 82541 and 82547 differ; DecodePHYFor knows both.
const (
	PhyPsstatMDIX      uint32 = 1 << 6
	PhyPsstatLINK      uint32 = 1 << 10
	PhyPsstatRESOLVED  uint32 = 1 << 11 // speed and duplex are valid
	PhyPsstatFD        uint32 = 1 << 13
	PhyPsstatSPEED     uint32 = 3 << 14
	PhyPsstatSPEED10   uint32 = 0 << 14
	PhyPsstatSPEED100  uint32 = 1 << 14
	PhyPsstatSPEED1000 uint32 = 2 << 14
)

// Identifiers of the internal PHYs: ID1 in the upper half, ID2 in the lower
// half without its four revision bits.
const (
	PhyIDMask     uint32 = 0xFFFFFFF0
	PhyID82544    uint32 = 0x01410C30
	PhyID82540    uint32 = 0x01410C20 // also 82545 and 82546
	PhyIDIGP      uint32 = 0x02A80380 // 82541 and 82547
	PhyIDExternal uint32 = 0x01410C50
)

var abilityFields = []Field{
	bits("SELECTOR", 4, 0, "standard, 1 is IEEE 802.3"),
	bit("10HD", 5, "10BASE-T"),
	bit("10FD", 6, "10BASE-T full duplex"),
	bit("100HD", 7, "100BASE-TX"),
	bit("100FD", 8, "100BASE-TX full duplex"),
	bit("100T4", 9, "100BASE-T4"),
	bit("PAUSE", 10, "symmetric pause"),
	bit("ASMDIR", 11, "asymmetric pause"),
	bit("RF", 13, "remote fault"),
	bit("ACK", 14, "link word received"),
	bit("NP", 15, "next page"),
}

var phyRows = []Reg{
	{Name: "CTRL", Offset: PhyCTRL, Mode: RW, Section: "13.4.7.1", Help: "control", Fields: []Field{
		bit("SPEEDMSB", 6, "with SPEEDLSB: 10 is 1000, 01 is 100, 00 is 10 Mb/s"),
		bit("COLTEST", 7, "collision test"),
		bit("FD", 8, "full duplex"),
		bit("ANRST", 9, "restart autonegotiation"),
		bit("ISOLATE", 10, "isolated from the MAC"),
		bit("PWRDN", 11, "powered down"),
		bit("ANEN", 12, "autonegotiation enabled"),
		bit("SPEEDLSB", 13, "see SPEEDMSB"),
		bit("LOOPBACK", 14, "loopback"),
		bit("RESET", 15, "reset"),
	}},
	{Name: "STATUS", Offset: PhySTATUS, Mode: RO, Section: "13.4.7.1", Help: "status", Fields: []Field{
		bit("EXTCAP", 0, "extended registers"),
		bit("JABBER", 1, "jabber"),
		bit("LINK", 2, "link up, latches low"),
		bit("ANCAP", 3, "can autonegotiate"),
		bit("RF", 4, "remote fault"),
		bit("ANDONE", 5, "autonegotiation complete"),
		bit("MFPS", 6, "preamble may be left out"),
		bit("EXTSTAT", 8, "register 15 present"),
		bit("T2HD", 9, "100BASE-T2"),
		bit("T2FD", 10, "100BASE-T2 full duplex"),
		bit("10HD", 11, "10BASE-T"),
		bit("10FD", 12, "10BASE-T full duplex"),
		bit("100HD", 13, "100BASE-TX"),
		bit("100FD", 14, "100BASE-TX full duplex"),
		bit("100T4", 15, "100BASE-T4"),
	}},
	{Name: "ID1", Offset: PhyID1, Mode: RO, Section: "13.4.7.1", Help: "identifier, upper half"},
	{Name: "ID2", Offset: PhyID2, Mode: RO, Section: "13.4.7.1", Help: "identifier, lower half"},
	{Name: "ANA", Offset: PhyANA, Mode: RW, Section: "13.4.7.1", Help: "autonegotiation advertisement", Fields: abilityFields},
	{Name: "LPA", Offset: PhyLPA, Mode: RO, Section: "13.4.7.1", Help: "link partner ability", Fields: abilityFields},
	{Name: "ANE", Offset: PhyANE, Mode: RO, Section: "13.4.7.1", Help: "autonegotiation expansion", Fields: []Field{
		bit("LPAN", 0, "the partner autonegotiates"),
		bit("PAGERX", 1, "page received"),
		bit("NPCAP", 2, "next pages possible"),
		bit("LPNPCAP", 3, "next pages possible at the partner"),
		bit("PDF", 4, "parallel detection fault"),
	}},
	{Name: "NPT", Offset: PhyNPT, Mode: RW, Section: "13.4.7.1", Help: "next page to send"},
	{Name: "LPN", Offset: PhyLPN, Mode: RO, Section: "13.4.7.1", Help: "next page of the link partner"},
	{Name: "GCON", Offset: PhyGCON, Mode: RW, Section: "13.4.7.1", Help: "1000BASE-T control", Fields: []Field{
		bit("HD", 8, "advertise half duplex"),
		bit("FD", 9, "advertise full duplex"),
		bit("PORT", 10, "multi-port device"),
		bit("MASTER", 11, "master when set by hand"),
		bit("MSMANUAL", 12, "master or slave set by hand"),
		bits("TEST", 15, 13, "test mode"),
	}},
	{Name: "GSTATUS", Offset: PhyGSTATUS, Mode: RO, Section: "13.4.7.1", Help: "1000BASE-T status", Fields: []Field{
		bits("IDLEERR", 7, 0, "idle errors since the last read"),
		bit("LPHD", 10, "partner can half duplex"),
		bit("LPFD", 11, "partner can full duplex"),
		bit("RROK", 12, "remote receiver works"),
		bit("LROK", 13, "local receiver works"),
		bit("MSRES", 14, "local side is master"),
		bit("MSFAULT", 15, "master and slave not resolved"),
	}},
	{Name: "ESTATUS", Offset: PhyESTATUS, Mode: RO, Section: "13.4.7.1", Help: "extended status", Fields: []Field{
		bit("THD", 12, "1000BASE-T"),
		bit("TFD", 13, "1000BASE-T full duplex"),
		bit("XHD", 14, "1000BASE-X"),
		bit("XFD", 15, "1000BASE-X full duplex"),
	}},
	{Name: "PSCON", Offset: PhyPSCON, Mode: RW, Section: "13.4.7.1", Help: "PHY-specific control"},
	{Name: "PSSTAT", Offset: PhyPSSTAT, Mode: RO, Section: "13.4.7.1", Help: "PHY-specific status",
		Fields: []Field{
			bit("JABBER", 0, "jabber"),
			bit("POLARITY", 1, "polarity reversed"),
			bit("DOWNSHIFT", 5, "speed lowered"),
			bit("MDIX", 6, "crossed"),
			bits("CABLE", 9, 7, "cable length, m",
				Value{0, "<50"}, Value{1, "50-80"}, Value{2, "80-110"}, Value{3, "110-140"}, Value{4, ">140"}),
			bit("LINK", 10, "link up"),
			bit("RESOLVED", 11, "speed and duplex valid"),
			bit("PAGERX", 12, "page received"),
			bit("FD", 13, "full duplex"),
			bits("SPEED", 15, 14, "Mb/s", speedValues...),
		},
		IGPFields: []Field{
			bit("ANFAILED", 0, "autonegotiation failed"),
			bit("POLARITY", 1, "polarity reversed"),
			bits("CABLE", 6, 2, "cable length, raw"),
			bit("FD", 9, "full duplex"),
			bit("LINK", 10, "link up"),
			bit("MDIX", 11, "crossed"),
			bits("SPEED", 15, 14, "Mb/s", Value{1, "10"}, Value{2, "100"}, Value{3, "1000"}),
		}},
	{Name: "PINTE", Offset: PhyPINTE, Mode: RW, Section: "13.4.7.1", Help: "interrupt enable"},
	{Name: "PINTS", Offset: PhyPINTS, Mode: RC, Section: "13.4.7.1", Help: "interrupt status"},
	{Name: "EPSCON", Offset: PhyEPSCON, Mode: RW, Section: "13.4.7.1", Help: "extended PHY-specific control"},
	{Name: "PREC", Offset: PhyPREC, Mode: RC, Section: "13.4.7.1", Help: "receive errors"},
}

// PHYRegs returns the PHY registers in order of number; Reg.Offset is the
// number. The slice is the caller's, the fields inside are shared.
func PHYRegs() []Reg { return append([]Reg(nil), phyRows...) }

// PHYLookup finds a PHY register by number.
func PHYLookup(num uint32) (Reg, bool) {
	for i := range phyRows {
		if phyRows[i].Offset == num {
			return phyRows[i], true
		}
	}
	return Reg{}, false
}

// DecodePHYFor describes the value of a PHY register as Decode does that of a
// MAC register, in the layout of the given MAC type.
func DecodePHYFor(mac MACType, num uint32, value uint16) string {
	r, _ := PHYLookup(num)
	return decode(r.FieldsFor(mac), uint32(value), 4)
}
