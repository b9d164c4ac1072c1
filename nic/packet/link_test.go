package packet

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"gorouter/internal/inet"
	"gorouter/port"
	"gorouter/skb"
)

func TestOffloadsAreOffAndRestored(t *testing.T) {
	r := newCable(t)
	r.here.SetFeatures(hereDev, map[string]bool{"rx-gro": true, "tx-tcp6-segmentation": false})
	before := r.here.Features(hereDev)
	if !before["rx-gro"] || !before["tx-tcp-segmentation"] {
		t.Fatalf("the test needs offloads that are on: %v", before)
	}
	r.open()
	now := r.here.Features(hereDev)
	for _, f := range offloads {
		if now[f] {
			t.Errorf("%s is on", f)
		}
	}
	r.close()
	if after := r.here.Features(hereDev); !cmp.Equal(before, after) {
		t.Error(cmp.Diff(before, after))
	}
}

// The last act before a panic ends the program: the interface is as it was,
// though the port is open, and stays so when the link changes.
func TestGiveBackLeavesTheQueues(t *testing.T) {
	r := newCable(t)
	r.here.SetFeatures(hereDev, map[string]bool{"rx-gro": true})
	before := r.here.Features(hereDev)
	r.open()
	d := r.port.Device.(*Device)
	for range 2 {
		if err := d.GiveBack(); err != nil {
			t.Error(err)
		}
	}
	d.refresh() // as the watcher does
	if after := r.here.Features(hereDev); !cmp.Equal(before, after) {
		t.Error(cmp.Diff(before, after))
	}
	var b skb.Batch
	r.rxq().Poll(&b, 64, 0)
	r.cache.FreeBatch(b.Handles())
	r.close()
}

func TestInterfaceThatWasDownIsDownAgain(t *testing.T) {
	r := newCable(t)
	r.here.Down(hereDev)
	r.listen()
	r.open()
	r.until("link", r.port.Up)
	var b skb.Batch
	// The far end drops until it has noticed the carrier.
	r.until("a frame", func() bool {
		r.fromPeer(plain(60, 1))
		return r.rxq().Poll(&b, 64, 0) > 0
	})
	r.cache.FreeBatch(b.Handles())
	r.close()
	if flags := r.here.Interface(hereDev).Attrs().RawFlags; flags&unix.IFF_UP != 0 {
		t.Error("the interface is still up")
	}
}

