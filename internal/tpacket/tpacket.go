// Package tpacket has the layout of the kernel's version 2 packet rings
// (TPACKET_V2, packet(7)), which the receive and transmit halves of an
// AF_PACKET port share. Version 3 is left out on purpose: its block time-out
// delays frames by milliseconds.
package tpacket

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Header is the kernel's header at the front of every slot. Status is the word
// over which kernel and program hand the slot to each other: it is loaded and
// stored atomically, and everything else in the slot belongs to whom it names.
type Header = unix.Tpacket2Hdr

// HeaderSize is the size of Header, which is also where the kernel keeps the
// sender's link-layer address in a receive slot, and where it looks for the
// frame in a transmit slot.
const HeaderSize = unix.SizeofTpacket2Hdr

// The offsets are constants of the kernel's interface; an array index that is
// out of range stops the build when they differ.
var (
	_ = [1]struct{}{}[unsafe.Offsetof(Header{}.Status)]
	_ = [1]struct{}{}[unsafe.Offsetof(Header{}.Vlan_tci)-24]
	_ = [1]struct{}{}[unsafe.Sizeof(Header{})-HeaderSize]
)

// VnetSize is the size of the virtio_net_hdr that precedes a received frame
// when PACKET_VNET_HDR is on: it says where an unfinished checksum lies and
// how a super-frame is to be cut.
const VnetSize = 10

// RxOverhead is what the kernel needs in a receive slot in front of the IP
// header: header and address, the virtio header, the Ethernet header and its
// alignment (tpacket_rcv).
const RxOverhead = (HeaderSize+unix.SizeofSockaddrLinklayer+16+15)&^15 + VnetSize

// TxOverhead is what precedes a frame in a transmit slot.
const TxOverhead = HeaderSize

// PacketTypeOffset is where in a receive slot the kind of the frame stands
// (sll_pkttype of the address): PACKET_OUTGOING marks the echo of one that
// left by the interface.
const PacketTypeOffset = HeaderSize + 10

// slotsPerBlock divides every permitted ring size (rx.RingStep, tx.RingStep).
const slotsPerBlock = 8

// Layout is the geometry of one ring. The slots follow each other without a
// gap: each block holds exactly slotsPerBlock of them.
type Layout struct {
	Slots    int // a multiple of 8
	SlotSize int // bytes from one slot to the next
}

// NewLayout sizes a ring of so many slots whose largest use is need bytes,
// headers included.
func NewLayout(slots, need int) Layout {
	// A block is a whole number of pages, a slot a multiple of 16 bytes.
	unit := os.Getpagesize() / slotsPerBlock
	return Layout{Slots: slots, SlotSize: (need + unit - 1) / unit * unit}
}

// Size is the length of the ring's mapping in bytes.
func (l Layout) Size() int { return l.Slots * l.SlotSize }

// Request is the layout as the kernel takes it (PACKET_RX_RING,
// PACKET_TX_RING).
func (l Layout) Request() unix.TpacketReq {
	return unix.TpacketReq{
		Block_size: uint32(l.SlotSize * slotsPerBlock),
		Block_nr:   uint32(l.Slots / slotsPerBlock),
		Frame_size: uint32(l.SlotSize),
		Frame_nr:   uint32(l.Slots),
	}
}
