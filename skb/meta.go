package skb

import (
	"sync/atomic"
	"unsafe"
)

// Handle names a buffer of an Arena: its index. Handles are small integers,
// so that rings, batches and free lists hold no pointers and the collector
// never looks at a packet.
type Handle uint32

// None is the handle of no buffer.
const None Handle = 0xffffffff

// Flags say what is known about a frame.
type Flags uint16

const (
	// FlagPartialChecksum: the transport checksum still has to be finished;
	// CsumStart and CsumOffset say where (a local sender on a virtual
	// interface leaves it to a device that never comes).
	FlagPartialChecksum Flags = 1 << iota
	// FlagVLAN: VLAN holds a tag that the device took out of the frame.
	FlagVLAN
	// FlagLinkMulticast: the frame came to a link-layer group address, so no
	// ICMP error may answer it (RFC 1812 section 4.3.2.7).
	FlagLinkMulticast
	// FlagLocal: this router made the packet.
	FlagLocal
)

// Meta is what the router knows about one frame: one cache line beside the
// arena. It is owned by whoever owns the buffer; only the reference count may
// be touched by several goroutines. Offsets count from the start of the
// buffer, so they survive Push and Pull.
type Meta struct {
	Data       uint16 // offset of the first byte of the frame
	Len        uint16 // bytes in the frame, without FCS
	Port       uint16 // ingress port index
	Flags      Flags
	L3         uint16 // offset of the network header
	L4         uint16 // offset of the transport header, 0 when unknown
	VLAN       uint16 // tag control information, valid with FlagVLAN
	VLANProto  uint16 // ethertype of the removed tag, valid with FlagVLAN
	CsumStart  uint16 // offset where the partial checksum begins
	CsumOffset uint16 // offset of the checksum field from CsumStart
	_          uint32
	refs       uint32 // 0 = free
	Hash       uint32 // flow hash, 0 when not computed
	Adj        uint32 // adjacency index or group word the lookup gave
	Seq        uint32 // generator's sequence number, 0 when none
	Stamp      int64  // nanoseconds of the worker's clock at reception
	_          [16]byte
}

// MetaSize is the size of Meta in bytes: one cache line.
const MetaSize = 64

// The array index is constant only when the size is exactly right.
var _ = [1]struct{}{}[unsafe.Sizeof(Meta{})-MetaSize]

// Refs is the number of references to the buffer; 0 means free.
func (m *Meta) Refs() uint32 { return atomic.LoadUint32(&m.refs) }
