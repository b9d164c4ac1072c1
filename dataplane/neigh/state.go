package neigh

import "gorouter/fib"

// State of a neighbour, as in RFC 4861 section 7.3.2 and the Linux kernel's
// table.
type State uint8

const (
	// None: nothing is known. No entry stays in this state.
	None State = iota
	// Incomplete: asked for, no answer yet.
	Incomplete
	// Reachable: confirmed not long ago.
	Reachable
	// Stale: confirmed too long ago to be sure, or never by an answer to us;
	// usable, and watched for use.
	Stale
	// Delay: used after it was stale; somebody may yet confirm it.
	Delay
	// Probe: being asked again, still used.
	Probe
	// Failed: did not answer; remembered so that packets are refused at once.
	Failed
	// Permanent: configured, never asked for.
	Permanent

	numStates
)

var stateNames = [numStates]string{"none", "incomplete", "reachable", "stale", "delay", "probe", "failed", "permanent"}

// String is the state's name in lower case.
func (s State) String() string { return stateNames[s] }

// Usable reports whether a neighbour in this state has an address to send to.
func (s State) Usable() bool {
	return s >= Reachable && s <= Probe || s == Permanent
}

// shown is the state as the packet path sees it in the adjacency.
func (s State) shown() fib.State {
	switch s {
	case None:
		return fib.Unresolved
	case Incomplete:
		return fib.Incomplete
	case Stale:
		return fib.Stale
	case Failed:
		return fib.Failed
	}
	return fib.Reachable
}
