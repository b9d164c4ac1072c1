package rx

import (
	"fmt"
	"testing"
	"time"

	"gorouter/skb"
)

// BenchmarkPoll measures Poll, Replenish and the freeing of the frames; what
// the fake device does is left out of the time.
func BenchmarkPoll(b *testing.B) {
	for _, vector := range []int{1, 8, 32, 64} {
		b.Run(fmt.Sprint("vector=", vector), func(b *testing.B) {
			r := newRigOn(b, newArena(b, skb.Options{Buffers: 1024}), defaults(), false)
			frame := numbered(make([]byte, 60), 1)
			b.ReportAllocs()
			b.ResetTimer()
			var spent time.Duration
			for done := 0; done < b.N; {
				for r.dev.head != r.dev.tail {
					r.dev.frame(frame)
				}
				start := time.Now()
				for n := vector; n == vector; {
					n = r.poll(vector)
					r.free()
					r.Replenish()
					done += n
				}
				r.EndTurn(true)
				spent += time.Since(start)
			}
			b.ReportMetric(float64(spent.Nanoseconds())/float64(r.Counters().Live.Packets), "ns/frame")
		})
	}
}
