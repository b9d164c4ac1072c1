package regs

var speedValues = []Value{{0, "10"}, {1, "100"}, {2, "1000"}}

var causeFields = []Field{
	bit("TXDW", 0, "transmit descriptor written back"),
	bit("TXQE", 1, "transmit queue empty"),
	bit("LSC", 2, "link status change"),
	bit("RXSEQ", 3, "receive sequence error"),
	bit("RXDMT0", 4, "receive descriptors below the RDMTS threshold"),
	bit("RXO", 6, "receiver overrun"),
	bit("RXT0", 7, "receive timer expired"),
	bit("MDAC", 9, "MDIC access complete"),
	bit("RXCFG", 10, "receiving /C/ ordered sets"),
	bit("GPI4", 11, "general-purpose pin 4 (82544)"),
	bit("PHYINT", 12, "PHY interrupt, or general-purpose pin 5"),
	bit("GPI6", 13, "general-purpose pin 6"),
	bit("GPI7", 14, "general-purpose pin 7"),
	bit("TXDLOW", 15, "transmit descriptors below TXDCTL.LWTHRESH"),
	bit("SRPD", 16, "small packet received"),
}

var ctrlFields = []Field{
	bit("FD", 0, "full duplex when forced"),
	bit("LRST", 3, "link reset (TBI, SerDes)"),
	bit("ASDE", 5, "detect the speed from the PHY"),
	bit("SLU", 6, "set link up"),
	bit("ILOS", 7, "invert loss of signal"),
	{Name: "SPEED", Shift: 8, Width: 2, Help: "speed when forced, Mb/s",
		Values: speedValues[1:], AltBit: CtrlFRCSPD, AltValues: speedValues},
	bit("FRCSPD", 11, "force speed"),
	bit("FRCDPLX", 12, "force duplex"),
	bit("SDP0DATA", 18, "software-definable pin 0"),
	bit("SDP1DATA", 19, "software-definable pin 1"),
	bit("ADVD3WUC", 20, "D3cold wake-up capability advertised"),
	bit("ENPHYPM", 21, "PHY power management"),
	bit("SDP0DIR", 22, "pin 0 is an output"),
	bit("SDP1DIR", 23, "pin 1 is an output"),
	bit("SDP2DIR", 24, "pin 2 is an output (82544)"),
	bit("SDP3DIR", 25, "pin 3 is an output (82544)"),
	bit("RST", 26, "device reset, clears itself"),
	bit("RFCE", 27, "obey received pause frames"),
	bit("TFCE", 28, "send pause frames"),
	bit("VME", 30, "strip and insert VLAN tags"),
	bit("PHYRST", 31, "PHY held in reset"),
}

var ledModes = []Value{
	{0, "link10/1000"}, {1, "link100/1000"}, {2, "link"}, {3, "activity"}, {4, "link/activity"},
	{5, "link10"}, {6, "link100"}, {7, "link1000"}, {8, "pci-x"}, {9, "full-duplex"}, {10, "collision"},
	{11, "bus-speed"}, {12, "bus-size"}, {13, "paused"}, {14, "on"}, {15, "off"},
}

func ledFields() []Field {
	var out []Field
	for _, led := range []struct {
		name string
		at   uint8
	}{{"LED0", 0}, {"LED1", 8}, {"LED2", 16}, {"LED3", 24}} {
		out = append(out,
			bits(led.name, led.at+3, led.at, "what lights the LED", ledModes...),
			bit(led.name+"RATE", led.at+5, "blink rate"),
			bit(led.name+"IVRT", led.at+6, "inverted"),
			bit(led.name+"BLINK", led.at+7, "blinks"))
	}
	return out
}

