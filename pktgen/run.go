package pktgen

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync/atomic"
	"time"

	"gorouter/clock"
	"gorouter/internal/inet"
	"gorouter/port"
	"gorouter/rx"
	"gorouter/skb"
	"gorouter/tx"
)

// PortConfig describes a measurement on one port.
type PortConfig struct {
	Streams []*Stream
	Port    *port.Port
	Cache   *skb.Cache // the port's queues must use the same
	Clock   *clock.Clock
	// Peer is the destination MAC of streams that leave theirs out; their
	// source MAC is the port's.
	Peer inet.MAC
	// Duration of sending; 0 sends until every count is reached.
	Duration time.Duration
	// WaitLink is the longest wait for the link, 0 = 5 s.
	WaitLink time.Duration
	// Drain is the longest wait for transmitted buffers to come back and
	// Linger for frames still under way; 0 = 1 s and 20 ms.
	Drain, Linger time.Duration
	// Sink takes in what the port receives; nil makes one that knows the
	// streams.
	Sink *Sink
	// Holders are the other places where the arena's buffers may be, for the
	// report.
	Holders []skb.Holder
}

// Report is the outcome of a measurement on one port.
type Report struct {
	Port    string         `json:"port"`
	Streams []Result       `json:"streams"`
	Sink    []SinkResult   `json:"sink"`
	Totals  SinkTotals     `json:"sink_totals"`
	Tx      tx.Counters    `json:"-"`
	Rx      rx.Counters    `json:"-"`
	Buffers map[string]int `json:"buffers"` // total, free, cached, and by place
	// Pending is the number of frames still on the transmit ring when the wait
	// for them ended.
	Pending int `json:"pending"`
}

// Runner is a measurement that can be watched while it runs.
type Runner struct {
	cfg  PortConfig
	gen  *Generator
	q    tx.Queue
	idle atomic.Int64

	rounds uint
}

// Frames that one round sends, and that it takes from each receive queue.
const roundFrames = 256

// publishRounds is how many rounds pass from one publication to the next.
const publishRounds = 16

// NewRunner checks the streams and prepares them. The port must be open, and
// is started and closed by the caller.
func NewRunner(c PortConfig) (*Runner, error) {
	if len(c.Port.Tx) == 0 {
		return nil, fmt.Errorf("pktgen: port %s has no transmit queue", c.Port.Name)
	}
	setDefault(&c.WaitLink, 5*time.Second)
	setDefault(&c.Drain, time.Second)
	setDefault(&c.Linger, 20*time.Millisecond)
	if c.Sink == nil {
		c.Sink = NewSink(SinkConfig{Streams: c.Streams})
	}
	gen, err := NewGenerator(GeneratorConfig{
		Name: c.Port.Name + " pktgen", Streams: c.Streams, Queue: c.Port.Tx[0], Cache: c.Cache,
		SrcMAC: c.Port.MAC(), DstMAC: c.Peer,
	})
	if err != nil {
		return nil, err
	}
	return &Runner{cfg: c, gen: gen, q: c.Port.Tx[0]}, nil
}

func setDefault(d *time.Duration, v time.Duration) {
	if *d == 0 {
		*d = v
	}
}

// Port runs a measurement from beginning to end.
func Port(ctx context.Context, c PortConfig) (Report, error) {
	r, err := NewRunner(c)
	if err != nil {
		return Report{}, err
	}
	return r.Run(ctx)
}

// Results is what each stream has sent so far. Safe for concurrent use.
func (r *Runner) Results() []Result {
	out := r.gen.Results()
	for i := range out {
		out[i].Idle = min(Seconds(r.idle.Load()), out[i].Duration)
	}
	return out
}

// Sink is where received frames go.
func (r *Runner) Sink() *Sink { return r.cfg.Sink }