func TestLinkIsFollowed(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent(), goleak.IgnoreTopFunction("gorouter/test/netlab.handle"))
	r := newCable(t)
	r.listen()
	r.open()
	if !r.port.Up() || r.port.MAC() != inet.MAC(r.here.MAC(hereDev)) || r.port.MTU != 1500 {
		t.Fatalf("up %v, MAC %s, MTU %d", r.port.Up(), r.port.MAC(), r.port.MTU)
	}
	var told atomic.Int32
	r.port.Watch(func(p *port.Port) {
		told.Add(1)
		_ = p.Device.Stats() // must not wait for the watcher
	})
	down := func() bool { return !r.port.Up() }

	r.peer.Down(peerDev)
	r.until("carrier lost", down)
	// What the kernel does not take stays on the ring, and goes when it can.
	q := r.txq()
	q.Send(r.batch(plain(60, 1), plain(60, 2)), false)
	for range 10 {
		q.Reclaim()
		q.Tick(0)
	}
	if q.Pending() != 2 || r.port.Device.Stats()["tx_no_buffers"] == 0 {
		t.Errorf("without carrier: %d pending, %v", q.Pending(), r.port.Device.Stats())
	}
	r.peer.Up(peerDev)
	r.until("carrier", r.port.Up)
	r.until("frames taken", func() bool { q.Reclaim(); return q.Pending() == 0 })
	for want := 1; want <= 2; want++ {
		if got := numberOf(r.atPeerPlain()); got != want {
			t.Errorf("frame %d, want %d", got, want)
		}
	}

	r.here.Down(hereDev)
	r.until("set down", down)
	// A ring that fills up says why.
	for range 5 {
		b := r.batch()
		for i := range skb.BatchSize {
			b.Add(r.batch(plain(60, i)).H[0])
		}
		q.Send(b, false)
	}
	c := q.Counters().Live
	if s := r.port.Device.Stats(); c.Drops[skb.TxLinkDown] != 5*64-255 || s["tx_net_down"] == 0 {
		t.Errorf("interface down: drops %v, %v", c.Drops.Map(), s)
	}
	r.here.Up(hereDev)
	r.until("set up", r.port.Up)
	r.until("frames taken", func() bool { q.Reclaim(); return q.Pending() == 0 })
	if c := q.Counters().Live; c.Packets != 2+255 {
		t.Errorf("%d frames sent", c.Packets)
	}

	mac := []byte{2, 0, 0, 0, 0, 0x77}
	r.link(func(l netlink.Link) error { return netlink.LinkSetHardwareAddr(l, mac) })
	r.until("new MAC address", func() bool { return r.port.MAC() == inet.MAC(mac) })
	r.here.MTU(hereDev, 1000)
	r.until("new MTU", func() bool { return r.port.Device.Stats()["link_mtu"] == 1000 })
	r.until("limit", func() bool { return r.port.LinkMTU() == 1000 })
	if n := q.Send(r.batch(plain(1015, 1)), false); n != 0 {
		t.Errorf("sent %d frames beyond the MTU", n)
	}
	if n := q.Send(r.batch(plain(1014, 1)), false); n != 1 {
		t.Errorf("sent %d", n)
	}
	if told.Load() < 5 {
		t.Errorf("told %d times", told.Load())
	}
	r.close()
}

// The port's MTU limits what is sent only. What arrives may be as long as the
// interface's, where the buffers hold it.
func TestPortMTUDoesNotLimitReception(t *testing.T) {
	for _, mode := range []string{SuperFramesSegment, SuperFramesDrop} {
		for _, linkMTU := range []int{1500, 9000} {
			r := newCable(t)
			r.here.MTU(hereDev, linkMTU)
			r.peer.MTU(peerDev, 9000)
			r.listen()
			r.open(func(c *Config) { c.SuperFrames, c.MTU = mode, 1000 })
			most := min(linkMTU+inet.EthHeaderLen, r.arena.Stride()-r.arena.Headroom()-tagRoom)
			r.fromPeer(plain(1015, 1))
			r.fromPeer(plain(most+1, 2)) // one that is longer is marked by no one as segments
			r.fromPeer(plain(most, 3))
			got := r.receive(2)
			if len(got[0]) != 1015 || len(got[1]) != most {
				t.Errorf("%s, MTU %d: received %d and %d bytes, want 1015 and %d", mode, linkMTU, len(got[0]), len(got[1]), most)
			}
			// What a veth of that MTU takes beyond it is for its own kernel to say.
			d := r.rxq().Counters().Live.Drops
			if linkMTU == 9000 && d[skb.RxTooLong] != 1 || d.Total() != d[skb.RxTooLong] {
				t.Errorf("%s, MTU %d: drops %v", mode, linkMTU, d.Map())
			}
			if n := r.txq().Send(r.batch(plain(1015, 1)), false); n != 0 {
				t.Errorf("%s, MTU %d: sent %d frames beyond the port's MTU", mode, linkMTU, n)
			}
			r.close()
		}
	}
}

