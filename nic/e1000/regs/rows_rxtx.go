package regs

func thresholdFields(extra ...Field) []Field {
	return append([]Field{
		bits("PTHRESH", 5, 0, "prefetch threshold"),
		bits("HTHRESH", 13, 8, "host threshold"),
		bits("WTHRESH", 21, 16, "write-back threshold"),
	}, extra...)
}

func indexFields(help string) []Field { return []Field{bits("INDEX", 15, 0, help)} }

func delayFields(extra ...Field) []Field {
	return append([]Field{bits("DELAY", 15, 0, "1.024 us")}, extra...)
}

var ringLenFields = []Field{bits("LEN", 19, 0, "bytes, multiple of 128")}

var receiveRows = []Reg{
	{Name: "RCTL", Offset: RCTL, Mode: RW, HasReset: true, Section: "13.4.22", Help: "receive control", Fields: []Field{
		bit("EN", 1, "receiver enabled"),
		bit("SBP", 2, "store bad packets"),
		bit("UPE", 3, "unicast promiscuous"),
		bit("MPE", 4, "multicast promiscuous"),
		bit("LPE", 5, "accept frames above 1522 bytes"),
		bits("LBM", 7, 6, "loopback", Value{1, "MAC"}, Value{3, "PHY"}),
		bits("RDMTS", 9, 8, "free part of the ring that raises RXDMT0",
			Value{0, "half"}, Value{1, "quarter"}, Value{2, "eighth"}),
		bits("MO", 13, 12, "address bits that index MTA",
			Value{0, "47:36"}, Value{1, "46:35"}, Value{2, "45:34"}, Value{3, "43:32"}),
		bit("BAM", 15, "accept broadcast"),
		{Name: "BSIZE", Shift: 16, Width: 2, Help: "buffer size, bytes",
			Values: []Value{{0, "2048"}, {1, "1024"}, {2, "512"}, {3, "256"}},
			AltBit: RctlBSEX, AltValues: []Value{{1, "16384"}, {2, "8192"}, {3, "4096"}}},
		bit("VFE", 18, "filter by VFTA"),
		bit("CFIEN", 19, "filter by the CFI bit"),
		bit("CFI", 20, "CFI value that is accepted"),
		bit("DPF", 22, "discard pause frames"),
		bit("PMCF", 23, "pass MAC control frames"),
		bit("BSEX", 25, "buffer size times 16"),
		bit("SECRC", 26, "strip the frame check sequence"),
	}},
	{Name: "RDBAL", Offset: RDBAL, Mode: RW, Section: "13.4.25", Help: "receive ring address, low half"},
	{Name: "RDBAH", Offset: RDBAH, Mode: RW, Section: "13.4.26", Help: "receive ring address, high half"},
	{Name: "RDLEN", Offset: RDLEN, Mode: RW, HasReset: true, Section: "13.4.27", Help: "receive ring length", Fields: ringLenFields},
	{Name: "RDH", Offset: RDH, Mode: RW, HasReset: true, Section: "13.4.28", Help: "receive head", Fields: indexFields("next descriptor hardware uses")},
	{Name: "RDT", Offset: RDT, Mode: RW, HasReset: true, Section: "13.4.29", Help: "receive tail", Fields: indexFields("one past the last descriptor of hardware")},
	{Name: "RDTR", Offset: RDTR, Mode: RW, HasReset: true, Section: "13.4.30", Help: "receive interrupt delay", Fields: delayFields(
		bit("FPD", 31, "write back pending descriptors, clears itself"))},
	{Name: "RXDCTL", Offset: RXDCTL, Mode: RW, Section: "13.4.46", Help: "receive descriptor control", Fields: thresholdFields(
		bit("GRAN", 24, "thresholds count descriptors"))},
	{Name: "RADV", Offset: RADV, Mode: RW, HasReset: true, Section: "13.4.31", Help: "receive interrupt absolute delay", Fields: delayFields()},
	{Name: "RSRPD", Offset: RSRPD, Mode: RW, Section: "13.4.32", Help: "small packet detection", Fields: []Field{
		bits("SIZE", 11, 0, "largest small packet, bytes"),
	}},
	{Name: "RXCSUM", Offset: RXCSUM, Mode: RW, Section: "13.4.47", Help: "receive checksum control", Fields: []Field{
		bits("PCSS", 7, 0, "where the packet checksum starts, bytes"),
		bit("IPOFLD", 8, "check IPv4 headers"),
		bit("TUOFLD", 9, "check TCP and UDP"),
		bit("IPV6OFLD", 10, "check IPv6 payloads"),
	}},
}

