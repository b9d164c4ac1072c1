package regs

// Word numbers of the EEPROM (5.6).
const (
	EEPROMMAC          = 0x00 // three words, the lower byte of each first
	EEPROMCompat       = 0x03
	EEPROMLED          = 0x04
	EEPROMVersion      = 0x05
	EEPROMPBA          = 0x08 // two words, board assembly number
	EEPROMInit1        = 0x0A
	EEPROMSubsystem    = 0x0B
	EEPROMSubvendor    = 0x0C
	EEPROMDevice       = 0x0D
	EEPROMVendor       = 0x0E
	EEPROMInit2        = 0x0F
	EEPROMPins1        = 0x10 // software-definable pins, port B
	EEPROMInit3B       = 0x14
	EEPROMPins0        = 0x20 // software-definable pins, port A
	EEPROMInit3A       = 0x24
	EEPROMChecksum     = 0x3F
	EEPROMChecksumSpan = 0x40 // words 0x00 to 0x3F take part in the checksum
)

// EEPROMSum is what the first EEPROMChecksumSpan words add up to, modulo 65536
// (5.6).
const EEPROMSum uint16 = 0xBABA

// EEPROMSumOf adds words modulo 65536. For a sound EEPROM the first
// EEPROMChecksumSpan words give EEPROMSum.
func EEPROMSumOf(words []uint16) uint16 {
	var sum uint16
	for _, w := range words {
		sum += w
	}
	return sum
}

// EEPROMChecksumFor returns the value for word EEPROMChecksum that makes the
// checksum right, given the words before it.
func EEPROMChecksumFor(words []uint16) uint16 { return EEPROMSum - EEPROMSumOf(words) }

// EERDLayout is the layout of the EERD register (13.4.4), of which there are
// two. Which one holds must be decided by MAC type: trying one on the wrong
// chip reads garbage or waits for ever.
type EERDLayout struct {
	Start     uint32 // written to begin
	Done      uint32 // set at the end
	AddrShift uint8
	AddrWidth uint8
	DataShift uint8
}

// The two layouts: that of the 82540, 82545 and 82546 (and of QEMU), and that
// of the 82541 and 82547.
var (
	eerdClassic = EERDLayout{Start: 1 << 0, Done: 1 << 4, AddrShift: 8, AddrWidth: 8, DataShift: 16}
	eerdIGP     = EERDLayout{Start: 1 << 0, Done: 1 << 1, AddrShift: 2, AddrWidth: 14, DataShift: 16}
)

// EERDLayoutFor returns the layout for a chip. It returns false for an unknown
// one and for the 82544, where EERD is not to be used: there the EEPROM is
// clocked bit by bit through EECD.
func EERDLayoutFor(mac MACType) (EERDLayout, bool) {
	switch {
	case mac.IGP():
		return eerdIGP, true
	case mac == MACUnknown || mac == MAC82544 || mac > MAC82547Rev2:
		return EERDLayout{}, false
	}
	return eerdClassic, true
}

// Command returns the value that starts the read of a word. Bits of word that
// do not fit are dropped.
func (l EERDLayout) Command(word uint16) uint32 {
	return l.Start | uint32(word)&(1<<l.AddrWidth-1)<<l.AddrShift
}

// IsDone reports whether the read has finished.
func (l EERDLayout) IsDone(v uint32) bool { return v&l.Done != 0 }

// Addr returns the word number in a register value, as a model needs it.
func (l EERDLayout) Addr(v uint32) uint16 { return uint16(v >> l.AddrShift & (1<<l.AddrWidth - 1)) }

// Data returns the word read. It means something once IsDone.
func (l EERDLayout) Data(v uint32) uint16 { return uint16(v >> l.DataShift) }

// Reply returns the register value with which a finished read of word answers,
// as a model needs it.
func (l EERDLayout) Reply(word, data uint16) uint32 {
	return l.Command(word)&^l.Start | l.Done | uint32(data)<<l.DataShift
}
