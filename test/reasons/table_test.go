package reasons

import (
	"maps"
	"testing"
	"time"

	"github.com/google/gopacket/layers"

	"gorouter/dataplane/neigh"
	"gorouter/internal/inet"
	"gorouter/nic/model"
	"gorouter/skb"
)

// entry is one way to meet a reason. The frame alone comes in at port 0 of the
// usual rig, or do does what is needed; or run does without a rig.
type entry struct {
	why   skb.Reason
	what  string
	frame []byte
	setup setup
	do    func(r *rig)
	run   func(t *testing.T) skb.DropCounts
}

// good is a packet that is forwarded where nothing is in the way.
func good() []byte { return packet("10.1.1.1", 8) }

var table = []entry{
	{why: skb.RxCRC, what: "FCS error", do: func(r *rig) { r.bad(model.ErrCRC, good()) }},
	{why: skb.RxSymbol, what: "symbol error", do: func(r *rig) { r.bad(model.ErrSymbol, good()) }},
	{why: skb.RxSequence, what: "sequence error", do: func(r *rig) { r.bad(model.ErrSequence, good()) }},
	{why: skb.RxCarrier, what: "carrier extension error", do: func(r *rig) { r.bad(model.ErrCarrier, good()) }},
	{why: skb.RxData, what: "receive data error", do: func(r *rig) { r.bad(model.ErrData, good()) }},
	{why: skb.RxCRC, what: "the CRC of several errors counts", do: func(r *rig) { r.bad(model.ErrData|model.ErrCRC|model.ErrSymbol, good()) }},
	{why: skb.RxData, what: "unfinished checksum beyond the packet slot", run: slot(needsChecksum(100), make([]byte, 107), 107)},
	{why: skb.RxRunt, what: "13 bytes in a capture file", run: capture(13, 13)},
	{why: skb.RxRunt, what: "13 bytes in a packet slot", run: slot(plain, make([]byte, 13), 13)},
	{why: skb.RxMultiDescriptor, what: "frame over two receive buffers", do: func(r *rig) { r.bad(0, packet("10.1.1.1", 2500)) }},
	{why: skb.RxTooLong, what: "long frame in a capture file", run: capture(3000, 3000)},
	{why: skb.RxNoBuffer, what: "all buffers in use", do: func(r *rig) {
		back := r.drain(0)
		r.from(0, good())
		back()
	}},
	{why: skb.RxTruncated, what: "frame that the packet slot cut short", run: slot(plain, make([]byte, 200), 1000)},
	{why: skb.RxTruncated, what: "snap length of a capture file", run: capture(60, 200)},
	{why: skb.RxTooLong, what: "frame beyond the MTU in a packet slot", run: slot(plain, make([]byte, 1515), 1515)},
	{why: skb.RxTooLong, what: "frame beyond the packet slot", run: slot(plain, make([]byte, 1900), 9000)},
	{why: skb.RxSuperFrame, what: "segments beyond the MTU in a packet slot", run: slot(segments(1448), make([]byte, 1900), 9000)},
	{why: skb.RxAborted, what: "reset with a frame on the ring", do: func(r *rig) {
		r.host[0].in = [][]byte{good()}
		r.cable[0].Step(r.clk.Now(), 1)
		r.reset(0)
	}},

	{why: skb.EthShort, what: "13 bytes of a queue that lets them through", setup: setup{short: good()[:13]}, do: func(r *rig) { r.run() }},
	{why: skb.EthGroupSource, what: "from the broadcast address", frame: edit(func(f []byte) { copy(f[6:12], inet.Broadcast[:]) })},
	{why: skb.EthOtherHost, what: "another host's MAC", frame: edit(func(f []byte) { f[5]++ })},
	{why: skb.EthUnknownType, what: "LLDP", frame: edit(func(f []byte) { f[12], f[13] = 0x88, 0xcc })},
	{why: skb.EthVLAN, what: "802.1Q tag", frame: edit(func(f []byte) { f[12], f[13] = 0x81, 0 })},
	{why: skb.EthVLAN, what: "802.1ad tag", frame: edit(func(f []byte) { f[12], f[13] = 0x88, 0xa8 })},

	{why: skb.ArpInvalid, what: "hardware type 6", frame: func() []byte { f := arp(0, 1, hostAddr[0], "192.0.2.1"); f[15] = 6; return f }()},
	{why: skb.ArpNotForUs, what: "request for another host", frame: arp(0, 1, hostAddr[0], "192.0.2.77")},
	{why: skb.ArpConsumed, what: "answer nobody asked for", frame: arp(0, 2, "192.0.2.66", "192.0.2.1")},

	{why: skb.IP4Short, what: "33 bytes", do: func(r *rig) { r.bad(0, good()[:33]) }},
	{why: skb.IP4Version, what: "version 5", frame: edit(func(f []byte) { f[14] = 0x55 })},
	{why: skb.IP4HeaderLength, what: "header of 16 bytes", frame: edit(func(f []byte) { f[14] = 0x44 })},
	{why: skb.IP4TotalLength, what: "total length beyond the frame", frame: edit(func(f []byte) { f[16], f[17] = 5, 0 })},
	{why: skb.IP4Checksum, what: "wrong checksum", frame: func() []byte { f := good(); f[25]++; return f }()},
	{why: skb.IP4Options, what: "record route with a pointer into itself", frame: option(7, 3, 0, 0, 0, 0)},
	{why: skb.IP4SourceRoute, what: "loose source route", frame: option(131, 4, 10, 0, 0, 1)},
	{why: skb.IP4MartianSource, what: "from 127.0.0.1", frame: source("127.0.0.1")},
	{why: skb.IP4MartianDestination, what: "to class E", frame: packet("250.1.1.1", 8)},
	{why: skb.IP4OwnSource, what: "from the router's own address", frame: source("198.51.100.1")},
	{why: skb.IP4Broadcast, what: "limited broadcast", frame: packet("255.255.255.255", 8)},
	{why: skb.IP4DirectedBroadcast, what: "to all of port 1's network", frame: packet("198.51.100.255", 8)},
	{why: skb.IP4Multicast, what: "to a group", frame: packet("224.0.0.5", 8)},
	{why: skb.IP4LinkMulticast, what: "unicast packet in a broadcast frame", frame: edit(func(f []byte) { copy(f, inet.Broadcast[:]) })},
	{why: skb.IP4TTL, what: "time to live 1", frame: packet("10.1.1.1", 8, func(ip *layers.IPv4) { ip.TTL = 1 })},
	{why: skb.IP4NoRoute, what: "to nowhere", frame: packet("11.1.1.1", 8)},
	{why: skb.IP4Blackhole, what: "by a blackhole route", frame: packet("10.9.0.1", 8)},
	{why: skb.IP4Unreachable, what: "by an unreachable route", frame: packet("10.8.0.1", 8)},
	{why: skb.IP4Prohibit, what: "by a prohibit route", frame: packet("10.7.0.1", 8)},
	{why: skb.IP4TooBig, what: "does not fit and must not be cut", setup: setup{mtu: 600},
		frame: packet("10.1.1.1", 1000, func(ip *layers.IPv4) { ip.Flags = layers.IPv4DontFragment })},
	{why: skb.IP4FragmentNoBuffer, what: "no buffer for a fragment", setup: setup{mtu: 600}, do: func(r *rig) {
		back := r.drain(1) // the receive ring wants one in exchange
		r.from(0, packet("10.1.1.1", 1000))
		back()
	}},
	{why: skb.IP4LocalProtocol, what: "protocol 99 for the router", frame: packet("192.0.2.1", 8, func(ip *layers.IPv4) { ip.Protocol = 99 })},
	{why: skb.IP4LocalPort, what: "UDP for the router", frame: packet("192.0.2.1", 8)},
	{why: skb.IP4LocalFragment, what: "fragment for the router", frame: packet("192.0.2.1", 8, func(ip *layers.IPv4) { ip.Flags = layers.IPv4MoreFragments })},
	{why: skb.IP4LocalICMP, what: "timestamp request", frame: message(layers.ICMPv4TypeTimestampRequest)},
	{why: skb.IP4LocalConsumed, what: "echo reply", frame: message(layers.ICMPv4TypeEchoReply)},

	{why: skb.IP6Unsupported, what: "IPv6", frame: edit(func(f []byte) { f[12], f[13] = 0x86, 0xdd })},

	{why: skb.NeighQueueFull, what: "one more than wait for a neighbour", do: func(r *rig) {
		for range neigh.DefaultOptions().Hold + 1 {
			r.from(0, packet("198.51.100.77", 8))
		}
		r.from(1, arp(1, 1, "198.51.100.77", "198.51.100.1"))
		if n := r.left(1); n != neigh.DefaultOptions().Hold {
			r.t.Errorf("%d packets left once it spoke", n)
		}
	}},
	{why: skb.NeighFailed, what: "silent neighbour", do: func(r *rig) {
		r.from(0, packet("198.51.100.77", 8))
		r.pass(4 * time.Second)
	}},
	{why: skb.NeighTableFull, what: "no room for another neighbour", setup: setup{neigh: func(o *neigh.Options) { o.Max = ports }},
		frame: packet("198.51.100.77", 8)},
	{why: skb.NeighRequestRate, what: "two new neighbours at one request a time", setup: setup{neigh: func(o *neigh.Options) { o.RequestRate = 2 }},
		do: func(r *rig) {
			r.from(0, packet("198.51.100.77", 8), packet("198.51.100.78", 8))
			r.from(1, arp(1, 1, "198.51.100.77", "198.51.100.1"))
		}},

	{why: skb.TxRingFull, what: "a chip that does not send", do: func(r *rig) {
		r.still[1] = true
		for range r.ports[1].Tx[0].Room() + 1 {
			r.host[0].in = append(r.host[0].in, good())
		}
		r.run()
		r.still[1] = false
		r.run()
	}},
	{why: skb.TxTooLong, what: "frame beyond the device's MTU", do: func(r *rig) {
		h := r.workers[0].Cache().Alloc()
		copy(r.arena.Put(h, 1600), packet("10.1.1.1", 1558))
		var b skb.Batch
		b.Add(h)
		r.ports[1].Tx[0].Send(&b, false)
	}},
	{why: skb.TxLinkDown, what: "cable pulled out", do: func(r *rig) {
		r.cable[1].SetLink(false)
		r.pass(2 * time.Second)
		// The connected network's route went with the link, 10/8 is not
		// the router's to withdraw.
		r.from(0, good())
	}},
	{why: skb.TxAborted, what: "reset with a frame on the ring", do: func(r *rig) {
		r.still[1] = true
		r.from(0, good())
		r.reset(1)
	}},
	{why: skb.HandoffFull, what: "fragments beyond the room at another worker", setup: setup{workers: 2, buffers: 4096, txRing: 2048, mtu: 600}, do: func(r *rig) {
		// A worker stops receiving when there is no room for a whole batch. Only
		// what it makes itself can exceed that: here the last 32 packets become
		// 31 times two fragments and once three.
		for i := range handoffRing - skb.BatchSize + 32 {
			f := good()
			switch {
			case i == handoffRing-skb.BatchSize:
				f = packet("10.1.1.1", 1400)
			case i > handoffRing-skb.BatchSize:
				f = packet("10.1.1.1", 1000)
			}
			r.host[0].in = append(r.host[0].in, f)
		}
		r.run(r.workers[0])
		r.run()
		if n := r.left(1); n != handoffRing {
			r.t.Errorf("%d packets left", n)
		}
	}},
	{why: skb.Shutdown, what: "packet that waits for a neighbour at the end", frame: packet("198.51.100.77", 8)},
	{why: skb.Shutdown, what: "frame on the receive ring at the end", do: func(r *rig) {
		r.host[0].in = [][]byte{good()}
		r.cable[0].Step(r.clk.Now(), 1)
	}},
}

