package regs

// Bits of CTRL (13.4.1).
const (
	CtrlFD        uint32 = 1 << 0 // full duplex when forced
	CtrlLRST      uint32 = 1 << 3 // link reset, TBI and SerDes only
	CtrlASDE      uint32 = 1 << 5 // detect the speed from the PHY
	CtrlSLU       uint32 = 1 << 6 // set link up
	CtrlILOS      uint32 = 1 << 7 // invert loss of signal
	CtrlSPEED     uint32 = 3 << 8
	CtrlSPEED10   uint32 = 0 << 8
	CtrlSPEED100  uint32 = 1 << 8
	CtrlSPEED1000 uint32 = 2 << 8
	CtrlFRCSPD    uint32 = 1 << 11 // force speed
	CtrlFRCDPLX   uint32 = 1 << 12 // force duplex
	CtrlRST       uint32 = 1 << 26 // device reset, clears itself
	CtrlRFCE      uint32 = 1 << 27 // obey received pause frames
	CtrlTFCE      uint32 = 1 << 28 // send pause frames
	CtrlVME       uint32 = 1 << 30 // strip and insert VLAN tags
	CtrlPHYRST    uint32 = 1 << 31 // hold the PHY in reset
)

// Bits of STATUS (13.4.2).
const (
	StatusFD           uint32 = 1 << 0 // full duplex
	StatusLU           uint32 = 1 << 1 // link up
	StatusFUNC         uint32 = 3 << 2 // function number of a dual-port chip
	StatusFUNCShift           = 2
	StatusTXOFF        uint32 = 1 << 4 // paused by the link partner
	StatusTBIMODE      uint32 = 1 << 5 // fibre or SerDes instead of copper
	StatusSPEED        uint32 = 3 << 6
	StatusSPEEDShift          = 6
	StatusSPEED10      uint32 = 0 << 6
	StatusSPEED100     uint32 = 1 << 6
	StatusSPEED1000    uint32 = 2 << 6
	StatusASDV         uint32 = 3 << 8 // speed found by auto-detection
	StatusPCI66        uint32 = 1 << 11
	StatusBUS64        uint32 = 1 << 12
	StatusPCIXMODE     uint32 = 1 << 13
	StatusPCIXSPD      uint32 = 3 << 14
	StatusPCIXSPDShift        = 14
	StatusPCIXSPD66    uint32 = 0 << 14
	StatusPCIXSPD100   uint32 = 1 << 14
	StatusPCIXSPD133   uint32 = 2 << 14
)

// Bits of EECD (13.4.3).
const (
	EecdSK       uint32 = 1 << 0 // clock
	EecdCS       uint32 = 1 << 1 // chip select
	EecdDI       uint32 = 1 << 2 // data into the EEPROM
	EecdDO       uint32 = 1 << 3 // data out of the EEPROM
	EecdFWE      uint32 = 3 << 4 // flash write enable
	EecdREQ      uint32 = 1 << 6 // software asks for the EEPROM
	EecdGNT      uint32 = 1 << 7 // hardware granted it
	EecdPRES     uint32 = 1 << 8 // an EEPROM is present
	EecdSIZE     uint32 = 1 << 9 // 256 words instead of 64
	EecdADDRBITS uint32 = 1 << 10
	EecdTYPE     uint32 = 1 << 13 // SPI instead of Microwire (82541, 82547)
)

// Bits of CTRLEXT (13.4.6).
const (
	CtrlExtASDCHK  uint32 = 1 << 12 // start speed detection once
	CtrlExtEERST   uint32 = 1 << 13 // reload the EEPROM
	CtrlExtIPS     uint32 = 1 << 14 // invert power state bit
	CtrlExtSPDBYPS uint32 = 1 << 15 // speed select bypass
	CtrlExtRODIS   uint32 = 1 << 17 // no relaxed ordering
)

