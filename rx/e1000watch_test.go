package rx

import (
	"strings"
	"testing"

	"gorouter/skb"
)

func TestDescribe(t *testing.T) {
	r := newRig(t, defaults(), 64, false)
	for range 3 {
		r.dev.frame(make([]byte, 60))
	}
	r.poll(2)
	r.free()
	s := strings.Join(r.Describe(1), "\n")
	for _, want := range []string{
		"p0 rx: 256 descriptors, next 2, fill 255, 253 are the device's",
		"rx[2] addr=0x", "length=60 checksum=0x0000 status=DD|EOP errors=0 buffer=", "<next", "rx[255] ", "<fill", "rx[254] ", "rx[0] ",
	} {
		if !strings.Contains(s, want) {
			t.Errorf("no %q in\n%s", want, s)
		}
	}
	if n := strings.Count(s, "\n"); n != 6 {
		t.Errorf("%d descriptors shown:\n%s", n, s)
	}
	if got, want := DescribeDescriptor(0x2000, 0xffff_ffff_ffff_ffff),
		"addr=0x2000 length=65535 checksum=0xffff status=DD|EOP|IXSM|VP|TCPCS|IPCS|PIF errors=CE|SE|SEQ|CXE|TCPE|IPE|RXE"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// What was received and not polled is named when the ring ends, behind a
// descriptor that was never reported as well.
func TestUnpolledFramesAreNamed(t *testing.T) {
	for _, c := range []struct {
		reason skb.Reason
		end    func(r *rig)
	}{
		{skb.RxAborted, func(r *rig) { r.dev.head, r.dev.tail = 0, 0; r.Reset() }},
		{skb.Shutdown, func(r *rig) { r.Close(); r.Close() }},
	} {
		r := newRig(t, defaults(), 64, false)
		for range 5 {
			r.dev.frame(make([]byte, 60))
		}
		r.poll(2)
		r.free()
		r.dev.write(nil, 60, 0) // DD is missing
		r.dev.frame(make([]byte, 60))
		r.dev.write(nil, 60, word0|DescErrorCE)
		r.dev.pieces(3, 0)
		c.end(r)
		want := skb.DropCounts{skb.RxCRC: 1, skb.RxMultiDescriptor: 1}
		want[c.reason] = 4
		if got := r.Counters().Live; got.Drops != want || got.Packets != 2 {
			t.Errorf("%v: %v dropped, %d packets", c.reason, got.Drops.Map(), got.Packets)
		}
		r.audit(t)
	}
}
