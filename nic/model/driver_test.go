package model

import (
	"sync/atomic"
	"testing"
	"unsafe"

	"gorouter/clock"
	"gorouter/internal/inet"
	"gorouter/nic/e1000/regs"
	"gorouter/skb"
)

// station is the far end of a cable in a test: it sends what it was given and
// keeps what it got.
type station struct {
	out   [][]byte
	bad   []FrameError
	last  FrameError
	got   [][]byte
	gotE  []FrameError
	keep  bool
	space int // Room, when limited
}

func (s *station) Deliver(f []byte) bool { return s.DeliverBad(f, 0) }

func (s *station) DeliverBad(f []byte, e FrameError) bool {
	if s.space > 0 {
		s.space--
	}
	if s.keep {
		s.got = append(s.got, append([]byte(nil), f...))
		s.gotE = append(s.gotE, e)
	}
	return true
}

func (s *station) Next(int64) []byte {
	if len(s.out) == 0 {
		return nil
	}
	f := s.out[0]
	s.out, s.last = s.out[1:], 0
	if len(s.bad) > 0 {
		s.last, s.bad = s.bad[0], s.bad[1:]
	}
	return f
}

func (s *station) Errors() FrameError { return s.last }

// limited is a station with Room.
type limited struct{ station }

func (s *limited) Room() int { return s.space }

// driver drives a chip by hand, with nothing but registers and descriptors.
type driver struct {
	t     testing.TB
	arena *skb.Arena
	cache *skb.Cache
	chip  *Chip
	clock *clock.Clock
	n     uint32

	rxMem, txMem skb.Ring
	rx, tx       []desc
	rxBuf, txBuf []skb.Handle
	rxNext       uint32 // next to look at
	rxFill       uint32 // tail
	txNext       uint32
	txClean      uint32
	breaches     []Breach
	cmd          uint64 // what send puts into descriptors
	rctl         uint32
}

const testCmd = txEOP | txIFCS | txRS

func newArena(t testing.TB, o skb.Options) *skb.Arena {
	t.Helper()
	if o.Buffers == 0 {
		o.Buffers = 1024
	}
	a, err := skb.NewArena(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	return a
}

// newDriver makes a chip and its rings but touches no register.
func newDriver(t testing.TB, arena *skb.Arena, n int, cfg Config) *driver {
	t.Helper()
	if arena == nil {
		arena = newArena(t, skb.Options{})
	}
	d := &driver{t: t, arena: arena, cache: arena.NewCache("test"), n: uint32(n), cmd: testCmd}
	d.clock = clock.Virtual()
	cfg.Arena = arena
	if cfg.Clock == nil {
		cfg.Clock = d.clock
	}
	if cfg.Mode == "" {
		cfg.Mode = ModeStrict
	}
	if cfg.OnBreach == nil {
		cfg.OnBreach = func(b Breach) { d.breaches = append(d.breaches, b) }
	}
	var err error
	if d.chip, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.chip.Close() })
	d.rxMem, d.rx = d.ring(n)
	d.txMem, d.tx = d.ring(n)
	d.rxBuf, d.txBuf = make([]skb.Handle, n), make([]skb.Handle, n)
	for i := range n {
		d.rxBuf[i], d.txBuf[i] = skb.None, skb.None
	}
	d.rctl = regs.RctlEN | regs.RctlBAM | regs.RctlSECRC
	return d
}

func (d *driver) ring(n int) (skb.Ring, []desc) {
	m, err := d.arena.AllocRing(n * descBytes)
	if err != nil {
		d.t.Fatal(err)
	}
	return m, unsafe.Slice((*desc)(m.Base), n)
}

// up brings the chip up, without buffers.
func (d *driver) up() *driver {
	w := d.chip.Write
	w(regs.IMC, regs.IMCAll)
	w(regs.CTRL, regs.CtrlFD|regs.CtrlASDE|regs.CtrlSLU)
	w(regs.RDBAL, uint32(d.rxMem.Bus))
	w(regs.RDBAH, uint32(d.rxMem.Bus>>32))
	w(regs.RDLEN, d.n*descBytes)
	w(regs.RDH, 0)
	w(regs.RDT, 0)
	w(regs.RCTL, d.rctl)
	w(regs.TDBAL, uint32(d.txMem.Bus))
	w(regs.TDBAH, uint32(d.txMem.Bus>>32))
	w(regs.TDLEN, d.n*descBytes)
	w(regs.TDH, 0)
	w(regs.TDT, 0)
	w(regs.TIPG, regs.TIPGCopper)
	w(regs.TCTL, regs.TctlEN|regs.TctlPSP|15<<regs.TctlCTShift|regs.CollisionDistanceFull<<regs.TctlCOLDShift)
	return d
}

func (d *driver) after(i uint32) uint32 {
	if i++; i == d.n {
		return 0
	}
	return i
}

func (d *driver) alloc() skb.Handle {
	h := d.cache.Alloc()
	if h == skb.None {
		d.t.Fatal("out of buffers")
	}
	return h
}

// fill gives the chip up to max receive buffers.
func (d *driver) fill(max int) *driver {
	for range max {
		if d.after(d.rxFill) == d.rxNext {
			break
		}
		h := d.alloc()
		d.rxBuf[d.rxFill] = h
		d.rx[d.rxFill] = desc{addr: d.arena.Bus(h)}
		d.rxFill = d.after(d.rxFill)
	}
	d.chip.Write(regs.RDT, d.rxFill)
	return d
}

