package main

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"gorouter/config"
	"gorouter/dataplane"
)

// star is a router of software ports, each with a station at the far end and
// streams of so many frames (0: no end) at a rate (0: all that goes) to each
// other port. Ports go to workers in turn.
func star(t *testing.T, ports, workers int, thread bool, poll string, count, rate int) *box {
	t.Helper()
	var y strings.Builder
	fmt.Fprintf(&y, "workers: %d\npoll: {%s}\nbuffers: {count: 16384}\nports:\n", workers, poll)
	for i := range ports {
		fmt.Fprintf(&y, "  p%d: {driver: model, worker: %d, addresses: [10.0.%d.1/24], model: {thread: %v}}\n", i, i%workers, i, thread)
	}
	fmt.Fprint(&y, "pktgen:\n  streams:\n")
	for i := range ports {
		for k := range ports {
			if i != k {
				fmt.Fprintf(&y, "    - {name: s%d-%d, port: p%d, src: 10.0.%d.2, dst: [10.0.%d.2, 10.0.%d.3], flows: 16, count: %d, rate: %d}\n", i, k, i, i, k, k, count, rate)
			}
		}
	}
	fmt.Fprint(&y, "neighbors:\n")
	for i := range ports {
		for h := 2; h < 4; h++ {
			fmt.Fprintf(&y, "  - {address: 10.0.%d.%d, mac: \"%v\"}\n", i, h, stationMAC(uint16(i)))
		}
	}
	cfg, err := config.Parse("star.yaml", []byte(y.String()))
	if err != nil {
		t.Fatalf("%v\n%s", err, y.String())
	}
	b, err := openBox(cfg, slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// await waits for what goroutines bring about; the deadline only keeps a
// broken router from hanging the test.
func await(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !f(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited two minutes for %s", what)
		}
	}
}

// conserved checks that every frame left or was dropped by name, and that
// every buffer is somewhere. The box must have been halted.
func conserved(t *testing.T, b *box) *report {
	t.Helper()
	r := newReport(b, time.Second)
	in, out := r.Originated, uint64(0)
	for _, p := range r.Ports {
		in, out = in+p.RxPackets, out+p.TxPackets
	}
	for _, n := range r.Drops {
		out += n
	}
	if in != out {
		t.Errorf("%d frames came in or were made here, %d went out or were dropped by name: %v", in, out, r.Drops)
	}
	if _, err := b.arena.Audit(b.holders()...); err != nil {
		t.Error(err)
	}
	if err := b.failure(); err != nil {
		t.Error(err)
	}
	var sum [5]uint64
	for _, w := range r.Workers {
		for i, n := range []uint64{w.Forwarded, w.Originated, w.Answered, w.Polls.Rounds, w.Polls.Full + w.Polls.Short + w.Polls.Empty} {
			sum[i] += n
		}
	}
	if want := [5]uint64{r.Forwarded, r.Originated, r.Answered, r.Polls.Rounds, r.Polls.Full + r.Polls.Short + r.Polls.Empty}; sum != want {
		t.Errorf("the workers add up to %v, together they have %v", sum, want)
	}
	return r
}

// Traffic from every port to every other one, over several workers and chips
// with their own threads: no flow is put out of order, and what is lost is lost
// under a name.
func TestCrossingTraffic(t *testing.T) {
	for _, c := range []struct {
		ports, workers int
		thread         bool
		poll           string
	}{
		{2, 2, true, "idle: backoff"},
		{4, 2, true, "idle: spin"},
		{4, 4, true, "idle: backoff"},
		{4, 4, false, "idle: interrupt, vector: 7, budget: 50"},
		{4, 4, true, "idle: interrupt"},
	} {
		t.Run(fmt.Sprintf("%d ports, %d workers, threads %v, %s", c.ports, c.workers, c.thread, c.poll), func(t *testing.T) {
			defer goleak.VerifyNone(t)
			const count = 3000
			b := star(t, c.ports, c.workers, c.thread, c.poll, count, 0)
			if err := b.start(); err != nil {
				t.Fatal(err)
			}
			await(t, "all frames to be sent", func() bool {
				n := uint64(0)
				for _, st := range b.stations {
					for _, r := range st.Results() {
						n += r.Sent
					}
				}
				return n == uint64(count*c.ports*(c.ports-1))
			})
			b.halt()
			r := conserved(t, b)
			sent, received := uint64(0), uint64(0)
			for _, st := range b.stations {
				for _, x := range st.Sink().Results() {
					if x.Reordered+x.Duplicates+x.Late+x.Damaged > 0 {
						t.Errorf("stream %s: %+v", x.Stream, x)
					}
				}
			}
			for _, s := range r.Streams {
				sent, received = sent+s.Sent, received+s.Received
			}
			lost := uint64(0)
			for name, n := range r.Drops {
				if name != "arp_consumed" { // no frame of a stream
					lost += n
				}
			}
			// A frame made here, such as an announcement, may be among the drops.
			if gone := sent - received; received == 0 || received > sent || gone > lost || lost > gone+r.Originated {
				t.Errorf("%d sent, %d received, drops %v", sent, received, r.Drops)
			}
			sleeps := c.thread && strings.Contains(c.poll, "interrupt")
			if (r.Polls.Sleeps > 0) != sleeps || sleeps && r.Polls.Wakeups == 0 {
				t.Errorf("sleeping expected: %v; %+v", sleeps, r.Polls)
			}
			if len(r.Workers) != c.workers {
				t.Errorf("%d workers in the report", len(r.Workers))
			}
			for _, w := range r.Workers {
				if w.Received == 0 || w.Handed == 0 || len(w.Ports) != c.ports/c.workers {
					t.Errorf("%+v", w)
				}
			}
			if err := b.close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// The interrupt of a chip wakes the worker: frames that come one by one cross
// at once, not when the longest sleep of 100 ms is over, and the router does
// nothing in between.
func TestSparseTrafficThroughASleepingRouter(t *testing.T) {
	defer goleak.VerifyNone(t)
	const count = 30
	b := star(t, 2, 2, true, "idle: interrupt", count, 40)
	if err := b.start(); err != nil {
		t.Fatal(err)
	}
	await(t, "all frames", func() bool {
		n := uint64(0)
		for _, st := range b.stations {
			n += st.Sink().Totals().Streams
		}
		return n == 2*count
	})
	b.halt()
	r := conserved(t, b)
	t.Logf("%+v", r.Polls)
	// A sleep that runs to its end is no wake-up.
	if r.Polls.Wakeups-r.Polls.Spurious < count || r.Polls.Rounds > 1000*count {
		t.Errorf("%+v", r.Polls)
	}
	if err := b.close(); err != nil {
		t.Error(err)
	}
}

// Options of the rings change under traffic, and the ring does what they say.
func TestRingOptionsChangeUnderTraffic(t *testing.T) {
	defer goleak.VerifyNone(t)
	b := star(t, 2, 2, false, "idle: backoff", 0, 0)
	if err := b.start(); err != nil {
		t.Fatal(err)
	}
	type counts struct{ sends, bells, reports, replenishes, replenished uint64 }
	measure := func() (d counts, frames uint64) {
		b.router.Do(func(*dataplane.Worker) {})
		x, y := b.ports[0].Tx[0].Counters().Read(), b.ports[0].Rx[0].Counters().Read()
		await(t, "traffic", func() bool { return b.ports[0].Tx[0].Counters().Read().Packets > x.Packets+5000 })
		x2, y2 := b.ports[0].Tx[0].Counters().Read(), b.ports[0].Rx[0].Counters().Read()
		return counts{x2.Sends - x.Sends, x2.Doorbells - x.Doorbells, x2.Reports - x.Reports, y2.Replenishes - y.Replenishes, y2.Replenished - y.Replenished}, x2.Packets - x.Packets
	}
	set := func(name, value string) {
		t.Helper()
		if err := b.router.Set(name, value); err != nil {
			t.Fatal(err)
		}
	}
	set("ports.p0.tx.doorbell", "frame")
	set("ports.p0.tx.report_every", "1")
	set("ports.p0.rx.replenish", "1")
	c, frames := measure()
	if c.bells < frames*9/10 || c.reports < frames*9/10 {
		t.Errorf("%d frames: %+v with a doorbell and a report for each", frames, c)
	}
	set("ports.p0.tx.doorbell", "batch")
	set("ports.p0.tx.report_every", "64")
	set("ports.p0.rx.replenish", "200")
	c, frames = measure()
	if c.bells > frames*9/10 || c.reports > frames*9/10 || c.replenishes > c.replenished/2 {
		t.Errorf("%d frames: %+v with batches", frames, c)
	}
	for _, name := range []string{"ports.p0.rx.ring", "ports.p0.tx.ring"} {
		if err := b.router.Set(name, "512"); err == nil {
			t.Errorf("%s changed", name)
		}
	}
	b.halt()
	conserved(t, b)
	if err := b.close(); err != nil {
		t.Error(err)
	}
}

// The weight of a port in the configuration is what its queue gets.
func TestWeightOfAPort(t *testing.T) {
	cfg, err := config.Parse("w.yaml", []byte("ports: {a: {driver: model, weight: 5}, b: {driver: model}}"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := openBox(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	for name, want := range map[string]string{"ports.a.weight": "5", "ports.b.weight": "auto"} {
		if got, err := b.router.Setting(name); err != nil || got != want {
			t.Errorf("%s is %q, %v; want %q", name, got, err, want)
		}
	}
}
