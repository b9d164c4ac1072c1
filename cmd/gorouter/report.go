package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"sort"
	"strings"
	"text/tabwriter"
	"time"

	"gorouter/dataplane"
	"gorouter/dataplane/neigh"
	"gorouter/pktgen"
	"gorouter/port"
	"gorouter/skb"
)

// report is what a run did. The JSON names are an interface.
type report struct {
	Duration   float64               `json:"duration_s"`
	Ports      map[string]portReport `json:"ports"`
	Drops      map[string]uint64     `json:"drops"`
	Buffers    map[string]int        `json:"buffers,omitempty"`
	Stages     []dataplane.Stage     `json:"stages"`
	Polls      dataplane.Polls       `json:"polls"`
	Workers    []workerReport        `json:"workers"`
	Forwarded  uint64                `json:"forwarded"`
	Originated uint64                `json:"originated"`
	Answered   uint64                `json:"answered"`
	Fragmented uint64                `json:"fragmented"`
	Fragments  uint64                `json:"fragments"`
	ICMP       icmpReport            `json:"icmp_errors"`
	Neighbors  neigh.Stats           `json:"neighbors"`
	BusyNs     float64               `json:"busy_ns_per_frame"`
	Emulated   bool                  `json:"rates_include_emulated_device"`
	Streams    []streamReport        `json:"streams,omitempty"`
	InFlight   map[string]uint64     `json:"in_flight,omitempty"` // generated frames still under way at the end, by place

	names []string // of the ports, in order
}

type icmpReport struct {
	Suppressed uint64 `json:"suppressed"`
	Forbidden  uint64 `json:"forbidden"`
}

// workerReport is one worker's part.
type workerReport struct {
	Worker     int               `json:"worker"`
	CPU        int               `json:"cpu"` // -1: any
	Ports      []string          `json:"ports"`
	Received   uint64            `json:"received"`
	Forwarded  uint64            `json:"forwarded"`
	Originated uint64            `json:"originated"`
	Answered   uint64            `json:"answered"`
	Handed     uint64            `json:"handed"` // to other workers
	Drops      map[string]uint64 `json:"drops"`
	Polls      dataplane.Polls   `json:"polls"`
}

type portReport struct {
	RxPackets uint64            `json:"rx_packets"`
	RxMissed  uint64            `json:"rx_missed"` // lost by the device before the router saw them
	RxBytes   uint64            `json:"rx_bytes"`
	TxPackets uint64            `json:"tx_packets"`
	TxBytes   uint64            `json:"tx_bytes"`
	RxPPS     float64           `json:"rx_pps"`
	TxPPS     float64           `json:"tx_pps"`
	Up        bool              `json:"up"`
	Device    map[string]uint64 `json:"device,omitempty"`
}

// streamReport is one stream of a station, at its source and where it came
// out.
type streamReport struct {
	Name     string `json:"name"`
	Port     string `json:"port"`
	Sent     uint64 `json:"sent"`
	Received uint64 `json:"received"`
	Lost     uint64 `json:"lost"`
}

// newReport reads all counters as last published. took is the time they cover.
func newReport(b *box, took time.Duration) *report {
	s := b.router.Stats()
	r := &report{
		Duration: took.Seconds(), Ports: map[string]portReport{}, Stages: s.Stages, Polls: s.Polls,
		Forwarded: s.Forwarded, Originated: s.Originated, Answered: s.Answered, Fragmented: s.Fragmented, Fragments: s.Fragments,
		ICMP:      icmpReport{Suppressed: s.Suppressed, Forbidden: s.Forbidden},
		Neighbors: b.router.Neighbours().Stats(),
	}
	for _, w := range b.router.WorkerStats() {
		r.Workers = append(r.Workers, workerReport{
			Worker: w.Worker, CPU: w.CPU, Ports: w.Ports, Received: w.Received, Forwarded: w.Forwarded,
			Originated: w.Originated, Answered: w.Answered, Handed: w.Handed, Drops: w.Drops.Map(), Polls: w.Polls,
		})
	}
	drops := s.Drops
	frames := uint64(0)
	for _, p := range b.ports {
		var pr portReport
		for _, q := range p.Rx {
			c := q.Counters().Read()
			drops.Add(&c.Drops)
			// What the queue dropped came in too.
			pr.RxPackets += c.Packets + c.Drops.Total()
			pr.RxBytes += c.Bytes
		}
		for _, q := range p.Tx {
			c := q.Counters().Read()
			drops.Add(&c.Drops)
			pr.TxPackets += c.Packets
			pr.TxBytes += c.Bytes
		}
		frames += pr.RxPackets
		pr.RxPPS, pr.TxPPS = rate(pr.RxPackets, took), rate(pr.TxPackets, took)
		pr.Up = p.Up()
		stats := p.Device.Stats()
		pr.RxMissed = stats[port.RxMissed]
		pr.Device = nonZero(stats)
		r.Ports[p.Name] = pr
		r.names = append(r.names, p.Name)
	}
	r.Drops = drops.Map()
	r.Emulated = len(b.chips) > 0
	if frames > 0 {
		r.BusyNs = float64(s.BusyNs) / float64(frames)
	}
	r.streams(b)
	return r
}

