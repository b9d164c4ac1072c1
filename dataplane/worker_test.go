package dataplane

import (
	"encoding/binary"
	"fmt"
	"math"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"gorouter/clock"
	"gorouter/fib"
	"gorouter/internal/inet"
	"gorouter/skb"
)

// twoWorkers is a lab whose ports 0 and 2 belong to one worker and whose port
// 1 belongs to another; with their own goroutines it needs the machine's clock.
func twoWorkers(t testing.TB, c *clock.Clock) *lab { return twoWorkersOf(t, c) }

func twoWorkersOf(t testing.TB, c *clock.Clock, change ...func(*Config)) *lab {
	return newLab(t, append(change, func(k *Config) {
		if c != nil {
			k.Clock = c
		}
		k.Workers = NewWorkers(k.Arena, k.FIB, k.Clock, 2)
		k.Assign = []int{0, 1, 0}
	})...)
}

// until waits for a condition that goroutines bring about. The deadline only
// keeps a broken router from hanging the test.
func until(t testing.TB, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !f(); {
		if time.Now().After(end) {
			t.Fatalf("waited a minute for %s", what)
		}
		runtime.Gosched()
		time.Sleep(100 * time.Microsecond)
	}
}

func (l *lab) start() {
	l.t.Helper()
	if err := l.r.Start(); err != nil {
		l.t.Fatal(err)
	}
}

// sequenced is packet seq of a flow from port in to port out.
func sequenced(t testing.TB, in int, src, dst string, flow uint16, seq uint32) []byte {
	p := udp(src, dst)
	p.dstMAC, p.sport = routerMAC[in], flow
	p.payload = binary.BigEndian.AppendUint32(nil, seq)
	return p.bytes(t)
}

func TestCrossingTrafficOfTwoWorkers(t *testing.T) {
	defer goleak.VerifyNone(t)
	l := twoWorkers(t, clock.Machine())
	const flows, each = 8, 600
	for seq := range uint32(each) {
		for flow := range uint16(flows) {
			l.wires[0].in = append(l.wires[0].in, sequenced(t, 0, "192.0.2.2", "198.51.100.2", flow, seq))
			l.wires[1].in = append(l.wires[1].in, sequenced(t, 1, "198.51.100.2", "192.0.2.2", flow, seq))
			l.wires[2].in = append(l.wires[2].in, sequenced(t, 2, "203.0.113.0", "198.51.100.2", flow+100, seq))
		}
	}
	l.start()
	until(t, "all frames to be taken", func() bool {
		var n uint64
		for _, q := range l.wires {
			c := q.rxStats.Read()
			n += c.Packets
		}
		return n == 3*flows*each
	})
	l.r.Stop()
	s := l.liveStats()
	out := 0
	for i, q := range l.wires {
		last := map[uint16]int64{}
		for _, f := range q.out {
			flow := binary.BigEndian.Uint16(f[34:])
			seq := int64(binary.BigEndian.Uint32(f[42:]))
			if was, ok := last[flow]; ok && seq <= was {
				t.Fatalf("port %d flow %d: %d after %d", i, flow, seq, was)
			}
			last[flow] = seq
			decode(t, f)
		}
		out += len(q.out)
	}
	if lost := s.Drops[skb.HandoffFull]; out+int(lost) != 3*flows*each || s.Drops.Total() != lost {
		t.Errorf("%d of %d out, drops %v", out, 3*flows*each, s.Drops.Map())
	}
	if s.Handed == 0 {
		t.Error("nothing was handed over")
	}
	if err := checkConservation(l); err != nil {
		t.Error(err)
	}
	if err := checkStages(l); err != nil {
		t.Error(err)
	}
	if c, _ := l.arena.Audit(l.r.Holders()...); c.Places["worker 0"]+c.Places["worker 1"] != 0 {
		t.Errorf("buffers %+v", c)
	}
}

