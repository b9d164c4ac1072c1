package fib

import (
	"testing"

	"pgregory.net/rapid"
)

// Layouts over any weights and any history: shares are right to the bucket, and
// legs that stay keep every bucket when others only leave.
func TestLayoutProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weights := rapid.SliceOfN(rapid.Uint32Range(1, MaxWeight), 2, 40).Draw(t, "weights")
		layout := newLayout(weights)
		checkShares(t, layout, weights, 1)
		for range rapid.IntRange(1, 4).Draw(t, "changes") {
			from := make([]int, len(weights))
			var next []uint32
			news := false
			for i, w := range weights {
				switch rapid.IntRange(0, 9).Draw(t, "fate") {
				case 0, 1, 2:
					from[i] = -1
					continue
				case 3:
					news = true
					w = rapid.Uint32Range(1, MaxWeight).Draw(t, "weight")
				}
				from[i] = len(next)
				next = append(next, w)
			}
			if rapid.Bool().Draw(t, "another") || len(next) < 2 {
				news = true
				next = append(next, 1, 5)
			}
			old := layout
			layout = deriveLayout(old, from, next, news)
			if news {
				checkShares(t, layout, next, 1)
			} else {
				checkKept(t, old, layout, from)
			}
			weights = next
		}
	})
}

// checkShares fails if a leg is off its share by more than slack buckets (apart
// from the one that every leg has), or has none.
func checkShares(t *rapid.T, layout []uint16, weights []uint32, slack float64) {
	count := make([]float64, len(weights))
	for _, leg := range layout {
		count[leg]++
	}
	for i, w := range weights {
		ideal := float64(w) * float64(len(layout)) / float64(sum(weights))
		if count[i] == 0 {
			t.Fatalf("leg %d of %v has no bucket", i, weights)
		}
		// Legs below one bucket take theirs from the others.
		if d := count[i] - ideal; (d > slack && count[i] > 1) || d < -slack-float64(len(weights)) {
			t.Fatalf("leg %d of %v has %v of %d buckets, its share is %.2f", i, weights, count[i], len(layout), ideal)
		}
	}
}

func checkKept(t *rapid.T, old, layout []uint16, from []int) {
	for b, leg := range layout {
		if was := from[old[b*len(old)/len(layout)]]; was >= 0 && was != int(leg) {
			t.Fatalf("bucket %d went from leg %d to %d though no leg came", b, was, leg)
		}
	}
}

// Small legs hold more than their share, so levelling after a removal would move
// flows for balance. A removal must not.
func TestRemovalDoesNotLevel(t *testing.T) {
	old := newLayout([]uint32{122, 1, 22, 1})
	layout := deriveLayout(old, []int{0, 1, 2, -1}, []uint32{122, 1, 22}, false)
	for b, leg := range layout {
		if was := old[b*len(old)/len(layout)]; was != 3 && was != leg {
			t.Fatalf("bucket %d went from leg %d to %d", b, was, leg)
		}
	}
}
