package rx

import (
	"bytes"
	"testing"

	"gorouter/skb"
)

func TestDropReasons(t *testing.T) {
	const good = word0
	type desc struct {
		length int
		status uint64
	}
	more := desc{1522, DescStatusDD}
	cases := []struct {
		name   string
		descs  []desc
		reason skb.Reason // ReasonNone: delivered
		length int        // of what is delivered, FCS kept by the device
	}{
		{"plain", []desc{{64, good}}, skb.ReasonNone, 60},
		{"longest", []desc{{1522, good}}, skb.ReasonNone, 1518},
		{"checksum errors of upper layers are not ours", []desc{{64, good | 1<<45 | 1<<46}}, skb.ReasonNone, 60},
		{"other status bits", []desc{{64, good | 0xfc<<32 | 0xffff<<48 | 0xffff<<16}}, skb.ReasonNone, 60},
		{"CRC", []desc{{64, good | DescErrorCE}}, skb.RxCRC, 0},
		{"symbol", []desc{{64, good | DescErrorSE}}, skb.RxSymbol, 0},
		{"sequence", []desc{{64, good | DescErrorSEQ}}, skb.RxSequence, 0},
		{"carrier extension", []desc{{64, good | DescErrorCXE}}, skb.RxCarrier, 0},
		{"receive data", []desc{{64, good | DescErrorRXE}}, skb.RxData, 0},
		{"two errors count once", []desc{{64, good | DescErrorCE | DescErrorRXE}}, skb.RxCRC, 0},
		{"error of a runt", []desc{{5, good | DescErrorCE}}, skb.RxCRC, 0},
		{"empty", []desc{{0, good}}, skb.RxRunt, 0},
		{"shorter than the FCS", []desc{{3, good}}, skb.RxRunt, 0},
		{"one byte short of a header", []desc{{17, good}}, skb.RxRunt, 0},
		{"just a header", []desc{{18, good}}, skb.ReasonNone, 14},
		{"fills the buffer", []desc{{1792 + 4, good}}, skb.ReasonNone, 1792},
		{"longer than the buffer", []desc{{1792 + 5, good}}, skb.RxMultiDescriptor, 0},
		{"absurd length", []desc{{65535, good}}, skb.RxMultiDescriptor, 0},
		{"two descriptors", []desc{more, {100, good}}, skb.RxMultiDescriptor, 0},
		{"last piece looks like a frame", []desc{more, more, more, {64, good}}, skb.RxMultiDescriptor, 0},
		{"error in a long frame", []desc{more, {64, good | DescErrorCE}}, skb.RxMultiDescriptor, 0},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			o := defaults()
			o.Ring = MinRing
			r := newRig(t, o, 64, true)
			for _, d := range tc.descs {
				if !r.dev.write(nil, d.length, d.status) {
					t.Fatal("ring empty")
				}
			}
			follows := numbered(make([]byte, 64), 7)
			r.dev.frame(follows)
			if n := r.poll(64); n != 2 {
				t.Errorf("Poll took %d frames, want 2", n)
			}
			want := 1
			if tc.reason == skb.ReasonNone {
				want = 2
				if got := len(r.a.Bytes(r.b.H[0])); got != tc.length {
					t.Errorf("frame of %d bytes, want %d", got, tc.length)
				}
			} else if r.drops(tc.reason) != 1 {
				t.Errorf("not counted as %s", tc.reason)
			}
			c := &r.Counters().Live
			if r.b.N != want || c.Packets != uint64(want) || c.Drops.Total() != uint64(2-want) {
				t.Fatalf("%d frames, %d counted, drops %v", r.b.N, c.Packets, c.Drops.Map())
			}
			// The FCS is off, and the frame behind is whole.
			if got := r.a.Bytes(r.b.H[want-1]); !bytes.Equal(got, follows[:60]) {
				t.Errorf("the frame that follows is %x", got)
			}
			if c.Descriptors != uint64(len(tc.descs)+1) {
				t.Errorf("%d descriptors counted", c.Descriptors)
			}
			r.audit(t, r.b.Handles()...)
			r.free()
			r.EndTurn(true)
			if r.Owned() != MinRing-1 {
				t.Errorf("the ring shrank: %d", r.Owned())
			}
		})
	}
}

