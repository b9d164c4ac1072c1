package pktgen

import (
	"encoding/json"
	"fmt"
	"time"

	"gorouter/internal/inet"
)

// Seconds is a duration that JSON has in seconds.
type Seconds time.Duration

// MarshalJSON writes the seconds as a decimal.
func (s Seconds) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(s).Seconds()) }

// UnmarshalJSON reads seconds.
func (s *Seconds) UnmarshalJSON(b []byte) error {
	var f float64
	if err := json.Unmarshal(b, &f); err != nil {
		return fmt.Errorf("seconds: %w", err)
	}
	*s = Seconds(f * float64(time.Second))
	return nil
}

// String is the duration as Go writes it.
func (s Seconds) String() string { return time.Duration(s).String() }

// Result is what became of one stream. Offered is what the rate asked for and
// Sent what was achieved; without a rate, or when the sender kept up, they
// differ by the errors only.
type Result struct {
	Stream   string  `json:"stream"`
	Size     int     `json:"size"` // bytes without FCS
	Sent     uint64  `json:"sent"`
	Offered  uint64  `json:"offered"`
	Bytes    uint64  `json:"bytes"` // without FCS
	Duration Seconds `json:"duration_s"`
	Idle     Seconds `json:"idle_s"` // part of Duration that the sender waited for the time of its next frame
	PPS      float64 `json:"pps"`
	// BitsL2 is bits per second of the frames without FCS, BitsL1 with the 24
	// bytes that each costs on the wire beyond that.
	BitsL2   float64 `json:"bits_l2"`
	BitsL1   float64 `json:"bits_l1"`
	Errors   uint64  `json:"errors"`
	NoBuffer uint64  `json:"no_buffer"`
	Done     bool    `json:"done"` // the whole count was sent
}

func newResult(s *Stream, c Counters) Result {
	r := Result{
		Stream: s.Name, Size: s.Size, Sent: c.Sent, Offered: c.Sent + c.Errors + c.Skipped, Bytes: c.Bytes,
		Duration: Seconds(int64(c.End - c.Start)), Errors: c.Errors, NoBuffer: c.NoBuffer,
		Done: s.Count != 0 && c.Sent+c.Errors == uint64(s.Count),
	}
	if sec := time.Duration(r.Duration).Seconds(); sec > 0 {
		r.PPS = float64(r.Sent) / sec
		r.BitsL2 = 8 * float64(r.Bytes) / sec
		r.BitsL1 = 8 * float64(r.Bytes+r.Sent*inet.WireOverhead) / sec
	}
	return r
}

// String is the result in the two lines that users of the kernel's pktgen
// know, after the stream's name; d is the time waited, c the rest.
func (r Result) String() string {
	total, idle := time.Duration(r.Duration).Microseconds(), time.Duration(r.Idle).Microseconds()
	return fmt.Sprintf("stream %s: Result: OK: %d(c%d+d%d) usec, %d (%dbyte,0frags)\n  %.0fpps %.0fMb/sec (%.0fbps) errors: %d",
		r.Stream, total, total-idle, idle, r.Sent, r.Size, r.PPS, r.BitsL2/1e6, r.BitsL2, r.Errors)
}
