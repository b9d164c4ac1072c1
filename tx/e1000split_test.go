package tx

import (
	"bytes"
	"encoding/binary"
	"strings"
	"sync/atomic"
	"testing"
	"unsafe"

	"gorouter/skb"
	"pgregory.net/rapid"
)

// busMaster is a device that puts frames of several descriptors together and
// knows the rules of PCI-X from the errata, not from the code.
type busMaster struct {
	t          *rapid.T
	a          *skb.Arena
	mem        skb.Ring
	n          uint32
	head, tail uint32
	firstMax   int
	even       bool
	frames     [][]byte
	most       int // descriptors of a frame
}

func (d *busMaster) Read(uint32) uint32 { return d.head }

func (d *busMaster) Write(_, v uint32) {
	if v >= d.n || v == d.tail {
		d.t.Fatalf("tail %d after %d", v, d.tail)
	}
	for i := d.tail; i != v; i = (i + 1) % d.n {
		if (i+1)%d.n == d.head {
			d.t.Fatalf("tail %d passes head %d", v, d.head)
		}
		if (i+1)%d.n == v && d.word(i)&DescCmdEOP == 0 {
			d.t.Fatalf("the doorbell shows half a frame")
		}
	}
	d.tail = v
}

func (d *busMaster) desc(i uint32) *[2]uint64 {
	return (*[2]uint64)(unsafe.Add(d.mem.Base, uintptr(i)*16))
}

func (d *busMaster) word(i uint32) uint64 { return atomic.LoadUint64(&d.desc(i)[1]) }

// send puts k frames on the wire.
func (d *busMaster) send(k int) {
	for ; k > 0 && d.head != d.tail; k-- {
		var f []byte
		for piece := 1; ; piece++ {
			w, addr := d.word(d.head), d.desc(d.head)[0]
			n := int(w & DescLengthMask)
			if piece == 1 && d.firstMax != 0 && n > d.firstMax {
				d.t.Fatalf("first descriptor of %d bytes", n)
			}
			if end := addr + uint64(n) - 1; d.even && n > 4 && end%8 < 4 {
				d.t.Fatalf("%d bytes at %#x end in an even doubleword", n, addr)
			}
			h, room, ok := d.a.BufferAt(addr)
			if !ok || n == 0 || n > room || d.a.RefsAt(h) == 0 {
				d.t.Fatalf("%d bytes at %#x", n, addr)
			}
			f = append(f, d.a.DMA(addr, n)...)
			d.most = max(d.most, piece)
			if w&DescCmdRS != 0 {
				if w&DescCmdEOP == 0 {
					d.t.Fatalf("a report in the middle of a frame")
				}
				atomic.StoreUint64(&d.desc(d.head)[1], w|DescStatusDD)
			}
			d.head = (d.head + 1) % d.n
			if w&DescCmdEOP != 0 {
				break
			}
			if d.head == d.tail {
				d.t.Fatalf("a frame without an end")
			}
		}
		d.frames = append(d.frames, f)
	}
}

// Frames that need several descriptors come out whole and in order, obey the
// rules, and their buffers are freed once, by whole frames.
func TestSplitFrames(t *testing.T) {
	most := 0
	rapid.Check(t, func(t *rapid.T) {
		a, err := skb.NewArena(skb.Options{Buffers: 512, CacheSize: 16, Stride: 4096})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = a.Close() }()
		d := &busMaster{t: t, a: a, firstMax: rapid.SampledFrom([]int{0, 2015}).Draw(t, "first"), even: rapid.Bool().Draw(t, "even")}
		o := drawOptions(t)
		c := a.NewCache("w")
		q, err := NewE1000(E1000Config{Name: "tx", Arena: a, Cache: c, Regs: d, MaxFrame: 3500, FirstMax: d.firstMax, SplitEven: d.even, Options: o})
		if err != nil {
			t.Fatal(err)
		}
		d.mem, d.n = q.Memory(), uint32(o.Ring)
		var want [][]byte
		now, offered, aborted := int64(0), 0, uint64(0)
		check := func() {
			t.Helper()
			if _, err := a.Audit(q); err != nil {
				t.Fatal(err)
			}
			st := &q.Counters().Live
			if int(st.Packets+st.Drops.Total()) != offered {
				t.Fatalf("%d offered, %d sent, dropped %v", offered, st.Packets, st.Drops.Map())
			}
			var bytes uint64
			for _, f := range want {
				bytes += uint64(len(f))
			}
			if st.Bytes != bytes || int(st.Packets) != len(want) {
				t.Fatalf("%d packets and %d bytes, want %d and %d", st.Packets, st.Bytes, len(want), bytes)
			}
			if q.Pending() < len(want)-len(d.frames) {
				t.Fatalf("%d pending, %d are not sent", q.Pending(), len(want)-len(d.frames))
			}
		}
		for range rapid.IntRange(1, 40).Draw(t, "rounds") {
			var b skb.Batch
			var made [][]byte
			for i := range rapid.IntRange(1, skb.BatchSize).Draw(t, "n") {
				h := c.Alloc()
				if h == skb.None {
					break
				}
				shift := rapid.IntRange(0, 15).Draw(t, "shift")
				n := rapid.IntRange(14, 3500).Draw(t, "length")
				a.Put(h, n+shift)
				f := a.Pull(h, shift)
				for k := range f {
					f[k] = byte(k * (i + 3))
				}
				binary.LittleEndian.PutUint64(f, uint64(offered))
				offered++
				f = bytes.Clone(f)
				made = append(made, append(f, make([]byte, max(0, 60-len(f)))...))
				b.Add(h)
			}
			room := q.Room()
			n := q.Send(&b, rapid.Bool().Draw(t, "more"))
			if n < min(room, len(made)) {
				t.Fatalf("%d of %d sent with room for %d", n, len(made), room)
			}
			want = append(want, made[:n]...)
			check()
			switch rapid.IntRange(0, 5).Draw(t, "then") {
			case 0:
				q.Flush()
			case 1:
				d.send(rapid.IntRange(1, 100).Draw(t, "frames"))
			case 2:
				q.Reclaim()
			case 3:
				now += 2e6
				q.Tick(now)
			case 4:
				n := o.Ring
				o = drawOptions(t)
				o.Ring = n
				q.Configure(o)
			case 5:
				if rapid.IntRange(0, 3).Draw(t, "reset") > 0 {
					continue
				}
				q.Reset()
				aborted = q.Counters().Live.Drops[skb.TxAborted]
				d.head, d.tail = 0, 0
				d.frames, want = d.frames[:0], want[:0]
				st := &q.Counters().Live
				st.Packets, st.Bytes, offered = 0, 0, int(st.Drops.Total())
			}
			check()
		}
		q.Flush()
		for range 2 {
			now += int64(o.DoorbellTimer)
			q.Tick(now)
		}
		d.send(o.Ring)
		q.Reclaim()
		if q.Pending() != 0 || q.used != 0 || q.split.extra != 0 {
			t.Fatalf("%d frames captive, %d slots, %d extra", q.Pending(), q.used, q.split.extra)
		}
		if q.Counters().Live.Drops[skb.TxAborted] != aborted {
			t.Fatal("frames were aborted without a reset")
		}
		if len(d.frames) != len(want) {
			t.Fatalf("%d frames on the wire, want %d", len(d.frames), len(want))
		}
		for i := range want {
			if !bytes.Equal(d.frames[i], want[i]) {
				t.Fatalf("frame %d of %d bytes came out with %d", i, len(want[i]), len(d.frames[i]))
			}
		}
		most = max(most, d.most)
	})
	if most != 3 {
		t.Errorf("no frame took three descriptors, at most %d", most)
	}
}

