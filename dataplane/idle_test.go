package dataplane

import (
	"bytes"
	"log/slog"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

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

// What comes between the last look and the sleep, at every place where it can
// come, is seen at once.
func TestNothingIsOverlookedOnTheWayToSleep(t *testing.T) {
	for name, inject := range map[string]func(s *sleepy) (before, after func(), check func() bool){
		"a frame before the second look": func(s *sleepy) (func(), func(), func() bool) {
			return s.src[1].offer, nil, func() bool { return s.src[1].taken.Load() == 1 }
		},
		"a frame after the second look": func(s *sleepy) (func(), func(), func() bool) {
			return nil, s.src[1].offer, func() bool { return s.src[1].taken.Load() == 1 }
		},
		"a command": func(s *sleepy) (func(), func(), func() bool) {
			var ran atomic.Bool
			return nil, func() { s.r.workers[1].Do(func() { ran.Store(true) }) }, ran.Load
		},
		"a frame of another worker": func(s *sleepy) (func(), func(), func() bool) {
			return nil, func() {
				h := s.arena.NewCache("test").Alloc()
				copy(s.arena.Put(h, 60), s.src[1].frame)
				s.arena.Meta(h).Adj = 1
				s.wires[1].rxStats.Live.Packets++ // it came from somewhere
				s.r.workers[1].inbox[0].push([]skb.Handle{h})
				s.r.workers[1].wake()
			}, func() bool { c := s.wires[1].txStats.Read(); return c.Packets == 1 }
		},
		"a neighbour": func(s *sleepy) (func(), func(), func() bool) {
			return nil, func() {
				_ = s.r.Neighbours().SetPermanent(1, netip.MustParseAddr("198.51.100.9"), hostMAC[0])
			}, func() bool { return s.src[1].arms.Load() > 1 } // it did not sleep the first time
		},
	} {
		t.Run(name, func(t *testing.T) {
			defer goleak.VerifyNone(t)
			s := newSleepy(t)
			before, after, check := inject(s)
			var once [2]sync.Once
			if before != nil {
				s.src[1].before = func() { once[0].Do(before) }
			}
			if after != nil {
				s.src[1].after = func() { once[1].Do(after) }
			}
			s.start()
			until(t, name, check)
			s.asleep(1)
			s.hangUp()
			if err := checkConservation(s.lab); err != nil {
				t.Error(err)
			}
		})
	}
}

// lateTx calls f when its worker reclaims: after it read its mail and its
// inbox, before it goes to sleep.
type lateTx struct {
	wireTx
	f func()
}

func (q lateTx) Reclaim() int {
	q.f()
	return 0
}

// Work of other goroutines that comes when the worker is through with its last
// round but not asleep yet, so that nobody wakes it.
func TestWorkBetweenTheLastRoundAndSleepIsSeen(t *testing.T) {
	for name, inject := range map[string]func(s *sleepy) (f func(), check func() bool){
		"a command": func(s *sleepy) (func(), func() bool) {
			var ran atomic.Bool
			return func() { s.r.workers[1].Do(func() { ran.Store(true) }) }, ran.Load
		},
		"the end": func(s *sleepy) (func(), func() bool) {
			return func() { s.r.stop.Store(true) }, func() bool {
				w := s.r.workers[1]
				w.mailMu.Lock()
				defer w.mailMu.Unlock()
				return w.closed
			}
		},
		"a frame of another worker": func(s *sleepy) (func(), func() bool) {
			return func() {
				h := s.arena.NewCache("test").Alloc()
				copy(s.arena.Put(h, 60), s.src[1].frame)
				s.arena.Meta(h).Adj = 1
				s.wires[1].rxStats.Live.Packets++ // it came from somewhere
				s.r.workers[1].inbox[0].push([]skb.Handle{h})
				s.r.workers[1].wake()
			}, func() bool { c := s.wires[1].txStats.Read(); return c.Packets == 1 }
		},
	} {
		t.Run(name, func(t *testing.T) {
			defer goleak.VerifyNone(t)
			s := newSleepy(t)
			f, check := inject(s)
			w := s.r.workers[1]
			done := false
			w.outs[1].tx = lateTx{wireTx{s.wires[1]}, func() {
				if w.idle == idleRounds-1 && !done { // rest comes next, and sleeps
					done = true
					f()
				}
			}}
			s.start()
			until(t, name, check)
			s.hangUp()
			if err := checkConservation(s.lab); err != nil {
				t.Error(err)
			}
		})
	}
}

// The same in every order that a random schedule makes.
func TestNoScheduleLosesAWakeUp(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := newSleepy(t)
		defer s.close()
		defer s.hangUp()
		plan := rapid.SliceOfN(rapid.IntRange(0, 4), 1, 30).Draw(rt, "plan")
		var ran atomic.Int64
		step, want := 0, int64(0)
		src := s.src[1]
		act := func(at int) { // on the worker, in Arm
			if step == len(plan) {
				return
			}
			switch k := plan[step]; {
			case k == 4 && at == 1:
				s.r.workers[1].Do(func() { ran.Add(1) })
			case k < 4 && k%2 == at:
				for range k/2 + 1 {
					src.offer()
				}
			default:
				return
			}
			step++
		}
		src.before, src.after = func() { act(0) }, func() { act(1) }
		frames := int64(0)
		for _, k := range plan {
			if k == 4 {
				want++
			} else {
				frames += int64(k/2 + 1)
			}
		}
		s.start()
		until(t, "the plan to be done", func() bool { return src.taken.Load() == frames && ran.Load() == want })
	})
}

