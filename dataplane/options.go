package dataplane

import (
	"time"

	"gorouter/internal/option"
	"gorouter/skb"
)

// What a worker does when no receive queue has work.
const (
	// IdleSpin polls again at once: lowest latency, a whole processor.
	IdleSpin = "spin"
	// IdleBackoff naps for longer and longer, up to IdleMax.
	IdleBackoff = "backoff"
	// IdleInterrupt sleeps until a port's event source speaks.
	IdleInterrupt = "interrupt"
)

// Options of the poll loop; the same for every worker.
type Options struct {
	Weight  int
	Vector  int
	Budget  int
	Limit   time.Duration
	Idle    string
	IdleMax time.Duration
}

// OptionTable lists the options of the poll loop.
var OptionTable = option.Table[Options]{
	{Name: "weight", Unit: "frames", Min: 1, Max: 4096, DefInt: 64, Live: true,
		Help: "frames a receive queue may use in one turn",
		Int:  func(o *Options) *int { return &o.Weight }},
	{Name: "vector", Unit: "frames", Min: 1, Max: skb.BatchSize, DefInt: 32, Live: true,
		Help: "frames taken through all stages together; 1 is what drivers of 2004 did",
		Int:  func(o *Options) *int { return &o.Vector }},
	{Name: "budget", Unit: "frames", Min: 1, Max: 65536, DefInt: 300, Live: true,
		Help: "frames all queues of a worker may use in one round",
		Int:  func(o *Options) *int { return &o.Budget }},
	{Name: "time_limit", Min: 10, Max: 1000000, DefDur: 2 * time.Millisecond, Live: true,
		Help: "longest time of one round",
		Dur:  func(o *Options) *time.Duration { return &o.Limit }},
	{Name: "idle", Values: []string{IdleSpin, IdleBackoff, IdleInterrupt}, DefStr: IdleBackoff, Live: true,
		Help: "when nothing arrives: spin polls on, backoff naps, interrupt sleeps until a port wakes the worker; where a port cannot, interrupt naps",
		Str:  func(o *Options) *string { return &o.Idle }},
	{Name: "idle_max", Min: 1, Max: 100000, DefDur: 200 * time.Microsecond, Live: true,
		Help: "longest nap",
		Dur:  func(o *Options) *time.Duration { return &o.IdleMax }},
}
