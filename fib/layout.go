package fib

// Bucket counts are powers of two, so that a layout can be stretched without
// moving any flow: the bucket of a hash at 2n buckets is a half of its bucket
// at n.
const (
	minBuckets = 64
	maxBuckets = 512
)

// vacant marks a bucket without a leg. Legs are below MaxNextHops, so a layout
// needs more than eight bits for it.
const vacant uint16 = 0xffff

// bucketCount returns the smallest count at which every leg gets its share
// within 2 % of that share, or the largest count.
func bucketCount(weights []uint32) int {
	total := sum(weights)
	for n := minBuckets; n < maxBuckets; n *= 2 {
		ok := true
		for _, w := range weights {
			ideal := uint64(w) * uint64(n)
			rest := ideal % total
			if worst := max(rest, total-rest); rest != 0 && worst*50 > ideal {
				ok = false
				break
			}
		}
		if ok {
			return n
		}
	}
	return maxBuckets
}

func sum(weights []uint32) uint64 {
	var t uint64
	for _, w := range weights {
		t += uint64(w)
	}
	return t
}

// stretch returns a copy of the layout with n buckets; n is a power-of-two
// multiple of its length.
func stretch(layout []uint16, n int) []uint16 {
	out := make([]uint16, n)
	for i := range out {
		out[i] = layout[i*len(layout)/n]
	}
	return out
}

// fill gives every vacant bucket to the leg that is furthest below its share.
// Legs of weight 0 get none. No other bucket moves. It returns the number of
// buckets of each leg.
func fill(layout []uint16, weights []uint32) []int64 {
	n, total := int64(len(layout)), int64(sum(weights))
	count := make([]int64, len(weights))
	for _, leg := range layout {
		if leg != vacant {
			count[leg]++
		}
	}
	if total == 0 {
		return count
	}
	for b, leg := range layout {
		if leg != vacant {
			continue
		}
		best, most := -1, int64(0)
		for i, w := range weights {
			if w == 0 {
				continue
			}
			if d := int64(w)*n - count[i]*total; best < 0 || d > most {
				best, most = i, d
			}
		}
		layout[b] = uint16(best)
		count[best]++
	}
	return count
}

// level moves as few buckets as bring every leg to its share, rounded, and no
// leg to nothing. All weights are above 0.
func level(layout []uint16, weights []uint32, count []int64) {
	n, total := int64(len(layout)), int64(sum(weights))
	for {
		over, under := 0, 0
		var most, least int64
		for i, w := range weights {
			e := count[i]*total - int64(w)*n
			if i == 0 || e > most {
				over, most = i, e
			}
			if i == 0 || e < least {
				under, least = i, e
			}
		}
		if most-least <= total {
			break
		}
		move(layout, count, over, under)
	}
	for i := range count {
		if count[i] > 0 {
			continue
		}
		rich := 0
		for j := range count {
			if count[j] > count[rich] {
				rich = j
			}
		}
		move(layout, count, rich, i)
	}
}

// move hands the last bucket of one leg to another.
func move(layout []uint16, count []int64, from, to int) {
	for b := len(layout) - 1; b >= 0; b-- {
		if layout[b] == uint16(from) {
			layout[b] = uint16(to)
			count[from]--
			count[to]++
			return
		}
	}
}

// newLayout lays out legs from nothing. The result depends only on the weights.
func newLayout(weights []uint32) []uint16 {
	layout := make([]uint16, bucketCount(weights))
	for i := range layout {
		layout[i] = vacant
	}
	level(layout, weights, fill(layout, weights))
	return layout
}

// deriveLayout lays out legs so that flows stay where they are as far as the
// weights allow. old is the layout before; from maps an old leg to its new
// number, or -1 if it left. Without news (no leg came, no weight changed) only
// the flows of the legs that left move.
func deriveLayout(old []uint16, from []int, weights []uint32, news bool) []uint16 {
	layout := stretch(old, max(len(old), bucketCount(weights)))
	for b, leg := range layout {
		if to := from[leg]; to >= 0 {
			layout[b] = uint16(to)
		} else {
			layout[b] = vacant
		}
	}
	count := fill(layout, weights)
	if news {
		level(layout, weights, count)
	}
	return layout
}