func TestRuntWithoutFCS(t *testing.T) {
	o := defaults()
	r := newRig(t, o, 64, false)
	for _, n := range []int{0, 13, 14} {
		r.dev.write(nil, n, word0)
	}
	if r.poll(64) != 3 || r.b.N != 1 || len(r.a.Bytes(r.b.H[0])) != 14 || r.drops(skb.RxRunt) != 2 {
		t.Errorf("%d frames, drops %v", r.b.N, r.Counters().Live.Drops.Map())
	}
}

// TestLongFrameAcrossPollsAndTheEnd drops a frame of several descriptors
// that begins in one poll, goes on in the next, and lies across the ring's end.
func TestLongFrameAcrossPollsAndTheEnd(t *testing.T) {
	o := defaults()
	o.Ring = MinRing
	r := newRig(t, o, 64, false)
	frame := make([]byte, 60)
	for start := range uint64(MinRing) { // the long frame begins at every slot
		for range 2 {
			if !r.dev.write(nil, 1522, DescStatusDD) {
				t.Fatal("ring empty")
			}
		}
		if n := r.poll(64); n != 0 || r.b.N != 0 {
			t.Fatalf("slot %d: half a frame counts as %d", start, n)
		}
		r.EndTurn(true)
		if !r.dev.write(nil, 1522, DescStatusDD) || !r.dev.write(nil, 64, word0) {
			t.Fatal("ring empty")
		}
		r.dev.frame(numbered(frame, start))
		if n := r.poll(1); n != 1 || r.b.N != 0 || r.drops(skb.RxMultiDescriptor) != start+1 {
			t.Fatalf("slot %d: end of the long frame: %d taken, %d given, drops %v", start, n, r.b.N, r.Counters().Live.Drops.Map())
		}
		if n := r.poll(64); n != 1 || r.b.N != 1 || !isNumbered(r.a.Bytes(r.b.H[0]), start) {
			t.Fatalf("slot %d: the next frame is lost", start)
		}
		r.free()
		r.EndTurn(true)
		// Seven slots a round: every slot of the ring is a start once.
		r.dev.frame(frame)
		r.dev.frame(frame)
		r.poll(2)
		r.free()
		r.Replenish()
	}
	if c := r.Counters().Live; c.Drops.Total() != MinRing || r.Owned() < MinRing-16 {
		t.Errorf("drops %v, %d owned", c.Drops.Map(), r.Owned())
	}
	r.audit(t)
}

// TestLongFramesDoNotEndThePoll: what Poll takes is told in frames, so a
// run of long frames must not look like an empty ring.
func TestLongFramesDoNotEndThePoll(t *testing.T) {
	r := newRig(t, defaults(), 64, false)
	for range 50 {
		r.dev.pieces(5, 0)
	}
	if n := r.poll(10); n != 10 {
		t.Errorf("Poll(10) took %d of 50 long frames", n)
	}
	if n := r.poll(64); n != 40 {
		t.Errorf("Poll(64) took %d of 40 long frames", n)
	}
	if r.drops(skb.RxMultiDescriptor) != 50 || r.Counters().Live.Descriptors != 250 {
		t.Errorf("%+v", r.Counters().Live)
	}
}

func TestCopybreak(t *testing.T) {
	for _, limit := range []int{0, 60, 100, 1514} {
		o := defaults()
		o.Ring, o.Copybreak = MinRing, limit
		r := newRig(t, o, 64, true)
		for i, n := range []int{60, 61, 99, 100, 101, 1514} {
			slot := r.next
			own := r.slots[slot]
			r.dev.frame(append(numbered(make([]byte, n), uint64(i)), 1, 2, 3, 4))
			copied := r.Counters().Live.Copied
			if r.poll(1) != 1 || r.b.N != 1 || !isNumbered(r.a.Bytes(r.b.H[0]), uint64(i)) || len(r.a.Bytes(r.b.H[0])) != n {
				t.Fatalf("limit %d: frame of %d bytes is lost", limit, n)
			}
			stays := r.slots[slot] == own
			if want := n <= limit; stays != want || (r.b.H[0] != own) != want || r.Counters().Live.Copied-copied == 1 != want {
				t.Errorf("limit %d: frame of %d bytes copied: %v, want %v", limit, n, stays, want)
			}
			r.audit(t, r.b.Handles()...)
			r.free()
			r.EndTurn(true)
		}
	}
}
