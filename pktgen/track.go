package pktgen

import "gorouter/internal/stat"

// SinkCounters of one stream. Times are in nanoseconds.
type SinkCounters struct {
	Number     uint64 // the stream's number in its frames
	Packets    uint64 // frames with that number
	Bytes      uint64 // of those, without FCS
	Unique     uint64 // sequence numbers seen
	Expected   uint64 // sequence numbers up to the highest seen
	Duplicates uint64
	Reordered  uint64 // came after a later frame of the same flow
	Late       uint64 // came after so many later ones that repeats cannot be told
	BadTTL     uint64 // time to live not what the number of routers between makes it
	Damaged    uint64 // with a wrong checksum or length; not counted elsewhere
	LatCount   uint64 // frames whose latency was taken
	LatMin     uint64
	LatMax     uint64
	LatSum     uint64
	First      uint64 // time of the first frame
	Last       uint64 // and of the last
}

const (
	// seqWindow is how far a frame may come behind the newest of its stream
	// and still be told from a repeated one.
	seqWindow = 1 << 16
	flowSlots = 1 << 12

	// extended sequence numbers start here, so that numbers below the first
	// one seen stay positive.
	seqBase = 1 << 32
)

// track follows the sequence numbers of one stream.
type track struct {
	name  string
	known bool // its stream was described, so that numbers begin at zero
	clone uint64
	ttl   uint8 // expected, 0 = any
	page  *stat.Page[SinkCounters]

	started bool
	base    uint64 // first number that counts
	next    uint64 // one above the highest seen
	atTop   uint64 // clones: frames seen of the highest number
	below   uint64 // and of the lower ones
	seen    [seqWindow / 64]uint64

	// Frames of different flows may overtake each other lawfully. Each slot
	// remembers the newest frame of the flow that used it last; a flow that was
	// pushed out starts afresh, so that reordering can be missed but is never
	// made up.
	flows [flowSlots]struct {
		hash uint32
		used bool
		seq  uint64
	}
}

// sequence takes in the number of a frame of the flow with that hash.
func (t *track) sequence(seq uint32, flow uint32) {
	if !t.started {
		t.started = true
		t.base, t.next = seqBase, seqBase
		if !t.known {
			t.base += uint64(seq)
			t.next = t.base
		}
	}
	c := &t.page.Live
	ahead := int32(seq - uint32(t.next))
	ext := t.next + uint64(int64(ahead))
	t.order(ext, flow)
	if t.clone > 1 {
		t.clones(ext, ahead >= 0)
		return
	}
	switch {
	case ahead >= 0:
		t.open(uint64(ahead) + 1)
	case -int64(ahead) > seqWindow || t.known && ext < t.base:
		c.Late++
		return
	case ext < t.base:
		t.base = ext
	}
	w, bit := &t.seen[ext%seqWindow/64], uint64(1)<<(ext%64)
	if *w&bit != 0 {
		c.Duplicates++
	} else {
		*w |= bit
		c.Unique++
	}
	c.Expected = t.next - t.base
}

// open moves the window on by n numbers, none of which has been seen.
func (t *track) open(n uint64) {
	if n >= seqWindow {
		clear(t.seen[:])
		t.next += n
		return
	}
	for ; n > 0 && t.next%64 != 0; n-- {
		t.seen[t.next%seqWindow/64] &^= 1 << (t.next % 64)
		t.next++
	}
	for ; n >= 64; n -= 64 {
		t.seen[t.next%seqWindow/64] = 0
		t.next += 64
	}
	for ; n > 0; n-- {
		t.seen[t.next%seqWindow/64] &^= 1 << (t.next % 64)
		t.next++
	}
}

func (t *track) order(ext uint64, flow uint32) {
	s := &t.flows[flow%flowSlots]
	switch {
	case !s.used || s.hash != flow:
		s.hash, s.used, s.seq = flow, true, ext
	case ext < s.seq:
		t.page.Live.Reordered++
	default:
		s.seq = ext
	}
}

// clones counts frames of a cloned buffer, which all carry the number of the
// first of them. How many of the newest buffer are still to come is unknown,
// so the frames before it are what can be expected.
func (t *track) clones(ext uint64, top bool) {
	c := &t.page.Live
	switch {
	case top:
		t.below += t.atTop
		t.atTop = 1
		t.next = ext + 1
	case ext == t.next-1:
		if t.atTop++; t.known && t.atTop > t.clone {
			c.Duplicates++
			t.atTop--
			return
		}
	default:
		t.below++
	}
	c.Expected = t.next - 1 - min(t.base, t.next-1) + t.atTop
	c.Unique = min(t.below+t.atTop, c.Expected)
}

// latency takes in the time from a frame's stamp to now.
func (t *track) latency(stamp, now int64) {
	c := &t.page.Live
	// The clock of the receiver is read less often than the sender's.
	d := uint64(max(now-stamp, 0))
	if c.LatCount == 0 || d < c.LatMin {
		c.LatMin = d
	}
	c.LatMax = max(c.LatMax, d)
	c.LatSum += d
	c.LatCount++
}
