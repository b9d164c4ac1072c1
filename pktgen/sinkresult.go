package pktgen

import (
	"fmt"
	"time"
)

// Latency is from the time a frame was due to the time it was taken in.
type Latency struct {
	Min time.Duration `json:"min_ns"`
	Avg time.Duration `json:"avg_ns"`
	Max time.Duration `json:"max_ns"`
}

// SinkResult is what became of one stream at the sink.
type SinkResult struct {
	Stream  string `json:"stream"`
	Packets uint64 `json:"packets"`
	Bytes   uint64 `json:"bytes"` // without FCS
	// Lost counts the sequence numbers up to the highest seen that did not
	// arrive; Account also counts those after it.
	Lost       uint64   `json:"lost"`
	Duplicates uint64   `json:"duplicates"`
	Reordered  uint64   `json:"reordered"` // within a flow
	Late       uint64   `json:"late"`      // so much behind that repeats cannot be told
	BadTTL     uint64   `json:"bad_ttl"`
	Damaged    uint64   `json:"damaged"`
	Duration   Seconds  `json:"duration_s"` // from the first frame to the last
	PPS        float64  `json:"pps"`
	Latency    *Latency `json:"latency,omitempty"`

	unique uint64
}

// Account takes into the loss also the frames after the last that arrived:
// sent is how many the sender has sent of the stream.
func (r *SinkResult) Account(sent uint64) {
	r.Lost = sent - min(sent, r.unique+r.Late)
}

// Results is what the sink has counted by stream, as last published. Safe for
// concurrent use.
func (s *Sink) Results() []SinkResult {
	var out []SinkResult
	n := min(int(s.used.Read()[0]), len(s.tracks))
	for i, t := range s.tracks[:n] {
		c := t.page.Read()
		name := t.name
		if i >= s.spare {
			name = fmt.Sprintf("#%d", c.Number) // only the sender knows the name
		}
		r := SinkResult{
			Stream: name, Packets: c.Packets, Bytes: c.Bytes,
			Lost:       c.Expected - min(c.Expected, c.Unique+c.Late),
			Duplicates: c.Duplicates, Reordered: c.Reordered, Late: c.Late,
			BadTTL: c.BadTTL, Damaged: c.Damaged,
			Duration: Seconds(int64(c.Last - c.First)), unique: c.Unique,
		}
		if sec := time.Duration(r.Duration).Seconds(); sec > 0 {
			// The first frame begins the first interval, it does not end one.
			r.PPS = float64(c.Packets-1) / sec
		}
		if c.LatCount > 0 {
			r.Latency = &Latency{Min: time.Duration(c.LatMin), Avg: time.Duration(c.LatSum / c.LatCount), Max: time.Duration(c.LatMax)}
		}
		out = append(out, r)
	}
	return out
}

// Totals counts everything that the sink was given, as last published. Safe
// for concurrent use.
func (s *Sink) Totals() SinkTotals { return s.totals.Read() }
