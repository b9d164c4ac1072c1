package packet

import (
	"bytes"
	"encoding/binary"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gorouter/internal/inet"
	"gorouter/port"
	"gorouter/rx"
	"gorouter/skb"
	"gorouter/test/netlab"
	"gorouter/tx"
)

// patience bounds every wait for the kernel; nothing measures with it.
const patience = 10 * time.Second

// rig is a port on one end of a cable, with raw access to the other.
type rig struct {
	t          *testing.T
	lab        *netlab.Lab
	here, peer *netlab.Namespace
	arena      *skb.Arena
	cache      *skb.Cache
	port       *port.Port
	wire       int      // packet socket at the far end
	queue      [][]byte // received and not yet looked at, for ipFrame
}

const (
	hereDev = "p0"
	peerDev = "far"
)

// newCable makes the two namespaces and the arena, without a port.
func newCable(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, lab: netlab.New(t), wire: -1}
	r.here, r.peer = r.lab.Namespace("here"), r.lab.Namespace("peer")
	r.lab.Link(r.here, hereDev, r.peer, peerDev)
	var err error
	if r.arena, err = skb.NewArena(skb.Options{Buffers: 2048}); err != nil {
		t.Fatal(err)
	}
	r.cache = r.arena.NewCache("test")
	t.Cleanup(func() { _ = r.arena.Close() })
	return r
}

func (r *rig) config() Config {
	return Config{
		Interface: hereDev, Index: 3, Cache: r.cache,
		Rx: rx.OptionTable.Defaults(), Tx: tx.OptionTable.Defaults(),
	}
}

// open opens and starts the port.
func (r *rig) open(change ...func(*Config)) {
	r.t.Helper()
	c := r.config()
	for _, f := range change {
		f(&c)
	}
	err := r.here.Do(func() (err error) {
		r.port, err = Open(c)
		return err
	})
	if err == nil {
		err = r.port.Device.Start()
	}
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(r.close)
}

// close ends the port and checks that no buffer is missing.
func (r *rig) close() {
	r.t.Helper()
	if r.port == nil {
		return
	}
	if err := r.port.Device.Close(); err != nil {
		r.t.Error(err)
	}
	r.port = nil
	if _, err := r.arena.Audit(); err != nil {
		r.t.Error(err)
	}
}

// listen opens the socket at the far end.
func (r *rig) listen() {
	r.t.Helper()
	err := r.peer.Do(func() error {
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		r.wire = fd
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 64<<20); err != nil {
			return err
		}
		if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1); err != nil {
			return err
		}
		tv := unix.NsecToTimeval(int64(patience))
		if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv); err != nil {
			return err
		}
		return unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: 0x0300, Ifindex: r.peer.Interface(peerDev).Attrs().Index})
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = unix.Close(r.wire) })
}

// fromPeer puts a frame on the wire.
func (r *rig) fromPeer(frame []byte) {
	r.t.Helper()
	_, err := unix.Write(r.wire, frame)
	if err == unix.ENETDOWN {
		_, err = unix.Write(r.wire, frame)
	}
	if err != nil {
		r.t.Fatalf("send %d bytes from the far end: %v", len(frame), err)
	}
}

// atPeer is the next frame that arrives there.
func (r *rig) atPeer() []byte {
	r.t.Helper()
	buf := make([]byte, 1<<16)
	n, err := unix.Read(r.wire, buf)
	if err == unix.ENETDOWN { // said once after the interface was down
		n, err = unix.Read(r.wire, buf)
	}
	if err != nil {
		r.t.Fatalf("nothing arrived at the far end: %v", err)
	}
	return buf[:n]
}

func (r *rig) rxq() *rx.Packet { return r.port.Rx[0].(*rx.Packet) }
func (r *rig) txq() *tx.Packet { return r.port.Tx[0].(*tx.Packet) }

// receive polls until want frames came and returns their bytes. The buffers
// are freed.
func (r *rig) receive(want int) [][]byte {
	r.t.Helper()
	var got [][]byte
	r.poll(func(h skb.Handle) bool {
		m := r.arena.Meta(h)
		if m.Port != 3 || m.Stamp != 77 || m.Data != uint16(r.arena.Headroom()) {
			r.t.Fatalf("metadata: %+v", *m)
		}
		got = append(got, bytes.Clone(r.arena.Bytes(h)))
		return len(got) >= want
	})
	if len(got) != want {
		r.t.Fatalf("received %d frames, want %d; drops %v; device %v", len(got), want,
			r.rxq().Counters().Live.Drops.Map(), r.port.Device.Stats())
	}
	return got
}

// poll runs turns until f says that it has enough, or patience ends.
func (r *rig) poll(f func(skb.Handle) bool) {
	r.t.Helper()
	q, done := r.rxq(), false
	for end := time.Now().Add(patience); !done && time.Now().Before(end); {
		var b skb.Batch
		n := q.Poll(&b, 16, 77)
		for _, h := range b.Handles() {
			done = f(h) || done
			r.cache.Free(h)
		}
		q.Replenish()
		q.EndTurn(n < 16)
		if n == 0 {
			r.sleep()
		}
	}
}

// sleep waits a little for the receive socket.
func (r *rig) sleep() {
	_, err := unix.Poll([]unix.PollFd{{Fd: int32(r.port.Device.(*Device).FD()), Events: unix.POLLIN}}, 10)
	if err != nil && err != unix.EINTR {
		r.t.Fatal(err)
	}
}

// until waits for a condition that the kernel will bring about.
func (r *rig) until(what string, f func() bool) {
	r.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if f() {
			return
		}
	}
	r.t.Fatalf("in vain waited for: %s", what)
}

// batch makes frames in fresh buffers.
func (r *rig) batch(frames ...[]byte) *skb.Batch {
	r.t.Helper()
	b := &skb.Batch{}
	for _, f := range frames {
		h := r.cache.Alloc()
		if h == skb.None {
			r.t.Fatal("out of buffers")
		}
		copy(r.arena.Put(h, len(f)), f)
		b.Add(h)
	}
	return b
}

// plain is a frame of an experimental ethertype, of so many bytes, whose
// content follows from the number.
func plain(n, number int) []byte {
	f := make([]byte, n)
	copy(f, []byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5})
	if n >= 18 {
		binary.BigEndian.PutUint32(f[14:], uint32(number))
	}
	for i := 18; i < n; i++ {
		f[i] = byte(i*7 + number)
	}
	return f
}

func numberOf(f []byte) int { return int(binary.BigEndian.Uint32(f[inet.EthHeaderLen:])) }

func TestMain(m *testing.M) {
	if victim := os.Getenv(victimVariable); victim != "" {
		beVictim(victim)
	}
	os.Exit(m.Run())
}
