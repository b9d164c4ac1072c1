package main

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"gorouter/dataplane"
	"gorouter/fib"
	"gorouter/internal/inet"
	"gorouter/internal/testenv"
	"gorouter/pktgen"
)

// anySettings are changes that a running router must take at any time.
func anySettings(r *rand.Rand, ports int) []dataplane.Setting {
	pick := func(words ...string) string { return words[r.IntN(len(words))] }
	number := func(lo, hi int) string { return fmt.Sprint(lo + r.IntN(hi-lo+1)) }
	port := fmt.Sprintf("ports.p%d.", r.IntN(ports))
	all := []dataplane.Setting{
		{Name: "poll.weight", Value: number(1, 300)}, {Name: "poll.vector", Value: number(1, 64)},
		{Name: "poll.budget", Value: number(1, 1000)}, {Name: "poll.time_limit", Value: number(10, 3000) + "us"},
		{Name: "poll.idle", Value: pick("spin", "backoff", "interrupt", "interrupt")}, {Name: "poll.idle_max", Value: number(1, 2000) + "us"},
		{Name: "ip.icmp_rate", Value: number(1, 5000)}, {Name: "ip.icmp_burst", Value: number(1, 100)},
		{Name: "ip.icmp_redirects", Value: pick("true", "false")},
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
	if r.Forwarded == 0 {
		t.Errorf("nothing was forwarded; %+v", r.Polls)
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