// Frames longer than the MTU at the start do not fit where they have to go;
// they are named whether or not the slot takes them.
func TestMTUAboveTheStartIsNamed(t *testing.T) {
	for _, mode := range []string{SuperFramesSegment, SuperFramesDrop} {
		r := newCable(t)
		r.listen()
		r.open(func(c *Config) { c.SuperFrames = mode })
		r.here.MTU(hereDev, 9000)
		r.peer.MTU(peerDev, 9000)
		r.until("new MTU", func() bool { return r.port.Device.Stats()["link_mtu"] == 9000 })
		if r.port.LinkMTU() != 1500 {
			t.Errorf("%s: MTU %d", mode, r.port.LinkMTU())
		}
		r.fromPeer(plain(9014, 1))
		r.fromPeer(plain(1515, 2))
		r.fromPeer(plain(1514, 3))
		if got := r.receive(1)[0]; numberOf(got) != 3 {
			t.Errorf("%s: frame %d", mode, numberOf(got))
		}
		if d := r.rxq().Counters().Live.Drops; d[skb.RxTooLong] != 2 || d.Total() != 2 {
			t.Errorf("%s: drops %v", mode, d.Map())
		}
		r.close()
	}
}

// atPeerPlain is atPeer without what a kernel sends of its own accord.
func (r *rig) atPeerPlain() []byte {
	for {
		if f := r.atPeer(); f[12] == 0x88 && f[13] == 0xb5 {
			return f
		}
	}
}