var transmitRows = []Reg{
	{Name: "TCTL", Offset: TCTL, Mode: RW, Section: "13.4.33", Help: "transmit control", Fields: []Field{
		bit("EN", 1, "transmitter enabled"),
		bit("PSP", 3, "pad short packets"),
		bits("CT", 11, 4, "collision threshold"),
		bits("COLD", 21, 12, "collision distance, byte times"),
		bit("SWXOFF", 22, "send one XOFF"),
		bit("PBE", 23, "packet bursts"),
		bit("RTLC", 24, "send again after a late collision"),
		bit("NRTU", 25, "do not send again after an underrun"),
	}},
	{Name: "TIPG", Offset: TIPG, Mode: RW, Section: "13.4.34", Help: "inter-packet gap", Fields: []Field{
		bits("IPGT", 9, 0, "back to back"),
		bits("IPGR1", 19, 10, "half duplex, first part"),
		bits("IPGR2", 29, 20, "half duplex, whole"),
	}},
	{Name: "AIT", Offset: AIT, Mode: RW, HasReset: true, Section: "13.4.35", Help: "adaptive inter-frame spacing", Fields: []Field{
		bits("AIFS", 15, 0, "extra gap, byte times"),
	}},
	{Name: "TXDMAC", Offset: TXDMAC, Mode: RW, Section: "13.4.42", Help: "transmit DMA control", Fields: []Field{
		bit("DPP", 0, "packet prefetching"),
	}},
	{Name: "TDBAL", Offset: TDBAL, Mode: RW, Section: "13.4.36", Help: "transmit ring address, low half"},
	{Name: "TDBAH", Offset: TDBAH, Mode: RW, Section: "13.4.37", Help: "transmit ring address, high half"},
	{Name: "TDLEN", Offset: TDLEN, Mode: RW, HasReset: true, Section: "13.4.38", Help: "transmit ring length", Fields: ringLenFields},
	{Name: "TDH", Offset: TDH, Mode: RW, HasReset: true, Section: "13.4.39", Help: "transmit head", Fields: indexFields("next descriptor hardware fetches")},
	{Name: "TDT", Offset: TDT, Mode: RW, HasReset: true, Section: "13.4.40", Help: "transmit tail", Fields: indexFields("one past the last descriptor to send")},
	{Name: "TIDV", Offset: TIDV, Mode: RW, Section: "13.4.41", Help: "transmit interrupt delay", Fields: delayFields()},
	{Name: "TXDCTL", Offset: TXDCTL, Mode: RW, Section: "13.4.43", Help: "transmit descriptor control", Fields: thresholdFields(
		bit("RSV22", 22, "reserved, written as one"),
		bit("GRAN", 24, "thresholds count descriptors"),
		bits("LWTHRESH", 31, 25, "low threshold, 8 descriptors"))},
	{Name: "TADV", Offset: TADV, Mode: RW, Section: "13.4.44", Help: "transmit interrupt absolute delay", Fields: delayFields()},
	{Name: "TSPMT", Offset: TSPMT, Mode: RW, Section: "13.4.45", Help: "segmentation padding and threshold", Fields: []Field{
		bits("TSMT", 15, 0, "minimum threshold, bytes"),
		bits("TSPBP", 31, 16, "packet buffer padding, bytes"),
	}},
}
