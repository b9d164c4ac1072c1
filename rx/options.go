package rx

import "gorouter/internal/option"

// When the buffers of taken frames go back to the ring.
const (
	// ReplenishTurn: inside the turn, whenever the replenish batch is free,
	// and the rest when the ring was found empty.
	ReplenishTurn = "turn"
	// ReplenishEnd: only when the turn is over, as drivers did before the
	// refill was moved into the cleaning loop.
	ReplenishEnd = "end"
)

// Options of a receive queue.
type Options struct {
	Ring        int
	Replenish   int
	ReplenishAt string
	Copybreak   int
}

// Ring sizes of the 8254x, in descriptors. The length registers count in
// units of 128 bytes, hence multiples of 8 (section 13.4.27).
const (
	MinRing  = 80
	MaxRing  = 4096
	RingStep = 8
)

// OptionTable lists the options of a receive queue.
var OptionTable = option.Table[Options]{
	{Name: "ring", Unit: "descriptors", Min: MinRing, Max: MaxRing, Multiple: RingStep, DefInt: 256,
		Help: "receive ring size; one slot always stays free",
		Int:  func(o *Options) *int { return &o.Ring }},
	{Name: "replenish", Unit: "descriptors", Min: 1, Max: MaxRing, DefInt: 16, Live: true,
		Help: "buffers given back to the ring at once; more saves register writes, fewer keeps the ring fuller",
		Int:  func(o *Options) *int { return &o.Replenish }},
	{Name: "replenish_at", Values: []string{ReplenishTurn, ReplenishEnd}, DefStr: ReplenishTurn, Live: true,
		Help: "give buffers back inside the turn, or only at its end",
		Str:  func(o *Options) *string { return &o.ReplenishAt }},
	{Name: "copybreak", Unit: "bytes", Min: 0, Max: 1514, DefInt: 0, Live: true,
		Help: "copy frames up to this length into a fresh buffer and leave the ring's own on it; 0 never copies",
		Int:  func(o *Options) *int { return &o.Copybreak }},
}
