package port

import (
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"gorouter/rx"
	"gorouter/tx"
)

// Notifier is a port's event source: it can wake the worker that sleeps on
// it. Every kind of port gives the same thing, a file descriptor, so that one
// ppoll covers ports of all kinds: the line of a real chip is VFIO's eventfd,
// that of a software chip a Signal, AF_PACKET and AF_XDP have their sockets.
//
// A source starts disarmed. Arm and Disarm belong to the worker that owns the
// port's queues.
type Notifier interface {
	// FD polls as readable (POLLIN) when an armed source has something. It is
	// the same for the source's life and stays the source's own.
	FD() int

	// Arm lets the source speak: from now on a received frame, a finished
	// transmit or a link change makes FD readable. Then it looks again, and
	// pending says that something was there already, or that the port holds
	// frames which nothing would report: the worker must not sleep but go
	// through its queues once more. This closes the race between the last
	// empty poll and the arming. A source that is armed may be armed again.
	Arm() (pending bool)

	// Disarm makes the source silent and takes back what FD reported. It is
	// harmless on one that is not armed. The worker polls after it, so nothing
	// that was reported is lost.
	Disarm()
}

// Signal is a wake-up that any goroutine can give to one that polls: an
// eventfd. It is the interrupt line of a software chip. Raise is safe for
// concurrent use, Close must be the last call.
type Signal struct {
	fd     int
	raised atomic.Bool
	count  [8]byte // what Clear read
}

// NewSignal makes a quiet signal.
func NewSignal() (*Signal, error) {
	fd, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make an eventfd: %w", err)
	}
	return &Signal{fd: fd}, nil
}

// FD polls as readable after a Raise.
func (s *Signal) FD() int { return s.fd }

var one = [8]byte{1, 1, 1, 1, 1, 1, 1, 1}

// Raise makes FD readable. Raising what is raised costs no system call.
func (s *Signal) Raise() {
	if !s.raised.Swap(true) {
		_, _ = unix.Write(s.fd, one[:]) // can fail only where it is readable anyway
	}
}

// Clear makes FD quiet. A Raise that comes meanwhile may be swallowed, so the
// caller looks for work after Clear, never before. One goroutine at a time.
func (s *Signal) Clear() {
	_, _ = unix.Read(s.fd, s.count[:]) // EAGAIN when it was quiet
	s.raised.Store(false)
}

// Close gives the descriptor back.
func (s *Signal) Close() error { return unix.Close(s.fd) }

// fileEvents is the source of a port whose kernel socket is the event.
type fileEvents struct {
	fd int
	rx []rx.Queue
	tx []tx.Queue
}

// FileEvents is the source of a port that is a socket, such as AF_PACKET: its
// descriptor is readable while frames wait, so that arming is only the second
// look. Sent frames are reported by nobody; while the kernel holds some, Arm
// says pending.
func FileEvents(fd int, rxs []rx.Queue, txs []tx.Queue) Notifier {
	return &fileEvents{fd: fd, rx: rxs, tx: txs}
}

func (e *fileEvents) FD() int { return e.fd }

func (e *fileEvents) Arm() (pending bool) {
	for _, q := range e.rx {
		pending = pending || q.Ready()
	}
	for _, q := range e.tx {
		q.Reclaim()
		pending = pending || q.Pending() > 0
	}
	return pending
}

func (e *fileEvents) Disarm() {}

// Sleeper lets one worker sleep on the sources of all its ports at once, until
// one of them speaks, somebody calls Wake, or time runs out. All methods but
// Wake belong to the worker.
type Sleeper struct {
	wake   *Signal
	asleep atomic.Bool
	ports  []Notifier
	polls  []unix.PollFd // polls[0] is wake, polls[i+1] is ports[i]
	failed []bool        // the last sleep ended with an error on it
}

// NewSleeper makes a sleeper without sources.
func NewSleeper() (*Sleeper, error) {
	w, err := NewSignal()
	if err != nil {
		return nil, err
	}
	return &Sleeper{wake: w, polls: []unix.PollFd{{Fd: int32(w.FD()), Events: unix.POLLIN}}}, nil
}