// handoffRing is how many frames wait for another worker.
const handoffRing = 1024

// reset resets a port's device.
func (r *rig) reset(i int) {
	r.t.Helper()
	if err := r.dev[i].Reset("the test asks for it"); err != nil {
		r.t.Fatal(err)
	}
	r.run()
}

// left is the number of IPv4 packets that left by port i.
func (r *rig) left(i int) (n int) {
	for _, f := range r.host[i].out {
		if f[12] == 8 && f[13] == 0 {
			n++
		}
	}
	return n
}

func TestEveryReason(t *testing.T) {
	met := map[skb.Reason]bool{}
	for _, e := range table {
		met[e.why] = true
		t.Run(e.why.String()+"/"+e.what, func(t *testing.T) {
			run := e.run
			if run == nil {
				run = e.onRig
			}
			got := run(t)
			if want := map[string]uint64{e.why.String(): 1}; !maps.Equal(got.Map(), want) {
				t.Errorf("drops %v, want %v", got.Map(), want)
			}
		})
	}
	for w := skb.ReasonNone + 1; int(w) < skb.NumReasons; w++ {
		if !met[w] {
			t.Errorf("no frame meets the reason %v", w)
		}
	}
}

func (e *entry) onRig(t *testing.T) skb.DropCounts {
	r := newRig(t, e.setup)
	if e.do != nil {
		e.do(r)
	} else {
		r.from(0, e.frame)
	}
	return r.close()
}

// A frame without fault is dropped nowhere: the rig itself drops nothing.
func TestAGoodFrameMeetsNone(t *testing.T) {
	r := newRig(t, setup{})
	r.storeOdd()
	r.from(0, good())
	if n := r.left(1); n != 1 {
		t.Errorf("%d packets left", n)
	}
	if d := r.close(); d.Total() != 0 {
		t.Errorf("drops %v", d.Map())
	}
}
