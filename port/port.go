// Package port is what a worker drives: a name, receive and transmit queues,
// link state and statistics. It knows neither kinds of device nor forwarding.
package port

import (
	"sync/atomic"

	"gorouter/internal/inet"
	"gorouter/rx"
	"gorouter/tx"
)

// Port is one interface of the router. The fields up to Device are set before
// the workers start and do not change; each queue belongs to one worker.
type Port struct {
	Name  string
	Index uint16 // place in the router's list of ports
	MTU   int    // longest IP packet in bytes; see LinkMTU
	Rx    []rx.Queue
	Tx    []tx.Queue

	// Device is the thing behind the queues.
	Device Device

	// Step, where set, is called once a round by the worker that owns the
	// port's first receive queue: a software device that runs inline does its
	// work there. now is the worker's time in nanoseconds.
	Step func(now int64)

	// Events, where set, can wake the worker that owns the port's queues. A
	// port without one has to be polled: software devices that run inline.
	Events Notifier

	mac  atomic.Uint64 // 48 bits; may change on a running port
	mtu  atomic.Int64  // what the link allows; 0: not known to be less than MTU
	link atomic.Bool
	note atomic.Pointer[func(*Port)]
}

// Device is the control side of a port. Its methods are not called on the
// packet path. Start and Close are called once each, by one goroutine.
type Device interface {
	// Driver is the driver's name as in the configuration.
	Driver() string
	// Start lets frames flow. The queues must be owned by their workers.
	Start() error
	// Stop makes the device quiet: no frame moves, no memory is touched
	// afterwards. The queues can then be closed. It is idempotent.
	Stop() error
	// Close gives up the device and undoes what opening it changed. It is
	// idempotent and implies Stop.
	Close() error
	// Stats is the device's own counters by name, RxMissed among them where it
	// can tell; nil where it has none.
	// Safe to call while the port runs.
	Stats() map[string]uint64
}

// RxMissed is the name, in Device.Stats, of the frames that the device lost for
// want of a free receive slot before the router saw them.
const RxMissed = "rx_missed"

// MAC is the port's Ethernet address. Safe for concurrent use.
func (p *Port) MAC() inet.MAC {
	v := p.mac.Load()
	return inet.MAC{byte(v >> 40), byte(v >> 32), byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)}
}

// SetMAC changes the port's Ethernet address and tells the watcher.
func (p *Port) SetMAC(m inet.MAC) {
	var v uint64
	for _, b := range m {
		v = v<<8 | uint64(b)
	}
	if p.mac.Swap(v) != v {
		p.tell()
	}
}

// LinkMTU is the longest IP packet, in bytes, that goes out now: MTU, or less
// where the link has been set to less since. Safe for concurrent use.
func (p *Port) LinkMTU() int {
	if n := int(p.mtu.Load()); n > 0 && n < p.MTU {
		return n
	}
	return p.MTU
}

// SetLinkMTU records what the link allows and, when that changed, tells the
// watcher. It cannot go above MTU, for which the buffers were made.
func (p *Port) SetLinkMTU(n int) {
	n = min(n, p.MTU)
	before := p.LinkMTU()
	p.mtu.Store(int64(n))
	if before != n {
		p.tell()
	}
}

// Up reports whether the link is up. Safe for concurrent use.
func (p *Port) Up() bool { return p.link.Load() }

// SetUp records the link state and, when it changed, tells the watcher.
func (p *Port) SetUp(up bool) {
	if p.link.Swap(up) != up {
		p.tell()
	}
}

// Watch sets the function that is called, on whichever goroutine noticed,
// after the link state, the MAC address or the link's MTU changed. nil ends it.
func (p *Port) Watch(f func(*Port)) {
	if f == nil {
		p.note.Store(nil)
		return
	}
	p.note.Store(&f)
}

func (p *Port) tell() {
	if f := p.note.Load(); f != nil {
		(*f)(p)
	}
}