// Add adds a port's source.
func (s *Sleeper) Add(n Notifier) {
	s.ports = append(s.ports, n)
	s.polls = append(s.polls, unix.PollFd{Fd: int32(n.FD()), Events: unix.POLLIN})
	s.failed = append(s.failed, false)
}

// Remove takes a port's source out, before it is closed. One that is not there
// is ignored.
func (s *Sleeper) Remove(n Notifier) {
	for i, p := range s.ports {
		if p == n {
			s.ports = append(s.ports[:i], s.ports[i+1:]...)
			s.polls = append(s.polls[:i+1], s.polls[i+2:]...)
			s.failed = append(s.failed[:i], s.failed[i+1:]...)
			return
		}
	}
}

// Wake ends the sleep under way. Publish the work first (mail, a hand-over
// ring), then call Wake. While the worker is awake it costs one atomic load.
// Safe for concurrent use.
func (s *Sleeper) Wake() {
	if s.asleep.Load() {
		s.wake.Raise()
	}
}

// Sleep arms every source and sleeps until one speaks, Wake is called, or d is
// over; all sources are disarmed when it returns. more, which may be nil, is
// asked when the sources are armed and Wake works: true means that there is
// work, so that nothing which was published before a Wake is overlooked.
//
// slept tells whether it slept at all; it did not when a source had something
// pending or more said so. An error is that of ppoll; the worker can go on.
func (s *Sleeper) Sleep(d time.Duration, more func() bool) (slept bool, err error) {
	s.asleep.Store(true)
	defer s.asleep.Store(false)
	pending := false
	for _, p := range s.ports {
		// All are armed even so: each looks at its port on the way.
		pending = p.Arm() || pending
	}
	if !pending && (more == nil || !more()) {
		slept = true
		err = s.wait(s.polls, d)
	}
	for _, p := range s.ports {
		p.Disarm()
	}
	s.awake()
	if slept && err == nil {
		s.checkFailures()
	}
	return slept, err
}

// Nap is Sleep without the sources: none is armed, and only Wake and the time
// end it. more is asked as in Sleep.
func (s *Sleeper) Nap(d time.Duration, more func() bool) (slept bool, err error) {
	s.asleep.Store(true)
	defer s.asleep.Store(false)
	if more == nil || !more() {
		slept = true
		err = s.wait(s.polls[:1], d)
	}
	s.awake()
	return slept, err
}

// wait is the sleep itself.
func (s *Sleeper) wait(polls []unix.PollFd, d time.Duration) error {
	t := unix.NsecToTimespec(int64(max(d, 0)))
	if _, err := unix.Ppoll(polls, &t, nil); err != nil && err != unix.EINTR { // EINTR: a signal for the runtime
		return fmt.Errorf("ppoll: %w", err)
	}
	return nil
}

// awake takes a Wake back that has been heard.
func (s *Sleeper) awake() {
	if s.polls[0].Revents != 0 || s.wake.raised.Load() {
		s.wake.Clear()
		s.polls[0].Revents = 0
	}
}

// checkFailures keeps a descriptor that reports an error without end from
// turning sleep into a spin: a socket's error is taken, as after its interface
// went down; one that fails again is no longer listened to, and its port is
// served when time runs out.
func (s *Sleeper) checkFailures() {
	const bad = unix.POLLERR | unix.POLLHUP | unix.POLLNVAL
	for i := range s.failed {
		p := &s.polls[i+1]
		if p.Fd < 0 || p.Revents&bad == 0 || p.Revents&unix.POLLIN != 0 {
			s.failed[i] = false
			continue
		}
		if p.Revents&unix.POLLNVAL != 0 || s.failed[i] {
			p.Fd = -1
			continue
		}
		s.failed[i] = true
		_, _ = unix.GetsockoptInt(int(p.Fd), unix.SOL_SOCKET, unix.SO_ERROR)
	}
}

// Close gives the sleeper's descriptor back; the sources are not touched. Wake
// must not be called any more.
func (s *Sleeper) Close() error { return s.wake.Close() }