var controlRows = []Reg{
	{Name: "CTRL", Offset: CTRL, Mode: RW, Section: "13.4.1", Help: "device control", Fields: ctrlFields},
	{Name: "CTRLDUP", Offset: CTRLDUP, Mode: RW, Section: "13.4.1", Help: "device control, second address", Fields: ctrlFields},
	{Name: "STATUS", Offset: STATUS, Mode: RO, Section: "13.4.2", Help: "device status", Fields: []Field{
		bit("FD", 0, "full duplex"),
		bit("LU", 1, "link up"),
		bits("FUNC", 3, 2, "function number of a dual-port chip"),
		bit("TXOFF", 4, "paused by the link partner"),
		bit("TBIMODE", 5, "fibre or SerDes"),
		bits("SPEED", 7, 6, "link speed, Mb/s", speedValues...),
		bits("ASDV", 9, 8, "speed found by detection, Mb/s", speedValues[1:]...),
		bit("MTXCKOK", 10, "transmit clock runs (82544)"),
		bit("PCI66", 11, "66 MHz bus"),
		bit("BUS64", 12, "64-bit bus"),
		bit("PCIXMODE", 13, "PCI-X bus"),
		{Name: "PCIXSPD", Shift: 14, Width: 2, Help: "PCI-X clock, MHz at most",
			AltBit: StatusPCIXMODE, AltValues: []Value{{0, "66"}, {1, "100"}, {2, "133"}}},
	}},
	{Name: "EECD", Offset: EECD, Mode: RW, Section: "13.4.3", Help: "EEPROM and flash control", Fields: []Field{
		bit("SK", 0, "EEPROM clock"),
		bit("CS", 1, "EEPROM chip select"),
		bit("DI", 2, "data into the EEPROM"),
		bit("DO", 3, "data out of the EEPROM"),
		bits("FWE", 5, 4, "flash writes", Value{1, "off"}, Value{2, "on"}),
		bit("REQ", 6, "software asks for the EEPROM"),
		bit("GNT", 7, "software owns the EEPROM"),
		bit("PRES", 8, "EEPROM present"),
		bit("SIZE", 9, "256 words instead of 64"),
		bit("ADDRBITS", 10, "long addresses"),
		bit("TYPE", 13, "SPI instead of Microwire"),
	}},
	{Name: "EERD", Offset: EERD, Mode: RW, Section: "13.4.4", Help: "EEPROM read",
		Fields: []Field{
			bit("START", 0, "start a read"),
			bit("DONE", 4, "read finished"),
			bits("ADDR", 15, 8, "word number"),
			hexBits("DATA", 31, 16, "the word"),
		},
		IGPFields: []Field{
			bit("START", 0, "start a read"),
			bit("DONE", 1, "read finished"),
			bits("ADDR", 15, 2, "word number"),
			hexBits("DATA", 31, 16, "the word"),
		}},
	{Name: "CTRLEXT", Offset: CTRLEXT, Mode: RW, Section: "13.4.6", Help: "extended device control", Fields: []Field{
		bits("GPIEN", 3, 0, "pins 4..7 raise interrupts"),
		bit("SDP4DATA", 4, "pin 4"),
		bit("SDP5DATA", 5, "pin 5, or the PHY interrupt line"),
		bit("SDP6DATA", 6, "pin 6"),
		bit("SDP7DATA", 7, "pin 7"),
		bit("SDP4DIR", 8, "pin 4 is an output"),
		bit("SDP5DIR", 9, "pin 5 is an output"),
		bit("SDP6DIR", 10, "pin 6 is an output"),
		bit("SDP7DIR", 11, "pin 7 is an output"),
		bit("ASDCHK", 12, "detect the speed once"),
		bit("EERST", 13, "reload the EEPROM"),
		bit("IPS", 14, "invert power state"),
		bit("SPDBYPS", 15, "speed select bypass"),
		bit("RODIS", 17, "no relaxed ordering"),
		bits("LINKMODE", 23, 22, "link mode", Value{3, "TBI"}),
	}},
	{Name: "FLA", Offset: FLA, Mode: RW, Section: "13.4.5", Help: "flash access (82541, 82547)"},
	{Name: "MDIC", Offset: MDIC, Mode: RW, Section: "13.4.7", Help: "PHY register access", Fields: []Field{
		hexBits("DATA", 15, 0, "PHY register value"),
		bits("REGADD", 20, 16, "PHY register number"),
		bits("PHYADD", 25, 21, "PHY address, 1 for the internal one"),
		bits("OP", 27, 26, "operation", Value{1, "write"}, Value{2, "read"}),
		bit("READY", 28, "access finished"),
		bit("INTEN", 29, "interrupt at the end"),
		bit("ERROR", 30, "access failed"),
	}},
	{Name: "FCAL", Offset: FCAL, Mode: RW, Section: "13.4.8", Help: "pause frame address, first four bytes"},
	{Name: "FCAH", Offset: FCAH, Mode: RW, Section: "13.4.9", Help: "pause frame address, last two bytes"},
	{Name: "FCT", Offset: FCT, Mode: RW, Section: "13.4.10", Help: "pause frame Ethernet type"},
	{Name: "VET", Offset: VET, Mode: RW, Section: "13.4.11", Help: "VLAN Ethernet type"},
	{Name: "ICR", Offset: ICR, Mode: RCW1C, Section: "13.4.17", Help: "interrupt cause", Fields: causeFields},
	{Name: "ITR", Offset: ITR, Mode: RW, HasReset: true, Section: "13.4.18", Help: "interrupt throttle", Fields: []Field{
		bits("INTERVAL", 15, 0, "shortest gap between interrupts, 256 ns"),
	}},
	{Name: "ICS", Offset: ICS, Mode: WO, Section: "13.4.19", Help: "interrupt cause set", Fields: causeFields},
	{Name: "IMS", Offset: IMS, Mode: RWS, HasReset: true, Section: "13.4.20", Help: "interrupt mask", Fields: causeFields},
	{Name: "IMC", Offset: IMC, Mode: WO, Section: "13.4.21", Help: "interrupt mask clear", Fields: causeFields},
	{Name: "FCTTV", Offset: FCTTV, Mode: RW, Section: "13.4.12", Help: "pause time sent", Fields: []Field{
		bits("TTV", 15, 0, "512 bit times"),
	}},
	{Name: "TXCW", Offset: TXCW, Mode: RW, Section: "13.4.13", Help: "link word sent (fibre)", Fields: []Field{
		bit("FD", 5, "full duplex"),
		bit("HD", 6, "half duplex"),
		bits("PAUSE", 8, 7, "pause ability"),
		bits("RF", 13, 12, "remote fault"),
		bit("NP", 15, "next page"),
		bit("TXCONFIG", 30, "send the word until cleared"),
		bit("ANE", 31, "autonegotiation"),
	}},
	{Name: "RXCW", Offset: RXCW, Mode: RO, Section: "13.4.14", Help: "link word received (fibre)", Fields: []Field{
		hexBits("WORD", 15, 0, "word of the link partner"),
		bit("NC", 26, "no carrier"),
		bit("IV", 27, "invalid symbol"),
		bit("CC", 28, "word changed"),
		bit("C", 29, "receiving /C/ ordered sets"),
		bit("SYNCH", 30, "synchronised"),
		bit("ANC", 31, "autonegotiation complete"),
	}},
	{Name: "LEDCTL", Offset: LEDCTL, Mode: RW, Section: "13.4.15", Help: "LED control", Fields: ledFields()},
	{Name: "PBA", Offset: PBA, Mode: RW, Section: "13.4.16", Help: "packet buffer split", Fields: []Field{
		bits("RXA", 15, 0, "receive part, KiB"),
		bits("TXA", 31, 16, "transmit part, KiB"),
	}},
	{Name: "FCRTL", Offset: FCRTL, Mode: RW, HasReset: true, Section: "13.4.23", Help: "flow control low threshold", Fields: []Field{
		bits("RTL", 15, 0, "bytes, multiple of 8"),
		bit("XONE", 31, "send XON when below"),
	}},
	{Name: "FCRTH", Offset: FCRTH, Mode: RW, HasReset: true, Section: "13.4.24", Help: "flow control high threshold", Fields: []Field{
		bits("RTH", 15, 0, "bytes, multiple of 8"),
		bit("FCE", 31, "external threshold pin"),
	}},
}
