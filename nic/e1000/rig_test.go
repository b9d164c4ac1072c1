package e1000_test

import (
	"bytes"

	"gorouter/clock"
	"gorouter/internal/inet"
	"gorouter/nic/e1000"
	"gorouter/nic/model"
	"gorouter/port"
	"gorouter/rx"
	"gorouter/skb"
	"gorouter/tx"
)

// rig is two driven chips on one cable, worked by one goroutine.
type rig struct {
	t     tester
	clk   *clock.Clock
	arena *skb.Arena
	cache *skb.Cache
	chip  [2]*model.Chip
	dev   [2]*e1000.Device
	rx    [2]*rx.E1000
	tx    [2]*tx.E1000
	cable *model.Cable
	irq   [2]*port.Signal
}

type rigOptions struct {
	arena    skb.Options
	rx       rx.Options
	tx       tx.Options
	mtu      int
	keepFCS  bool
	threaded bool
	lossless bool
	irq      bool // the chips interrupt
	chip     func(i int, c *model.Config)
	device   func(i int, c *e1000.Config)
}

func defaultRig() rigOptions {
	return rigOptions{
		arena: skb.Options{Buffers: 2048, RingBytes: 2 << 20},
		rx:    rx.OptionTable.Defaults(), tx: tx.OptionTable.Defaults(), lossless: true,
	}
}

// tester is what a rig needs of *testing.T and *rapid.T.
type tester interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Error(args ...any)
	Errorf(format string, args ...any)
}

func newRig(t tester, o rigOptions) *rig {
	t.Helper()
	a, err := skb.NewArena(o.arena)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, arena: a, cache: a.NewCache("w0"), clk: clock.Virtual()}
	if o.threaded {
		r.clk = clock.Machine()
	}
	for i := range r.chip {
		c := model.Config{
			Name: []string{"c0", "c1"}[i], Arena: a, Clock: r.clk, MAC: rigMAC(i),
			Strict: true, CheckContent: true, Threaded: o.threaded,
		}
		if o.irq {
			if r.irq[i], err = port.NewSignal(); err != nil {
				t.Fatal(err)
			}
			c.Interrupt = r.irq[i].Raise
		}
		if o.chip != nil {
			o.chip(i, &c)
		}
		if r.chip[i], err = model.New(c); err != nil {
			t.Fatal(err)
		}
	}
	if r.cable, err = model.NewCable(r.chip[0], r.chip[1], model.CableOptions{Lossless: o.lossless}); err != nil {
		t.Fatal(err)
	}
	for i := range r.dev {
		c := e1000.Config{
			Name: []string{"p0", "p1"}[i], Index: uint16(i), Regs: r.chip[i], IO: r.chip[i].IO(), Arena: a, Clock: r.clk,
			DeviceID: r.chip[i].Info().Device, MTU: o.mtu, Rx: o.rx, Tx: o.tx,
			RxCache: r.cache, TxCache: r.cache, KeepFCS: o.keepFCS,
		}
		if o.irq {
			c.IRQ = r.irq[i]
		}
		if o.device != nil {
			o.device(i, &c)
		}
		if r.dev[i], err = e1000.Open(c); err != nil {
			t.Fatal(err)
		}
		if got := r.dev[i].Port().MAC(); got != rigMAC(i) {
			t.Fatalf("address %v, the EEPROM has %v", got, rigMAC(i))
		}
		r.rx[i] = r.dev[i].Port().Rx[0].(*rx.E1000)
		r.tx[i] = r.dev[i].Port().Tx[0].(*tx.E1000)
		if err := r.dev[i].Start(); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func rigMAC(i int) inet.MAC { return inet.MAC{2, 0, 0, 0, 1, byte(i)} }

// step lets the chips work and a microsecond pass.
func (r *rig) step() {
	if r.clk.IsVirtual() {
		r.clk.Advance(1e6)
	}
	r.chip[0].Step(r.clk.Now())
}

// ok fails the test on any breach.
func (r *rig) ok() {
	r.t.Helper()
	for _, c := range r.chip {
		if err := c.Err(); err != nil {
			r.t.Fatal(err)
		}
	}
}

// close closes everything and audits the buffers.
func (r *rig) close() {
	r.t.Helper()
	r.audit()
	for i := range r.dev {
		if err := r.dev[i].Close(); err != nil {
			r.t.Error(err)
		}
		r.rx[i].Close()
		r.tx[i].Close()
	}
	for _, c := range r.chip {
		if err := c.Close(); err != nil {
			r.t.Error(err)
		}
	}
	r.ok()
	c, err := r.arena.Audit()
	if err != nil {
		r.t.Error(err)
	}
	if c.Free+c.Cached != c.Total {
		r.t.Errorf("%d of %d buffers are free after close", c.Free+c.Cached, c.Total)
	}
	if err := r.arena.Close(); err != nil {
		r.t.Error(err)
	}
	for _, s := range r.irq {
		if s != nil {
			_ = s.Close()
		}
	}
}

func (r *rig) audit() {
	r.t.Helper()
	if _, err := r.arena.Audit(r.rx[0], r.rx[1], r.tx[0], r.tx[1]); err != nil {
		r.t.Fatal(err)
	}
}

// frame fills n bytes for port to; the bytes after the header count up from
// seed.
func (r *rig) frame(n, to, seed int) skb.Handle {
	h := r.cache.Alloc()
	if h == skb.None {
		return h
	}
	fill(r.arena.Put(h, n), to, seed)
	return h
}

func fill(b []byte, to, seed int) {
	dst, src := rigMAC(to), rigMAC(1-to)
	copy(b, dst[:])
	copy(b[6:], src[:])
	b[12], b[13] = 0x08, 0x00
	for i := 14; i < len(b); i++ {
		b[i] = byte(seed + i)
	}
}

// send sends frames of the given lengths from one port to the other.
func (r *rig) send(from int, lens ...int) {
	var b skb.Batch
	for i, n := range lens {
		b.Add(r.frame(n, 1-from, i))
		if b.Full() || i == len(lens)-1 {
			r.tx[from].Send(&b, false)
		}
	}
}

// sendTo sends one frame to an address.
func (r *rig) sendTo(from int, dst inet.MAC) {
	h := r.frame(60, 1-from, 0)
	copy(r.arena.Bytes(h), dst[:])
	var b skb.Batch
	b.Add(h)
	r.tx[from].Send(&b, false)
}

// receive polls a port dry and hands each frame to f.
func (r *rig) receive(port int, f func(b []byte)) int {
	var b skb.Batch
	n := 0
	for {
		got := r.rx[port].Poll(&b, skb.BatchSize, r.clk.Now())
		for _, h := range b.Handles() {
			if f != nil {
				f(r.arena.Bytes(h))
			}
			r.cache.Free(h)
		}
		b.Reset()
		r.rx[port].Replenish()
		n += got
		if got < skb.BatchSize {
			r.rx[port].EndTurn(true)
			return n
		}
	}
}

// padded is what comes out of the wire for a frame that was sent.
func padded(b []byte) []byte {
	if len(b) < inet.EthMinLen {
		b = append(bytes.Clone(b), make([]byte, inet.EthMinLen-len(b))...)
	}
	return b
}
