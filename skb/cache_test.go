package skb

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

func TestAllocGivesACleanBuffer(t *testing.T) {
	a := newArena(t, Options{})
	c := a.NewCache("t")
	h := mustAlloc(t, c)
	m := a.Meta(h)
	m.Flags, m.L4, m.Hash, m.Seq = 0xffff, 7, 8, 9
	a.Put(h, 100)
	a.Push(h, 10)
	c.Free(h)
	for _, batch := range []bool{false, true} {
		var h2 Handle
		if batch {
			var one [1]Handle
			if c.AllocBatch(one[:]) != 1 {
				t.Fatal("no buffer")
			}
			h2 = one[0]
		} else {
			h2 = mustAlloc(t, c)
		}
		if h2 != h {
			t.Fatalf("got %d, want the warm %d", h2, h)
		}
		m = a.Meta(h2)
		if int(m.Data) != a.Headroom() || m.Len != 0 || m.Flags != 0 || m.L4 != 0 || m.Hash != 0 || m.Seq != 0 || m.Refs() != 1 {
			t.Fatalf("not clean: %+v", *m)
		}
		c.Free(h2)
	}
}

func TestLIFOReusesTheWarmest(t *testing.T) {
	a := newArena(t, Options{CacheSize: 16})
	c := a.NewCache("t")
	var hs []Handle
	for range 50 {
		hs = append(hs, mustAlloc(t, c))
	}
	for i, h := range hs {
		if int(h) != i {
			t.Fatalf("first allocation %d is buffer %d; the first order ascends", i, h)
		}
	}
	for _, h := range hs {
		c.Free(h)
	}
	// Warm order survives the exchange with the shared list.
	for i := len(hs) - 1; i >= 0; i-- {
		if h := mustAlloc(t, c); h != hs[i] {
			t.Fatalf("got %d, want %d", h, hs[i])
		}
	}
	// One frame at a time never touches a second buffer.
	c.FreeBatch(hs)
	h := mustAlloc(t, c)
	for range 1000 {
		c.Free(h)
		if g := mustAlloc(t, c); g != h {
			t.Fatalf("got %d, want %d", g, h)
		}
	}
}

// TestFIFOWalksAllBuffers holds k buffers at all times and requires that each
// buffer comes back exactly when all others have been used.
func TestFIFOWalksAllBuffers(t *testing.T) {
	for _, held := range []int{1, 2, 15, 16, 17, 100, 255, 256} {
		a := newArena(t, Options{CacheSize: 16, AllocOrder: OrderFIFO})
		c := a.NewCache("t")
		n := a.Count()
		var queue []Handle
		for i := range 5 * n {
			if len(queue) == held {
				c.Free(queue[0])
				queue = queue[1:]
			}
			h := mustAlloc(t, c)
			if want := Handle(i % n); h != want {
				t.Fatalf("%d held: allocation %d is buffer %d, want %d", held, i, h, want)
			}
			queue = append(queue, h)
		}
		mustAudit(t, a, &hand{"queue", queue})
	}
}

func TestAllocBatchIsAllocRepeated(t *testing.T) {
	for _, order := range []string{OrderLIFO, OrderFIFO} {
		a, b := newArena(t, Options{CacheSize: 16, AllocOrder: order}), newArena(t, Options{CacheSize: 16, AllocOrder: order})
		ca, cb := a.NewCache("a"), b.NewCache("b")
		var ha, hb []Handle
		for _, n := range []int{0, 1, 15, 16, 17, 64, 200, 3} {
			dst := make([]Handle, n)
			got := ca.AllocBatch(dst)
			ha = append(ha, dst[:got]...)
			for range n {
				if h := cb.Alloc(); h != None {
					hb = append(hb, h)
				}
			}
			if len(ha) != len(hb) {
				t.Fatalf("%s: %d and %d buffers", order, len(ha), len(hb))
			}
			for i := range ha {
				if ha[i] != hb[i] {
					t.Fatalf("%s: allocation %d is %d in a batch and %d alone", order, i, ha[i], hb[i])
				}
			}
			if n == 64 { // give some back, so that orders mix
				ca.FreeBatch(ha[:20])
				for _, h := range hb[:20] {
					cb.Free(h)
				}
				ha, hb = ha[20:], hb[20:]
			}
		}
		if ca.Allocs != cb.Allocs || ca.Frees != cb.Frees || ca.Failed != cb.Failed || ca.Failed == 0 {
			t.Errorf("%s: counts %d %d %d, alone %d %d %d", order, ca.Allocs, ca.Frees, ca.Failed, cb.Allocs, cb.Frees, cb.Failed)
		}
		mustAudit(t, a, &hand{"hand", ha})
	}
}

