package dataplane

import (
	"slices"

	"gorouter/skb"
)

// stageID names a stage of the packet path.
type stageID int

const (
	stageRx stageID = iota
	stageEthernet
	stageARP
	stageIP4Input
	stageIP4Lookup
	stageIP4Rewrite
	stageSlow
	stageTx
	numStages
)

var stageNames = [numStages]string{
	"rx", "ethernet", "arp", "ip4-input", "ip4-lookup", "ip4-rewrite", "slow-path", "tx",
}

// stageCounts counts one stage. Time is measured on some trips only, so that
// the clock does not become the cost.
type stageCounts struct {
	Calls, Packets        uint64
	TimedNs, TimedPackets uint64
}

// counts are a worker's counters: whole words, published with package stat.
type counts struct {
	Stages [numStages]stageCounts
	Drops  skb.DropCounts

	Full, Short, Empty uint64 // polls by how much of the vector they filled
	Turns, Rounds      uint64
	Exhausted          uint64 // rounds that ended by budget or time limit
	Stalled            uint64 // rounds that left off receiving, as another worker's ring was full
	Taken              uint64 // frames taken off receive rings
	Naps               uint64
	Sleeps             uint64 // on event sources
	Wakeups            uint64 // sleeps that something ended before their time
	Spurious           uint64 // wake-ups after which there was nothing to do
	Pendings           uint64 // sleeps that did not take place: a source had something
	Forwarded          uint64 // packets routed to a port
	Originated         uint64 // frames made here: ARP requests, ICMP errors, fragments beyond the first
	Answered           uint64 // requests turned into their answer: ARP, echo
	Suppressed         uint64 // ICMP errors not sent: rate limit, or no buffer
	Forbidden          uint64 // ICMP errors not sent because a rule forbids it
	Fragmented         uint64 // packets that left in fragments
	Fragments          uint64 // the fragments of those
	Handed             uint64 // frames handed to another worker
	BusyNs             uint64 // time in rounds that had work
	RunNs              uint64 // time since the first round
}

// Stage is one row of the stage table.
type Stage struct {
	Name        string  `json:"name"`
	Calls       uint64  `json:"calls"`
	Packets     uint64  `json:"packets"`
	NsPerPacket float64 `json:"ns_per_packet"`
}

// Polls is what poll loops did.
type Polls struct {
	Full      uint64 `json:"full"`
	Short     uint64 `json:"short"`
	Empty     uint64 `json:"empty"`
	Turns     uint64 `json:"turns"`
	Rounds    uint64 `json:"rounds"`
	Exhausted uint64 `json:"exhausted"` // rounds that ended by budget or time limit
	Stalled   uint64 `json:"stalled"`   // rounds that left off receiving, as another worker's ring was full
	Naps      uint64 `json:"naps"`
	Sleeps    uint64 `json:"sleeps"`           // on the ports' event sources
	Wakeups   uint64 `json:"wakeups"`          // sleeps ended by an event or by another goroutine
	Spurious  uint64 `json:"spurious_wakeups"` // of these, without anything to do
	Pendings  uint64 `json:"sleeps_refused"`   // sleeps that did not take place, as a port had something
	// MeanTrip is the mean number of frames in polls that found any.
	MeanTrip float64 `json:"mean_trip"`
	// BusyShare is the part of its time, 0 to 1, that a worker spent in rounds
	// with work; of several workers it is their mean.
	BusyShare float64 `json:"busy_share"`
}

// Stats is a sum over workers, as last published.
type Stats struct {
	Stages     []Stage
	Polls      Polls
	Drops      skb.DropCounts // of the stages; queues count their own
	Received   uint64         // frames taken off receive rings, those dropped there included
	Forwarded  uint64
	Originated uint64 // frames made here: ARP requests, ICMP errors, fragments beyond the first
	Answered   uint64 // received requests turned into their answer: ARP, echo
	Suppressed uint64 // ICMP errors over the rate limit, or without a buffer
	Forbidden  uint64 // ICMP errors that a rule forbids
	Fragmented uint64 // packets that left in fragments
	Fragments  uint64 // the fragments of those
	Handed     uint64
	BusyNs     uint64
	RunNs      uint64 // time since the first round
}