// A device that raises its line whenever it likes, and other goroutines beside
// it.
func TestWakeUpsUnderStress(t *testing.T) {
	defer goleak.VerifyNone(t)
	s := newSleepy(t)
	s.start()
	const each = 3000
	var wg sync.WaitGroup
	for i := range 3 {
		wg.Go(func() {
			src := s.src[i]
			for k := range each {
				src.offer()
				for n := 0; src.taken.Load() != int64(k+1); n++ {
					if n > 100 {
						runtime.Gosched()
					}
				}
				for range k % 97 * 20 {
					_ = src.armed.Load() // now and then long enough for it to fall asleep
				}
				if k%64 == 0 {
					time.Sleep(200 * time.Microsecond)
				}
			}
		})
	}
	wg.Go(func() {
		for range each {
			s.r.Do(func(*Worker) {})
		}
	})
	wg.Wait()
	s.asleep(0)
	s.asleep(1)
	s.r.Stop()
	st := s.liveStats()
	if st.Polls.Sleeps == 0 || st.Polls.Wakeups == 0 || st.Polls.Spurious > st.Polls.Wakeups || st.Polls.Wakeups > st.Polls.Sleeps {
		t.Errorf("%+v", st.Polls)
	}
	if st.Received != 3*each {
		t.Errorf("received %d", st.Received)
	}
	s.hangUp()
	if err := checkConservation(s.lab); err != nil {
		t.Error(err)
	}
}

// What wakes a worker from outside its ports.
func TestWhoWakesASleepingWorker(t *testing.T) {
	defer goleak.VerifyNone(t)
	s := newSleepy(t)
	s.start()
	s.asleep(0)
	s.asleep(1)
	s.r.Do(func(*Worker) {}) // returns when all ran it
	s.asleep(1)
	// Worker 0 receives, worker 1 owns the way out.
	s.src[0].frame = udp("192.0.2.2", "198.51.100.2").bytes(t)
	s.src[0].offer()
	until(t, "the frame to leave", func() bool { c := s.wires[1].txStats.Read(); return c.Packets == 1 })
	// Worker 0 holds a packet for a neighbour of worker 1's port.
	s.asleep(0)
	s.src[0].frame = udp("192.0.2.2", "198.51.100.77").bytes(t)
	s.src[0].offer()
	until(t, "the request to leave", func() bool { c := s.wires[1].txStats.Read(); return c.Packets == 2 })
	s.asleep(0)
	s.asleep(1)
	s.src[1].frame = answer("198.51.100.77", hostMAC[2])
	s.src[1].offer()
	until(t, "the held packet to leave", func() bool { c := s.wires[1].txStats.Read(); return c.Packets == 3 })
	// The control side learns one.
	s.asleep(0)
	s.src[0].frame = udp("192.0.2.2", "198.51.100.78").bytes(t)
	s.src[0].offer()
	until(t, "the request to leave", func() bool { c := s.wires[1].txStats.Read(); return c.Packets == 4 })
	s.asleep(0)
	if err := s.r.Neighbours().SetPermanent(1, netip.MustParseAddr("198.51.100.78"), hostMAC[1]); err != nil {
		t.Fatal(err)
	}
	s.r.Housekeep()
	until(t, "the held packet to leave", func() bool { c := s.wires[1].txStats.Read(); return c.Packets == 5 })
	s.asleep(0)
	s.asleep(1)
	s.hangUp() // Stop wakes them
	if err := checkConservation(s.lab); err != nil {
		t.Error(err)
	}
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