// The oldest report owed is the same as long as the device finishes nothing,
// and only of descriptors that it was shown.
func TestOldest(t *testing.T) {
	o := defaults()
	o.ReportEvery, o.ReclaimAt = 4, 4096
	r := newRig(t, o)
	owed := func(want uint64) {
		t.Helper()
		got, ok := r.Oldest()
		if !ok || got != want {
			t.Errorf("report %d owed (%v), want %d", got, ok, want)
		}
	}
	none := func() {
		t.Helper()
		if got, ok := r.Oldest(); ok {
			t.Errorf("report %d is owed, want none", got)
		}
	}
	none()
	r.Send(r.fill(12, 60), false) // reports on the 4th, 8th and 12th
	owed(0)
	r.dev.send(3)
	owed(0)
	if r.Finished() {
		t.Error("finished without a report")
	}
	r.dev.send(2)
	owed(1) // though nothing was reclaimed
	if !r.Finished() {
		t.Error("a finished frame is not seen")
	}
	r.Send(r.fill(2, 60), true) // held back, the last one does not report yet
	owed(1)
	if r.Unshown() != 1 {
		t.Errorf("%d unshown", r.Unshown())
	}
	r.dev.send(20)
	none()
	r.Flush()
	owed(3)
	r.dev.send(1)
	none()
	r.Reclaim()
	none()
	// A reset is a finish, too: numbers are never used again.
	r.Send(r.fill(1, 60), false)
	owed(4)
	r.Reset()
	none()
	r.dev.head, r.dev.tail, r.dev.shown = 0, 0, nil
	r.Send(r.fill(1, 60), false)
	owed(5)
	o.Doorbell = DoorbellTimer
	r.Configure(o)
	r.dev.send(1)
	r.Send(r.fill(8, 60), false)
	none() // nobody was told yet
	if r.Unshown() != 8 {
		t.Errorf("%d unshown", r.Unshown())
	}
}

func TestDescribe(t *testing.T) {
	r := newRig(t, defaults())
	r.Send(r.fill(3, 60), false)
	s := strings.Join(r.Describe(1), "\n")
	for _, want := range []string{
		"p0 tx: 256 descriptors, clean 0, bell 3, next 3, 3 in use, 1 reports owed",
		"tx[0] addr=0x", "length=60 cmd=EOP|IFCS status=0 buffer=", "<clean", "tx[2] ", "cmd=EOP|IFCS|RS", "<bell <next",
		"tx[255] ",
	} {
		if !strings.Contains(s, want) {
			t.Errorf("no %q in\n%s", want, s)
		}
	}
	if n := strings.Count(s, "\n"); n != 6 {
		t.Errorf("%d descriptors shown:\n%s", n, s)
	}
	if got := DescribeDescriptor(0x1000, 0xffffffff|DescStatusDD); got != "addr=0x1000 length=65535 cmd=EOP|IFCS|IC|RS|RPS|DEXT|VLE|IDE status=DD" {
		t.Error(got)
	}
	if n := len(r.Describe(4096)); n != 257 {
		t.Errorf("%d lines of the whole ring", n)
	}
}
