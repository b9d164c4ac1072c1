package tx

import (
	"bytes"
	"testing"

	"gorouter/skb"
)

func pcapCache(t testing.TB) *skb.Cache {
	t.Helper()
	a, err := skb.NewArena(skb.Options{Buffers: 256, CacheSize: 16})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return a.NewCache("w0")
}

func pcapBatch(c *skb.Cache, b *skb.Batch, sizes ...int) {
	for i, n := range sizes {
		h := c.Alloc()
		p := c.Arena().Put(h, n)
		for j := range p {
			p[j] = byte(i + 1)
		}
		b.Add(h)
	}
}

func TestPcapWritesPaddedFrames(t *testing.T) {
	cache := pcapCache(t)
	var got [][]byte
	calls := 0
	q := NewPcap(PcapConfig{Name: "p0 tx", Cache: cache, MaxFrame: 1518, Write: func(fs [][]byte) int {
		calls++
		for _, f := range fs {
			got = append(got, append([]byte(nil), f...))
		}
		return len(fs)
	}})
	var b skb.Batch
	pcapBatch(cache, &b, 60)
	if q.Send(&b, false) != 0 || q.Counters().Live.Drops[skb.TxAborted] != 1 {
		t.Error("frames flow before Start")
	}
	q.Start()
	pcapBatch(cache, &b, 42, 60, 1519, 1518)
	if n := q.Send(&b, true); n != 3 || b.N != 0 {
		t.Errorf("queued %d", n)
	}
	q.Flush()
	q.Tick(1)
	q.Send(&b, false) // empty
	want := [][]byte{append(bytes.Repeat([]byte{1}, 42), make([]byte, 18)...), bytes.Repeat([]byte{2}, 60), bytes.Repeat([]byte{4}, 1518)}
	if len(got) != 3 || calls != 1 {
		t.Fatalf("%d frames in %d calls", len(got), calls)
	}
	for i := range want {
		if !bytes.Equal(got[i], want[i]) {
			t.Errorf("frame %d: %x", i, got[i])
		}
	}
	c := q.Counters().Live
	if c.Packets != 3 || c.Bytes != 60+60+1518 || c.Sends != 2 || c.Drops[skb.TxTooLong] != 1 || c.Drops.Total() != 2 {
		t.Errorf("%+v", c)
	}
	if q.Pending() != 0 || q.Room() != skb.BatchSize || q.Reclaim() != 0 {
		t.Error("something is pending")
	}
	if _, err := cache.Arena().Audit(q); err != nil {
		t.Error(err)
	}
	q.Close()
	q.Close()
}

func TestPcapCountsWhatWasNotStored(t *testing.T) {
	cache := pcapCache(t)
	q := NewPcap(PcapConfig{Cache: cache, MaxFrame: 1518, Write: func(fs [][]byte) int { return 1 }})
	q.Start()
	var b skb.Batch
	pcapBatch(cache, &b, 60, 70, 80)
	if n := q.Send(&b, false); n != 1 {
		t.Errorf("queued %d", n)
	}
	if c := q.Counters().Live; c.Packets != 1 || c.Bytes != 60 || c.Drops[skb.TxAborted] != 2 {
		t.Errorf("%+v", c)
	}
	if _, err := cache.Arena().Audit(); err != nil {
		t.Error(err)
	}
}

func TestPcapOnlyCounts(t *testing.T) {
	cache := pcapCache(t)
	q := NewPcap(PcapConfig{Cache: cache, MaxFrame: 1518})
	q.Start()
	var b skb.Batch
	if n := testing.AllocsPerRun(100, func() {
		pcapBatch(cache, &b, 60, 1000)
		q.Send(&b, false)
	}); n != 0 {
		t.Errorf("%v allocations per batch", n)
	}
	if c := q.Counters().Live; c.Packets != 202 || c.Bytes != 101*1060 || c.Doorbells != 0 {
		t.Errorf("%+v", c)
	}
}
