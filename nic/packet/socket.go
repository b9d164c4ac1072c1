package packet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"gorouter/internal/inet"
	"gorouter/internal/tpacket"
	"gorouter/rx"
	"gorouter/tx"
)

// socket is one packet socket with its ring. Receive and transmit have one
// each: only the first may get frames and virtio headers.
type socket struct {
	fd   int
	ring []byte
}

// Limits of one received frame beyond the MTU.
const (
	tagRoom   = 2 * inet.VLANTagLen
	superSize = 65535 + inet.IPv6HeaderLen // longest IP packet of a sender without BIG TCP
)

// openSockets makes both halves. They are bound to no interface and no
// protocol yet, so that no frame of another interface gets in. What is sent is
// limited by mtu. What is received may be as long as linkMTU, the interface's,
// as far as the buffers hold it: senders on the link need not know that the
// router's own packets are shorter.
func (d *Device) openSockets(mtu, linkMTU int) error {
	c := &d.cfg
	arena := c.Cache.Arena()
	room := arena.Stride() - arena.Headroom() - inet.EthHeaderLen - tagRoom
	rxMTU := max(mtu, min(linkMTU, room))
	longest := rxMTU
	if c.SuperFrames == SuperFramesSegment {
		longest = max(longest, superSize)
	}
	shape := tpacket.NewLayout(c.Rx.Ring, tpacket.RxOverhead+longest+tagRoom)
	if err := d.rx.open("receive", shape, unix.PACKET_RX_RING, []option{
		{unix.PACKET_VNET_HDR, "virtio headers", false},
		// Without it our own frames are told by their packet type.
		{unix.PACKET_IGNORE_OUTGOING, "ignore outgoing frames", true},
	}); err != nil {
		return err
	}
	var err error
	d.rxq, err = rx.NewPacket(rx.PacketConfig{
		Name: c.Name + " rx", Port: c.Index, Cache: c.Cache, Ring: d.rx.ring, Shape: shape,
		MaxFrame: rxMTU + inet.EthHeaderLen, Segment: c.SuperFrames == SuperFramesSegment, Options: c.Rx,
	})
	if err != nil {
		return err
	}

	shape = tpacket.NewLayout(c.Tx.Ring, tpacket.TxOverhead+inet.EthHeaderLen+inet.VLANTagLen+mtu)
	if err := d.tx.open("transmit", shape, unix.PACKET_TX_RING, []option{
		{unix.PACKET_QDISC_BYPASS, "bypass of the queueing discipline", true},
	}); err != nil {
		return err
	}
	// The ring bounds what is on its way; the default send buffer would stop
	// short of it. Each frame is accounted with about a kilobyte on top.
	if err := unix.SetsockoptInt(d.tx.fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, 2*(shape.Size()+1024*shape.Slots)); err != nil {
		return fmt.Errorf("size the send buffer: %w", privilege(err))
	}
	fd := d.tx.fd
	d.txq, err = tx.NewPacket(tx.PacketConfig{
		Name: c.Name + " tx", Cache: c.Cache, Ring: d.tx.ring, Shape: shape,
		MaxFrame: mtu + inet.EthHeaderLen, Options: c.Tx,
		Kick: func() unix.Errno {
			_, _, errno := unix.Syscall6(unix.SYS_SENDTO, uintptr(fd), 0, 0, unix.MSG_DONTWAIT, 0, 0)
			return errno
		},
	})
	return err
}

type option struct {
	number   int
	what     string
	optional bool
}

// open makes a socket with a mapped ring. Options come before the ring: the
// kernel refuses them after.
func (s *socket) open(what string, shape tpacket.Layout, ring int, opts []option) error {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return fmt.Errorf("open a packet socket: %w", privilege(err))
	}
	s.fd = fd
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_VERSION, unix.TPACKET_V2); err != nil {
		return fmt.Errorf("%s ring: choose TPACKET_V2: %w", what, err)
	}
	for _, o := range opts {
		if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, o.number, 1); err != nil && !o.optional {
			return fmt.Errorf("%s ring: turn on %s: %w", what, o.what, err)
		}
	}
	req := shape.Request()
	if err := unix.SetsockoptTpacketReq(fd, unix.SOL_PACKET, ring, &req); err != nil {
		return fmt.Errorf("%s ring of %d slots of %d bytes: %w (lower the ring)", what, shape.Slots, shape.SlotSize, err)
	}
	s.ring, err = unix.Mmap(fd, 0, shape.Size(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		s.ring = nil
		return fmt.Errorf("map the %s ring of %d bytes: %w", what, shape.Size(), err)
	}
	return nil
}

// bind ties the socket to an interface. With protocol 0 it receives nothing.
func (s *socket) bind(protocol uint16, index int) error {
	var be [2]byte
	binary.BigEndian.PutUint16(be[:], protocol)
	err := unix.Bind(s.fd, &unix.SockaddrLinklayer{Protocol: binary.NativeEndian.Uint16(be[:]), Ifindex: index})
	return os.NewSyscallError("bind", err)
}

// deafen makes the socket refuse every frame from now on.
func (s *socket) deafen() error {
	refuse := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K}}
	return unix.SetsockoptSockFprog(s.fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &refuse[0]})
}

// promiscuous asks for frames to all addresses, as long as the socket lives.
func (s *socket) promiscuous(index int) error {
	return unix.SetsockoptPacketMreq(s.fd, unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP,
		&unix.PacketMreq{Ifindex: int32(index), Type: unix.PACKET_MR_PROMISC})
}

// clearError takes away the error that an interface's going down leaves on the
// socket, which otherwise makes poll(2) return at once for ever.
func (s *socket) clearError() {
	_, _ = unix.GetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_ERROR)
}

func (s *socket) close() error {
	var first error
	if s.ring != nil {
		first = unix.Munmap(s.ring)
		s.ring = nil
	}
	if s.fd >= 0 {
		if err := unix.Close(s.fd); first == nil {
			first = err
		}
		s.fd = -1
	}
	return first
}

// privilege adds the remedy to a refusal for want of privilege.
func privilege(err error) error {
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		return fmt.Errorf("%w (needs CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF: run as root)", err)
	}
	return err
}