// streams joins what stations sent with what other stations received.
func (r *report) streams(b *box) {
	got := map[string]pktgen.SinkResult{}
	for _, st := range b.stations {
		for _, x := range st.Sink().Results() {
			if x.Packets > 0 {
				got[x.Stream] = x
			}
		}
	}
	for _, st := range b.stations {
		for _, x := range st.Results() {
			s := streamReport{Name: x.Stream, Port: st.port, Sent: x.Sent, Received: got[x.Stream].Packets}
			if s.Sent > s.Received {
				s.Lost = s.Sent - s.Received
			}
			r.Streams = append(r.Streams, s)
		}
	}
}

func (r *report) buffers(c skb.Census) {
	r.Buffers = map[string]int{"total": c.Total, "free": c.Free, "cached": c.Cached}
	maps.Copy(r.Buffers, c.Places)
}

func (b *box) holders() []skb.Holder { return b.router.Holders() }

func rate(n uint64, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return float64(n) / d.Seconds()
}

func nonZero(m map[string]uint64) map[string]uint64 {
	out := map[string]uint64{}
	for k, v := range m {
		if v != 0 {
			out[k] = v
		}
	}
	return out
}

// since is the difference to an earlier report.
func (r *report) since(old *report) *report {
	d := *r
	took := time.Duration(r.Duration * float64(time.Second))
	d.Ports = map[string]portReport{}
	for n, p := range r.Ports {
		o := old.Ports[n]
		p.RxPackets -= o.RxPackets
		p.RxMissed -= o.RxMissed
		p.RxBytes -= o.RxBytes
		p.TxPackets -= o.TxPackets
		p.TxBytes -= o.TxBytes
		p.RxPPS, p.TxPPS = rate(p.RxPackets, took), rate(p.TxPackets, took)
		d.Ports[n] = p
	}
	d.Drops = map[string]uint64{}
	for n, v := range r.Drops {
		if v -= old.Drops[n]; v > 0 {
			d.Drops[n] = v
		}
	}
	return &d
}

// line is one interval in one line.
func (r *report) line() string {
	var s strings.Builder
	for i, n := range r.names {
		p := r.Ports[n]
		if i > 0 {
			s.WriteString("  ")
		}
		fmt.Fprintf(&s, "%s rx %s tx %s pps", n, si(p.RxPPS), si(p.TxPPS))
		if p.RxMissed > 0 {
			fmt.Fprintf(&s, " missed %d", p.RxMissed)
		}
		if !p.Up {
			s.WriteString(" (no link)")
		}
	}
	total := uint64(0)
	for _, v := range r.Drops {
		total += v
	}
	fmt.Fprintf(&s, "  drops %d", total)
	return s.String()
}

// table is one interval as a table, with the missed frames and drops since the start, and the
// number of its lines.
func (r *report) table(all *report) (string, int) {
	var s strings.Builder
	w := tabwriter.NewWriter(&s, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "port\trx pps\ttx pps\trx Mb/s\ttx Mb/s\tmissed\tlink\t")
	took := time.Duration(r.Duration * float64(time.Second))
	for _, n := range r.names {
		p := r.Ports[n]
		link := "up"
		if !p.Up {
			link = "down"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%.1f\t%.1f\t%d\t%s\t\n", n, si(p.RxPPS), si(p.TxPPS),
			rate(p.RxBytes, took)*8/1e6, rate(p.TxBytes, took)*8/1e6, all.Ports[n].RxMissed, link)
	}
	_ = w.Flush()
	fmt.Fprintf(&s, "drops: %s\n", dropText(all.Drops))
	if r.Emulated {
		s.WriteString("rates include the emulated device (software 8254x)\n")
	}
	return s.String(), strings.Count(s.String(), "\n")
}

