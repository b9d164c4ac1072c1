package model

import (
	"sync/atomic"
	"unsafe"
)

// desc is a descriptor of either ring as the chip sees it: an address and one
// word with all the rest (3.2.3, 3.3.3).
type desc struct {
	addr uint64
	word uint64
}

// The bits of the second word are written down here once more, from the
// manual and not from the driver's packages, so that a bit which is wrong
// there does not agree with itself here.
const (
	descBytes = 16

	// Receive (3.2.3.1 to 3.2.3.3).
	rxSumShift   = 16
	rxDD         = uint64(1) << 32
	rxEOP        = uint64(1) << 33
	rxIXSM       = uint64(1) << 34 // checksum results mean nothing
	rxVP         = uint64(1) << 35 // a VLAN tag was stripped
	rxTCPCS      = uint64(1) << 37
	rxIPCS       = uint64(1) << 38
	rxPIF        = uint64(1) << 39 // only the hash filter passed it
	rxStatus     = uint64(0xFF) << 32
	rxErrorShift = 40
	rxTCPE       = uint64(1) << 45
	rxIPE        = uint64(1) << 46
	rxVLANShift  = 48

	// Transmit (3.3.3.1, 3.3.3.2).
	txLength    = uint64(0xFFFF)
	txCSOShift  = 16
	txEOP       = uint64(1) << 24
	txIFCS      = uint64(1) << 25
	txIC        = uint64(1) << 26
	txRS        = uint64(1) << 27
	txRPS       = uint64(1) << 28
	txDEXT      = uint64(1) << 29
	txVLE       = uint64(1) << 30
	txIDE       = uint64(1) << 31
	txDD        = uint64(1) << 32
	txStatus    = uint64(0xFF) << 32
	txCSSShift  = 40
	txVLANShift = 48
)

var _ = [1]struct{}{}[unsafe.Sizeof(desc{})-descBytes]

// load takes a descriptor. The second word comes first: it is the one that
// software publishes with.
func (d *desc) load() desc {
	w := atomic.LoadUint64(&d.word)
	return desc{addr: atomic.LoadUint64(&d.addr), word: w}
}
