package e1000_test

import (
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"gorouter/nic/e1000"
	"gorouter/nic/e1000/regs"
	"gorouter/rx"
	"gorouter/skb"
	"gorouter/tx"
)

const second = int64(time.Second)

// watched is a started device on a fake, with its rings and its log.
type watched struct {
	t   *testing.T
	f   *fake
	cfg e1000.Config
	dev *e1000.Device
	rx  *rx.E1000
	tx  *tx.E1000
	log strings.Builder
	now int64
}

func newWatched(t *testing.T) *watched {
	w := &watched{t: t, f: newFake(regs.MAC82540)}
	w.cfg = fakeConfig(t, w.f, 0x100E)
	w.cfg.Log = slog.New(slog.NewTextHandler(&w.log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	var err error
	if w.dev, err = e1000.Open(w.cfg); err != nil {
		t.Fatal(err)
	}
	if err := w.dev.Start(); err != nil {
		t.Fatal(err)
	}
	w.rx, w.tx = w.dev.Port().Rx[0].(*rx.E1000), w.dev.Port().Tx[0].(*tx.E1000)
	w.now = w.f.clk.Now()
	t.Cleanup(func() {
		if err := w.dev.Close(); err != nil {
			t.Error(err)
		}
		w.rx.Close()
		w.tx.Close()
		if c, err := w.cfg.Arena.Audit(); err != nil || c.Free+c.Cached != c.Total {
			t.Errorf("%+v, %v", c, err)
		}
	})
	return w
}

// pass lets time go by in steps of 10 ms, with a Housekeep after each.
func (w *watched) pass(d time.Duration) {
	w.t.Helper()
	for end := w.now + int64(d); w.now < end; {
		w.now += int64(10 * time.Millisecond)
		if w.f.clk.Now() < w.now {
			w.f.clk.Advance((w.now - w.f.clk.Now()) * 1000)
		}
		w.now = w.f.clk.Now()
		if err := w.dev.Housekeep(w.now); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *watched) send(n int) {
	var b skb.Batch
	for range n {
		h := w.cfg.TxCache.Alloc()
		w.cfg.Arena.Put(h, 60)
		b.Add(h)
	}
	w.tx.Send(&b, false)
}

// done reports descriptor i of a ring as the device would.
func done(mem skb.Ring, i int, word uint64) {
	d := &unsafe.Slice((*[2]uint64)(mem.Base), mem.Size/16)[i]
	atomic.StoreUint64(&d[1], atomic.LoadUint64(&d[1])|word)
}

func (w *watched) stat(name string, want uint64) {
	w.t.Helper()
	if got := w.dev.Stats()[name]; got != want {
		w.t.Errorf("%s is %d, want %d; log:\n%s", name, got, want, w.log.String())
	}
}

func TestTransmitHangIsFound(t *testing.T) {
	w := newWatched(t)
	w.pass(200 * time.Millisecond)
	w.send(3)
	w.pass(900 * time.Millisecond)
	w.stat("tx_hangs", 0)
	w.pass(300 * time.Millisecond)
	w.stat("tx_hangs", 1)
	w.stat("resets", 1)
	c := &w.tx.Counters().Live
	if c.Drops[skb.TxAborted] != 3 || c.Packets != 0 || w.tx.Pending() != 0 {
		t.Errorf("%d aborted, %d sent, %d pending", c.Drops[skb.TxAborted], c.Packets, w.tx.Pending())
	}
	if !w.dev.Port().Up() {
		t.Error("the port is down after the reset")
	}
	// It says so once, with everything decoded.
	if n := strings.Count(w.log.String(), "level="); n != 1 {
		t.Errorf("%d lines logged:\n%s", n, w.log.String())
	}
	r := w.dev.LastHang()
	if r == nil {
		t.Fatal("no report")
	}
	for _, want := range []string{"transmit hang for 1", "TDT       INDEX 0->3", "rx[0] ", "tx[2] addr=0x", "cmd=EOP|IFCS|RS status=0", "RCTL      0x00100  0x"} {
		if !strings.Contains(r.String(), want) || !strings.Contains(w.log.String(), want) {
			t.Errorf("report without %q:\n%s", want, r)
		}
	}
	// Then there is peace.
	w.pass(5 * time.Second)
	w.stat("tx_hangs", 1)
	w.stat("rx_stalls", 0)
}

func TestNoHangWithoutCause(t *testing.T) {
	t.Run("paused", func(t *testing.T) {
		w := newWatched(t)
		w.send(3)
		w.f.val[regs.STATUS] |= regs.StatusTXOFF
		w.pass(10 * time.Second)
		w.stat("tx_hangs", 0)
		w.f.val[regs.STATUS] &^= regs.StatusTXOFF
		w.pass(2200 * time.Millisecond)
		w.stat("tx_hangs", 1)
	})
	t.Run("link down", func(t *testing.T) {
		w := newWatched(t)
		w.send(3)
		w.f.val[regs.STATUS] = 0
		w.pass(10 * time.Second)
		w.stat("tx_hangs", 0)
	})
	t.Run("slow but moving", func(t *testing.T) {
		w := newWatched(t)
		for i := range 20 {
			w.send(1)
			w.pass(900 * time.Millisecond)
			done(w.tx.Memory(), i, tx.DescStatusDD)
		}
		w.stat("tx_hangs", 0)
	})
	t.Run("process stopped", func(t *testing.T) {
		w := newWatched(t)
		w.send(1)
		w.pass(200 * time.Millisecond)
		w.f.clk.Sleep(time.Minute) // nobody looked meanwhile
		done(w.tx.Memory(), 0, tx.DescStatusDD)
		w.send(1)
		w.pass(500 * time.Millisecond)
		done(w.tx.Memory(), 1, tx.DescStatusDD)
		w.pass(2 * time.Second)
		w.stat("tx_hangs", 0)
	})
	t.Run("never shown", func(t *testing.T) {
		w := newWatched(t)
		o := w.tx.Options()
		o.Doorbell = tx.DoorbellTimer
		w.tx.Configure(o)
		w.send(5) // and no Tick: the worker does not get to it
		w.pass(5 * time.Second)
		w.stat("tx_hangs", 0)
	})
	t.Run("idle", func(t *testing.T) {
		w := newWatched(t)
		w.pass(10 * time.Second)
		w.stat("tx_hangs", 0)
		w.stat("rx_stalls", 0)
		if w.log.Len() != 0 {
			t.Error(w.log.String())
		}
	})
}

func TestReceiveStallIsFound(t *testing.T) {
	for _, reg := range []uint32{regs.GPRC, regs.MPC, regs.RNBC} {
		t.Run(name(reg), func(t *testing.T) {
			w := newWatched(t)
			w.pass(3 * time.Second)
			// Frames are counted and none shows up, be it only one.
			w.f.val[reg]++
			w.pass(3100 * time.Millisecond)
			w.stat("rx_stalls", 1)
			w.stat("resets", 1)
			if r := w.dev.LastHang(); r == nil || r.What != "receive stall" || r.For < time.Second {
				t.Errorf("report %v", r)
			}
			if w.rx.Owned() != w.cfg.Rx.Ring-1 {
				t.Errorf("%d descriptors are the device's", w.rx.Owned())
			}
			w.pass(5 * time.Second)
			w.stat("rx_stalls", 1)
		})
	}
}

// A device that has used all its descriptors up and reported none has nothing
// left to count.
func TestUsedUpRingIsAStall(t *testing.T) {
	w := newWatched(t)
	w.pass(3 * time.Second)
	w.f.val[regs.RDH] = w.f.val[regs.RDT]
	w.pass(3100 * time.Millisecond)
	w.stat("rx_stalls", 1)
	w.pass(5 * time.Second)
	w.stat("rx_stalls", 1)
}

func TestNoStallWhileFramesComeIn(t *testing.T) {
	w := newWatched(t)
	var b skb.Batch
	for i := range 10 {
		w.f.val[regs.GPRC]++
		w.f.val[regs.MPC] += 100 // overload: many are missed
		done(w.rx.Memory(), i, rx.DescStatusDD|rx.DescStatusEOP|60)
		w.pass(1500 * time.Millisecond)
		if i%2 == 0 { // and the worker is slow
			w.rx.Poll(&b, 64, w.now)
			w.cfg.RxCache.FreeBatch(b.Handles())
			b.Reset()
		}
	}
	w.stat("rx_stalls", 0)
	// A ring whose buffers are all with software is starved, not stalled.
	for i := 10; i < w.cfg.Rx.Ring-1; i++ {
		done(w.rx.Memory(), i, rx.DescStatusDD|rx.DescStatusEOP|60)
	}
	for w.rx.Poll(&b, 64, w.now) > 0 {
		w.cfg.RxCache.FreeBatch(b.Handles())
		b.Reset()
	}
	for range 5 {
		w.f.val[regs.MPC] += 100
		w.pass(time.Second)
	}
	w.stat("rx_stalls", 0)
}

// A device that hangs again and again is set down after a few resets, tried
// again later and later, and is back when it behaves.
func TestRepeatedHangsBackOff(t *testing.T) {
	w := newWatched(t)
	for w.dev.Port().Up() && w.now < 60*second {
		w.send(1)
		w.pass(100 * time.Millisecond)
	}
	w.stat("resets", 5)
	w.stat("tx_hangs", 6)
	w.stat("downs", 1)
	if n := strings.Count(w.log.String(), "port set down"); n != 1 {
		t.Errorf("%d lines say that the port is down", n)
	}
	if w.tx.Pending() != 0 {
		t.Errorf("%d buffers are captive on the port that is down", w.tx.Pending())
	}
	// While it is down it is left alone.
	w.f.took()
	w.pass(9 * time.Second)
	if l := w.f.took(); len(l) != 0 {
		t.Errorf("registers accessed while down: %v", l)
	}
	w.pass(1100 * time.Millisecond)
	if !w.dev.Port().Up() {
		t.Fatal("not tried again")
	}
	// Still bad: the next try comes after twice as long.
	for w.dev.Port().Up() && w.now < 60*second {
		w.send(1)
		w.pass(100 * time.Millisecond)
	}
	w.stat("resets", 5)
	w.stat("downs", 2)
	w.f.took()
	w.pass(19 * time.Second)
	if l := w.f.took(); len(l) != 0 {
		t.Errorf("registers accessed while down: %v", l)
	}
	w.pass(1500 * time.Millisecond)
	if !w.dev.Port().Up() {
		t.Fatal("not tried again the second time")
	}
	// Cured: a hang after a calm quarter of an hour is a first one again.
	w.pass(15 * time.Minute)
	w.send(1)
	w.pass(2 * time.Second)
	w.stat("resets", 6)
	w.stat("downs", 2)
	w.send(1)
	w.pass(2 * time.Second)
	w.stat("resets", 7)
}

// A person's Start and Stop count more than the back-off.
func TestStopAndStartOfAPortThatIsDown(t *testing.T) {
	down := func(t *testing.T) *watched {
		w := newWatched(t)
		for w.dev.Port().Up() && w.now < 60*second {
			w.send(1)
			w.pass(100 * time.Millisecond)
		}
		return w
	}
	t.Run("stop", func(t *testing.T) {
		w := down(t)
		if err := w.dev.Stop(); err != nil {
			t.Fatal(err)
		}
		w.pass(time.Minute)
		if w.dev.Port().Up() {
			t.Error("started again after a stop")
		}
	})
	t.Run("start", func(t *testing.T) {
		w := down(t)
		if err := w.dev.Start(); err != nil {
			t.Fatal(err)
		}
		if !w.dev.Port().Up() {
			t.Error("not started")
		}
	})
	t.Run("close", func(t *testing.T) {
		w := down(t)
		if err := w.dev.Close(); err != nil {
			t.Fatal(err)
		}
		w.f.took()
		w.pass(time.Minute)
		if l := w.f.took(); len(l) != 0 {
			t.Errorf("a closed device was accessed: %v", l)
		}
	})
}

// A device that vanishes is noticed once, costs one read of STATUS now and
// then, and is brought up when it answers again.
func TestVanishedDevice(t *testing.T) {
	w := newWatched(t)
	w.send(10)
	w.f.gone = true
	if err := w.dev.Housekeep(w.now + 2*second); !errors.Is(err, e1000.ErrGone) {
		t.Fatalf("%v", err)
	}
	w.f.took()
	w.now += 2 * second
	w.pass(5 * time.Second)
	if w.dev.Port().Up() {
		t.Error("a vanished port is up")
	}
	if l := w.f.took(); len(l) != 0 {
		t.Errorf("accessed: %v", l)
	}
	w.pass(time.Minute)
	for _, l := range w.f.took() {
		if l != "read STATUS" && !strings.HasPrefix(l, "wait") {
			t.Errorf("accessed: %s", l)
		}
	}
	if n := strings.Count(w.log.String(), "level="); n != 1 {
		t.Errorf("%d lines logged:\n%s", n, w.log.String())
	}
	w.stat("tx_hangs", 0)
	w.stat("downs", 1)
	// The buffers stay where the device may still write to.
	if w.tx.Pending() != 10 {
		t.Errorf("%d of 10 frames are still on the ring", w.tx.Pending())
	}
	w.f.gone = false
	w.pass(2 * time.Minute)
	if !w.dev.Port().Up() {
		t.Error("not brought up again")
	}
	if n := w.tx.Counters().Live.Drops[skb.TxAborted]; n != 10 {
		t.Errorf("%d frames aborted, want 10", n)
	}
}

// All ones found by the watchdog's own look are no hang.
func TestVanishedWhileSending(t *testing.T) {
	w := newWatched(t)
	w.send(10)
	w.pass(950 * time.Millisecond)
	w.f.gone = true
	err := error(nil)
	for range 10 {
		w.now += second / 10
		err = errors.Join(err, w.dev.Housekeep(w.now))
	}
	if !errors.Is(err, e1000.ErrGone) || strings.Count(err.Error(), "STATUS") != 1 {
		t.Errorf("%v", err)
	}
	w.stat("tx_hangs", 0)
	before := w.f.clk.Now()
	if err := w.dev.Close(); err != nil {
		t.Error(err)
	}
	if d := w.f.clk.Now() - before; d != 0 {
		t.Errorf("close took %v", time.Duration(d))
	}
}
