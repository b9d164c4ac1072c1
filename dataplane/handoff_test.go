package dataplane

import (
	"math"
	"runtime"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"gorouter/skb"
)

// newHandoff is an empty ring whose indices stand at start.
func newHandoff(start uint32) *handoff {
	h := &handoff{seen: start}
	h.head.Store(start)
	h.tail.Store(start)
	return h
}

func TestHandoffAgainstASlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHandoff(rapid.SampledFrom([]uint32{0, 1, handoffSize - 1, math.MaxUint32, math.MaxUint32 - 3000}).Draw(t, "start"))
		var model []skb.Handle
		next := skb.Handle(0)
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "push") {
				in := make([]skb.Handle, rapid.IntRange(0, skb.BatchSize).Draw(t, "n"))
				for i := range in {
					in[i] = next + skb.Handle(i)
				}
				n := h.push(in)
				if want := min(len(in), handoffSize-len(model)); n != want {
					t.Fatalf("%d of %d pushed on %d, want %d", n, len(in), len(model), want)
				}
				model = append(model, in[:n]...)
				next += skb.Handle(n)
			} else {
				out := make([]skb.Handle, rapid.IntRange(0, 100).Draw(t, "n"))
				n := h.pop(out)
				if want := min(len(out), len(model)); n != want || !slices.Equal(out[:n], model[:n]) {
					t.Fatalf("popped %d, want %d", n, want)
				}
				model = model[n:]
			}
			if h.len() != len(model) {
				t.Fatalf("length %d, want %d", h.len(), len(model))
			}
		}
	})
}

func TestHandoffBetweenTwoGoroutines(t *testing.T) {
	const total = 200_000
	h := newHandoff(math.MaxUint32 - total/2) // across the wrap of the index
	var wg sync.WaitGroup
	wg.Go(func() {
		var b [skb.BatchSize]skb.Handle
		for next := 0; next < total; {
			n := min(1+next%skb.BatchSize, total-next)
			for i := range n {
				b[i] = skb.Handle(next + i)
			}
			k := h.push(b[:n])
			if next += k; k < n {
				runtime.Gosched()
			}
		}
	})
	var b [skb.BatchSize]skb.Handle
	for want := 0; want < total; {
		n := h.pop(b[:1+want%skb.BatchSize])
		for i, v := range b[:n] {
			if int(v) != want+i {
				t.Fatalf("popped %d, want %d", v, want+i)
			}
		}
		if want += n; n == 0 {
			runtime.Gosched()
		}
	}
	wg.Wait()
	if h.len() != 0 {
		t.Errorf("%d left", h.len())
	}
}
