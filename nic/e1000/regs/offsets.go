package regs

// BARSize is the length in bytes of the register window, BAR 0 (4.1).
const BARSize = 0x20000

// The I/O BAR is a window of two registers through which a device can be reset
// when the memory-mapped write would hang (13.2.2): the offset goes to IOADDR,
// the value to IODATA.
const (
	IOADDR uint32 = 0x00
	IODATA uint32 = 0x04
)

// Offsets of the control and interrupt registers (13.4).
const (
	CTRL    uint32 = 0x00000
	CTRLDUP uint32 = 0x00004
	STATUS  uint32 = 0x00008
	EECD    uint32 = 0x00010
	EERD    uint32 = 0x00014
	CTRLEXT uint32 = 0x00018
	FLA     uint32 = 0x0001C
	MDIC    uint32 = 0x00020
	FCAL    uint32 = 0x00028
	FCAH    uint32 = 0x0002C
	FCT     uint32 = 0x00030
	VET     uint32 = 0x00038
	ICR     uint32 = 0x000C0
	ITR     uint32 = 0x000C4
	ICS     uint32 = 0x000C8
	IMS     uint32 = 0x000D0
	IMC     uint32 = 0x000D8
	FCTTV   uint32 = 0x00170
	TXCW    uint32 = 0x00178
	RXCW    uint32 = 0x00180
	LEDCTL  uint32 = 0x00E00
	PBA     uint32 = 0x01000
	FCRTL   uint32 = 0x02160
	FCRTH   uint32 = 0x02168
)

// Offsets of the receive registers (13.4).
const (
	RCTL   uint32 = 0x00100
	RDBAL  uint32 = 0x02800
	RDBAH  uint32 = 0x02804
	RDLEN  uint32 = 0x02808
	RDH    uint32 = 0x02810
	RDT    uint32 = 0x02818
	RDTR   uint32 = 0x02820
	RXDCTL uint32 = 0x02828
	RADV   uint32 = 0x0282C
	RSRPD  uint32 = 0x02C00
	RXCSUM uint32 = 0x05000
)

// Offsets of the transmit registers (13.4).
const (
	TCTL   uint32 = 0x00400
	TIPG   uint32 = 0x00410
	AIT    uint32 = 0x00458
	TXDMAC uint32 = 0x03000
	TDBAL  uint32 = 0x03800
	TDBAH  uint32 = 0x03804
	TDLEN  uint32 = 0x03808
	TDH    uint32 = 0x03810
	TDT    uint32 = 0x03818
	TIDV   uint32 = 0x03820
	TXDCTL uint32 = 0x03828
	TADV   uint32 = 0x0382C
	TSPMT  uint32 = 0x03830
)

// Offsets of the address filters (13.5). MTA and VFTA are arrays of 128 with
// stride 4, RAL and RAH arrays of 16 with stride 8.
const (
	MTA  uint32 = 0x05200
	RAL  uint32 = 0x05400
	RAH  uint32 = 0x05404
	VFTA uint32 = 0x05600
)

// Shapes of the filter arrays (13.5).
const (
	MTACount  = 128 // words of the multicast hash: 4096 bits
	VFTACount = 128 // words of the VLAN filter: one bit per VLAN identifier
	RARCount  = 16  // exact unicast or multicast addresses
	RARStride = 8   // bytes from RAL[i] to RAL[i+1]
)

// Offsets of the wake-up and management registers (13.6).
const (
	WUC  uint32 = 0x05800
	WUFC uint32 = 0x05808
	WUS  uint32 = 0x05810
	MANC uint32 = 0x05820
)

// Offsets of the packet buffer diagnostics (13.8).
const (
	RDFH  uint32 = 0x02410
	RDFT  uint32 = 0x02418
	RDFHS uint32 = 0x02420
	RDFTS uint32 = 0x02428
	RDFPC uint32 = 0x02430
	TDFH  uint32 = 0x03410
	TDFT  uint32 = 0x03418
	TDFHS uint32 = 0x03420
	TDFTS uint32 = 0x03428
	TDFPC uint32 = 0x03430
)
