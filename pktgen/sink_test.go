package pktgen

import (
	"encoding/binary"
	"encoding/json"
	"testing"
	"time"

	"pgregory.net/rapid"

	"gorouter/internal/inet"
	"gorouter/skb"
)

// framesOf makes n copies of a stream's frames, each with its stamp in
// microseconds.
func framesOf(t testing.TB, s *Stream, n int) [][]byte {
	t.Helper()
	src := mustSource(t, s)
	var out [][]byte
	for i := range n {
		f, _ := src.take(int64(i) * 1000)
		out = append(out, append([]byte(nil), f...))
	}
	return out
}

func oneFlow(s *Stream) { s.Dst = s.Dst[1:] }

func deliver(s *Sink, frames [][]byte, order ...int) {
	for _, i := range order {
		s.Deliver(frames[i])
	}
	s.Publish()
}

func upto(n int) []int {
	var o []int
	for i := range n {
		o = append(o, i)
	}
	return o
}

func TestSinkFindsPlantedFaults(t *testing.T) {
	for _, c := range []struct {
		name                           string
		order                          []int
		lost, dup, reordered, tailLost uint64
	}{
		{"clean", upto(10), 0, 0, 0, 0},
		{"first lost", []int{2, 3, 4, 5, 6, 7, 8, 9}, 2, 0, 0, 2},
		{"middle lost", []int{0, 1, 2, 5, 6, 9}, 4, 0, 0, 4},
		{"tail lost", []int{0, 1, 2, 3, 4}, 0, 0, 0, 5},
		{"repeated", []int{0, 1, 1, 2, 3, 4, 5, 5, 5, 6, 7, 8, 9}, 0, 3, 0, 0},
		{"swapped", []int{0, 2, 1, 3, 4, 5, 6, 7, 9, 8}, 0, 0, 2, 0},
		{"late one", []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 0}, 0, 0, 1, 0},
		{"late repeat", []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0}, 0, 1, 1, 0},
		{"all of it", []int{0, 3, 1, 3, 9}, 6, 1, 1, 6},
	} {
		t.Run(c.name, func(t *testing.T) {
			st := testStream(oneFlow)
			s := NewSink(SinkConfig{Streams: []*Stream{st}, Verify: true})
			deliver(s, framesOf(t, st, 10), c.order...)
			r := s.Results()[0]
			if r.Stream != "s" || r.Packets != uint64(len(c.order)) || r.Lost != c.lost || r.Duplicates != c.dup || r.Reordered != c.reordered || r.Damaged != 0 {
				t.Errorf("%+v", r)
			}
			if r.Account(10); r.Lost != c.tailLost {
				t.Errorf("with the sender's count: %d lost, want %d", r.Lost, c.tailLost)
			}
		})
	}
}

// Frames of different flows may overtake each other.
func TestReorderingIsPerFlow(t *testing.T) {
	st := testStream(func(s *Stream) { oneFlow(s); s.Flows = 2 })
	f := framesOf(t, st, 8)
	s := NewSink(SinkConfig{Streams: []*Stream{st}})
	deliver(s, f, 0, 2, 4, 6, 1, 3, 5, 7)
	if r := s.Results()[0]; r.Reordered != 0 || r.Lost != 0 || r.Duplicates != 0 {
		t.Errorf("%+v", r)
	}
	s = NewSink(SinkConfig{Streams: []*Stream{st}})
	deliver(s, f, 0, 4, 2, 6, 1, 3, 5, 7)
	if r := s.Results()[0]; r.Reordered != 1 {
		t.Errorf("%+v", r)
	}
}

