// Package netlab builds small networks out of network namespaces and virtual
// Ethernet pairs for end-to-end tests: hosts that are the kernel's own stack, and
// between them a namespace in which gorouter, or for comparison the kernel, routes.
//
//	h1 eth0 ---- lan0 router wan0 ---- eth0 h2
//
// All that a test makes goes away with it, also when it fails or when the test
// program is interrupted. What a killed test program left is removed by the next.
// Names carry the process id, so that test programs do not disturb each other.
//
// Needs root and iproute2. A Lab is used from one goroutine, its processes from any.
package netlab

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"gorouter/internal/testenv"
)

// prefix begins the name of every namespace, and of the folder with the built
// programs; the process id follows, then a dash.
const prefix = "grt"

var serial atomic.Uint32 // numbers the labs of this process

// Lab is one network.
type Lab struct {
	t     testing.TB
	names string // beginning of its namespaces' names

	mu         sync.Mutex // cleanup may come from the signal handler
	namespaces []*Namespace
	closed     bool
}

// New returns an empty network that is taken down at the end of the test. The
// test ends here if it is not run by root or the ip program is missing.
func New(t testing.TB) *Lab {
	t.Helper()
	testenv.NeedRoot(t)
	testenv.NeedTool(t, "ip", "iproute2")
	sweepOnce.Do(sweepStale)
	l := &Lab{t: t, names: fmt.Sprintf("%s%d-%d-", prefix, os.Getpid(), serial.Add(1))}
	register(l)
	t.Cleanup(func() {
		unregister(l)
		if err := l.close(); err != nil {
			t.Errorf("taking the network down: %v", err)
		}
	})
	return l
}

// close kills the processes and removes the namespaces, and with them the links.
// It can be called more than once.
func (l *Lab) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	var faults []string
	for _, n := range l.namespaces {
		n.killAll()
	}
	for _, n := range l.namespaces {
		if err := n.remove(); err != nil {
			faults = append(faults, err.Error())
		}
	}
	if faults != nil {
		return fmt.Errorf("%s", strings.Join(faults, "; "))
	}
	return nil
}

// Line is the usual network: a host on each side of a router.
type Line struct {
	H1, Router, H2 *Namespace
}

// Addresses of a Line. The router's are for whoever routes to set up; the hosts
// have theirs, and a default route to the router's.
const (
	H1Address     = "10.0.1.2"
	RouterLAN     = "10.0.1.1" // on lan0, towards h1
	RouterWAN     = "10.0.2.1" // on wan0, towards h2
	H2Address     = "10.0.2.2"
	LinePrefixLen = 24
)

// Line builds the usual network. The hosts' interface is eth0; the router's are
// lan0 and wan0, up and without addresses.
func (l *Lab) Line() Line {
	l.t.Helper()
	n := Line{H1: l.Namespace("h1"), Router: l.Namespace("router"), H2: l.Namespace("h2")}
	l.Link(n.H1, "eth0", n.Router, "lan0")
	l.Link(n.Router, "wan0", n.H2, "eth0")
	n.H1.Address("eth0", fmt.Sprintf("%s/%d", H1Address, LinePrefixLen))
	n.H1.Route("0.0.0.0/0", RouterLAN)
	n.H2.Address("eth0", fmt.Sprintf("%s/%d", H2Address, LinePrefixLen))
	n.H2.Route("0.0.0.0/0", RouterWAN)
	return n
}
