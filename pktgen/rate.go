package pktgen

import "time"

// MovingRate turns a growing counter into a rate over the recent past. The
// zero value averages over one second; one goroutine may use it.
type MovingRate struct {
	// Window is how far back the rate looks.
	Window time.Duration

	at    [rateSamples]int64
	count [rateSamples]uint64
	n     int // samples ever taken
}

const rateSamples = 32

// Add takes a sample: the counter's value at now (nanoseconds). It returns the
// rate per second between the oldest sample within the window and this one; 0
// for the first. When samples come very often the window is as long as the
// last 32 of them.
func (m *MovingRate) Add(now int64, count uint64) float64 {
	m.at[m.n%rateSamples], m.count[m.n%rateSamples] = now, count
	m.n++
	w := int64(m.Window)
	if w <= 0 {
		w = second
	}
	// The one before the last serves even when it is older than the window.
	oldest := m.n - 2
	for i := m.n - 2; i >= 0 && i > m.n-1-rateSamples && now-m.at[i%rateSamples] <= w; i-- {
		oldest = i
	}
	if oldest < 0 {
		return 0
	}
	dt := now - m.at[oldest%rateSamples]
	if dt <= 0 {
		return 0
	}
	return float64(count-m.count[oldest%rateSamples]) * second / float64(dt)
}
