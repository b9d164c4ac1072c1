package neigh

import (
	"time"

	"gorouter/internal/option"
)

// MaxHold is the most packets that a worker may be told to hold for one
// neighbour.
const MaxHold = 32

// Options of the neighbour table, of the packets that wait for it, and of how
// our own addresses are claimed. The zero value is not usable; start from
// DefaultOptions.
type Options struct {
	Max         int           // neighbours in all
	GCMin       int           // up to so many, unused ones are kept
	GCSoft      int           // above so many, unused ones go soon
	GCStale     time.Duration // how long an unused stale neighbour is kept
	Reachable   time.Duration // base of how long an answer is believed
	Delay       time.Duration // between the use of a stale neighbour and the first probe
	Retransmit  time.Duration // between two questions
	Unicast     int           // questions to the known address before asking everybody
	Broadcast   int           // questions to everybody before giving up
	Negative    time.Duration // how long a failure is remembered
	Lock        time.Duration // how long a fresh address is not replaced by a plain answer
	RequestRate int           // questions to everybody a second
	Hold        int           // packets a worker holds for one neighbour
	Announce    int           // announcements of an own address; 0 also turns the probe off
}

// OptionTable lists the options. Times and numbers are those of the Linux
// kernel where it has them (arp(7)); the sizes are a router's.
var OptionTable = option.Table[Options]{
	{Name: "max", Unit: "neighbours", Min: 1, Max: 524288, DefInt: 65536,
		Help: "size of the table; in a full one the oldest that did not answer, then the longest unused makes room",
		Int:  func(o *Options) *int { return &o.Max }},
	{Name: "gc_min", Unit: "neighbours", Min: 0, Max: 524288, DefInt: 128,
		Help: "up to so many neighbours are kept even if unused",
		Int:  func(o *Options) *int { return &o.GCMin }},
	{Name: "gc_soft", Unit: "neighbours", Min: 0, Max: 524288, DefInt: 32768,
		Help: "above so many neighbours an unused one goes after 5 s at the latest",
		Int:  func(o *Options) *int { return &o.GCSoft }},
	{Name: "gc_stale", Min: 1e6, Max: 86400e6, DefDur: 60 * time.Second,
		Help: "how long a stale neighbour is kept that nothing is sent to",
		Dur:  func(o *Options) *time.Duration { return &o.GCStale }},
	{Name: "reachable", Min: 1e6, Max: 86400e6, DefDur: 30 * time.Second,
		Help: "how long an answer is believed; each time between half and one and a half of it, at random",
		Dur:  func(o *Options) *time.Duration { return &o.Reachable }},
	{Name: "delay", Min: 0, Max: 3600e6, DefDur: 5 * time.Second,
		Help: "from the first packet to a stale neighbour until it is probed",
		Dur:  func(o *Options) *time.Duration { return &o.Delay }},
	{Name: "retransmit", Min: 100e3, Max: 60e6, DefDur: time.Second,
		Help: "between two questions",
		Dur:  func(o *Options) *time.Duration { return &o.Retransmit }},
	{Name: "unicast", Unit: "requests", Min: 0, Max: 100, DefInt: 3,
		Help: "requests to the known address of a neighbour before everybody is asked",
		Int:  func(o *Options) *int { return &o.Unicast }},
	{Name: "broadcast", Unit: "requests", Min: 1, Max: 100, DefInt: 3,
		Help: "requests to everybody before a neighbour has failed",
		Int:  func(o *Options) *int { return &o.Broadcast }},
	{Name: "negative", Min: 0, Max: 3600e6, DefDur: 3 * time.Second,
		Help: "how long packets to a neighbour that failed are refused without asking again",
		Dur:  func(o *Options) *time.Duration { return &o.Negative }},
	{Name: "lock", Min: 0, Max: 60e6, DefDur: time.Second,
		Help: "of several answers within this time the first counts; announcements always do",
		Dur:  func(o *Options) *time.Duration { return &o.Lock }},
	{Name: "request_rate", Unit: "requests a second", Min: 1, Max: 1000000, DefInt: 3000,
		Help: "broadcast requests of all ports; packets to further new neighbours are dropped as neigh_request_rate",
		Int:  func(o *Options) *int { return &o.RequestRate }},
	{Name: "hold", Unit: "packets", Min: 1, Max: MaxHold, DefInt: 8,
		Help: "packets that wait for one neighbour; the newest push out the oldest",
		Int:  func(o *Options) *int { return &o.Hold }},
	{Name: "announce", Unit: "announcements", Min: 0, Max: 16, DefInt: 2,
		Help: "gratuitous ARP requests, 2 s apart, at the start, when a link comes up and when a port's MAC changes; 0 turns off the probe at the start too",
		Int:  func(o *Options) *int { return &o.Announce }},
}

// DefaultOptions are the defaults of OptionTable.
func DefaultOptions() Options { return OptionTable.Defaults() }
