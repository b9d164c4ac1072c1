package tx

import (
	"fmt"
	"testing"
	"time"

	"gorouter/skb"
)

// BenchmarkSend measures Send, Flush and Reclaim, the freeing of the frames
// included; allocating them and what the fake device does is left out.
func BenchmarkSend(b *testing.B) {
	for _, vector := range []int{1, 8, 32, 64} {
		b.Run(fmt.Sprint("vector=", vector), func(b *testing.B) {
			r := newRigOn(b, newArena(b, skb.Options{Buffers: 1024}), defaults())
			r.dev.quiet = true
			const chunk = 192
			batches := make([]skb.Batch, chunk/vector)
			b.ReportAllocs()
			b.ResetTimer()
			var spent time.Duration
			for done := 0; done < b.N; done += chunk {
				for i := range batches {
					for range vector {
						h := r.c.Alloc()
						r.a.Put(h, 60)
						batches[i].Add(h)
					}
				}
				start := time.Now()
				for i := range batches {
					r.Send(&batches[i], true)
				}
				r.Flush()
				spent += time.Since(start)
				r.dev.send(chunk)
				start = time.Now()
				r.Reclaim()
				spent += time.Since(start)
			}
			b.ReportMetric(float64(spent.Nanoseconds())/float64(r.Counters().Live.Packets), "ns/frame")
			if r.Pending() != 0 {
				b.Errorf("%d frames are still on the ring", r.Pending())
			}
		})
	}
}
