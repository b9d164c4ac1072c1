package rx

import "unsafe"

// descriptor is the legacy receive descriptor of the 8254x (section 3.2.3):
// the buffer's address, then one word with everything the device reports.
// Software reads that word once and decides on what it got, since the device
// may be writing the next one.
type descriptor struct {
	addr uint64
	word uint64
}

// descSize is the size of a descriptor in bytes.
const descSize = 16

var _ = [1]struct{}{}[unsafe.Sizeof(descriptor{})-descSize]

// Fields of the report word (sections 3.2.3.1 to 3.2.3.3).
const (
	DescLengthMask = 0xffff
	DescStatusDD   = 1 << 32 // the device is done with the descriptor
	DescStatusEOP  = 1 << 33 // last descriptor of its frame
	DescErrorCE    = 1 << 40 // CRC or alignment error
	DescErrorSE    = 1 << 41 // symbol error
	DescErrorSEQ   = 1 << 42 // sequence error
	DescErrorCXE   = 1 << 44 // carrier extension error
	DescErrorRXE   = 1 << 47 // receive data error

	// descErrorFrame are the errors that spoil the frame. The two checksum
	// errors (TCPE, IPE) are not among them: the stack checks for itself.
	descErrorFrame = DescErrorCE | DescErrorSE | DescErrorSEQ | DescErrorCXE | DescErrorRXE
)