// Against a plain model: random losses, repeats and moves within the window,
// over the wrap of the 32-bit number.
func TestSequenceAgainstModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		tr := NewSink(SinkConfig{}).tracks[0]
		start := rapid.SampledFrom([]uint32{0, 5, 1<<32 - 100, 1<<31 - 50, 1<<32 - 70_000}).Draw(rt, "start")
		seen := map[uint64]bool{}
		var lo, hi, dup, reord uint64
		first := true
		pos := int64(seqBase)
		for range rapid.IntRange(1, 300).Draw(rt, "frames") {
			pos += rapid.SampledFrom([]int64{1, 1, 1, 1, 0, 2, -1, -5, 40, 63, 64, 65, 1000, 66_000}).Draw(rt, "step")
			if !first && (int64(hi)-pos >= seqWindow) {
				pos = int64(hi) + 1
			}
			v := uint64(pos)
			tr.sequence(start+uint32(v-seqBase), 1)
			if first {
				lo, hi, first = v, v, false
			} else {
				if v < hi {
					reord++
				}
				lo, hi = min(lo, v), max(hi, v)
			}
			if seen[v] {
				dup++
			}
			seen[v] = true
		}
		c := tr.page.Live
		if c.Unique != uint64(len(seen)) || c.Duplicates != dup || c.Reordered != reord || c.Expected != hi-lo+1 || c.Late != 0 {
			rt.Fatalf("got %+v, want %d unique of %d, %d repeated, %d reordered", c, len(seen), hi-lo+1, dup, reord)
		}
	})
}

func TestVeryLateFrameIsSetApart(t *testing.T) {
	st := testStream(oneFlow)
	f := framesOf(t, st, seqWindow+100)
	s := NewSink(SinkConfig{Streams: []*Stream{st}})
	for _, x := range f[1:] {
		s.Deliver(x)
	}
	deliver(s, f, 0)
	if r := s.Results()[0]; r.Late != 1 || r.Lost != 0 || r.Duplicates != 0 {
		t.Errorf("%+v", r)
	}
}

func TestClonesAreNoDuplicates(t *testing.T) {
	st := testStream(func(s *Stream) { oneFlow(s); s.Clone = 4 })
	f := framesOf(t, st, 10)
	for _, c := range []struct {
		name      string
		order     []int
		lost, dup uint64
		tail      uint64
	}{
		{"clean", upto(10), 0, 0, 0},
		{"one lost", []int{0, 1, 2, 4, 5, 6, 7, 8, 9}, 1, 0, 1},
		{"a buffer lost", []int{0, 1, 2, 3, 8, 9}, 4, 0, 4},
		{"one too many", []int{0, 1, 2, 3, 3, 4, 5, 6, 7, 8, 9}, 0, 1, 0},
		{"tail lost", []int{0, 1, 2, 3, 4, 5}, 0, 0, 4},
	} {
		s := NewSink(SinkConfig{Streams: []*Stream{st}})
		deliver(s, f, c.order...)
		r := s.Results()[0]
		if r.Lost != c.lost || r.Duplicates != c.dup || r.Reordered != 0 || r.Latency != nil {
			t.Errorf("%s: %+v", c.name, r)
		}
		if r.Account(10); r.Lost != c.tail {
			t.Errorf("%s: %d lost in all, want %d", c.name, r.Lost, c.tail)
		}
	}
}

func TestStreamsAreToldApart(t *testing.T) {
	a, b, x := testStream(nil), testStream(func(s *Stream) { v6(s); s.Name, s.Size = "b", 80 }), testStream(func(s *Stream) { s.Name = "x" })
	s := NewSink(SinkConfig{Streams: []*Stream{a, b}, Verify: true})
	fa, fb, fx := framesOf(t, a, 5), framesOf(t, b, 7), framesOf(t, x, 9)
	deliver(s, fa, upto(5)...)
	deliver(s, fb, upto(7)...)
	deliver(s, fx, 4, 5, 7) // what an undescribed stream lost before its first is not known
	r := s.Results()
	if len(r) != 3 || r[0].Packets != 5 || r[1].Packets != 7 || r[1].Bytes != 7*80 || r[2].Packets != 3 || r[2].Lost != 1 || r[0].Lost+r[1].Lost != 0 {
		t.Errorf("%+v", r)
	}
	if tot := s.Totals(); tot.Streams != 15 || tot.Packets != 15 || tot.Damaged+tot.Other+tot.Unknown != 0 {
		t.Errorf("%+v", tot)
	}
	for i := range maxUndescribed + 5 {
		y := testStream(func(s *Stream) { s.ID = uint16(1000 + i) })
		s.Deliver(framesOf(t, y, 1)[0])
	}
	s.Publish()
	if tot := s.Totals(); tot.Unknown != 6 || len(s.Results()) != 2+maxUndescribed {
		t.Errorf("%+v, %d streams", tot, len(s.Results()))
	}
}