func (r *rig) link(f func(netlink.Link) error) {
	r.t.Helper()
	err := r.here.Do(func() error {
		l, err := netlink.LinkByName(hereDev)
		if err != nil {
			return err
		}
		return f(l)
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

func TestInterfaceThatComesBackIsTakenAgain(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent(), goleak.IgnoreTopFunction("gorouter/test/netlab.handle"))
	r := newCable(t)
	r.listen()
	r.open()
	r.link(netlink.LinkDel)
	r.until("link down", func() bool { return !r.port.Up() })
	var b skb.Batch
	if n := r.rxq().Poll(&b, 64, 0); n != 0 {
		t.Errorf("poll of a deleted interface: %d", n)
	}
	r.txq().Send(r.batch(plain(60, 1)), false)
	if s := r.port.Device.Stats(); s["tx_net_down"] == 0 {
		t.Errorf("device: %v", s)
	}

	r.lab.Link(r.here, hereDev, r.peer, peerDev)
	r.until("link up", r.port.Up)
	_ = unix.Close(r.wire)
	r.listen()
	r.until("the waiting frame", func() bool { r.txq().Reclaim(); return r.txq().Pending() == 0 })
	if got := numberOf(r.atPeerPlain()); got != 1 {
		t.Errorf("frame %d at the far end", got)
	}
	r.fromPeer(plain(60, 2))
	if got := numberOf(r.receive(1)[0]); got != 2 {
		t.Errorf("frame %d", got)
	}
	for _, f := range offloads {
		if r.here.Features(hereDev)[f] {
			t.Errorf("%s is on", f)
		}
	}
	r.here.Address(hereDev, "10.0.0.1/24")
	if r.answers() {
		t.Error("the kernel answers on the interface that came back")
	}
	r.close()
	if !r.answers() {
		t.Error("the kernel does not answer after Close")
	}
}

func TestForeignMACIsReceived(t *testing.T) {
	r := newCable(t)
	r.listen()
	own := inet.MAC{2, 0, 0, 0, 0, 1} // what plain is sent to
	promisc := func() bool { return r.here.Interface(hereDev).Attrs().Promisc != 0 }
	r.open(func(c *Config) { c.MAC = own })
	if r.port.MAC() != own || !promisc() {
		t.Errorf("MAC %s, promiscuous %v", r.port.MAC(), promisc())
	}
	r.fromPeer(plain(60, 1))
	r.receive(1)
	r.close()
	if promisc() {
		t.Error("still promiscuous")
	}
	r.open()
	if promisc() {
		t.Error("promiscuous without need")
	}
}

func TestErrorsNameTheRemedy(t *testing.T) {
	r := newCable(t)
	for name, c := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"absent":      {func(c *Config) { c.Interface, c.Name = "p9", "wan" }, `port wan: no interface "p9"; there are: lo, p0`},
		"loopback":    {func(c *Config) { c.Interface = "lo" }, "port lo: interface lo is not Ethernet but loopback; choose another"},
		"mtu":         {func(c *Config) { c.MTU = 1501 }, "port p0: MTU 1501 is above the 1500 of interface p0 (ip link set p0 mtu 1501)"},
		"isolation":   {func(c *Config) { c.Isolation = "hope" }, `port p0: isolation "hope": expected auto, tcx, clsact or off`},
		"superframes": {func(c *Config) { c.SuperFrames = "x" }, `port p0: super-frames "x": expected segment or drop`},
		"ring":        {func(c *Config) { c.Rx.Ring = 81 }, "port p0: ring is 81, expected 80 to 4096 descriptors in multiples of 8"},
	} {
		cfg := r.config()
		c.change(&cfg)
		err := r.here.Do(func() error { _, err := Open(cfg); return err })
		if err == nil || err.Error() != c.want {
			t.Errorf("%s:\n got %v\nwant %s", name, err, c.want)
		}
	}
	before := r.here.Features(hereDev)
	r.here.MTU(hereDev, 9000)
	err := r.here.Do(func() error { _, err := Open(r.config()); return err })
	if err == nil || !strings.Contains(err.Error(), "raise the buffers' stride or lower the MTU") {
		t.Errorf("long frames in short buffers: %v", err)
	}
	// All capabilities gone, on a thread that ends with the call.
	err = r.here.Do(func() error {
		h := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var none [2]unix.CapUserData
		if err := unix.Capset(&h, &none[0]); err != nil {
			return fmt.Errorf("give up capabilities: %w", err)
		}
		_, err := Open(r.config())
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "run as root") || strings.Contains(err.Error(), "\n") {
		t.Errorf("without capabilities: %v", err)
	}
	if after := r.here.Features(hereDev); !cmp.Equal(before, after) {
		t.Error("a failed Open changed offloads")
	}
}

func TestAddressesOfTheKernelAreReported(t *testing.T) {
	r := newCable(t)
	r.here.Address(hereDev, "10.0.0.1/24")
	var log bytes.Buffer
	r.open(func(c *Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	r.close()
	if s := log.String(); !strings.Contains(s, "level=WARN") || !strings.Contains(s, "address=10.0.0.1/24") {
		t.Errorf("log: %s", s)
	}
}

func TestStopIsQuiet(t *testing.T) {
	r := newCable(t)
	r.listen()
	r.open()
	for range 2 {
		if err := r.port.Device.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	r.fromPeer(plain(60, 1))
	var b skb.Batch
	if n := r.rxq().Poll(&b, 64, 0); n != 0 || r.rxq().Ready() {
		t.Errorf("%d frames after Stop", n)
	}
	d := r.port.Device
	r.close()
	if err := d.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

// Case F of a frame that the kernel refuses: the ones behind it must go on.
func TestRefusedFrameDoesNotBlockTheRing(t *testing.T) {
	r := newCable(t)
	r.listen()
	r.open()
	r.here.MTU(hereDev, 1000)
	r.until("new MTU", func() bool { return r.port.Device.Stats()["link_mtu"] == 1000 })
	q := r.txq()
	for round := range 200 { // across the end of the ring
		q.SetMaxFrame(1514) // as if the watcher had not noticed yet
		b := r.batch(plain(100, 1), plain(1200, 2), plain(1300, 3), plain(200, 4), plain(1014, 5), plain(1400, 6))
		q.Send(b, false)
		for _, want := range []int{1, 4, 5} {
			if got := r.atPeer(); numberOf(got) != want || !bytes.Equal(got, plain(len(got), want)) {
				t.Fatalf("round %d: frame %d arrived, want %d", round, numberOf(got), want)
			}
		}
		q.Reclaim()
	}
	c := q.Counters().Live
	if s := r.port.Device.Stats(); s["tx_wrong_format"] != 600 || c.Drops[skb.TxTooLong] != 600 || c.Packets != 600 || q.Pending() != 0 {
		t.Errorf("counters %+v, device %v", c, s)
	}
}
