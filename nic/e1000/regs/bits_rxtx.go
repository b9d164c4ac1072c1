package regs

// Bits of RCTL (13.4.22). The buffer sizes above 2048 include RctlBSEX.
const (
	RctlEN           uint32 = 1 << 1 // receiver enable
	RctlSBP          uint32 = 1 << 2 // store bad packets
	RctlUPE          uint32 = 1 << 3 // unicast promiscuous
	RctlMPE          uint32 = 1 << 4 // multicast promiscuous
	RctlLPE          uint32 = 1 << 5 // frames above 1522 bytes
	RctlLBM          uint32 = 3 << 6 // loopback
	RctlLBMMAC       uint32 = 1 << 6
	RctlLBMPHY       uint32 = 3 << 6
	RctlRDMTS        uint32 = 3 << 8 // ring fraction that raises IcrRXDMT0
	RctlRDMTSShift          = 8
	RctlRDMTSHalf    uint32 = 0 << 8
	RctlRDMTSQuarter uint32 = 1 << 8
	RctlRDMTSEighth  uint32 = 2 << 8
	RctlMO           uint32 = 3 << 12 // which address bits index MTA
	RctlMOShift             = 12
	RctlBAM          uint32 = 1 << 15 // accept broadcast
	RctlBSIZE        uint32 = 3 << 16
	RctlBSIZEShift          = 16
	RctlBSIZE2048    uint32 = 0 << 16
	RctlBSIZE1024    uint32 = 1 << 16
	RctlBSIZE512     uint32 = 2 << 16
	RctlBSIZE256     uint32 = 3 << 16
	RctlBSIZE16384   uint32 = 1<<16 | RctlBSEX
	RctlBSIZE8192    uint32 = 2<<16 | RctlBSEX
	RctlBSIZE4096    uint32 = 3<<16 | RctlBSEX
	RctlVFE          uint32 = 1 << 18 // filter by VFTA
	RctlCFIEN        uint32 = 1 << 19
	RctlCFI          uint32 = 1 << 20
	RctlDPF          uint32 = 1 << 22 // discard pause frames
	RctlPMCF         uint32 = 1 << 23 // pass MAC control frames
	RctlBSEX         uint32 = 1 << 25 // buffer size times 16
	RctlSECRC        uint32 = 1 << 26 // strip the frame check sequence
)

// RctlBSIZEMask covers both fields that choose the buffer size.
const RctlBSIZEMask = RctlBSIZE | RctlBSEX

// Bits of FCRTL and FCRTH (13.4.23, 13.4.24). The thresholds are bytes in
// multiples of 8.
const (
	FcrtlRTL  uint32 = 0xFFFF
	FcrtlXONE uint32 = 1 << 31 // send XON when below
	FcrthRTH  uint32 = 0xFFFF
	FcrthFCE  uint32 = 1 << 31 // external threshold pin
)

// Ring rules (13.4.27, 13.4.38). Hardware drops the low bits of a length
// without a complaint, so a short ring silently becomes an empty one.
const (
	RingAlign       = 128      // bytes, RDLEN and TDLEN
	RingLenMask     = 0x0FFF80 // bits of RDLEN and TDLEN that hardware keeps
	RingBaseAlign   = 16       // bytes, RDBAL and TDBAL
	DescriptorBytes = 16       // bytes, every descriptor of the family
	RingCountAlign  = RingAlign / DescriptorBytes
)

// Units of the timer registers.
const (
	DelayUnitNanos = 1024 // ns, RDTR, RADV, TIDV and TADV (13.4.30)
	ITRUnitNanos   = 256  // ns, ITR (13.4.18)
	FCTTVUnitBits  = 512  // bit times, FCTTV (13.4.12)
)

// Bits of the smaller receive, transmit and filter registers.
const (
	RdtrFPD      uint32 = 1 << 31 // write back pending descriptors now
	RxcsumPCSS   uint32 = 0xFF    // offset where the packet checksum starts
	RxcsumIPOFLD uint32 = 1 << 8  // check the IPv4 header checksum
	RxcsumTUOFLD uint32 = 1 << 9  // check the TCP or UDP checksum
	TxdmacDPP    uint32 = 1 << 0  // descriptor packet prefetching
	RahADDR      uint32 = 0xFFFF  // last two bytes of the address
	RahAV        uint32 = 1 << 31 // the entry is valid
)

// Fields of RXDCTL and TXDCTL (13.4.46, 13.4.43).
const (
	RxdctlPTHRESH       uint32 = 0x3F
	RxdctlHTHRESH       uint32 = 0x3F << 8
	RxdctlHTHRESHShift         = 8
	RxdctlWTHRESH       uint32 = 0x3F << 16
	RxdctlWTHRESHShift         = 16
	RxdctlGRAN          uint32 = 1 << 24 // thresholds count descriptors, not cache lines
	TxdctlPTHRESH       uint32 = 0x3F
	TxdctlHTHRESH       uint32 = 0x3F << 8
	TxdctlHTHRESHShift         = 8
	TxdctlWTHRESH       uint32 = 0x3F << 16
	TxdctlWTHRESHShift         = 16
	TxdctlRSV22         uint32 = 1 << 22 // reserved, to be written as one
	TxdctlGRAN          uint32 = 1 << 24
	TxdctlLWTHRESH      uint32 = 0x7F << 25 // times 8 descriptors, raises IcrTXDLOW
	TxdctlLWTHRESHShift        = 25
)

// Bits of TCTL (13.4.33).
const (
	TctlEN        uint32 = 1 << 1    // transmitter enable
	TctlPSP       uint32 = 1 << 3    // pad short packets
	TctlCT        uint32 = 0xFF << 4 // collision threshold
	TctlCTShift          = 4
	TctlCOLD      uint32 = 0x3FF << 12 // collision distance in byte times
	TctlCOLDShift        = 12
	TctlSWXOFF    uint32 = 1 << 22 // send one XOFF frame
	TctlPBE       uint32 = 1 << 23 // packet bursts
	TctlRTLC      uint32 = 1 << 24 // send again after a late collision
	TctlNRTU      uint32 = 1 << 25 // do not send again after an underrun (82544)
)

// Values the manual recommends for the collision fields of TCTL.
const (
	CollisionThreshold    = 15
	CollisionDistanceFull = 0x40  // full duplex
	CollisionDistanceHalf = 0x200 // half duplex at 1000 Mb/s
)

// Fields of TIPG (13.4.34), in byte times less a fixed part.
const (
	TipgIPGT       uint32 = 0x3FF
	TipgIPGR1      uint32 = 0x3FF << 10
	TipgIPGR1Shift        = 10
	TipgIPGR2      uint32 = 0x3FF << 20
	TipgIPGR2Shift        = 20
)

// TIPG values with which drivers of the family reach the 96 bit time gap of
// IEEE 802.3: IPGT 8 for copper and 9 for fibre, IPGR1 8, IPGR2 6.
const (
	TIPGCopper uint32 = 6<<20 | 8<<10 | 8
	TIPGFiber  uint32 = 6<<20 | 8<<10 | 9
)
