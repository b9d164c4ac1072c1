package rx

import (
	"bytes"
	"testing"

	"gorouter/skb"
)

func pcapQueue(t testing.TB, buffers int, loop bool, frames ...PcapFrame) (*Pcap, *skb.Cache) {
	t.Helper()
	a, err := skb.NewArena(skb.Options{Buffers: buffers, CacheSize: 16})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	c := a.NewCache("w0")
	return NewPcap(PcapConfig{Name: "p0 rx", Port: 7, Frames: frames, Loop: loop, Cache: c, MaxFrame: 1518}), c
}

func whole(n int, fill byte) PcapFrame {
	return PcapFrame{Data: bytes.Repeat([]byte{fill}, n), Len: n}
}

func TestPcapReceivesEachFrameOnce(t *testing.T) {
	cut := whole(60, 3)
	cut.Len = 100
	frames := []PcapFrame{whole(60, 1), whole(1514, 2), cut, whole(13, 4), whole(1519, 5), whole(14, 6), whole(1518, 7)}
	q, cache := pcapQueue(t, 256, false, frames...)
	var b skb.Batch
	if q.Poll(&b, 64, 1) != 0 || q.Ready() {
		t.Error("frames flow before Start")
	}
	q.Start()
	if !q.Ready() {
		t.Error("nothing waits after Start")
	}
	var got [][]byte
	for n := 1; n > 0; {
		n = q.Poll(&b, 2, 42)
		if n > 2 {
			t.Fatalf("took %d, allowed 2", n)
		}
		for _, h := range b.Handles() {
			m := cache.Arena().Meta(h)
			if m.Port != 7 || m.Stamp != 42 || int(m.Data) != cache.Arena().Headroom() || m.Flags != 0 {
				t.Errorf("metadata %+v", m)
			}
			got = append(got, append([]byte(nil), cache.Arena().Bytes(h)...))
		}
		cache.FreeBatch(b.Handles())
		b.Reset()
		q.Replenish()
		q.EndTurn(n < 2)
	}
	want := []int{0, 1, 5, 6}
	if len(got) != len(want) {
		t.Fatalf("%d frames, want %d", len(got), len(want))
	}
	for i, w := range want {
		if !bytes.Equal(got[i], frames[w].Data) {
			t.Errorf("frame %d is %x", i, got[i])
		}
	}
	c := q.Counters().Live
	if c.Packets != 4 || c.Bytes != 60+1514+14+1518 || c.Copied != 4 || c.Descriptors != 7 || c.Drops.Total() != 3 ||
		c.Drops[skb.RxTruncated] != 1 || c.Drops[skb.RxRunt] != 1 || c.Drops[skb.RxTooLong] != 1 {
		t.Errorf("%+v", c)
	}
	if q.Ready() {
		t.Error("ready after the last frame")
	}
	if _, err := cache.Arena().Audit(q); err != nil {
		t.Error(err)
	}
}

func TestPcapLoops(t *testing.T) {
	q, cache := pcapQueue(t, 256, true, whole(60, 0), whole(61, 1), whole(62, 2))
	q.Start()
	var b skb.Batch
	for i := 0; i < 1000; {
		n := q.Poll(&b, 64, 0)
		if n != 64 {
			t.Fatalf("took %d of an endless file", n)
		}
		for _, h := range b.Handles() {
			if got := len(cache.Arena().Bytes(h)); got != 60+i%3 {
				t.Fatalf("frame %d has %d bytes", i, got)
			}
			i++
		}
		cache.FreeBatch(b.Handles())
		b.Reset()
	}
	q.Stop()
	if q.Poll(&b, 64, 0) != 0 {
		t.Error("frames flow after Stop")
	}
	q.Close()
	q.Close()
	q.Start()
	if q.Poll(&b, 64, 0) != 0 || q.Ready() {
		t.Error("frames flow after Close")
	}
}

// Without a buffer a frame waits; none is lost.
func TestPcapWaitsForBuffers(t *testing.T) {
	var frames []PcapFrame
	for i := range 300 {
		frames = append(frames, whole(60, byte(i)))
	}
	q, cache := pcapQueue(t, 256, false, frames...)
	q.Start()
	var b skb.Batch
	var held []skb.Handle
	total := 0
	for range 10 {
		total += q.Poll(&b, 64, 0)
		held = append(held, b.Handles()...)
		b.Reset()
	}
	if total != 256 || q.Counters().Live.NoBuffer == 0 || !q.Ready() {
		t.Errorf("%d frames, %+v", total, q.Counters().Live)
	}
	cache.FreeBatch(held)
	total += q.Poll(&b, 64, 0)
	if total != 300 || q.Counters().Live.Drops.Total() != 0 {
		t.Errorf("%d frames of 300", total)
	}
	cache.FreeBatch(b.Handles())
}

// A batch that is partly full takes only what fits.
func TestPcapKeepsToTheBatch(t *testing.T) {
	q, cache := pcapQueue(t, 256, true, whole(60, 0))
	q.Start()
	var b skb.Batch
	q.Poll(&b, 60, 0)
	if n := q.Poll(&b, 60, 0); n != 4 || b.N != 64 {
		t.Errorf("took %d into a batch of %d", n, b.N)
	}
	cache.FreeBatch(b.Handles())
}

func TestPcapPollDoesNotAllocate(t *testing.T) {
	q, cache := pcapQueue(t, 256, true, whole(60, 0), whole(1514, 1))
	q.Start()
	var b skb.Batch
	if n := testing.AllocsPerRun(100, func() {
		q.Poll(&b, 64, 0)
		cache.FreeBatch(b.Handles())
		b.Reset()
	}); n != 0 {
		t.Errorf("%v allocations per poll", n)
	}
}