// Every single changed bit of the IP packet is noticed, somewhere.
func TestVerifyFindsEveryChangedBit(t *testing.T) {
	for _, edit := range []func(*Stream){nil, func(s *Stream) { v6(s); s.Size = 90 }} {
		st := testStream(edit)
		good := framesOf(t, st, 1)[0]
		for bit := inet.EthHeaderLen * 8; bit < len(good)*8; bit++ {
			if v6 := !st.Src.Is4(); v6 && bit/8 < 22 && bit/8 != 20 {
				continue // IPv6 has no header checksum; the length decides what is summed
			}
			f := append([]byte(nil), good...)
			f[bit/8] ^= 1 << (bit % 8)
			s := NewSink(SinkConfig{Streams: []*Stream{st}, Verify: true})
			deliver(s, [][]byte{f}, 0)
			if tot := s.Totals(); tot.Streams != 0 {
				t.Errorf("byte %d bit %d changed and the frame counts as good", bit/8, bit%8)
			}
		}
		s := NewSink(SinkConfig{Streams: []*Stream{st}, Verify: true})
		deliver(s, [][]byte{good}, 0)
		if tot := s.Totals(); tot.Streams != 1 || tot.Damaged != 0 {
			t.Errorf("the good frame: %+v", tot)
		}
	}
}

func TestTTLMustBeDecremented(t *testing.T) {
	st := testStream(nil)
	f := framesOf(t, st, 2)
	// The first as a router would have it, the second unchanged.
	old := binary.BigEndian.Uint16(f[0][22:])
	f[0][22]--
	binary.BigEndian.PutUint16(f[0][24:], inet.Update(binary.BigEndian.Uint16(f[0][24:]), old, old-0x100))
	s := NewSink(SinkConfig{Streams: []*Stream{st}, Verify: true, CheckTTL: true, Hops: 1})
	deliver(s, f, 0)
	if r := s.Results()[0]; r.BadTTL != 0 || r.Damaged != 0 || r.Packets != 1 {
		t.Errorf("%+v", r)
	}
	deliver(s, f, 1)
	if r := s.Results()[0]; r.BadTTL != 1 || r.Packets != 2 {
		t.Errorf("%+v", r)
	}
}

func TestLatencyFromStamps(t *testing.T) {
	st := testStream(nil)
	f := framesOf(t, st, 3) // stamps 0, 1000, 2000
	s := NewSink(SinkConfig{Streams: []*Stream{st}})
	for i, d := range []int64{50, 20, 110} {
		s.SetNow(int64(i)*1000 + d)
		s.Deliver(f[i])
	}
	s.Publish()
	r := s.Results()[0]
	if l := r.Latency; l == nil || l.Min != 20 || l.Max != 110 || l.Avg != 60 {
		t.Errorf("%+v", l)
	}
	if r.Duration != Seconds(2060) {
		t.Errorf("duration %v", r.Duration)
	}
}

