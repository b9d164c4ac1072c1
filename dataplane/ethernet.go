package dataplane

import (
	"encoding/binary"

	"gorouter/internal/inet"
	"gorouter/skb"
)

// frame is the part of a frame that the stages read. A buffer always has that
// many bytes behind the start of a frame, so reading them is safe whatever
// the frame's length; whether they mean anything is for the stage to check.
type frame [64]byte

func (w *Worker) frame(h skb.Handle, m *skb.Meta) *frame {
	return (*frame)(w.arena.HeadOf(h, m))
}

// process takes the batch in w.in through all stages.
func (w *Worker) process(portIndex uint16) {
	n := w.ethernet(&w.in, portIndex)
	if n == 0 {
		return
	}
	n = w.ip4Input(n)
	if n == 0 {
		return
	}
	w.reader.Lookup4Batch(w.ifs.ifs[portIndex].table, w.dst[:n], w.res[:n])
	w.done(stageIP4Lookup, n)
	w.ip4Forward(n, portIndex)
}

// ethernet sorts a batch by destination and ethertype: IPv4 for this port goes
// to w.ip, everything else is handled on the way. It returns the number of
// frames in w.ip.
func (w *Worker) ethernet(b *skb.Batch, portIndex uint16) int {
	own := w.ifs.ifs[portIndex].mac
	k := 0
	for _, h := range b.Handles() {
		m := w.arena.Meta(h)
		f := w.frame(h, m)
		dst := binary.LittleEndian.Uint64(f[0:8]) & macMask
		if dst == own && f[6]&1 == 0 && binary.BigEndian.Uint16(f[12:14]) == inet.EtherIPv4 && m.Len >= inet.EthHeaderLen {
			w.ip[k&(skb.BatchSize-1)] = h
			k++
			continue
		}
		if w.etherSlow(h, m, f, portIndex, dst == own) {
			w.ip[k&(skb.BatchSize-1)] = h
			k++
		}
	}
	w.done(stageEthernet, b.N)
	return k
}

// etherSlow handles what is not plain IPv4 to the port's own address. It
// reports true when the frame goes on to IPv4.
func (w *Worker) etherSlow(h skb.Handle, m *skb.Meta, f *frame, portIndex uint16, own bool) bool {
	if m.Len < inet.EthHeaderLen {
		w.drop(h, skb.EthShort)
		return false
	}
	group := f[0]&1 != 0
	if !own && !group {
		w.drop(h, skb.EthOtherHost)
		return false
	}
	if f[6]&1 != 0 {
		w.drop(h, skb.EthGroupSource)
		return false
	}
	if group {
		m.Flags |= skb.FlagLinkMulticast
	}
	switch t := binary.BigEndian.Uint16(f[12:14]); t {
	case inet.EtherIPv4:
		return true
	case inet.EtherARP:
		w.arp(h, m, f, portIndex)
		w.done(stageARP, 1)
	case inet.EtherIPv6:
		w.drop(h, skb.IP6Unsupported)
	case inet.EtherVLAN, inet.EtherQinQ:
		if t == inet.EtherVLAN && binary.BigEndian.Uint16(f[14:16])&0xfff == 0 && m.Len >= inet.EthHeaderLen+inet.VLANTagLen {
			// VLAN 0 is none: the tag carries a priority only (IEEE 802.1Q).
			copy(f[inet.VLANTagLen:16], f[:12])
			m.Data += inet.VLANTagLen
			m.Len -= inet.VLANTagLen
			return w.etherSlow(h, m, w.frame(h, m), portIndex, own)
		}
		w.drop(h, skb.EthVLAN)
	default:
		w.drop(h, skb.EthUnknownType)
	}
	return false
}
