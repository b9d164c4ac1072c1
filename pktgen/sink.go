package pktgen

import (
	"encoding/binary"

	"gorouter/internal/inet"
	"gorouter/internal/stat"
	"gorouter/rx"
	"gorouter/skb"
)

// SinkConfig says what a sink expects.
type SinkConfig struct {
	// Streams whose frames may arrive. Of these also frames lost before the
	// first that arrived are found, and names are known; others appear by
	// number.
	Streams []*Stream
	// Verify also checks lengths, the IPv4 header checksum and the UDP checksum
	// of every frame.
	Verify bool
	// Hops is the number of routers between; with CheckTTL the time to live of
	// known streams must have been decremented that often.
	Hops     int
	CheckTTL bool
}

// SinkTotals counts everything that a sink was given.
type SinkTotals struct {
	Packets uint64 `json:"packets"`
	Bytes   uint64 `json:"bytes"`   // without FCS
	Streams uint64 `json:"streams"` // frames of streams
	ARP     uint64 `json:"arp"`
	Other   uint64 `json:"other"`   // anything else: no generator's mark, fragments, other protocols
	Unknown uint64 `json:"unknown"` // of streams that were not described, beyond those that fit
	Damaged uint64 `json:"damaged"` // with Verify: wrong checksum or length
}

// maxUndescribed is how many streams that nobody described a sink follows.
const maxUndescribed = 16

// Sink counts what arrives, by stream. One goroutine at a time may give it
// frames; the results may be read by any.
type Sink struct {
	cfg    SinkConfig
	now    int64
	byID   [maxID + 1]uint16 // index into tracks, plus one
	tracks []*track
	spare  int // tracks[spare:] wait for undescribed streams
	used   *stat.Page[[1]uint64]
	totals *stat.Page[SinkTotals]
	batch  skb.Batch
}

// NewSink makes a sink. Everything it may need is allocated here.
func NewSink(c SinkConfig) *Sink {
	s := &Sink{cfg: c, totals: stat.New[SinkTotals](), used: stat.New[[1]uint64]()}
	for _, st := range c.Streams {
		t := &track{name: st.Name, known: true, clone: uint64(st.Clone), page: stat.New[SinkCounters]()}
		t.page.Live.Number = uint64(st.Number())
		if c.CheckTTL {
			t.ttl = uint8(max(st.TTL-c.Hops, 1))
		}
		s.tracks = append(s.tracks, t)
		s.byID[st.Number()&maxID] = uint16(len(s.tracks))
	}
	s.spare = len(s.tracks)
	for range maxUndescribed {
		s.tracks = append(s.tracks, &track{page: stat.New[SinkCounters]()})
	}
	s.used.Live[0] = uint64(s.spare)
	s.Publish()
	return s
}

// SetNow is the time (nanoseconds) at which the following frames arrive.
func (s *Sink) SetNow(now int64) { s.now = now }

// Next lets a sink alone be the end of a cable: it never has a frame.
func (s *Sink) Next(now int64) []byte {
	if now-s.now >= publishEvery {
		s.Publish()
	}
	s.now = now
	return nil
}

// Deliver takes a frame in, whatever it is. The frame may be reused
// afterwards.
func (s *Sink) Deliver(f []byte) bool {
	c := &s.totals.Live
	c.Packets++
	c.Bytes += uint64(len(f))
	if len(f) < inet.EthHeaderLen {
		c.Other++
		return true
	}
	var p parsed
	switch binary.BigEndian.Uint16(f[12:]) {
	case inet.EtherIPv4:
		p.ipv4(f[inet.EthHeaderLen:], s.cfg.Verify)
	case inet.EtherIPv6:
		p.ipv6(f[inet.EthHeaderLen:], s.cfg.Verify)
	case inet.EtherARP:
		c.ARP++
		return true
	}
	if len(p.payload) < tagLen || binary.BigEndian.Uint32(p.payload) != Magic {
		if p.damaged {
			c.Damaged++
		} else {
			c.Other++
		}
		return true
	}
	id := binary.BigEndian.Uint16(p.payload[tagStream:])
	t := s.track(id)
	if t == nil {
		c.Unknown++
		return true
	}
	if p.damaged {
		c.Damaged++
		t.page.Live.Damaged++
		return true
	}
	c.Streams++
	s.count(t, len(f), &p)
	return true
}

func (s *Sink) count(t *track, size int, p *parsed) {
	c := &t.page.Live
	if c.Packets == 0 {
		c.First = uint64(s.now)
	}
	c.Last = uint64(s.now)
	c.Packets++
	c.Bytes += uint64(size)
	if t.ttl != 0 && p.ttl != t.ttl {
		c.BadTTL++
	}
	t.sequence(binary.BigEndian.Uint32(p.payload[tagSeq:]), p.flow)
	if t.clone <= 1 {
		t.latency(int64(binary.BigEndian.Uint64(p.payload[tagStamp:])), s.now)
	}
}

// track finds the stream's record; nil when there is no room for another.
func (s *Sink) track(id uint16) *track {
	n := id & maxID
	if i := s.byID[n]; i != 0 {
		return s.tracks[i-1]
	}
	u := int(s.used.Live[0])
	if u == len(s.tracks) {
		return nil
	}
	t := s.tracks[u]
	t.page.Live.Number = uint64(n)
	if id&cloneBit != 0 {
		t.clone = 2 // how many is not known; only that numbers repeat
	}
	s.byID[n] = uint16(u + 1)
	s.used.Live[0]++
	return t
}

// Receive polls a receive queue for at most max frames, takes them in, frees
// them and replenishes: a whole turn. It returns how many it took off the ring.
func (s *Sink) Receive(q rx.Queue, cache *skb.Cache, max int, now int64) int {
	s.now = now
	a := cache.Arena()
	total, idle := 0, false
	for total < max && !idle {
		b := &s.batch
		b.Reset()
		want := min(max-total, skb.BatchSize)
		n := q.Poll(b, want, now)
		for _, h := range b.Handles() {
			s.Deliver(a.Bytes(h))
			cache.Free(h)
		}
		q.Replenish()
		total += n
		idle = n < want
	}
	q.EndTurn(idle)
	return total
}

// Publish makes the counts visible to readers. Only the goroutine that gives
// the sink frames may call it, or any once that has ended.
func (s *Sink) Publish() {
	s.totals.Publish()
	for _, t := range s.tracks[:s.used.Live[0]] {
		t.page.Publish()
	}
	s.used.Publish()
}