func dropText(m map[string]uint64) string {
	if len(m) == 0 {
		return "none"
	}
	var parts []string
	for _, n := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, fmt.Sprintf("%s %d", n, m[n]))
	}
	return strings.Join(parts, ", ")
}

// neighborText is the neighbour table in one line.
func neighborText(s *neigh.Stats) string {
	parts := []string{}
	for _, n := range slices.Sorted(maps.Keys(s.States)) {
		if k := s.States[n]; k > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", k, n))
		}
	}
	if len(parts) == 0 {
		parts = append(parts, "none")
	}
	text := fmt.Sprintf("%s; asked %d, learned %d, moved %d, failed %d", strings.Join(parts, ", "), s.Requests, s.Learned, s.Moved, s.Failures)
	if s.Conflicts > 0 {
		text += fmt.Sprintf("; %d frames from hosts with an address of ours", s.Conflicts)
	}
	return text
}

// print writes the report for people.
func (r *report) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "\nran %.1f s\n\n", r.Duration)
	fmt.Fprintln(w, "port\trx packets\tmissed\trx pps\ttx packets\ttx pps\t")
	for _, n := range r.names {
		p := r.Ports[n]
		fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%d\t%s\t\n", n, p.RxPackets, p.RxMissed, si(p.RxPPS), p.TxPackets, si(p.TxPPS))
	}
	fmt.Fprintln(w, "\nstage\tcalls\tpackets\tpackets/call\tns/packet\t")
	for _, s := range r.Stages {
		if s.Calls == 0 {
			continue
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%.1f\t%.1f\t\n", s.Name, s.Calls, s.Packets, float64(s.Packets)/float64(s.Calls), s.NsPerPacket)
	}
	_ = w.Flush()
	fmt.Fprintf(out, "\npolls: %d full, %d short, %d empty; forwarded %d, answered %d, originated %d\n", r.Polls.Full, r.Polls.Short, r.Polls.Empty, r.Forwarded, r.Answered, r.Originated)
	if r.Fragmented > 0 {
		fmt.Fprintf(out, "fragmented: %d packets into %d fragments\n", r.Fragmented, r.Fragments)
	}
	fmt.Fprintf(out, "trips: %.1f frames; rounds: %d, %d cut short; idle: %d naps, %d sleeps, %d wake-ups, %d of them for nothing; busy %.0f %%\n",
		r.Polls.MeanTrip, r.Polls.Rounds, r.Polls.Exhausted, r.Polls.Naps, r.Polls.Sleeps, r.Polls.Wakeups, r.Polls.Spurious, 100*r.Polls.BusyShare)
	if len(r.Workers) > 1 {
		for _, w := range r.Workers {
			fmt.Fprintf(out, "worker %d (%s): received %d, forwarded %d, handed over %d, busy %.0f %%\n",
				w.Worker, strings.Join(w.Ports, ", "), w.Received, w.Forwarded, w.Handed, 100*w.Polls.BusyShare)
		}
	}
	fmt.Fprintf(out, "neighbours: %s\n", neighborText(&r.Neighbors))
	fmt.Fprintf(out, "drops: %s\n", dropText(r.Drops))
	var places []string
	for n, v := range r.Buffers {
		places = append(places, fmt.Sprintf("%s %d", n, v))
	}
	sort.Strings(places)
	fmt.Fprintf(out, "buffers: %s\n", strings.Join(places, ", "))
	for _, s := range r.Streams {
		fmt.Fprintf(out, "stream %s: sent %d, received %d, lost %d\n", s.Name, s.Sent, s.Received, s.Lost)
	}
	if len(r.InFlight) > 0 {
		fmt.Fprintf(out, "in flight at the end: %s\n", dropText(r.InFlight))
	}
	if r.Emulated {
		_, err := fmt.Fprintf(out, "rates include the emulated device (software 8254x); the worker was busy %.0f ns a frame, device included unless it has its own thread\n", r.BusyNs)
		return err
	}
	return nil
}

// si is a rate with a unit prefix.
func si(v float64) string {
	switch {
	case v >= 1e6:
		return fmt.Sprintf("%.3f M", v/1e6)
	case v >= 1e3:
		return fmt.Sprintf("%.1f k", v/1e3)
	}
	return fmt.Sprintf("%.0f", v)
}
