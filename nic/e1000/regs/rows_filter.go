package regs

var wakeFields = []Field{
	bit("LNKC", 0, "link status change"),
	bit("MAG", 1, "magic packet"),
	bit("EX", 2, "directed exact"),
	bit("MC", 3, "directed multicast"),
	bit("BC", 4, "broadcast"),
	bit("ARP", 5, "ARP request"),
	bit("IPV4", 6, "directed IPv4"),
	bit("IPV6", 7, "directed IPv6"),
	bit("FLX0", 16, "flexible filter 0"),
	bit("FLX1", 17, "flexible filter 1"),
	bit("FLX2", 18, "flexible filter 2"),
	bit("FLX3", 19, "flexible filter 3"),
}

var filterRows = []Reg{
	{Name: "MTA", Offset: MTA, Count: MTACount, Stride: 4, Mode: RW, Section: "13.5.1", Help: "multicast hash table"},
	{Name: "RAL", Offset: RAL, Count: RARCount, Stride: RARStride, Mode: RW, Section: "13.5.2", Help: "receive address, first four bytes"},
	{Name: "RAH", Offset: RAH, Count: RARCount, Stride: RARStride, Mode: RW, Section: "13.5.3", Help: "receive address, last two bytes", Fields: []Field{
		hexBits("ADDR", 15, 0, "last two bytes"),
		bits("AS", 17, 16, "address the entry is compared with", Value{1, "source"}),
		bit("AV", 31, "valid"),
	}},
	{Name: "VFTA", Offset: VFTA, Count: VFTACount, Stride: 4, Mode: RW, Section: "13.5.4", Help: "VLAN filter table"},
	{Name: "WUC", Offset: WUC, Mode: RW, Section: "13.6.1", Help: "wake-up control", Fields: []Field{
		bit("APME", 0, "advanced power management"),
		bit("PMEEN", 1, "PME enabled"),
		bit("PMESTATUS", 2, "PME raised"),
		bit("APMPME", 3, "raise PME on wake-up"),
	}},
	{Name: "WUFC", Offset: WUFC, Mode: RW, Section: "13.6.2", Help: "wake-up filters", Fields: wakeFields},
	{Name: "WUS", Offset: WUS, Mode: RO, Section: "13.6.3", Help: "wake-up status", Fields: wakeFields},
	{Name: "MANC", Offset: MANC, Mode: RW, Help: "management control", Fields: []Field{
		bit("SMBUSEN", 0, "SMBus"),
		bit("ASFEN", 1, "alert standard format"),
		bit("RONFORCE", 2, "reset on forced TCO"),
		bit("RMCPEN", 8, "RMCP port 623"),
		bit("RMCP298EN", 9, "RMCP port 664"),
		bit("IPV4EN", 10, "IPv4 filter"),
		bit("IPV6EN", 11, "IPv6 filter"),
		bit("SNAPEN", 12, "LLC/SNAP accepted"),
		bit("ARPEN", 13, "ARP requests answered by the chip"),
		bit("NEIGHBOREN", 14, "neighbour discovery filter"),
		bit("ARPRESEN", 15, "ARP response filter"),
		bit("TCORESET", 16, "TCO reset happened"),
		bit("RCVTCOEN", 17, "TCO packets received"),
		bit("REPORT", 18, "status reporting"),
		bit("RCVALL", 19, "receive all"),
		bit("ENMACFILTER", 20, "MAC address filter"),
		bit("ENMNG2HOST", 21, "management packets go to the host"),
		bit("ENIPFILTER", 22, "IP address filter"),
		bit("ENXSUMFILTER", 23, "checksum filter"),
		bit("BREN", 24, "broadcast filter"),
	}},
}

func fifoFields(width uint8) []Field { return []Field{bits("PTR", width-1, 0, "8-byte units")} }

var fifoCountFields = []Field{bits("COUNT", 12, 0, "packets")}

var diagnosticRows = []Reg{
	{Name: "RDFH", Offset: RDFH, Mode: RW, Section: "13.8", Help: "receive buffer head", Fields: fifoFields(13)},
	{Name: "RDFT", Offset: RDFT, Mode: RW, Section: "13.8", Help: "receive buffer tail", Fields: fifoFields(13)},
	{Name: "RDFHS", Offset: RDFHS, Mode: RW, Section: "13.8", Help: "receive buffer head, saved", Fields: fifoFields(13)},
	{Name: "RDFTS", Offset: RDFTS, Mode: RW, Section: "13.8", Help: "receive buffer tail, saved", Fields: fifoFields(13)},
	{Name: "RDFPC", Offset: RDFPC, Mode: RW, Section: "13.8", Help: "packets in the receive buffer", Fields: fifoCountFields},
	{Name: "TDFH", Offset: TDFH, Mode: RW, Section: "13.8", Help: "transmit buffer head", Fields: fifoFields(11)},
	{Name: "TDFT", Offset: TDFT, Mode: RW, Section: "13.8", Help: "transmit buffer tail", Fields: fifoFields(11)},
	{Name: "TDFHS", Offset: TDFHS, Mode: RW, Section: "13.8", Help: "transmit buffer head, saved", Fields: fifoFields(13)},
	{Name: "TDFTS", Offset: TDFTS, Mode: RW, Section: "13.8", Help: "transmit buffer tail, saved", Fields: fifoFields(13)},
	{Name: "TDFPC", Offset: TDFPC, Mode: RW, Section: "13.8", Help: "packets in the transmit buffer", Fields: fifoCountFields},
}
