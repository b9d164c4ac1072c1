package pktgen

import (
	"net/netip"
	"testing"
)

func orderStream(order string, n int) *Stream {
	s := &Stream{Name: "o", StreamOptions: StreamTable.Defaults(), Src: netip.MustParseAddr("192.0.2.2"), Seed: 3}
	s.Order = order
	for i := range n {
		s.Dst = append(s.Dst, netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), 0}), 24))
	}
	return s
}

// share counts the frames to the most popular tenth of the destinations.
func share(t *testing.T, s *Stream, frames int) float64 {
	t.Helper()
	sp := newSpread(s)
	hits := map[uint64]int{}
	for range frames {
		_, lo, _ := sp.take()
		hits[lo>>8&0xffff]++
	}
	most := make([]int, 0, len(hits))
	for _, n := range hits {
		most = append(most, n)
	}
	top := 0
	for range len(s.Dst) / 10 {
		best := 0
		for i, n := range most {
			if n > most[best] {
				best = i
			}
		}
		top += most[best]
		most[best] = 0
	}
	return float64(top) / float64(frames)
}

func TestDestinationOrders(t *testing.T) {
	const n, frames = 1000, 100_000
	if got := share(t, orderStream(OrderTurn, n), frames); got != 0.1 {
		t.Errorf("in turn: the busiest tenth gets %v", got)
	}
	if got := share(t, orderStream(OrderRandom, n), frames); got < 0.1 || got > 0.13 {
		t.Errorf("random: the busiest tenth gets %v", got)
	}
	// The sum of k^-1.1 over the first 100 of 1000 is 0.77 of the whole.
	if got := share(t, orderStream(OrderZipf, n), frames); got < 0.72 || got > 0.82 {
		t.Errorf("zipf: the busiest tenth gets %v", got)
	}
	a, b := newSpread(orderStream(OrderZipf, n)), newSpread(orderStream(OrderZipf, n))
	for range 1000 {
		_, x, _ := a.take()
		if _, y, _ := b.take(); x != y {
			t.Fatal("the same seed gives other draws")
		}
	}
}