// WorkerStats is what one worker did.
type WorkerStats struct {
	Worker int
	CPU    int      // as asked for; -1 is any
	Ports  []string // whose receive queues it polls
	Stats
}

// add sums a worker's counters.
func (s *Stats) add(c *counts, stages *[numStages]stageCounts) {
	for i := range stages {
		stages[i].Calls += c.Stages[i].Calls
		stages[i].Packets += c.Stages[i].Packets
		stages[i].TimedNs += c.Stages[i].TimedNs
		stages[i].TimedPackets += c.Stages[i].TimedPackets
	}
	s.Drops.Add(&c.Drops)
	s.Polls.Full += c.Full
	s.Polls.Short += c.Short
	s.Polls.Empty += c.Empty
	s.Polls.Turns += c.Turns
	s.Polls.Rounds += c.Rounds
	s.Polls.Exhausted += c.Exhausted
	s.Polls.Stalled += c.Stalled
	s.Polls.Naps += c.Naps
	s.Polls.Sleeps += c.Sleeps
	s.Polls.Wakeups += c.Wakeups
	s.Polls.Spurious += c.Spurious
	s.Polls.Pendings += c.Pendings
	s.Received += c.Taken
	s.Forwarded += c.Forwarded
	s.Originated += c.Originated
	s.Answered += c.Answered
	s.Suppressed += c.Suppressed
	s.Forbidden += c.Forbidden
	s.Fragmented += c.Fragmented
	s.Fragments += c.Fragments
	s.Handed += c.Handed
	s.BusyNs += c.BusyNs
	s.RunNs += c.RunNs
}

// finish works out what is derived from sums.
func (s *Stats) finish(stages *[numStages]stageCounts) {
	if n := s.Polls.Full + s.Polls.Short; n > 0 {
		s.Polls.MeanTrip = float64(s.Received) / float64(n)
	}
	if s.RunNs > 0 {
		s.Polls.BusyShare = float64(s.BusyNs) / float64(s.RunNs)
	}
	for i, c := range stages {
		row := Stage{Name: stageNames[i], Calls: c.Calls, Packets: c.Packets}
		if c.TimedPackets > 0 {
			row.NsPerPacket = float64(c.TimedNs) / float64(c.TimedPackets)
		}
		s.Stages = append(s.Stages, row)
	}
}

// Stats sums the counters of all workers. Safe for concurrent use.
func (r *Router) Stats() Stats {
	var s Stats
	var stages [numStages]stageCounts
	for _, w := range r.workers {
		c := w.stats.Read()
		s.add(&c, &stages)
	}
	s.finish(&stages)
	return s
}

// WorkerStats are the counters of each worker. Safe for concurrent use.
func (r *Router) WorkerStats() []WorkerStats {
	list := make([]WorkerStats, len(r.workers))
	for i, w := range r.workers {
		s := &list[i]
		s.Worker, s.CPU, s.Ports = w.id, w.CPU, []string{}
		for k, p := range r.ports {
			if slices.Contains(r.rxOwner[k], w) {
				s.Ports = append(s.Ports, p.Name)
			}
		}
		var stages [numStages]stageCounts
		c := w.stats.Read()
		s.add(&c, &stages)
		s.finish(&stages)
	}
	return list
}

// done closes a stage: n packets went through it in one call.
func (w *Worker) done(s stageID, n int) {
	c := &w.stats.Live.Stages[s]
	if n > 0 {
		c.Calls++
		c.Packets += uint64(n)
	}
	if w.timed {
		t := w.clk.Now()
		c.TimedNs += uint64(t - w.lap)
		c.TimedPackets += uint64(n)
		w.lap = t
	}
}
