package tx

import "unsafe"

// descriptor is the legacy transmit descriptor of the 8254x (section 3.3.3):
// the buffer's address, then one word of length, command and status.
type descriptor struct {
	addr uint64
	word uint64
}

const descSize = 16

var _ = [1]struct{}{}[unsafe.Sizeof(descriptor{})-descSize]

// Fields of the command word (sections 3.3.3.1 and 3.3.3.2).
const (
	DescLengthMask = 0xffff
	DescCmdEOP     = 1 << 24 // last descriptor of the frame
	DescCmdIFCS    = 1 << 25 // the device appends the frame check sequence
	DescCmdIC      = 1 << 26 // insert a checksum at CSO
	DescCmdRS      = 1 << 27 // report status: write DD back
	DescCmdRPS     = 1 << 28 // report packet sent (82544 and 82542)
	DescCmdDEXT    = 1 << 29 // extended descriptor
	DescCmdVLE     = 1 << 30 // insert the VLAN tag of the special field
	DescCmdIDE     = 1 << 31 // interrupt delayed by TIDV
	DescStatusDD   = 1 << 32 // the device is done
)

// MaxLegacy is the longest buffer of a legacy descriptor in bytes
// (section 3.3.3: 16,288).
const MaxLegacy = 16288
