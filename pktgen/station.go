package pktgen

import (
	"encoding/binary"
	"net/netip"
	"sync/atomic"

	"gorouter/internal/inet"
)

// Station is the far end of a cable: it sends streams, takes in what comes
// back, and answers ARP for its addresses. It builds frames in memory of its
// own and knows nothing of the router's buffers.
//
// Deliver and Next are called by the goroutine that steps the cable; Results,
// and the results of the sink, may be read by any, who may also call Quiet.
type Station struct {
	sink *Sink
	arp  responder
	src  []*source
	turn int
	now  int64

	published int64
	quiet     atomic.Bool
}

// StationConfig describes a station.
type StationConfig struct {
	MAC inet.MAC
	// Addrs are the addresses for which it answers ARP, besides the sources of
	// its streams; a prefix stands for all of its addresses.
	Addrs []netip.Prefix
	// Except are addresses within Addrs that are the router's own.
	Except  []netip.Addr
	Streams []*Stream
	// Peer is the MAC address of the router's port, for streams that leave out
	// their destination MAC.
	Peer inet.MAC
	// Sink takes in what arrives; nil makes one that only counts.
	Sink *Sink
}

// NewStation prepares every stream. Its errors name the stream.
func NewStation(c StationConfig) (*Station, error) {
	src, err := newSources(c.Streams, c.MAC, c.Peer)
	if err != nil {
		return nil, err
	}
	s := &Station{sink: c.Sink, src: src, arp: responder{mac: c.MAC}}
	if s.sink == nil {
		s.sink = NewSink(SinkConfig{})
	}
	s.arp.not = c.Except
	for _, p := range c.Addrs {
		s.arp.addrs = append(s.arp.addrs, p.Masked())
	}
	for _, x := range src {
		if a := x.stream.Src; a.Is4() {
			s.arp.addrs = append(s.arp.addrs, netip.PrefixFrom(a, 32))
		}
	}
	return s, nil
}

// Deliver takes a frame in. The frame may be reused afterwards.
func (s *Station) Deliver(frame []byte) bool {
	if len(frame) >= inet.EthHeaderLen && binary.BigEndian.Uint16(frame[12:]) == inet.EtherARP {
		s.arp.request(frame)
	}
	return s.sink.Deliver(frame)
}

// Next is the next frame for the cable, nil when none is due at now
// (nanoseconds). ARP answers come first, then the streams, one frame of each
// in turn. The frame must not be changed; it is valid until the next call.
func (s *Station) Next(now int64) []byte {
	s.sink.SetNow(now)
	if now != s.now {
		s.now = now
		if now-s.published >= publishEvery {
			s.published = now
			s.Publish()
		}
	}
	if b := s.arp.next(); b != nil {
		return b
	}
	if s.quiet.Load() {
		return nil
	}
	for range s.src {
		x := s.src[s.turn]
		if s.turn++; s.turn == len(s.src) {
			s.turn = 0
		}
		if x.due(now) > 0 {
			b, _ := x.take(now)
			x.page.Live.Sent++
			x.page.Live.Bytes += uint64(len(b))
			return b
		}
	}
	return nil
}

// publishEvery is how often counters are published, in nanoseconds.
const publishEvery = 1_000_000

// Publish makes the counts visible to readers; Next does it once a
// millisecond. Only the goroutine that steps the cable may call it, or any
// once that has ended.
func (s *Station) Publish() {
	publish(s.src)
	s.sink.Publish()
}

// Quiet ends the streams for good: from then on the station only answers ARP
// and takes in what arrives. Safe from any goroutine.
func (s *Station) Quiet() { s.quiet.Store(true) }

// Done reports whether every stream has sent its count. Not for use from
// other goroutines.
func (s *Station) Done() bool { return allDone(s.src) }

// Results is what each stream has sent, as last published. Safe for
// concurrent use.
func (s *Station) Results() []Result { return results(s.src) }

// Sink is where the frames go that arrive.
func (s *Station) Sink() *Sink { return s.sink }