// What a slow worker has not taken yet stops the one that hands it over:
// frames stay on the receive ring and none is lost inside.
func TestAFullHandoffHoldsBackReceiving(t *testing.T) {
	l := twoWorkers(t, nil)
	const n = 3*handoffSize + 100
	for i := range n {
		l.wires[0].in = append(l.wires[0].in, numbered(t, "198.51.100.2", i))
	}
	for l.r.workers[0].Round() {
	}
	s := l.liveStats()
	if s.Handed == 0 || s.Handed > handoffSize || s.Received != s.Handed || s.Drops.Total() != 0 || s.Polls.Stalled == 0 {
		t.Errorf("received %d, handed %d of a ring of %d, stalled %d, drops %v", s.Received, s.Handed, handoffSize, s.Polls.Stalled, s.Drops.Map())
	}
	if w := l.r.workers[0]; w.waiting() || !w.stalled {
		t.Errorf("stalled %v, work %v; want it to wait for room", w.stalled, w.waiting())
	}
	l.r.workers[1].Round()
	if !l.r.workers[0].waiting() {
		t.Error("there is room, and the worker does not look again")
	}
	l.run()
	got := ids(l.out(1))
	if len(got) != n {
		t.Fatalf("%d of %d out, drops %v", len(got), n, l.drops())
	}
	for i, id := range got {
		if id != i {
			t.Fatalf("packet %d at place %d", id, i)
		}
	}
	if err := checkConservation(l); err != nil {
		t.Error(err)
	}
	if err := checkStages(l); err != nil {
		t.Error(err)
	}
}

// Frames that were not received now come on top, such as those that waited for
// a neighbour: what finds no room is counted, and its buffer comes back.
func TestAFullHandoffIsCountedAndLosesNoBuffer(t *testing.T) {
	l := twoWorkers(t, nil)
	w := l.r.workers[0]
	const n = handoffSize + 100
	for range n {
		h := w.cache.Alloc()
		w.arena.Put(h, 60)
		w.emit(1, h)
	}
	w.sendAll(false)
	if c := &w.stats.Live; c.Handed != handoffSize || c.Drops[skb.HandoffFull] != n-handoffSize {
		t.Errorf("handed %d, drops %v", c.Handed, c.Drops.Map())
	}
	l.run()
	if got := len(l.out(1)); got != handoffSize {
		t.Errorf("%d out", got)
	}
	if c, err := l.arena.Audit(l.r.Holders()...); err != nil || c.Places["worker 0"]+c.Places["worker 1"] != 0 {
		t.Errorf("buffers %+v, %v", c, err)
	}
}

// A transmit ring that is full makes handed-over frames wait, and what waits
// is lost at the rate of one trip a round at most, so nobody waits for long.
func TestAFullTransmitRingLosesOneTripARound(t *testing.T) {
	l := twoWorkersOf(t, nil, func(k *Config) { k.Options.Weight = 256 })
	l.wires[1].room, l.wires[1].full = 1, true
	for i := range 500 {
		l.wires[0].in = append(l.wires[0].in, numbered(t, "198.51.100.2", i))
	}
	for l.r.workers[0].Round() {
	}
	l.r.workers[1].Round()
	if got := len(l.out(1)) + int(l.drops()["tx_ring_full"]); got != skb.BatchSize {
		t.Errorf("%d frames left the ring in a round, want %d", got, skb.BatchSize)
	}
	l.run()
	if n := l.r.workers[1].inbox[0].len(); n != 0 {
		t.Errorf("%d frames wait for ever", n)
	}
	if err := checkConservation(l); err != nil {
		t.Error(err)
	}
}

// What a worker makes for a port of another (ARP requests, ICMP errors, packets
// that waited) goes the same way.
func TestRequestsAndHeldPacketsCrossWorkers(t *testing.T) {
	l := twoWorkers(t, nil)
	l.run(numbered(t, "198.51.100.77", 1), numbered(t, "198.51.100.77", 2))
	out := l.out(1)
	if requests(out) != 1 {
		t.Fatalf("%d requests", requests(out))
	}
	l.runAt(1, answer("198.51.100.77", hostMAC[2])) // heard by the other worker
	l.run()
	if got := fmt.Sprint(ids(l.out(1))); got != "[1 2]" {
		t.Errorf("left %v", got)
	}
	// Housekeeping asks through the owner of the port.
	l.run(numbered(t, "198.51.100.78", 1))
	l.out(1)
	l.pass(time.Second)
	if n := requests(l.out(1)); n != 1 {
		t.Errorf("%d requests after a second", n)
	}
}