func TestExhaustionAndRecovery(t *testing.T) {
	for _, order := range []string{OrderLIFO, OrderFIFO} {
		a := newArena(t, Options{CacheSize: 100, AllocOrder: order})
		c := a.NewCache("t")
		for round := range 3 {
			var hs []Handle
			for h := c.Alloc(); h != None; h = c.Alloc() {
				hs = append(hs, h)
			}
			if len(hs) != a.Count() {
				t.Fatalf("%s round %d: %d of %d buffers", order, round, len(hs), a.Count())
			}
			if c.Alloc() != None || c.Cached() != 0 || a.SharedFree() != 0 {
				t.Fatalf("%s: something is left", order)
			}
			c.Free(hs[7])
			if h := c.Alloc(); h != hs[7] {
				t.Fatalf("%s: got %d after one free, want %d", order, h, hs[7])
			}
			mustAudit(t, a, &hand{"hand", hs})
			c.FreeBatch(hs)
			mustAudit(t, a)
		}
		if c.Allocs != c.Frees || c.Failed != 6 {
			t.Errorf("%s: %d allocs, %d frees, %d failed", order, c.Allocs, c.Frees, c.Failed)
		}
		c.Flush()
		if c.Cached() != 0 || a.SharedFree() != a.Count() {
			t.Errorf("%s: Flush left %d in the cache, %d are free", order, c.Cached(), a.SharedFree())
		}
		if c.Arena() != a {
			t.Error("the cache is of another arena")
		}
		mustAudit(t, a)
	}
}

// TestCachesExchangeBatches lets one worker allocate what another frees, so
// that every buffer passes the shared list. The race detector watches buffer
// bytes and metadata.
func TestCachesExchangeBatches(t *testing.T) {
	for _, order := range []string{OrderLIFO, OrderFIFO} {
		t.Run(order, func(t *testing.T) {
			a := newArena(t, Options{CacheSize: 16, AllocOrder: order})
			const rounds, per = 300, 20
			pipe := make(chan [per]Handle, 4)
			var wg sync.WaitGroup
			for range 2 {
				c := a.NewCache("maker")
				wg.Go(func() {
					defer c.Flush()
					for i := range rounds {
						var b [per]Handle
						for k := range b {
							for b[k] = c.Alloc(); b[k] == None; b[k] = c.Alloc() {
								c.Flush()
							}
							a.Put(b[k], 8)[0] = byte(i)
						}
						pipe <- b
					}
				})
			}
			done := make(chan struct{})
			c := a.NewCache("taker")
			go func() {
				defer close(done)
				defer c.Flush()
				for b := range pipe {
					for k, h := range b {
						if a.Bytes(h)[0] != a.Bytes(b[0])[0] || len(a.Bytes(h)) != 8 {
							t.Errorf("frame %d is another's", k)
						}
					}
					c.FreeBatch(b[:])
					c.Flush()
				}
			}()
			wg.Wait()
			close(pipe)
			<-done
			if census := mustAudit(t, a); census.Free != a.Count() {
				t.Errorf("%d of %d buffers came back", census.Free, a.Count())
			}
		})
	}
}

