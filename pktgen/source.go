package pktgen

import (
	"fmt"

	"gorouter/internal/inet"
	"gorouter/internal/stat"
)

// Counters of one stream. Times are in nanoseconds of the clock that the
// caller uses.
type Counters struct {
	Sent     uint64 // frames that were taken: queued on the ring, or put on the cable
	Bytes    uint64 // of those, without FCS
	Errors   uint64 // frames that the transmit queue dropped; it counts them by reason
	Skipped  uint64 // frames whose time passed before they could be sent
	NoBuffer uint64 // times that no buffer was free
	Started  uint64 // 1 once the stream was asked for a frame
	Finished uint64 // 1 once every frame of its count was built
	Start    uint64 // when the first frame was due
	End      uint64 // until when the stream has run
}

// source is a stream on its way: what its next frame is and when it is due.
type source struct {
	stream Stream
	frame  frame
	spread spread
	pace   pacer
	page   *stat.Page[Counters]

	built uint64 // frames, clones included
	last  int64  // when the newest was built
	count uint64 // 0 = no end
	copy  int    // sends of the present frame that are left
	done  bool
}

// newSources makes the sources of all streams; addresses that a stream leaves
// out are taken from mac and peer.
func newSources(streams []*Stream, mac, peer inet.MAC) ([]*source, error) {
	if err := Distinct(streams); err != nil {
		return nil, fmt.Errorf("pktgen: %w", err)
	}
	var out []*source
	for _, s := range streams {
		c := *s
		if c.SrcMAC == (inet.MAC{}) {
			c.SrcMAC = mac
		}
		if c.DstMAC == (inet.MAC{}) {
			c.DstMAC = peer
		}
		if err := c.Validate(); err != nil {
			return nil, fmt.Errorf("pktgen: %w", err)
		}
		out = append(out, &source{
			stream: c, frame: newFrame(&c), spread: newSpread(&c), count: uint64(c.Count),
			pace: pacer{rate: uint64(c.Rate), burst: uint64(c.Burst), wait: int64(c.Start)},
			page: stat.New[Counters](),
		})
	}
	return out, nil
}

// due is the number of frames to send now.
func (s *source) due(now int64) int {
	live := &s.page.Live
	if s.done {
		// Not at the moment the last one was built: sending takes time, and
		// a stream that one round sends would have taken none.
		if live.Finished == 0 && now > s.last {
			// The last frame takes its time too: a paced stream lasts until the
			// one after it would be due.
			live.Finished = 1
			live.End = uint64(max(now, s.pace.next))
		}
		return 0
	}
	n := s.pace.due(now)
	live.Started = 1
	live.Start = uint64(s.pace.start)
	live.End = uint64(max(now, s.pace.start))
	live.Skipped = s.pace.skipped
	if s.count != 0 {
		n = int(min(uint64(n), s.count-s.built))
	}
	return n
}

// take makes the frame that is due next; fresh says that it is not the clone
// of the one before.
func (s *source) take(now int64) (b []byte, fresh bool) {
	if s.copy == 0 {
		hi, lo, flow := s.spread.take()
		s.frame.next(hi, lo, flow, uint32(s.built), s.pace.stamp(now))
		s.copy = max(s.stream.Clone, 1)
		fresh = true
	}
	s.copy--
	s.built++
	s.last = now
	s.pace.sent(1)
	s.done = s.built == s.count
	return s.frame.b, fresh
}

func results(src []*source) []Result {
	var out []Result
	for _, s := range src {
		out = append(out, newResult(&s.stream, s.page.Read()))
	}
	return out
}

func publish(src []*source) {
	for _, s := range src {
		s.page.Publish()
	}
}

// allDone reports whether every stream has built its count.
func allDone(src []*source) bool {
	for _, s := range src {
		if !s.done {
			return false
		}
	}
	return true
}
