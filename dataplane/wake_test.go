package dataplane

import (
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"gorouter/skb"
)

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
