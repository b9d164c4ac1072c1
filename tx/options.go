package tx

import (
	"time"

	"gorouter/internal/option"
)

// Doorbell policies: when the tail register is written.
const (
	DoorbellFrame = "frame" // after every frame
	DoorbellBatch = "batch" // once per Send
	DoorbellTimer = "timer" // once per timer interval
)

// Reclaim policies: when sent frames are freed.
const (
	// ReclaimLazy: when the occupied slots pass a watermark, and when the
	// worker is idle. Completion is read from descriptors (DD), never from
	// the head register.
	ReclaimLazy = "lazy"
)

// Options of a transmit queue.
type Options struct {
	Ring          int
	Reclaim       string
	ReclaimAt     int
	ReportEvery   int
	Doorbell      string
	DoorbellTimer time.Duration
	WakeAt        int
}

// Ring sizes of the 8254x, in descriptors (section 13.4.40).
const (
	MinRing  = 80
	MaxRing  = 4096
	RingStep = 8
)

// OptionTable lists the options of a transmit queue.
var OptionTable = option.Table[Options]{
	{Name: "ring", Unit: "descriptors", Min: MinRing, Max: MaxRing, Multiple: RingStep, DefInt: 256,
		Help: "transmit ring size; one slot always stays free",
		Int:  func(o *Options) *int { return &o.Ring }},
	{Name: "reclaim", Values: []string{ReclaimLazy}, DefStr: ReclaimLazy,
		Help: "lazy frees sent frames at a watermark and when idle",
		Str:  func(o *Options) *string { return &o.Reclaim }},
	{Name: "reclaim_at", Unit: "descriptors", Min: 1, Max: MaxRing, DefInt: 64, Live: true,
		Help: "occupied slots from which a Send first reclaims; capped at the ring size less one",
		Int:  func(o *Options) *int { return &o.ReclaimAt }},
	{Name: "report_every", Unit: "descriptors", Min: 1, Max: 256, DefInt: 16, Live: true,
		Help: "ask for a status report (RS) on every Nth descriptor and on the last one before idling",
		Int:  func(o *Options) *int { return &o.ReportEvery }},
	{Name: "doorbell", Values: []string{DoorbellFrame, DoorbellBatch, DoorbellTimer}, DefStr: DoorbellBatch, Live: true,
		Help: "write the tail register after each frame, once a batch, or once a timer interval",
		Str:  func(o *Options) *string { return &o.Doorbell }},
	{Name: "doorbell_timer", Min: 1, Max: 100000, DefDur: time.Millisecond, Live: true,
		Help: "interval of doorbell: timer; the first frame after idling may wait this long",
		Dur:  func(o *Options) *time.Duration { return &o.DoorbellTimer }},
	{Name: "wake_at", Unit: "descriptors", Min: 1, Max: MaxRing, DefInt: 32, Live: true,
		Help: "free slots at which a ring that ran full counts as having room again",
		Int:  func(o *Options) *int { return &o.WakeAt }},
}
