package rx

import (
	"encoding/binary"
	"sync/atomic"
	"testing"
	"unsafe"

	"gorouter/skb"
)

const (
	tailReg = 0x2818
	word0   = DescStatusDD | DescStatusEOP
)

// failer is what the fake reports to: a test, a benchmark or a rapid test.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// fake is the receive unit of a device: it fills descriptors from head up to
// tail and knows nothing of the driver's code. It fails the test when the
// driver breaks the ring protocol.
type fake struct {
	t          failer
	a          *skb.Arena
	mem        skb.Ring
	n          uint32
	head, tail uint32
	doorbells  int
	given      int // descriptors given by the last doorbell
	missed     int // frames that found no descriptor
}

func (f *fake) desc(i uint32) *[2]uint64 {
	return (*[2]uint64)(unsafe.Add(f.mem.Base, uintptr(i)*16))
}

// room is the number of descriptors that are the device's.
func (f *fake) room() uint32 { return (f.tail + f.n - f.head) % f.n }

func (f *fake) Read(uint32) uint32 { return f.head }

func (f *fake) Write(off, v uint32) {
	if off != tailReg {
		f.t.Fatalf("write of register %#x", off)
	}
	if v >= f.n {
		f.t.Fatalf("tail %d on a ring of %d", v, f.n)
	}
	given := (v + f.n - f.tail) % f.n
	if given == 0 {
		f.t.Fatalf("doorbell that gives nothing")
	}
	if f.room()+given > f.n-1 {
		f.t.Fatalf("tail %d passes head %d: %d descriptors were the device's and %d more are given", v, f.head, f.room(), given)
	}
	for i := f.tail; i != v; i = (i + 1) % f.n {
		d := f.desc(i)
		if w := atomic.LoadUint64(&d[1]); w != 0 {
			f.t.Fatalf("slot %d handed back with status word %#x", i, w)
		}
		h, room, ok := f.a.BufferAt(d[0])
		if !ok || room != f.a.Stride()-f.a.Headroom() || f.a.RefsAt(h) != 1 {
			f.t.Fatalf("slot %d handed back with address %#x", i, d[0])
		}
	}
	f.tail = v
	f.doorbells++
	f.given = int(given)
}

// write finishes one descriptor: data goes to its buffer, the word gets the
// length and status. It reports false when the ring is empty.
func (f *fake) write(data []byte, length int, status uint64) bool {
	if f.head == f.tail {
		return false
	}
	d := f.desc(f.head)
	copy(f.a.DMA(d[0], len(data)), data)
	// The ring is reported complete by one store, as on the bus.
	atomic.StoreUint64(&d[1], uint64(length)|status)
	if f.head++; f.head == f.n {
		f.head = 0
	}
	return true
}

// frame delivers a frame in one descriptor; false and counted as missed when
// the ring is empty.
func (f *fake) frame(data []byte) bool {
	if !f.write(data, len(data), word0) {
		f.missed++
		return false
	}
	return true
}

// pieces delivers a frame in k descriptors.
func (f *fake) pieces(k int, status uint64) bool {
	for i := range k {
		s := status | DescStatusDD
		if i == k-1 {
			s |= DescStatusEOP
		}
		if !f.write([]byte{0xaa}, 1522, s) {
			return false
		}
	}
	return true
}

// rig is a ring on a fake device.
type rig struct {
	*E1000
	dev *fake
	a   *skb.Arena
	c   *skb.Cache
	b   skb.Batch
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

// newRig makes a ring with buffers for it and spare more.
func newRig(t testing.TB, o Options, spare int, keepsFCS bool) *rig {
	t.Helper()
	a := newArena(t, skb.Options{Buffers: max(256, o.Ring+spare), CacheSize: 16})
	return newRigOn(t, a, o, keepsFCS)
}

func newRigOn(t failer, a *skb.Arena, o Options, keepsFCS bool) *rig {
	t.Helper()
	dev := &fake{t: t, a: a}
	c := a.NewCache("worker")
	q, err := NewE1000(E1000Config{Name: "p0 rx", Port: 3, Arena: a, Cache: c, Regs: dev, Tail: tailReg, KeepsFCS: keepsFCS, Options: o})
	if err != nil {
		t.Fatalf("%v", err)
	}
	dev.mem, dev.n = q.Memory(), uint32(o.Ring)
	q.Start()
	return &rig{E1000: q, dev: dev, a: a, c: c}
}

// poll takes a trip of at most max frames into the rig's empty batch.
func (r *rig) poll(max int) int {
	r.b.Reset()
	return r.Poll(&r.b, max, 42)
}

func (r *rig) free() { r.c.FreeBatch(r.b.Handles()); r.b.Reset() }

func (r *rig) drops(reason skb.Reason) uint64 { return r.Counters().Live.Drops[reason] }

// audit closes the books: ring and hands hold every buffer that is not free.
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

// numbered fills a frame that carries its number at both ends.
func numbered(frame []byte, n uint64) []byte {
	binary.LittleEndian.PutUint64(frame, n)
	binary.LittleEndian.PutUint64(frame[len(frame)-8:], ^n)
	return frame
}

func isNumbered(frame []byte, n uint64) bool {
	return len(frame) >= 16 && binary.LittleEndian.Uint64(frame) == n && binary.LittleEndian.Uint64(frame[len(frame)-8:]) == ^n
}
