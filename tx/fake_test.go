package tx

import (
	"bytes"
	"encoding/binary"
	"sync/atomic"
	"testing"
	"unsafe"

	"gorouter/skb"
)

const tailReg = 0x3818

// failer is what the fake reports to: a test, a benchmark or a rapid test.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// fake is the transmit unit of a device: it takes descriptors from head up to
// tail when told to, and knows nothing of the driver's code. It fails the test
// when the driver breaks the ring protocol.
type fake struct {
	t          failer
	a          *skb.Arena
	mem        skb.Ring
	n          uint32
	head, tail uint32
	doorbells  int
	atOnce     bool     // sends everything inside the doorbell
	quiet      bool     // for benchmarks: no checks, no record
	shown      []shown  // what the driver showed and the device has not sent
	sent       [][]byte // frames on the wire
	reports    []bool   // for every sent frame: whether it asked for a report
}

// shown is a descriptor as it was when the tail passed it.
type shown struct {
	addr, word uint64
	data       []byte
}

func (f *fake) desc(i uint32) *[2]uint64 {
	return (*[2]uint64)(unsafe.Add(f.mem.Base, uintptr(i)*16))
}

func (f *fake) Read(uint32) uint32 { return f.head }

func (f *fake) Write(off, v uint32) {
	if f.quiet {
		f.tail = v
		return
	}
	f.t.Helper()
	if off != tailReg {
		f.t.Fatalf("write of register %#x", off)
	}
	if v >= f.n || v == f.tail {
		f.t.Fatalf("tail %d after %d on a ring of %d", v, f.tail, f.n)
	}
	for ; f.tail != v; f.tail = (f.tail + 1) % f.n {
		if (f.tail+1)%f.n == f.head {
			f.t.Fatalf("tail %d passes head %d", v, f.head)
		}
		d := f.desc(f.tail)
		s := shown{addr: d[0], word: atomic.LoadUint64(&d[1])}
		if cmd := s.word &^ DescLengthMask; cmd&^DescCmdRS != DescCmdEOP|DescCmdIFCS {
			f.t.Fatalf("slot %d shown with command %#x", f.tail, cmd)
		}
		length := int(s.word & DescLengthMask)
		h, room, ok := f.a.BufferAt(s.addr)
		if !ok || length > room || length < 60 || f.a.RefsAt(h) == 0 {
			f.t.Fatalf("slot %d shown with address %#x and %d bytes", f.tail, s.addr, length)
		}
		s.data = bytes.Clone(f.a.DMA(s.addr, length))
		f.shown = append(f.shown, s)
	}
	f.doorbells++
	if f.atOnce {
		f.send(len(f.shown))
	}
}

// send puts up to k frames on the wire and reports those that asked for it.
func (f *fake) send(k int) {
	for ; k > 0 && f.head != f.tail; k-- {
		d := f.desc(f.head)
		w := atomic.LoadUint64(&d[1])
		if !f.quiet {
			s := f.shown[0]
			f.shown = f.shown[1:]
			h, _, _ := f.a.BufferAt(d[0])
			if d[0] != s.addr || w != s.word || f.a.RefsAt(h) == 0 || !bytes.Equal(f.a.DMA(s.addr, len(s.data)), s.data) {
				f.t.Fatalf("slot %d or its buffer changed while the device owned it", f.head)
			}
			f.sent = append(f.sent, s.data)
			f.reports = append(f.reports, w&DescCmdRS != 0)
		}
		if w&DescCmdRS != 0 {
			atomic.StoreUint64(&d[1], w|DescStatusDD)
		}
		if f.head++; f.head == f.n {
			f.head = 0
		}
	}
}

// rig is a ring on a fake device.
type rig struct {
	*E1000
	dev *fake
	a   *skb.Arena
	c   *skb.Cache
	b   skb.Batch
	seq uint64 // number of the next frame
}

func defaults() Options { return OptionTable.Defaults() }

func newArena(t testing.TB, o skb.Options) *skb.Arena {
	t.Helper()
	a, err := skb.NewArena(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return a
}

func newRig(t testing.TB, o Options) *rig {
	t.Helper()
	return newRigOn(t, newArena(t, skb.Options{Buffers: max(256, o.Ring+2*skb.BatchSize), CacheSize: 16}), o)
}

func newRigOn(t failer, a *skb.Arena, o Options) *rig {
	t.Helper()
	dev := &fake{t: t, a: a}
	c := a.NewCache("worker")
	q, err := NewE1000(E1000Config{Name: "p0 tx", Arena: a, Cache: c, Regs: dev, Tail: tailReg, MaxFrame: 1518, Options: o})
	if err != nil {
		t.Fatalf("%v", err)
	}
	dev.mem, dev.n = q.Memory(), uint32(o.Ring)
	return &rig{E1000: q, dev: dev, a: a, c: c}
}

// fill puts n numbered frames of length bytes into the rig's batch.
func (r *rig) fill(n, length int) *skb.Batch {
	for range n {
		h := r.c.Alloc()
		if h == skb.None {
			r.dev.t.Fatalf("no buffer for frame %d", r.seq)
		}
		binary.LittleEndian.PutUint64(r.a.Put(h, length), r.seq)
		r.seq++
		r.b.Add(h)
	}
	return &r.b
}

// inOrder fails unless the wire carried exactly the frames with these numbers.
func (r *rig) inOrder(t failer, numbers ...uint64) {
	t.Helper()
	if len(r.dev.sent) != len(numbers) {
		t.Fatalf("%d frames on the wire, want %d", len(r.dev.sent), len(numbers))
	}
	for i, want := range numbers {
		if got := binary.LittleEndian.Uint64(r.dev.sent[i]); got != want {
			t.Fatalf("frame %d on the wire is number %d, want %d", i, got, want)
		}
	}
}

func upTo(n uint64) []uint64 {
	s := make([]uint64, n)
	for i := range s {
		s[i] = uint64(i)
	}
	return s
}

func (r *rig) drops(reason skb.Reason) uint64 { return r.Counters().Live.Drops[reason] }

// audit closes the books: the ring and held have every buffer that is not free.
func (r *rig) audit(t failer, held ...skb.Handle) {
	t.Helper()
	if _, err := r.a.Audit(r.E1000, holding(held)); err != nil {
		t.Fatalf("%v", err)
	}
}

type holding []skb.Handle

func (holding) HolderName() string { return "test" }
func (l holding) EachHeld(f func(skb.Handle)) {
	for _, h := range l {
		f(h)
	}
}