// TestCloneCountsBetweenGoroutines lets two workers free the last two
// references of many buffers at the same moment: exactly one of them must free
// each buffer.
func TestCloneCountsBetweenGoroutines(t *testing.T) {
	a := newArena(t, Options{Buffers: 1024, CacheSize: 16})
	first := a.NewCache("first")
	caches := []*Cache{a.NewCache("w0"), a.NewCache("w1")}
	hs := make([]Handle, 1000)
	for range 30 {
		if first.AllocBatch(hs) != len(hs) {
			t.Fatal("buffers are lost")
		}
		for _, h := range hs {
			a.Clone(h)
		}
		// Both wait for each other before every buffer, so that they meet in
		// the window between reading the count and changing it.
		var at atomic.Int64
		var wg sync.WaitGroup
		for _, c := range caches {
			wg.Go(func() {
				for i, h := range hs {
					at.Add(1)
					for spin := 0; at.Load() < int64(2*i+2); spin++ {
						if spin > 200 {
							runtime.Gosched()
						}
					}
					c.Free(h)
				}
				c.Flush()
			})
		}
		wg.Wait()
		first.Flush()
		if c := mustAudit(t, a); c.Free != a.Count() {
			t.Fatalf("census %+v", c)
		}
	}
}

func TestHotCallsDoNotAllocate(t *testing.T) {
	for _, order := range []string{OrderLIFO, OrderFIFO} {
		a := newArena(t, Options{AllocOrder: order})
		c := a.NewCache("t")
		var b Batch
		n := testing.AllocsPerRun(500, func() {
			b.Reset()
			for !b.Full() {
				h := c.Alloc()
				a.Put(h, 60)
				a.Push(h, 14)
				a.Pull(h, 14)
				a.Trim(h, 50)
				a.Pad(h, 60)
				b.Add(h)
				a.Clone(h)
			}
			c.FreeBatch(b.Handles())
			c.FreeBatch(b.Handles())
			c.AllocBatch(b.H[:])
			c.FreeBatch(b.H[:])
		})
		if n != 0 {
			t.Errorf("%s: %v allocations", order, n)
		}
	}
}

func benchmarkAllocFree(b *testing.B, order string, n int) {
	a := newArena(b, Options{Buffers: 8192, AllocOrder: order})
	c := a.NewCache("b")
	hs := make([]Handle, n)
	b.ReportAllocs()
	for i := 0; i < b.N; i += n {
		for k := range hs {
			hs[k] = c.Alloc()
		}
		for _, h := range hs {
			c.Free(h)
		}
	}
}

func benchmarkAllocFreeBatch(b *testing.B, order string, n int) {
	a := newArena(b, Options{Buffers: 8192, AllocOrder: order})
	c := a.NewCache("b")
	hs := make([]Handle, n)
	b.ReportAllocs()
	for i := 0; i < b.N; i += n {
		c.AllocBatch(hs)
		c.FreeBatch(hs)
	}
}

// The benchmarks report the time of one buffer.

func BenchmarkAllocFreeLIFO(b *testing.B)        { benchmarkAllocFree(b, OrderLIFO, 64) }
func BenchmarkAllocFreeFIFO(b *testing.B)        { benchmarkAllocFree(b, OrderFIFO, 64) }
func BenchmarkAllocFreeBatch64LIFO(b *testing.B) { benchmarkAllocFreeBatch(b, OrderLIFO, 64) }
func BenchmarkAllocFreeBatch64FIFO(b *testing.B) { benchmarkAllocFreeBatch(b, OrderFIFO, 64) }

func BenchmarkCloneFree(b *testing.B) {
	a := newArena(b, Options{})
	c := a.NewCache("b")
	h := c.Alloc()
	b.ReportAllocs()
	for range b.N {
		a.Clone(h)
		c.Free(h)
	}
}
