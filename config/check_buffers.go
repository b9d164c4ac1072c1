package config

import (
	"gorouter/internal/inet"
	"gorouter/skb"
)

// checkRings compares the options of a port's queues with their rings.
func (d *decoder) checkRings(p *Port) {
	path := "ports." + p.Name
	for _, x := range []struct {
		name  string
		value int
		ring  int
	}{
		{".rx.replenish", p.Rx.Replenish, p.Rx.Ring},
		{".tx.reclaim_at", p.Tx.ReclaimAt, p.Tx.Ring},
		{".tx.report_every", p.Tx.ReportEvery, p.Tx.Ring},
		{".tx.wake_at", p.Tx.WakeAt, p.Tx.Ring},
	} {
		if x.value > x.ring-1 {
			d.errorf(d.cfg.At(path+x.name), "%s%s is %d, expected at most %d: the ring has %d descriptors and one always stays free",
				path, x.name, x.value, x.ring-1, x.ring)
		}
	}
}

// longFrame is what a frame may have beyond the IP packet: Ethernet header,
// one VLAN tag, FCS.
const longFrame = inet.EthHeaderLen + inet.VLANTagLen + inet.FCSLen

// deviceBytes is the most that the port's device may store in one buffer.
func (p *Port) deviceBytes() int {
	if p.MTU <= defaultMTU {
		return skb.DeviceBytesShort
	}
	need := p.MTU + longFrame
	if p.Driver != DriverModel {
		return need
	}
	// With long packets enabled an 8254x fills a buffer up to the size that
	// RCTL gives, which is a power of two from 2048 on (317453, 13.4.22).
	size := 2048
	for size < need {
		size *= 2
	}
	return size
}

// modelMTU is the most that a software 8254x takes: its buffers are of a power
// of two, and the longest that leaves room in a stride is half of it.
func modelMTU() int { return skb.OptionTable.Find("stride").Max/2 - longFrame }

// descriptorBytes is the size of a descriptor in bytes.
const descriptorBytes = 16

// checkBuffers checks that buffers are long enough for the frames and enough
// for the rings, and sets what the arena has to know about the ports.
func (d *decoder) checkBuffers() {
	c, b := d.cfg, &d.cfg.Buffers
	if b.Stride&(b.Stride-1) != 0 {
		d.errorf(c.At("buffers.stride"), "buffers.stride is %d, expected a power of two (2048, 4096, 8192 or 16384)", b.Stride)
		return
	}
	b.DeviceMax = skb.DeviceBytesShort
	most := skb.OptionTable.Find("stride").Max
	for i := range c.Ports {
		p := &c.Ports[i]
		dev := p.deviceBytes()
		b.DeviceMax = max(b.DeviceMax, dev)
		need := b.Headroom + dev
		stride := b.Stride
		for stride < need {
			stride *= 2
		}
		switch {
		case need <= b.Stride:
		case stride > most:
			q := *p
			for q.MTU > defaultMTU && b.Headroom+q.deviceBytes() > most {
				q.MTU--
			}
			why := ""
			if p.Driver == DriverModel {
				why = " (a software 8254x has buffers of a power of two; driver af_packet takes more)"
			}
			d.errorf(c.At("ports."+p.Name+".mtu"), "ports.%s.mtu is %d, expected at most %d: a device buffer of %d bytes and %d of headroom do not fit the longest stride, %d: set it to %d%s",
				p.Name, p.MTU, q.MTU, dev, b.Headroom, most, q.MTU, why)
		default:
			at := "ports." + p.Name + ".mtu"
			if p.MTU <= defaultMTU {
				at = "buffers.headroom"
			}
			d.errorf(c.At(at), "port %s with mtu %d needs buffers of %d bytes, %d of headroom and %d for the device, but buffers.stride is %d: set it to %d",
				p.Name, p.MTU, need, b.Headroom, dev, b.Stride, stride)
			if p.MTU <= defaultMTU {
				return // the same for every port
			}
		}
	}
	d.checkCount()
}

// checkCount compares the number of buffers with what the router can hold at
// once: full rings of all devices that keep our buffers, the workers' caches
// and one batch in hand of each.
func (d *decoder) checkCount() {
	c, b := d.cfg, &d.cfg.Buffers
	rings, ringBytes := 0, 0
	for i := range c.Ports {
		// The other drivers copy frames and keep no buffer.
		if p := &c.Ports[i]; p.Driver == DriverModel {
			rings += p.Rx.Ring - 1 + p.Tx.Ring - 1
			for _, n := range []int{p.Rx.Ring, p.Tx.Ring} {
				size := 4096
				for size < n*descriptorBytes {
					size *= 2
				}
				ringBytes += 2 * size // for the alignment to its size
			}
		}
	}
	b.RingBytes = max(ringBytes, 2<<20)
	lists := 2
	if b.AllocOrder == skb.OrderFIFO {
		lists = 3
	}
	workers := len(c.Workers) * (lists*b.CacheSize + skb.BatchSize)
	if need := rings + workers; need > b.Buffers {
		d.errorf(c.At("buffers.count"), "buffers.count is %d, expected at least %d: the rings of the ports hold up to %d and the workers' caches up to %d",
			b.Buffers, need, rings, workers)
	}
	const reach = 1<<32 - skb.DefaultBusBase
	if size := b.Buffers*b.Stride + b.RingBytes + 2<<20; size > reach {
		d.errorf(c.At("buffers.count"), "buffers.count %d times buffers.stride %d is %d MiB, expected at most %d MiB: a 32-bit device cannot reach more",
			b.Buffers, b.Stride, size>>20, reach>>20)
	}
}
