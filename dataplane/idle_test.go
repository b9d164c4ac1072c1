package dataplane

import (
	"bytes"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"gorouter/clock"
	"gorouter/port"
	"gorouter/rx"
	"gorouter/skb"
)

// source is a receive queue that any goroutine can offer frames to, and the
// event source of its port.
type source struct {
	wireRx
	sig     *port.Signal
	frame   []byte
	offered atomic.Int64
	taken   atomic.Int64
	armed   atomic.Bool
	arms    atomic.Int64
	stuck   atomic.Bool // always pending: something that nobody reports
	before  func()      // in Arm, before it looks
	after   func()      // in Arm, after it looked
}

// offer is a device that writes a descriptor and raises its line when it may.
func (s *source) offer() {
	s.offered.Add(1)
	if s.armed.Load() {
		s.sig.Raise()
	}
}

func (s *source) FD() int { return s.sig.FD() }

func (s *source) Poll(b *skb.Batch, max int, now int64) int {
	n := min(max, int(s.offered.Load()-s.taken.Load()))
	s.in, s.pos = s.in[:0], 0
	for range n {
		s.in = append(s.in, s.frame)
	}
	n = s.wireRx.Poll(b, n, now)
	s.taken.Add(int64(n))
	return n
}

func (s *source) Arm() bool {
	s.arms.Add(1)
	s.armed.Store(true)
	if s.before != nil {
		s.before()
	}
	pending := s.offered.Load() > s.taken.Load() || s.stuck.Load()
	if s.after != nil {
		s.after()
	}
	return pending
}

func (s *source) Disarm() {
	s.armed.Store(false)
	s.sig.Clear()
}

// sleepy is a lab with two workers, as twoWorkers, whose ports have event
// sources. A sleep has no end but an event: a wake-up that is lost hangs.
type sleepy struct {
	*lab
	src []*source
}

func newSleepy(t testing.TB, change ...func(*Config)) *sleepy {
	t.Helper()
	s := &sleepy{}
	s.lab = twoWorkersOf(t, clock.Machine(), append([]func(*Config){
		options(func(o *Options) { o.Idle = IdleInterrupt }),
		func(c *Config) { c.Log = slog.New(slog.DiscardHandler) },
	}, change...)...)
	s.r.sleepMax = time.Hour
	for i, q := range s.wires {
		sig, err := port.NewSignal()
		if err != nil {
			t.Fatal(err)
		}
		src := &source{wireRx: wireRx{q}, sig: sig}
		p := udp("192.0.2.2", "203.0.113.0")
		if i == 2 {
			p = udp("203.0.113.0", "192.0.2.2")
		}
		p.dstMAC = routerMAC[i]
		src.frame = p.bytes(t)
		q.discard = true
		s.src = append(s.src, src)
		s.r.ports[i].Events = src
		for _, w := range s.r.workers {
			for _, k := range w.queues {
				if int(k.port) == i {
					k.rx = src
				}
			}
		}
		s.r.ports[i].Rx = []rx.Queue{src}
	}
	t.Cleanup(s.hangUp)
	return s
}

// hangUp gives the descriptors back; it is idempotent.
func (s *sleepy) hangUp() {
	s.r.Stop()
	for _, src := range s.src {
		_ = src.sig.Close()
	}
	s.src = nil
}

// asleep waits until worker i sleeps.
func (s *sleepy) asleep(i int) {
	s.t.Helper()
	w := s.r.workers[i]
	until(s.t, "sleep", func() bool {
		c := w.stats.Read()
		return s.armedBy(w) && c.Rounds > 0
	})
}

func (s *sleepy) armedBy(w *Worker) bool {
	for i, src := range s.src {
		if s.r.rxOwner[i][0] == w && !src.armed.Load() {
			return false
		}
	}
	return true
}

func (s *sleepy) goes(i int) {
	s.t.Helper()
	src := s.src[i]
	until(s.t, "frames to be taken", func() bool { return src.taken.Load() == src.offered.Load() })
}

