package e1000

import (
	"fmt"

	"gorouter/internal/inet"
	"gorouter/nic/e1000/regs"
	"gorouter/skb"
)

// layout is how received frames lie in the buffers.
type layout struct {
	long     bool   // RCTL.LPE: frames above 1522 bytes are accepted
	size     int    // most bytes that the device stores in one buffer
	bits     uint32 // RCTL.BSIZE and BSEX
	maxFrame int    // longest frame in bytes without FCS, one VLAN tag included
}

// linkBytes is what a frame has beyond the IP packet, without FCS.
const linkBytes = inet.EthHeaderLen + inet.VLANTagLen

var longSizes = []struct {
	size int
	bits uint32
}{
	{16384, regs.RctlBSIZE16384}, {8192, regs.RctlBSIZE8192}, {4096, regs.RctlBSIZE4096}, {2048, regs.RctlBSIZE2048},
}

// planLayout makes sure that no frame the device may store reaches beyond its
// buffer, which would be the next buffer's headroom.
//
// With LPE and SBP off the chip discards frames above 1522 bytes, whatever
// RCTL.BSIZE says (13.4.22), so 2048 is announced even where fewer bytes
// follow the headroom. With LPE on it stores up to BSIZE, and a frame that
// takes more than one buffer would be dropped by the ring.
func planLayout(stride, headroom, mtu int) (layout, error) {
	room := stride - headroom
	l := layout{maxFrame: mtu + linkBytes}
	if mtu < minMTU {
		return layout{}, fmt.Errorf("MTU %d is below the %d of RFC 791 (raise the MTU)", mtu, minMTU)
	}
	if mtu <= defaultMTU {
		l.size, l.bits = skb.DeviceBytesShort, regs.RctlBSIZE2048
		if l.size > room {
			return layout{}, fmt.Errorf("headroom %d + %d bytes of a frame exceed the stride %d: the device could write into the next buffer (raise the buffers' stride or lower the headroom)",
				headroom, l.size, stride)
		}
		return l, nil
	}
	l.long = true
	for _, s := range longSizes {
		if s.size <= room {
			l.size, l.bits = s.size, s.bits
			break
		}
	}
	if need := l.maxFrame + inet.FCSLen; need > l.size {
		return layout{}, fmt.Errorf("MTU %d needs %d bytes in one buffer, but stride %d with headroom %d gives %d (%s)",
			mtu, need, stride, headroom, l.size, mtuRemedy(headroom, need, l.size))
	}
	return l, nil
}

func mtuRemedy(headroom, need, have int) string {
	lower := fmt.Sprintf("lower the MTU to %d", max(have-linkBytes-inet.FCSLen, defaultMTU))
	top := skb.OptionTable.Find("stride").Max
	for stride := skb.OptionTable.Find("stride").Min; stride <= top; stride *= 2 {
		for _, s := range longSizes {
			if s.size <= stride-headroom && s.size >= need {
				return fmt.Sprintf("raise the buffers' stride to %d or %s", stride, lower)
			}
		}
	}
	return lower + "; no stride is large enough for this one"
}

// plan is planLayout for this device.
func (d *Device) plan(mtu int) (layout, error) {
	l, err := planLayout(d.arena.Stride(), d.arena.Headroom(), mtu)
	if err != nil {
		return l, fmt.Errorf("%s: %w", d.name, err)
	}
	return l, nil
}
