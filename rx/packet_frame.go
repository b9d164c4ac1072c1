package rx

import (
	"encoding/binary"
	"hash/crc32"

	"golang.org/x/sys/unix"

	"gorouter/internal/inet"
	"gorouter/internal/tpacket"
	"gorouter/skb"
)

// maxTags is how many VLAN tags a frame may carry beyond the MTU.
const maxTags = 2

// rawFrame is a filled slot as the kernel left it.
type rawFrame struct {
	vnet      []byte // virtio_net_hdr, host byte order
	data      []byte // from the Ethernet header on, what fitted into the slot
	wire      uint32 // bytes that the frame really has
	status    uint32 // TP_STATUS_…
	tci, tpid uint16 // the tag that was taken out, when status says so
}

// frame is a received frame that is still in its slot.
type frame struct {
	data   []byte
	tagLen int // 4 when a tag has to be put back behind the addresses
	tag    uint32

	partial    bool // the transport checksum is unfinished
	csumStart  int  // in data
	csumOffset int  // from csumStart
	gso        uint8
	gsoSize    int // payload bytes of each segment
}

// parseFrame reads the slot's metadata and tells a frame that cannot be taken.
// max is the longest untagged frame. Only a frame that is marked as several
// segments is called a super-frame.
func parseFrame(r rawFrame, max int, segment bool) (frame, skb.Reason) {
	vnet := r.vnet[:tpacket.VnetSize]
	f := frame{data: r.data}
	if r.status&unix.TP_STATUS_VLAN_VALID != 0 {
		// The kernel took the tag out. What stood on the wire is put back, so
		// that the frame of a VLAN is never taken for an untagged one.
		tpid := uint32(inet.EtherVLAN)
		if r.status&unix.TP_STATUS_VLAN_TPID_VALID != 0 {
			tpid = uint32(r.tpid)
		}
		f.tagLen, f.tag = inet.VLANTagLen, tpid<<16|uint32(r.tci)
	}
	f.partial = vnet[0]&unix.VIRTIO_NET_HDR_F_NEEDS_CSUM != 0
	f.csumStart = int(binary.NativeEndian.Uint16(vnet[6:]))
	f.csumOffset = int(binary.NativeEndian.Uint16(vnet[8:]))
	f.gso = vnet[1] &^ unix.VIRTIO_NET_HDR_GSO_ECN
	f.gsoSize = int(binary.NativeEndian.Uint16(vnet[4:]))

	if len(r.data) < inet.EthHeaderLen {
		return f, skb.RxRunt
	}
	// Both lengths are looked at, so that nothing hangs on the kernel's saying
	// that the shorter one is not the frame's.
	n := int(r.wire)
	if n < len(r.data) {
		n = len(r.data)
	}
	long := n > max && n > f.limit(max)
	switch {
	case long && f.gso == unix.VIRTIO_NET_HDR_GSO_NONE:
		return f, skb.RxTooLong
	case n > len(r.data) && f.gso == unix.VIRTIO_NET_HDR_GSO_NONE:
		return f, skb.RxTruncated
	case n > len(r.data):
		return f, skb.RxSuperFrame
	case f.gso != unix.VIRTIO_NET_HDR_GSO_NONE && segment:
		// To be cut, whatever its length.
	case long:
		return f, skb.RxSuperFrame
	case f.gso == unix.VIRTIO_NET_HDR_GSO_TCPV4, f.gso == unix.VIRTIO_NET_HDR_GSO_TCPV6:
		// Fits as it is, and a TCP receiver does not mind where the sender
		// would have cut.
		f.gso = unix.VIRTIO_NET_HDR_GSO_NONE
	case f.gso != unix.VIRTIO_NET_HDR_GSO_NONE:
		// Several datagrams in one frame.
		return f, skb.RxSuperFrame
	}
	return f, skb.ReasonNone
}

// limit is the longest that data may be: max, and four bytes for each tag
// that stands in it, as long as not more than maxTags come together.
func (f *frame) limit(max int) int {
	return max + min(f.inlineTags(), maxTags-f.tagLen/inet.VLANTagLen)*inet.VLANTagLen
}

// inlineTags is the number of tags that stand in data, at most maxTags.
func (f *frame) inlineTags() int {
	n := 0
	for n < maxTags && isTag(f.data, n*inet.VLANTagLen) {
		n++
	}
	return n
}

// isTag reports whether a VLAN tag begins so many bytes behind the addresses.
func isTag(data []byte, behind int) bool {
	at := 2*len(inet.MAC{}) + behind
	if len(data) < at+2 {
		return false
	}
	t := binary.BigEndian.Uint16(data[at:])
	return t == inet.EtherVLAN || t == inet.EtherQinQ
}

// copyTo writes the frame as it was on the wire. dst has room for data and
// the tag.
func (f *frame) copyTo(dst []byte) { f.copyPart(dst, len(f.data)) }

// copyPart is copyTo for the first n bytes of data, the Ethernet header at
// least.
func (f *frame) copyPart(dst []byte, n int) {
	const addresses = 2 * len(inet.MAC{})
	copy(dst, f.data[:addresses])
	if f.tagLen != 0 {
		binary.BigEndian.PutUint32(dst[addresses:], f.tag)
	}
	copy(dst[addresses+f.tagLen:], f.data[addresses:n])
}

// Offsets of the checksum field in the transport headers that differ in how
// the checksum ends.
const (
	csumOffsetUDP  = 6
	csumOffsetSCTP = 8
)

// castagnoli is the polynomial of SCTP (RFC 9260 appendix A).
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// completeChecksum finishes the transport checksum that a local sender left to
// a device. The field at start+offset holds the sum of the pseudo header; the
// checksum covers everything from start to the end. It reports false, and
// changes nothing, when the offsets lie outside the frame.
func completeChecksum(b []byte, start, offset int) bool {
	if start < inet.EthHeaderLen || offset < 0 || start > len(b) || len(b)-start < offset+2 {
		return false
	}
	seg := b[start:]
	if offset == csumOffsetSCTP {
		// The only protocol of these with a CRC, and the only one with its
		// checksum there.
		if len(seg) < offset+4 {
			return false
		}
		binary.LittleEndian.PutUint32(seg[offset:], 0)
		binary.LittleEndian.PutUint32(seg[offset:], crc32.Checksum(seg, castagnoli))
		return true
	}
	sum := inet.Checksum(seg)
	if sum == 0 && offset == csumOffsetUDP {
		sum = 0xffff // zero would mean "no checksum" (RFC 768)
	}
	binary.BigEndian.PutUint16(seg[offset:], sum)
	return true
}
