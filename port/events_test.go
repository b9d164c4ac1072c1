package port

import (
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gorouter/rx"
	"gorouter/tx"
)

// source is a Notifier over a signal that notes its calls.
type source struct {
	*Signal
	armed   bool
	arms    int
	pending bool
}

func newSource(t *testing.T) *source {
	s, err := NewSignal()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return &source{Signal: s}
}

func (s *source) Arm() bool { s.armed = true; s.arms++; return s.pending }
func (s *source) Disarm()   { s.armed = false; s.Clear() }

func newSleeper(t *testing.T, ns ...Notifier) *Sleeper {
	s, err := NewSleeper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	for _, n := range ns {
		s.Add(n)
	}
	return s
}

func readable(fd int) bool {
	p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(p, 0)
	return err == nil && n == 1
}

// forever stands for a time-out that must not be what ends a sleep.
const forever = time.Hour

func TestSignal(t *testing.T) {
	s := newSource(t)
	if readable(s.FD()) {
		t.Error("readable before Raise")
	}
	s.Raise()
	s.Raise()
	if !readable(s.FD()) {
		t.Error("not readable after Raise")
	}
	s.Clear()
	if readable(s.FD()) {
		t.Error("readable after Clear")
	}
	s.Clear()
	s.Raise()
	if !readable(s.FD()) {
		t.Error("not readable after the second Raise")
	}
}

// Any of several sources ends a sleep, and all are silent after it.
func TestAnySourceWakes(t *testing.T) {
	a, b := newSource(t), newSource(t)
	s := newSleeper(t, a, b)
	for _, who := range []*source{a, b} {
		slept, err := s.Sleep(forever, func() bool {
			if !a.armed || !b.armed {
				t.Error("asked for more before all sources were armed")
			}
			who.Raise()
			return false
		})
		if !slept || err != nil {
			t.Errorf("slept %v, %v", slept, err)
		}
		if a.armed || b.armed || readable(who.FD()) {
			t.Error("a source is not silent after the sleep")
		}
	}
}

func TestPendingWorkKeepsAwake(t *testing.T) {
	a, b := newSource(t), newSource(t)
	s := newSleeper(t, a, b)
	a.pending = true
	if slept, err := s.Sleep(forever, nil); slept || err != nil {
		t.Errorf("with a pending source: slept %v, %v", slept, err)
	}
	if b.arms != 1 || b.armed {
		t.Error("the other source did not have its look")
	}
	a.pending = false
	if slept, err := s.Sleep(forever, func() bool { return true }); slept || err != nil {
		t.Errorf("with more work: slept %v, %v", slept, err)
	}
	if slept, err := s.Sleep(0, nil); !slept || err != nil {
		t.Errorf("with nothing: slept %v, %v", slept, err)
	}
	s.Remove(a)
	s.Remove(a)
	before := a.arms
	if slept, err := s.Sleep(0, nil); !slept || err != nil || a.arms != before || b.arms != 4 {
		t.Errorf("after Remove: slept %v, %v, %d and %d arms", slept, err, a.arms-before, b.arms)
	}
}

// No work that is published before a Wake is slept through, however the two
// sides meet. The sleep has no time-out worth the name: a lost wake-up hangs.
func TestNoWakeIsLost(t *testing.T) {
	s := newSleeper(t)
	const total = 20000
	var published atomic.Int64
	var wg sync.WaitGroup
	for range 2 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range total / 2 {
				published.Add(1)
				s.Wake()
			}
		}()
	}
	for seen := int64(0); seen < total; seen = published.Load() {
		if _, err := s.Sleep(forever, func() bool { return published.Load() != seen }); err != nil {
			t.Fatal(err)
		}
	}
	wg.Wait()
}

// While the worker is awake a Wake leaves nothing behind.
func TestWakeWhileAwake(t *testing.T) {
	s := newSleeper(t)
	s.Wake()
	if readable(s.wake.FD()) {
		t.Error("a Wake of one that is awake raised the signal")
	}
	if slept, err := s.Sleep(forever, func() bool { s.Wake(); return false }); !slept || err != nil {
		t.Errorf("slept %v, %v", slept, err)
	}
	if readable(s.wake.FD()) {
		t.Error("the wake-up was not taken back")
	}
}

// A descriptor that fails for good does not turn sleep into a spin.
func TestFailedDescriptorIsMuted(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	_ = w.Close() // POLLHUP for ever
	s := newSleeper(t, FileEvents(int(r.Fd()), nil, nil))
	for range 3 {
		if _, err := s.Sleep(0, nil); err != nil {
			t.Fatal(err)
		}
	}
	if s.polls[1].Fd >= 0 {
		t.Error("still listened to")
	}
	b := newSource(t)
	s.Add(b)
	if slept, err := s.Sleep(forever, func() bool { b.Raise(); return false }); !slept || err != nil {
		t.Errorf("slept %v, %v", slept, err)
	}
}

// A socket's error is taken once, and the socket is listened to after it.
func TestSocketErrorIsTaken(t *testing.T) {
	// A datagram to a port that nobody has makes an ICMP error.
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	free, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	lo := &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}
	if err := unix.Bind(free, lo); err != nil {
		t.Fatal(err)
	}
	at, err := unix.Getsockname(free)
	if err != nil {
		t.Fatal(err)
	}
	_ = unix.Close(free)
	if err := unix.Connect(fd, at); err != nil {
		t.Fatal(err)
	}
	s := newSleeper(t, FileEvents(fd, nil, nil))
	for range 3 {
		if _, err := unix.Write(fd, []byte{1}); err != nil {
			t.Fatal(err)
		}
		if slept, err := s.Sleep(forever, nil); !slept || err != nil {
			t.Fatalf("slept %v, %v", slept, err)
		}
		if _, err := s.Sleep(0, nil); err != nil {
			t.Fatal(err)
		}
		if s.polls[1].Fd != int32(fd) {
			t.Fatal("muted by an error that was taken")
		}
	}
}

// queues stand in for a socket port's two halves.
type rxStub struct {
	rx.Queue
	ready bool
}

func (q *rxStub) Ready() bool { return q.ready }

type txStub struct {
	tx.Queue
	held int
}

func (q *txStub) Reclaim() int { q.held--; return 1 }
func (q *txStub) Pending() int { return q.held }

func TestFileEvents(t *testing.T) {
	q, x := &rxStub{}, &txStub{held: 2}
	n := FileEvents(7, []rx.Queue{q}, []tx.Queue{x})
	if n.FD() != 7 || !n.Arm() {
		t.Error("not pending while the kernel holds a frame")
	}
	if n.Arm() {
		t.Error("pending when all is done")
	}
	q.ready, x.held = true, 1
	if !n.Arm() {
		t.Error("not pending while a frame waits")
	}
	n.Disarm()
}
