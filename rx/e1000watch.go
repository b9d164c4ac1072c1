package rx

import (
	"fmt"
	"strings"
	"sync/atomic"

	"gorouter/skb"
)

// Tail is what the tail register was last written with: the slot after the
// last one that is the device's. Owner only.
func (r *E1000) Tail() uint32 { return r.fill }

// flag is a bit of a descriptor with its name in the manual.
type flag struct {
	mask uint64
	name string
}

var statusFlags = []flag{
	{DescStatusDD, "DD"}, {DescStatusEOP, "EOP"}, {1 << 34, "IXSM"}, {1 << 35, "VP"},
	{1 << 37, "TCPCS"}, {1 << 38, "IPCS"}, {1 << 39, "PIF"},
}

var errorFlags = []flag{
	{DescErrorCE, "CE"}, {DescErrorSE, "SE"}, {DescErrorSEQ, "SEQ"}, {DescErrorCXE, "CXE"},
	{1 << 45, "TCPE"}, {1 << 46, "IPE"}, {DescErrorRXE, "RXE"},
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

// DescribeDescriptor decodes a legacy receive descriptor (sections 3.2.3.1 to
// 3.2.3.3).
func DescribeDescriptor(addr, word uint64) string {
	return fmt.Sprintf("addr=%#x length=%d checksum=%#04x status=%s errors=%s", addr, word&DescLengthMask,
		word>>16&0xffff, names(statusFlags, word), names(errorFlags, word))
}

// Describe decodes the ring for a person: where it stands, and the around
// descriptors before and after the next one to be polled and the next one to
// be given back. Owner only.
func (r *E1000) Describe(around int) []string {
	lines := []string{fmt.Sprintf("%s: %d descriptors, next %d, fill %d, %d are the device's", r.name, r.n, r.next, r.fill, r.Owned())}
	near := func(i, to uint32) bool {
		d := int((i + r.n - to) % r.n)
		return d <= around || int(r.n)-d <= around
	}
	for i := range r.n {
		if !near(i, r.next) && !near(i, r.fill) {
			continue
		}
		d := r.at(i)
		s := fmt.Sprintf("rx[%d] %s", i, DescribeDescriptor(d.addr, atomic.LoadUint64(&d.word)))
		if h := r.slots[i]; h != skb.None {
			s += fmt.Sprintf(" buffer=%d", h)
		}
		if i == r.next {
			s += " <next"
		}
		if i == r.fill {
			s += " <fill"
		}
		lines = append(lines, s)
	}
	return lines
}
