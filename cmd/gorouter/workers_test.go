package main

import (
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"gorouter/config"
	"gorouter/dataplane"
	"gorouter/fib"
	"gorouter/internal/inet"
	"gorouter/internal/testenv"
	"gorouter/pktgen"
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
			for _, n := range r.Drops {
				lost += n
			}
			if received == 0 || sent != received+lost {
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
	for _, st := range b.stations {
		for _, x := range st.Sink().Results() {
			if x.Packets > 0 && (x.Latency == nil || x.Latency.Avg > 40*time.Millisecond) {
				t.Errorf("stream %s: latency %+v", x.Stream, x.Latency)
			}
		}
	}
	r := conserved(t, b)
	t.Logf("%+v", r.Polls)
	if r.Polls.Wakeups < count || r.Polls.Rounds > 500*count {
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

// anySettings are changes that a running router must take at any time.
func anySettings(r *rand.Rand, ports int) []dataplane.Setting {
	pick := func(words ...string) string { return words[r.IntN(len(words))] }
	number := func(lo, hi int) string { return fmt.Sprint(lo + r.IntN(hi-lo+1)) }
	port := fmt.Sprintf("ports.p%d.", r.IntN(ports))
	all := []dataplane.Setting{
		{Name: "poll.weight", Value: number(1, 300)}, {Name: "poll.vector", Value: number(1, 64)},
		{Name: "poll.budget", Value: number(1, 1000)}, {Name: "poll.time_limit", Value: number(10, 3000) + "us"},
		{Name: "poll.idle", Value: pick("spin", "backoff", "interrupt", "interrupt")}, {Name: "poll.idle_max", Value: number(1, 2000) + "us"},
		{Name: port + "weight", Value: pick("auto", "1", "64", "1000")},
		{Name: port + "rx.replenish", Value: number(1, 300)}, {Name: port + "rx.replenish_at", Value: pick("turn", "end")},
		{Name: port + "rx.copybreak", Value: number(0, 300)},
		{Name: port + "tx.doorbell", Value: pick("frame", "batch", "timer")}, {Name: port + "tx.doorbell_timer", Value: number(1, 2000) + "us"},
		{Name: port + "tx.report_every", Value: number(1, 256)}, {Name: port + "tx.reclaim_at", Value: number(1, 300)},
		{Name: port + "tx.wake_at", Value: number(1, 300)},
	}
	r.Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
	return all[:1+r.IntN(5)]
}

// Everything at once for a long time: traffic over several workers while
// options, links, routes and neighbours change at random. At the end every
// frame and every buffer is accounted for. GOROUTER_SOAK sets the time.
func TestSoak(t *testing.T) {
	defer goleak.VerifyNone(t)
	const ports = 4
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	b := star(t, ports, 3, true, "idle: interrupt", 0, 8000)
	if err := b.start(); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	repeat := func(k uint64, pause time.Duration, f func(*rand.Rand)) {
		r := rand.New(rand.NewPCG(seed, k))
		wg.Go(func() {
			for {
				f(r)
				select {
				case <-stop:
					return
				case <-time.After(time.Duration(r.Int64N(int64(pause)))):
				}
			}
		})
	}
	repeat(1, 10*time.Millisecond, func(r *rand.Rand) {
		list := anySettings(r, ports)
		if err := b.router.Configure(list...); err != nil {
			t.Errorf("%v: %v", list, err)
		}
	})
	repeat(2, 3*time.Second, func(r *rand.Rand) {
		cable := b.cables[fmt.Sprintf("p%d", r.IntN(ports))]
		cable.SetLink(false)
		time.Sleep(time.Duration(r.Int64N(int64(300 * time.Millisecond))))
		cable.SetLink(true)
	})
	repeat(3, 5*time.Millisecond, func(r *rand.Rand) {
		i := r.IntN(ports)
		route := fib.Route{Prefix: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, byte(i), 3}), 32), Kind: fib.Forward,
			NextHops: []fib.NextHop{{Port: uint16(i), Via: netip.AddrFrom4([4]byte{10, 0, byte(i), byte(2 + r.IntN(9))})}}}
		switch r.IntN(4) {
		case 0:
			b.fib.Delete(route.Key())
			return
		case 1:
			route.Kind, route.NextHops = fib.Kind(int(fib.Blackhole)+r.IntN(3)), nil
		}
		if err := b.fib.Replace(route); err != nil {
			t.Error(err)
		}
	})
	repeat(4, 5*time.Millisecond, func(r *rand.Rand) {
		i := r.IntN(ports)
		mac := stationMAC(uint16(i))
		mac[1] = byte(r.IntN(3)) // the station takes frames to any address
		if err := b.router.Neighbours().SetPermanent(uint16(i), netip.AddrFrom4([4]byte{10, 0, byte(i), byte(2 + r.IntN(3))}), mac); err != nil {
			t.Error(err)
		}
		if r.IntN(50) == 0 {
			own := b.ports[i].MAC()
			b.ports[i].SetMAC(inet.MAC{2, 0, 0, 7, byte(i), byte(r.IntN(256))})
			b.ports[i].SetMAC(own)
		}
	})
	end := time.After(testenv.Soak(t, 3*time.Second))
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for running := true; running; {
		select {
		case <-end:
			running = false
		case <-tick.C:
			if err := b.failure(); err != nil {
				t.Error(err)
				running = false
			}
			_ = newReport(b, time.Second) // readers beside the workers
		}
	}
	close(stop)
	wg.Wait()
	for _, c := range b.cables {
		c.SetLink(true)
	}
	b.halt()
	r := conserved(t, b)
	if r.Forwarded == 0 || r.Polls.Naps == 0 || r.Polls.Sleeps == 0 {
		t.Errorf("forwarded %d, %+v", r.Forwarded, r.Polls)
	}
	totals := pktgen.SinkTotals{}
	for _, st := range b.stations {
		x := st.Sink().Totals()
		totals.Streams, totals.Damaged = totals.Streams+x.Streams, totals.Damaged+x.Damaged
	}
	if totals.Streams == 0 || totals.Damaged != 0 {
		t.Errorf("%+v", totals)
	}
	t.Logf("%d forwarded, drops %v, %+v", r.Forwarded, r.Drops, r.Polls)
	if s := b.fib.Stats(); s.Misuses != 0 {
		t.Errorf("%d misuses of adjacencies", s.Misuses)
	}
	if err := b.close(); err != nil {
		t.Error(err)
	}
}