func TestStopWhileBusy(t *testing.T) {
	defer goleak.VerifyNone(t)
	l := twoWorkers(t, clock.Machine())
	for i := range 3 {
		l.load(t, i)
	}
	l.wires[0].in = append(l.wires[0].in, numbered(t, "198.51.100.2", 1), numbered(t, "198.51.100.77", 2))
	l.start()
	until(t, "traffic", func() bool { s := l.r.Stats(); return s.Forwarded > 2000 && s.Handed > 100 })
	l.r.Stop()
	l.r.Stop() // idempotent
	s := l.liveStats()
	if s.Drops[skb.Shutdown] != holdDepth {
		t.Errorf("%d dropped at the end, want the %d that waited for a neighbour", s.Drops[skb.Shutdown], holdDepth)
	}
	if err := checkConservation(l); err != nil {
		t.Error(err)
	}
	for _, w := range l.r.workers {
		w.EachHeld(func(h skb.Handle) { t.Errorf("worker %d still holds buffer %d", w.id, h) })
	}
	if n := l.fib.Stats().Online; n != 0 {
		t.Errorf("%d readers still hold back the FIB", n)
	}
	if l.r.Start() == nil {
		t.Error("a stopped router starts again")
	}
	l.r.Do(func(*Worker) { t.Error("a command ran after the end") }) // and does not wait for ever
}

// A worker that ends first still sends what a slower one hands it in its last
// round.
func TestTheLastHandoffIsSent(t *testing.T) {
	defer goleak.VerifyNone(t)
	l := twoWorkers(t, clock.Machine())
	for i := range 20 {
		l.wires[0].in = append(l.wires[0].in, numbered(t, "198.51.100.2", i))
	}
	polled := make(chan struct{})
	l.wires[0].note = func(e event) {
		if e.what != "poll" || e.n == 0 {
			return
		}
		close(polled)
		// Until the other has ended its rounds, and long enough for it to go
		// away if it did not wait.
		for l.r.live.Load() > 1 {
			runtime.Gosched()
		}
		for end := time.Now().Add(50 * time.Millisecond); l.fib.Stats().Online > 1 && time.Now().Before(end); {
			runtime.Gosched()
		}
	}
	l.start()
	<-polled
	l.r.Stop()
	if got := ids(l.out(1)); len(got) != 20 || len(l.drops()) != 0 {
		t.Errorf("%d of 20 sent, drops %v", len(got), l.drops())
	}
}

func TestDoWaitsForEveryWorker(t *testing.T) {
	defer goleak.VerifyNone(t)
	l := twoWorkers(t, clock.Machine())
	l.load(t, 0)
	l.start()
	for range 20 {
		seen := [2]int{}
		l.r.Do(func(w *Worker) { seen[w.id]++ })
		if seen != [2]int{1, 1} {
			t.Fatalf("ran %v", seen)
		}
	}
	o := OptionTable.Defaults()
	o.Weight, o.Vector, o.Idle = 8, 4, IdleSpin
	if err := l.r.SetPoll(o); err != nil {
		t.Fatal(err)
	}
	l.r.Do(func(w *Worker) {
		if w.Options() != o {
			t.Errorf("worker %d: %+v", w.id, w.Options())
		}
	})
	// Commands beside the end either run or are left out; none hangs.
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 200 {
				l.r.Do(func(*Worker) {})
			}
		})
	}
	l.r.Stop()
	wg.Wait()
}

func TestPinning(t *testing.T) {
	defer goleak.VerifyNone(t)
	var allowed unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		t.Fatal(err)
	}
	cpu := 0
	for !allowed.IsSet(cpu) {
		cpu++
	}
	l := twoWorkers(t, clock.Machine())
	l.r.workers[0].CPU = cpu
	l.start()
	l.r.Do(func(w *Worker) {
		var set unix.CPUSet
		if err := unix.SchedGetaffinity(0, &set); err != nil {
			t.Error(err)
		}
		if w.id == 0 && (set.Count() != 1 || !set.IsSet(cpu)) {
			t.Errorf("worker 0 runs on %d processors", set.Count())
		}
	})
	l.r.Stop()
}

