package pktgen

import "math/bits"

const second = 1_000_000_000

const (
	// A sender that comes late catches up with what has been due for no longer
	// than this; a time slice of the scheduler is well within.
	catchUp = 20 * second / 1000

	// Of the time since the last look at most this much counts for how many
	// frames may go at once, so that a stall is caught up in several steps.
	pacerStep = second / 1000
)

// pacer says when frames are due: evenly spaced by the rate, in integers, so
// that no error adds up. Whoever comes late catches up at twice the rate, or
// with a burst at a time where that is more; what is older than catchUp, and
// more than a burst, is skipped and counted.
type pacer struct {
	rate  uint64 // frames per second, 0 = always due
	burst uint64
	wait  int64 // before the first frame

	started bool
	start   int64  // when the first frame was due
	next    int64  // when the next one is due, rounded down
	frac    uint64 // its fraction of a nanosecond, in units of 1/rate
	skipped uint64
	looked  int64  // the time of the last look
	quota   uint64 // frames that may still go at that time
}

// due is the number of frames that may be sent now, at most burst.
func (p *pacer) due(now int64) int {
	if !p.started {
		p.started = true
		p.start = now + p.wait
		p.next = p.start
		p.looked, p.quota = now, p.burst
	}
	if now != p.looked {
		step := uint64(min(max(now-p.looked, 0), pacerStep))
		p.looked, p.quota = now, max(p.burst, 2*step*p.rate/second)
	}
	if now < p.next {
		return 0
	}
	if p.rate == 0 {
		return int(p.burst)
	}
	n := p.behind(now)
	if most := max(p.burst, p.rate*catchUp/second); n > most {
		p.skipped += n - most
		p.advance(n - most)
		n = most
	}
	return int(min(n, p.burst, p.quota))
}

// behind is how many frames are due at now, which is not before next.
func (p *pacer) behind(now int64) uint64 {
	// Frame k from here is due at next + (k*second+frac)/rate, rounded down.
	hi, lo := bits.Mul64(uint64(now-p.next+1), p.rate)
	lo, borrow := bits.Sub64(lo, p.frac+1, 0)
	q, _ := bits.Div64(hi-borrow, lo, second)
	return q + 1
}

// sent moves on by n frames that went at the time of the last look.
func (p *pacer) sent(n uint64) {
	p.quota -= min(n, p.quota)
	p.advance(n)
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
