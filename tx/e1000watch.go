package tx

import (
	"fmt"
	"strings"
	"sync/atomic"

	"gorouter/skb"
)

// Oldest identifies the oldest report that the device owes: of a descriptor
// that it was shown and has not finished. Reports are numbered in the order in
// which they were asked for, over the ring's life. ok is false when the device
// owes none. Owner only; not for the packet path.
//
// A watchdog that sees the same number again knows that nothing was finished
// in between, and no frame had to be stamped for it.
func (r *E1000) Oldest() (report uint64, ok bool) {
	shown := r.used - r.waiting()
	first := r.stats.Live.Reports - uint64(r.rLen)
	for k := range r.rLen {
		i := r.report[(r.rHead+k)%r.n]
		if (i+r.n-r.clean)%r.n >= shown {
			return 0, false
		}
		if atomic.LoadUint64(&r.at(i).word)&DescStatusDD == 0 {
			return first + uint64(k), true
		}
	}
	return 0, false
}

// Finished reports whether a Reclaim would free a frame: the check-again after
// a transmit interrupt was enabled. Owner only.
func (r *E1000) Finished() bool {
	return r.rLen > 0 && atomic.LoadUint64(&r.at(r.report[r.rHead]).word)&DescStatusDD != 0
}

// Unshown is the number of descriptors that the device was not shown yet: they
// wait for a timed doorbell, or for Flush. Owner only.
func (r *E1000) Unshown() int { return int(r.waiting()) }

// flag is a bit of a descriptor with its name in the manual.
type flag struct {
	mask uint64
	name string
}

var commandFlags = []flag{
	{DescCmdEOP, "EOP"}, {DescCmdIFCS, "IFCS"}, {DescCmdIC, "IC"}, {DescCmdRS, "RS"}, {DescCmdRPS, "RPS"},
	{DescCmdDEXT, "DEXT"}, {DescCmdVLE, "VLE"}, {DescCmdIDE, "IDE"},
}

var statusFlags = []flag{
	{DescStatusDD, "DD"}, {1 << 33, "EC"}, {1 << 34, "LC"}, {1 << 35, "TU"},
}

func names(flags []flag, word uint64) string {
	var s []string
	for _, f := range flags {
		if word&f.mask != 0 {
			s = append(s, f.name)
		}
	}
	if s == nil {
		return "0"
	}
	return strings.Join(s, "|")
}

// DescribeDescriptor decodes a legacy transmit descriptor (sections 3.3.3.1
// and 3.3.3.2).
func DescribeDescriptor(addr, word uint64) string {
	return fmt.Sprintf("addr=%#x length=%d cmd=%s status=%s", addr, word&DescLengthMask,
		names(commandFlags, word), names(statusFlags, word))
}

// Describe decodes the ring for a person: where it stands, and the around
// descriptors before and after the oldest one not freed and the next to be
// written. Owner only.
func (r *E1000) Describe(around int) []string {
	lines := []string{fmt.Sprintf("%s: %d descriptors, clean %d, bell %d, next %d, %d in use, %d reports owed",
		r.name, r.n, r.clean, r.bell, r.next, r.used, r.rLen)}
	near := func(i, to uint32) bool {
		d := int((i + r.n - to) % r.n)
		return d <= around || int(r.n)-d <= around
	}
	for i := range r.n {
		if !near(i, r.clean) && !near(i, r.next) {
			continue
		}
		d := r.at(i)
		s := fmt.Sprintf("tx[%d] %s", i, DescribeDescriptor(d.addr, atomic.LoadUint64(&d.word)))
		if h := r.slots[i]; h != skb.None {
			s += fmt.Sprintf(" buffer=%d", h)
		}
		for _, m := range []struct {
			at   uint32
			name string
		}{{r.clean, "clean"}, {r.bell, "bell"}, {r.next, "next"}} {
			if i == m.at {
				s += " <" + m.name
			}
		}
		lines = append(lines, s)
	}
	return lines
}