// Bits of MDIC (13.4.7).
const (
	MdicDATA        uint32 = 0xFFFF
	MdicREGADD      uint32 = 0x1F << 16
	MdicREGADDShift        = 16
	MdicPHYADD      uint32 = 0x1F << 21
	MdicPHYADDShift        = 21
	MdicOP          uint32 = 3 << 26
	MdicOPWrite     uint32 = 1 << 26
	MdicOPRead      uint32 = 2 << 26
	MdicREADY       uint32 = 1 << 28 // cleared by software, set at the end
	MdicINTEN       uint32 = 1 << 29 // raise ICR.MDAC at the end
	MdicERROR       uint32 = 1 << 30
)

// Values of the flow control registers (13.4.8 to 13.4.10): the multicast
// address 01:80:C2:00:00:01 and the type of IEEE 802.3x pause frames.
const (
	FCALValue uint32 = 0x00C28001
	FCAHValue uint32 = 0x00000100
	FCTValue  uint32 = 0x00008808
	VETValue  uint32 = 0x00008100 // IEEE 802.1Q type for VET
)

// Bits of ICR, and at the same places of ICS, IMS and IMC (13.4.17).
const (
	IcrTXDW   uint32 = 1 << 0  // transmit descriptor written back
	IcrTXQE   uint32 = 1 << 1  // transmit queue empty
	IcrLSC    uint32 = 1 << 2  // link status change
	IcrRXSEQ  uint32 = 1 << 3  // receive sequence error
	IcrRXDMT0 uint32 = 1 << 4  // few receive descriptors left, RctlRDMTS
	IcrRXO    uint32 = 1 << 6  // receiver overrun
	IcrRXT0   uint32 = 1 << 7  // receive timer
	IcrMDAC   uint32 = 1 << 9  // MDIC access complete
	IcrRXCFG  uint32 = 1 << 10 // receiving /C/ ordered sets
	IcrGPI4   uint32 = 1 << 11
	IcrPHYINT uint32 = 1 << 12 // PHY interrupt, or general-purpose pin 5
	IcrGPI6   uint32 = 1 << 13
	IcrGPI7   uint32 = 1 << 14
	IcrTXDLOW uint32 = 1 << 15 // transmit descriptors low, TxdctlLWTHRESH
	IcrSRPD   uint32 = 1 << 16 // small packet received, RSRPD
)

// IMCAll, written to IMC, masks every interrupt (13.4.21).
const IMCAll uint32 = 0xFFFFFFFF

// Bits of TXCW and RXCW (13.4.13, 13.4.14), fibre and SerDes only.
const (
	TxcwFD       uint32 = 1 << 5
	TxcwHD       uint32 = 1 << 6
	TxcwPAUSE    uint32 = 3 << 7
	TxcwTXCONFIG uint32 = 1 << 30 // send the word until cleared
	TxcwANE      uint32 = 1 << 31 // autonegotiation on
	RxcwNC       uint32 = 1 << 26 // no carrier
	RxcwIV       uint32 = 1 << 27 // invalid symbol received
	RxcwCC       uint32 = 1 << 28 // the word changed
	RxcwC        uint32 = 1 << 29 // receiving /C/ ordered sets
	RxcwSYNCH    uint32 = 1 << 30 // bit synchronised
	RxcwANC      uint32 = 1 << 31 // autonegotiation complete
)

// Fields of PBA, both in KiB (13.4.16). Writing RXA recomputes TXA.
const (
	PbaRXA      uint32 = 0xFFFF
	PbaTXA      uint32 = 0xFFFF << 16
	PbaTXAShift        = 16
)

// Bits of MANC.
const (
	MancSMBUSEN    uint32 = 1 << 0
	MancASFEN      uint32 = 1 << 1
	MancARPEN      uint32 = 1 << 13 // the chip answers ARP requests itself
	MancARPRESEN   uint32 = 1 << 15
	MancRCVTCOEN   uint32 = 1 << 17
	MancENMNG2HOST uint32 = 1 << 21
)

// Bits of WUC and WUFC (13.6.1, 13.6.2).
const (
	WucAPME      uint32 = 1 << 0
	WucPMEEN     uint32 = 1 << 1
	WucPMESTATUS uint32 = 1 << 2
	WucAPMPME    uint32 = 1 << 3
	WufcLNKC     uint32 = 1 << 0
	WufcMAG      uint32 = 1 << 1
)