func TestForeignFramesAreCounted(t *testing.T) {
	s := NewSink(SinkConfig{Verify: true})
	st := testStream(func(s *Stream) { v6(s); s.Size = 70 }) // too short for the tag
	arp := make([]byte, 60)
	binary.BigEndian.PutUint16(arp[12:], inet.EtherARP)
	deliver(s, [][]byte{{}, {1, 2, 3}, make([]byte, 60), arp, framesOf(t, st, 1)[0]}, 0, 1, 2, 3, 4)
	if tot := s.Totals(); tot.Packets != 5 || tot.Other != 4 || tot.ARP != 1 || tot.Damaged != 0 || tot.Bytes != 3+60+60+70 {
		t.Errorf("%+v", tot)
	}
}

func TestSinkOverReceiveQueue(t *testing.T) {
	cache := newCache(t, skb.Options{Buffers: 256})
	w := newWire(t, cache, 256)
	st := testStream(nil)
	w.queue = framesOf(t, st, 150)
	s := NewSink(SinkConfig{Streams: []*Stream{st}})
	if n := s.Receive(rxWire{w}, cache, 100, 1); n != 100 {
		t.Errorf("took %d, want 100", n)
	}
	if n := s.Receive(rxWire{w}, cache, 100, 2); n != 50 {
		t.Errorf("took %d, want 50", n)
	}
	s.Publish()
	if r := s.Results()[0]; r.Packets != 150 || r.Lost != 0 {
		t.Errorf("%+v", r)
	}
	if _, err := cache.Arena().Audit(); err != nil {
		t.Error(err)
	}
}

func TestSinkDoesNotAllocate(t *testing.T) {
	st := testStream(func(s *Stream) { s.Flows = 5 })
	f := framesOf(t, st, 500)
	stranger := framesOf(t, testStream(func(s *Stream) { s.Name = "stranger" }), 1)[0]
	s := NewSink(SinkConfig{Streams: []*Stream{st}, Verify: true, CheckTTL: true, Hops: 1})
	i := 0
	if n := testing.AllocsPerRun(400, func() {
		s.Deliver(f[i])
		s.Deliver(stranger)
		s.Publish()
		i++
	}); n != 0 {
		t.Errorf("%v allocations per frame", n)
	}
}

func TestResultsAsJSON(t *testing.T) {
	b, err := json.Marshal(Result{Stream: "a", Duration: Seconds(1500 * time.Millisecond)})
	if err != nil {
		t.Fatal(err)
	}
	var r Result
	var m map[string]any
	if err := json.Unmarshal(b, &r); err != nil || r.Duration != Seconds(1500*time.Millisecond) {
		t.Errorf("%v: %+v", err, r)
	}
	if err := json.Unmarshal(b, &m); err != nil || m["duration_s"] != 1.5 {
		t.Errorf("%s", b)
	}
}

func FuzzSink(f *testing.F) {
	st := testStream(nil)
	six := testStream(func(s *Stream) { v6(s); s.Size, s.Name = 90, "six" })
	for _, s := range []*Stream{st, six} {
		src := mustSource(f, s)
		for i := range 3 {
			b, _ := src.take(int64(i))
			f.Add(append([]byte(nil), b...), uint32(i)<<30)
		}
	}
	f.Add([]byte{}, uint32(0))
	f.Fuzz(func(t *testing.T, frame []byte, seq uint32) {
		s := NewSink(SinkConfig{Streams: []*Stream{st, six}, Verify: seq&1 == 0, CheckTTL: true})
		for i := range uint32(3) {
			s.Deliver(frame)
			if len(frame) >= 50 {
				binary.BigEndian.PutUint32(frame[46:], seq+i*seq)
			}
		}
		s.Publish()
		tot := s.Totals()
		if tot.Packets != 3 || tot.Streams+tot.ARP+tot.Other+tot.Unknown+tot.Damaged != 3 {
			t.Fatalf("%+v", tot)
		}
		var n uint64
		for _, r := range s.Results() {
			n += r.Packets
			if r.Duplicates+r.Late+r.unique > r.Packets {
				t.Fatalf("%+v", r)
			}
		}
		if n != tot.Streams {
			t.Fatalf("%d frames in streams, %d in all", n, tot.Streams)
		}
	})
}
