package pktgen

import "math/bits"

const second = 1_000_000_000

// pacer says when frames are due: evenly spaced by the rate, in integers, so
// that no error adds up. Whoever comes late finds at most one burst due; what
// is older is skipped and counted.
type pacer struct {
	rate  uint64 // frames per second, 0 = always due
	burst uint64
	wait  int64 // before the first frame

	started bool
	start   int64  // when the first frame was due
	next    int64  // when the next one is due, rounded down
	frac    uint64 // its fraction of a nanosecond, in units of 1/rate
	skipped uint64
}

// due is the number of frames that may be sent now, at most burst.
func (p *pacer) due(now int64) int {
	if !p.started {
		p.started = true
		p.start = now + p.wait
		p.next = p.start
	}
	if now < p.next {
		return 0
	}
	if p.rate == 0 {
		return int(p.burst)
	}
	// Frame k from here is due at next + (k*second+frac)/rate, rounded down.
	hi, lo := bits.Mul64(uint64(now-p.next+1), p.rate)
	lo, borrow := bits.Sub64(lo, p.frac+1, 0)
	q, _ := bits.Div64(hi-borrow, lo, second)
	n := q + 1
	if n > p.burst {
		p.skipped += n - p.burst
		p.advance(n - p.burst)
		n = p.burst
	}
	return int(n)
}

// advance moves on by n frames.
func (p *pacer) advance(n uint64) {
	if p.rate == 0 {
		return
	}
	hi, lo := bits.Mul64(n, second)
	lo, carry := bits.Add64(lo, p.frac, 0)
	q, r := bits.Div64(hi+carry, lo, p.rate)
	p.next += int64(q)
	p.frac = r
}

// stamp is the time that the next frame carries: when it was due, so that a
// late sender does not hide the delay that it adds.
func (p *pacer) stamp(now int64) int64 {
	if p.rate == 0 {
		return now
	}
	return p.next
}