func TestAnImpossibleProcessorIsAClearErrorAndNothingRunsOn(t *testing.T) {
	for _, cpu := range []int{1000, 5000, math.MaxInt32} {
		t.Run(fmt.Sprint(cpu), func(t *testing.T) {
			defer goleak.VerifyNone(t)
			l := twoWorkers(t, clock.Machine())
			l.load(t, 0)
			l.wires[0].in = [][]byte{numbered(t, "198.51.100.2", 1)} // handed to the one that never runs
			l.r.workers[1].CPU = cpu
			err := l.r.Start()
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range []string{"worker 1", fmt.Sprintf("cpu %d", cpu), "cpu: auto"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
			if err := checkConservation(l); err != nil {
				t.Error(err)
			}
			for _, w := range l.r.workers {
				w.EachHeld(func(h skb.Handle) { t.Errorf("worker %d still holds buffer %d", w.id, h) })
			}
			if n := l.fib.Stats().Online; n != 0 {
				t.Errorf("%d readers still hold back the FIB", n)
			}
		})
	}
}

func TestBackoffNapsAndWakes(t *testing.T) {
	defer goleak.VerifyNone(t)
	l := twoWorkers(t, clock.Machine())
	l.start()
	until(t, "naps", func() bool { return l.r.Stats().Polls.Naps > 10 })
	if l.fib.Reclaim() != 0 {
		t.Error("something was retired")
	}
	l.r.Do(func(*Worker) {}) // a napping worker hears commands
	l.r.Stop()
}

// Everything that may change beside the workers, changed while they run.
func TestChangesWhileRunning(t *testing.T) {
	defer goleak.VerifyNone(t)
	l := twoWorkers(t, clock.Machine())
	l.via("10.0.0.0/8", 1, "198.51.100.2")
	for i := range 3 {
		l.load(t, i)
	}
	for i := range 64 {
		l.wires[0].in = append(l.wires[0].in,
			udp("192.0.2.2", fmt.Sprintf("10.%d.0.1", i)).bytes(t),
			udp("192.0.2.2", fmt.Sprintf("198.51.100.%d", 10+i)).bytes(t),
			arpFrame(arpRequest, inet.Broadcast, inet.MAC{2, 1, 0, 0, 0, byte(i)}, fmt.Sprintf("192.0.2.%d", 10+i), inet.MAC{}, "192.0.2.1"))
	}
	l.start()
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range 300 {
			k := i % 64
			p := netip.MustParsePrefix(fmt.Sprintf("10.%d.0.0/16", k))
			r := fib.Route{Prefix: p, Kind: fib.Forward, NextHops: []fib.NextHop{
				{Port: 1, Via: netip.AddrFrom4([4]byte{198, 51, 100, byte(10 + k)})}, {Port: 2, Via: netip.MustParseAddr("203.0.113.0")}}}
			if err := l.fib.Replace(r); err != nil {
				t.Error(err)
			}
			if i%3 == 0 {
				l.fib.Delete(r.Key())
			}
		}
	})
	wg.Go(func() {
		for i := range 300 {
			l.r.ports[1].SetMAC(inet.MAC{2, 0, 0, 0, 1, byte(i)})
			l.r.ports[2].SetUp(i%2 == 1)
			if err := l.r.Neighbours().SetPermanent(1, netip.AddrFrom4([4]byte{198, 51, 100, byte(10 + i%64)}), inet.MAC{2, 5, 0, 0, 0, byte(i)}); err != nil {
				t.Error(err)
			}
			if err := l.r.AddAddress(2, netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 200, byte(i), 1}), 24)); err != nil {
				t.Error(err)
			}
			l.r.Housekeep()
		}
	})
	wg.Wait()
	was := l.r.Stats().Forwarded
	until(t, "traffic after the changes", func() bool { return l.r.Stats().Forwarded > was+1000 })
	l.r.Stop()
	if err := checkConservation(l); err != nil {
		t.Error(err)
	}
	if err := checkStages(l); err != nil {
		t.Error(err)
	}
	if s := l.fib.Stats(); s.Misuses != 0 {
		t.Errorf("%d misuses of adjacencies", s.Misuses)
	}
	l.fib.Reclaim()
	if s := l.fib.Stats(); s.Retired != 0 {
		t.Errorf("%d indices still wait for readers", s.Retired)
	}
}