// A source that stays pending, as a socket whose frames the kernel still holds,
// is backoff and not a spin.
func TestAPortThatStaysPendingIsPolledWithBackoff(t *testing.T) {
	defer goleak.VerifyNone(t)
	s := newSleepy(t)
	s.src[1].stuck.Store(true)
	s.start()
	w := s.r.workers[1]
	until(t, "naps", func() bool { c := w.stats.Read(); return c.Naps > 50 })
	c := w.stats.Read()
	if c.Sleeps != 0 || c.Pendings == 0 || c.Rounds > c.Naps+2*idleRounds {
		t.Errorf("%d rounds, %d naps, %d sleeps, %d pending", c.Rounds, c.Naps, c.Sleeps, c.Pendings)
	}
	s.src[1].offer() // and frames are taken meanwhile
	s.goes(1)
	s.src[1].stuck.Store(false)
	s.asleep(1)
	until(t, "sleep", func() bool { return s.armedBy(w) })
	s.hangUp()
}

func TestPortsWithoutEventsAreNappedOn(t *testing.T) {
	defer goleak.VerifyNone(t)
	var log bytes.Buffer
	s := newSleepy(t, func(c *Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	s.r.ports[2].Events = nil // of worker 0
	s.start()
	until(t, "naps", func() bool { c := s.r.workers[0].stats.Read(); return c.Naps > 10 })
	s.asleep(1)
	s.hangUp()
	s.liveStats()
	if c := s.r.workers[0].stats.Live; c.Sleeps != 0 {
		t.Errorf("%d sleeps with a port that cannot wake it", c.Sleeps)
	}
	if c := s.r.workers[1].stats.Live; c.Naps != 0 || c.Sleeps == 0 {
		t.Errorf("worker 1: %d naps, %d sleeps", c.Naps, c.Sleeps)
	}
	if n := strings.Count(log.String(), "naps"); n != 1 || !strings.Contains(log.String(), "p2") {
		t.Errorf("%d lines:\n%s", n, log.String())
	}
}

func TestIdleChangesOnARunningRouter(t *testing.T) {
	defer goleak.VerifyNone(t)
	s := newSleepy(t)
	s.start()
	for range 5 {
		for _, mode := range []string{IdleSpin, IdleInterrupt, IdleBackoff, IdleInterrupt} {
			if err := s.r.Set("poll.idle", mode); err != nil {
				t.Fatal(err)
			}
			for i := range 3 {
				s.src[i].offer()
				s.goes(i)
			}
			if mode == IdleInterrupt {
				s.asleep(0)
				s.asleep(1)
				continue
			}
			arms := s.src[1].arms.Load()
			was := s.r.workers[1].stats.Read()
			until(t, "rounds", func() bool {
				s.r.Do(func(*Worker) {})
				now := s.r.workers[1].stats.Read()
				return now.Rounds > was.Rounds+2*publishEvery
			})
			if s.src[1].arms.Load() != arms {
				t.Errorf("%s arms the ports", mode)
			}
		}
	}
	s.hangUp()
}

// With virtual time nobody would ever move the clock on for a sleeper.
func TestVirtualTimeNeverSleeps(t *testing.T) {
	defer goleak.VerifyNone(t)
	l := newLab(t, options(func(o *Options) { o.Idle = IdleInterrupt }))
	sig, err := port.NewSignal()
	if err != nil {
		t.Fatal(err)
	}
	defer sig.Close()
	for i, p := range l.r.ports {
		p.Events = &source{wireRx: wireRx{l.wires[i]}, sig: sig}
	}
	l.start()
	until(t, "naps", func() bool { return l.r.Stats().Polls.Naps > 100 })
	l.r.Stop()
	if s := l.liveStats(); s.Polls.Sleeps != 0 || l.clk.Now() == 0 {
		t.Errorf("%+v at %d", s.Polls, l.clk.Now())
	}
}

func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// A router without traffic costs next to nothing in interrupt mode, and all it
// can get in spin mode. Both in one run; what is compared is a ratio.
func TestAnIdleRouterInInterruptModeCostsNearlyNothing(t *testing.T) {
	defer goleak.VerifyNone(t)
	s := newSleepy(t)
	s.r.sleepMax = sleepMax
	s.start()
	s.asleep(0)
	s.asleep(1)
	measure := func() (rounds uint64, cpu time.Duration) {
		r, c := s.r.Stats().Polls.Rounds, cpuTime(t)
		time.Sleep(400 * time.Millisecond)
		s.r.Do(func(w *Worker) { w.publish() })
		return s.r.Stats().Polls.Rounds - r, cpuTime(t) - c
	}
	quiet, quietCPU := measure()
	if err := s.r.Set("poll.idle", IdleSpin); err != nil {
		t.Fatal(err)
	}
	spin, spinCPU := measure()
	t.Logf("interrupt: %d rounds, %v; spin: %d rounds, %v", quiet, quietCPU, spin, spinCPU)
	if quiet == 0 || spin < 50*quiet {
		t.Errorf("%d rounds in interrupt mode, %d in spin mode", quiet, spin)
	}
	if spinCPU < 4*quietCPU {
		t.Errorf("%v of processor time in interrupt mode, %v in spin mode", quietCPU, spinCPU)
	}
	s.hangUp()
}

func TestResting(t *testing.T) {
	s := newSleepy(t)
	w := s.r.workers[1]
	if err := s.r.openSleepers(); err != nil {
		t.Fatal(err)
	}
	w.reader.Online()
	w.listen()
	w.idle = 2 * idleRounds
	s.src[1].after = s.src[1].sig.Raise
	if n := testing.AllocsPerRun(200, func() {
		w.Round()
		w.rest()
	}); n != 0 {
		t.Errorf("%v allocations a sleep", n)
	}
	if c := w.stats.Live; c.Sleeps != 201 || c.Wakeups != 201 || c.Spurious != 200 {
		t.Errorf("%d sleeps, %d wake-ups, %d spurious", c.Sleeps, c.Wakeups, c.Spurious)
	}
	// A wake-up with work is not for nothing, and mail is work.
	spurious := w.stats.Live.Spurious
	s.src[1].after = func() { s.src[1].offer() }
	w.rest()
	w.Round()
	s.src[1].after = nil
	w.waits = func() bool { // the command comes right after the second look
		defer w.Do(func() {})
		return w.waiting()
	}
	w.rest()
	w.Round()
	w.waits = w.waiting
	if c := w.stats.Live; c.Wakeups != 203 || c.Spurious != spurious || c.Taken != 1 {
		t.Errorf("%d wake-ups, %d spurious, %d taken", c.Wakeups, c.Spurious, c.Taken)
	}
	s.src[1].stuck.Store(true)
	w.opts.IdleMax = time.Microsecond
	if n := testing.AllocsPerRun(200, func() {
		w.Round()
		w.rest()
	}); n != 0 {
		t.Errorf("%v allocations a nap", n)
	}
	w.reader.Offline()
}

// Spinning workers take all processors, and still let everybody else run.
func TestSpinningWorkersStarveNobody(t *testing.T) {
	defer goleak.VerifyNone(t)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	l := twoWorkersOf(t, clock.Machine(), options(func(o *Options) { o.Idle = IdleSpin }))
	l.load(t, 0) // worker 0 always has work, worker 1 none
	l.start()
	for range 200 {
		l.r.Do(func(*Worker) {})
	}
	l.r.Do(func(w *Worker) {
		if !w.crowded {
			t.Error("the worker believes to have a processor of its own")
		}
	})
	l.r.Stop()
	s := l.liveStats()
	for _, w := range l.r.workers {
		if w.stats.Live.Rounds < 200 {
			t.Errorf("worker %d: %d rounds; %+v", w.id, w.stats.Live.Rounds, s.Polls)
		}
	}
}

func TestShareAndTrips(t *testing.T) {
	l := newLab(t, options(func(o *Options) { o.Vector = 10 }))
	l.wires[0].note = func(e event) {
		if e.what == "poll" && e.n > 0 {
			l.clk.Advance(1e6 * int64(e.n)) // a microsecond a frame
		}
	}
	for range 25 {
		l.wires[0].in = append(l.wires[0].in, numbered(t, "198.51.100.2", 1))
	}
	l.run() // 25 us
	l.clk.Advance(75e6)
	l.run()
	s := l.liveStats()
	if s.Received != 25 || s.Polls.MeanTrip != 25./3 || s.BusyNs != 25000 || s.RunNs != 100000 || s.Polls.BusyShare != 0.25 {
		t.Errorf("%d received, busy %d of %d, %+v", s.Received, s.BusyNs, s.RunNs, s.Polls)
	}
	ws := l.r.WorkerStats()
	if len(ws) != 1 || strings.Join(ws[0].Ports, " ") != "p0 p1 p2" || ws[0].Polls != s.Polls || ws[0].Received != 25 {
		t.Errorf("%+v", ws)
	}
}