type frame struct {
	data   []byte
	status uint64
	parts  int
}

// recv takes all received frames and frees their buffers.
func (d *driver) recv() (got []frame) {
	var f frame
	for d.rxNext != d.rxFill {
		w := atomic.LoadUint64(&d.rx[d.rxNext].word)
		if w&rxDD == 0 {
			break
		}
		h := d.rxBuf[d.rxNext]
		n := int(w & 0xFFFF)
		f.data = append(f.data, unsafe.Slice((*byte)(d.arena.Head(h)), n)...)
		f.parts++
		f.status = w
		d.cache.Free(h)
		d.rxBuf[d.rxNext] = skb.None
		d.rxNext = d.after(d.rxNext)
		if w&rxEOP != 0 {
			got = append(got, f)
			f = frame{}
		}
	}
	return got
}

// queue writes one transmit descriptor without telling the chip.
func (d *driver) queue(data []byte, cmd uint64) uint32 {
	i := d.txNext
	h := d.alloc()
	copy(d.arena.Put(h, len(data)), data)
	d.tx[i] = desc{addr: d.arena.Bus(h), word: uint64(len(data)) | cmd}
	d.txBuf[i] = h
	d.txNext = d.after(i)
	return i
}

func (d *driver) bell() { d.chip.Write(regs.TDT, d.txNext) }

// send queues frames and rings.
func (d *driver) send(frames ...[]byte) {
	for _, f := range frames {
		d.queue(f, d.cmd)
	}
	d.bell()
}

func (d *driver) done(i uint32) bool { return atomic.LoadUint64(&d.tx[i].word)&txDD != 0 }

// reclaim frees what is reported as sent, descriptors without RS before it
// included.
func (d *driver) reclaim() (n int) {
	for i := d.txClean; i != d.txNext; {
		w := atomic.LoadUint64(&d.tx[i].word)
		i = d.after(i)
		if w&txRS == 0 {
			continue
		}
		if w&txDD == 0 {
			break
		}
		for d.txClean != i {
			d.cache.Free(d.txBuf[d.txClean])
			d.txBuf[d.txClean] = skb.None
			d.txClean = d.after(d.txClean)
			n++
		}
	}
	return n
}

func (d *driver) HolderName() string { return "driver" }

func (d *driver) EachHeld(f func(skb.Handle)) {
	for _, bufs := range [][]skb.Handle{d.rxBuf, d.txBuf} {
		for _, h := range bufs {
			if h != skb.None {
				f(h)
			}
		}
	}
}

// clean fails the test on any breach.
func (d *driver) clean() {
	d.t.Helper()
	for _, b := range d.breaches {
		d.t.Error(b)
	}
}

// only fails the test unless exactly the rule was broken.
func (d *driver) only(r Rule) {
	d.t.Helper()
	if len(d.breaches) == 0 {
		d.t.Fatalf("no breach of %v reported", r)
	}
	for _, b := range d.breaches {
		if b.Rule != r {
			d.t.Errorf("expected only %v: %v", r, b)
		}
	}
}

// plug joins the chip to a station.
func (d *driver) plug(o CableOptions) *station {
	d.t.Helper()
	s := &station{keep: true}
	if _, err := NewCable(d.chip, s, o); err != nil {
		d.t.Fatal(err)
	}
	return s
}

func (d *driver) step() int { return d.chip.Step(d.clock.Now()) }

// wait lets time pass and steps.
func (d *driver) wait(ns int64) {
	d.clock.Advance(ns * 1000)
	d.step()
}

func (d *driver) stat(off uint32) uint32 { return d.chip.Read(off) }

// testMAC is the address that chips have when none is given.
var testMAC = inet.MAC{2, 0, 0, 0, 0, 1}

// makeFrame is a frame of n bytes to a destination, filled with a pattern.
func makeFrame(dst inet.MAC, n int, seed byte) []byte {
	f := make([]byte, n)
	for i := range f {
		f[i] = byte(i)*7 + seed
	}
	copy(f, dst[:])
	copy(f[6:], []byte{2, 0, 0, 0, 9, 9, 0x88, 0xB5})
	return f
}

// bitBang moves the lines of EECD: a command goes in, highest bit first, and
// out bits come back.
func (d *driver) bitBang(cmd uint32, in, out int) (v uint32) {
	w := func(v uint32) { d.chip.Write(regs.EECD, regs.EecdREQ|v) }
	w(0)
	if d.chip.Read(regs.EECD)&regs.EecdGNT == 0 {
		d.t.Fatal("the EEPROM is not granted")
	}
	w(regs.EecdCS)
	for i := in - 1; i >= 0; i-- {
		di := regs.EecdCS
		if cmd>>i&1 != 0 {
			di |= regs.EecdDI
		}
		w(di)
		w(di | regs.EecdSK)
		w(di)
	}
	for range out {
		w(regs.EecdCS | regs.EecdSK)
		v <<= 1
		if d.chip.Read(regs.EECD)&regs.EecdDO != 0 {
			v |= 1
		}
		w(regs.EecdCS)
	}
	w(0)
	d.chip.Write(regs.EECD, 0)
	return v
}