// Run sends, receives and reclaims in one loop until the counts are reached,
// the duration is over or ctx ends, waits for what is under way, and reports.
// It keeps its goroutine on one thread and may be called once. The end of ctx
// is no error.
func (r *Runner) Run(ctx context.Context) (Report, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var stop atomic.Bool
	unwatch := context.AfterFunc(ctx, func() { stop.Store(true) })
	defer unwatch()

	if err := r.link(&stop); err != nil {
		r.gen.Close()
		return Report{}, err
	}
	clk := r.cfg.Clock
	begin := clk.Now()
	end := int64(math.MaxInt64)
	if r.cfg.Duration > 0 {
		end = begin + int64(r.cfg.Duration)
	}
	for !stop.Load() && !r.gen.Done() {
		now := clk.Now()
		if now >= end {
			break
		}
		if r.round(now, true) == 0 {
			wait := min(r.gen.Due(), end) - now
			r.rest(wait)
			if wait > 0 {
				r.idle.Add(clk.Now() - now)
			}
		}
	}
	r.gen.Finish(clk.Now())
	r.gen.Close()
	r.drain()
	return r.report(), nil
}

// link waits for the link.
func (r *Runner) link(stop *atomic.Bool) error {
	clk := r.cfg.Clock
	deadline := clk.Now() + int64(r.cfg.WaitLink)
	for !r.cfg.Port.Up() {
		now := clk.Now()
		if stop.Load() {
			return errors.New("pktgen: ended while waiting for the link")
		}
		if now >= deadline {
			return fmt.Errorf("pktgen: port %s has no link after %v: check the cable and the other end", r.cfg.Port.Name, r.cfg.WaitLink)
		}
		r.round(now, false)
		clk.Sleep(100 * time.Microsecond)
	}
	return nil
}

// round is one turn of everything. It returns how many frames moved.
func (r *Runner) round(now int64, send bool) int {
	p := r.cfg.Port
	if p.Step != nil {
		p.Step(now)
	}
	n := 0
	if send {
		n = r.gen.Run(roundFrames, now)
	}
	for _, q := range p.Rx {
		n += r.cfg.Sink.Receive(q, r.cfg.Cache, roundFrames, now)
	}
	r.q.Tick(now)
	if n == 0 {
		r.q.Reclaim()
	}
	if r.rounds++; r.rounds%publishRounds == 0 {
		r.publish()
	}
	return n
}

// publish makes what the queues and the sink have counted visible.
func (r *Runner) publish() {
	for _, q := range r.cfg.Port.Tx {
		q.Counters().Publish()
	}
	for _, q := range r.cfg.Port.Rx {
		q.Counters().Publish()
	}
	r.cfg.Sink.Publish()
}

// rest waits when there was nothing to do and wait nanoseconds are left until
// there will be.
func (r *Runner) rest(wait int64) {
	const (
		wake = 100_000 // a sleeping thread comes back this much late
		nap  = 200_000
	)
	switch {
	case r.cfg.Clock.IsVirtual():
		r.cfg.Clock.Sleep(time.Duration(min(max(wait, 1000), nap)))
	case wait <= wake:
		runtime.Gosched()
	default:
		r.cfg.Clock.Sleep(time.Duration(min(wait-wake, nap)))
	}
}

// drain waits until the transmit ring is empty and nothing has arrived for the
// linger time, but no longer than the drain time.
func (r *Runner) drain() {
	clk := r.cfg.Clock
	r.q.Flush()
	begin := clk.Now()
	quiet := begin
	for {
		now := clk.Now()
		if r.round(now, false) > 0 || r.q.Pending() > 0 {
			quiet = now
		}
		if now-quiet >= int64(r.cfg.Linger) || now-begin >= int64(r.cfg.Drain) {
			return
		}
		clk.Sleep(20 * time.Microsecond)
	}
}

func (r *Runner) report() Report {
	r.publish()
	p := r.cfg.Port
	rep := Report{
		Port: p.Name, Streams: r.Results(), Sink: r.cfg.Sink.Results(), Totals: r.cfg.Sink.Totals(),
		Pending: r.q.Pending(), Buffers: map[string]int{},
	}
	holders := append([]skb.Holder{r.gen}, r.cfg.Holders...)
	for _, q := range p.Tx {
		c := q.Counters().Read()
		rep.Tx.Add(&c)
		holders = append(holders, q)
	}
	for _, q := range p.Rx {
		c := q.Counters().Read()
		rep.Rx.Add(&c)
		holders = append(holders, q)
	}
	census := r.cfg.Cache.Arena().Census(holders...)
	for place, n := range census.Places {
		rep.Buffers[place] = n
	}
	rep.Buffers["total"], rep.Buffers["free"], rep.Buffers["cached"] = census.Total, census.Free, census.Cached
	return rep
}
