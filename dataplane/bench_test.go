package dataplane

import (
	"fmt"
	"testing"

	"gorouter/skb"
)

// looping is a lab that gets the same frames again and again on port 0 and
// throws away what it sends.
func looping(t testing.TB, frames [][]byte, change ...func(*Config)) *lab {
	l := newLab(t, change...)
	for _, q := range l.wires {
		q.discard = true
	}
	l.wires[0].in, l.wires[0].loop = frames, true
	return l
}

// None of what a stranger can send in numbers may make the router allocate.
func TestFloodsDoNotAllocate(t *testing.T) {
	if skb.Debug {
		t.Log("the debug build allocates on purpose; checked without the tag")
		return
	}
	expired := udp("192.0.2.2", "10.0.0.1")
	expired.ttl = 1
	long := udp("192.0.2.2", "10.0.0.1")
	long.df, long.payload = true, make([]byte, 1473)
	options := echo("192.0.2.2", "192.0.2.1")
	fragment := udp("192.0.2.2", "192.0.2.1")
	fragment.mf = true
	for _, c := range []struct {
		name   string
		frame  []byte
		tokens bool // whether ICMP errors may be sent
	}{
		{"forwarded", udp("192.0.2.2", "10.0.0.1").bytes(t), false},
		{"ARP request", arpFrame(arpRequest, routerMAC[0], hostMAC[2], "192.0.2.9", routerMAC[0], "192.0.2.1"), false},
		{"ARP for others", arpFrame(arpRequest, routerMAC[0], hostMAC[2], "192.0.2.9", routerMAC[0], "192.0.2.7"), false},
		{"ARP answer", arpFrame(arpReply, routerMAC[0], hostMAC[2], "192.0.2.9", routerMAC[0], "192.0.2.1"), false},
		{"expired, over the limit", expired.bytes(t), false},
		{"expired, answered", expired.bytes(t), true},
		{"no route, over the limit", udp("192.0.2.2", "11.0.0.1").bytes(t), false},
		{"no route, answered", udp("192.0.2.2", "11.0.0.1").bytes(t), true},
		{"too long, answered", long.bytes(t), true},
		{"port unreachable, answered", udp("192.0.2.2", "192.0.2.1").bytes(t), true},
		{"silent neighbour", udp("192.0.2.2", "198.51.100.77").bytes(t), false},
		{"answer to a silent neighbour", udp("192.0.2.77", "11.0.0.1").bytes(t), true},
		{"other host's MAC", func() []byte { f := udp("192.0.2.2", "10.0.0.1").bytes(t); f[5]++; return f }(), false},
		{"echo for us", options.bytes(t), false},
		{"fragment for us", fragment.bytes(t), false},
		{"martian", udp("127.0.0.1", "10.0.0.1").bytes(t), false},
		{"our own source", udp("198.51.100.1", "10.0.0.1").bytes(t), false},
		{"broadcast", udp("192.0.2.2", "198.51.100.255").bytes(t), false},
		{"bad checksum", func() []byte { f := udp("192.0.2.2", "10.0.0.1").bytes(t); f[24]++; return f }(), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := looping(t, [][]byte{c.frame})
			l.via("10.0.0.0/8", 1, "198.51.100.2")
			w := l.r.workers[0]
			if c.tokens {
				w.icmp = tokenBucket{rate: 1, burst: 1 << 30, tokens: 1 << 30}
			} else {
				w.icmp.tokens = 0
			}
			for range 100 {
				w.Round()
			}
			before := w.stats.Live
			if n := testing.AllocsPerRun(100, func() { w.Round() }); n != 0 {
				t.Errorf("%v allocations a round", n)
			}
			if sent := w.stats.Live.Originated - before.Originated; c.tokens != (sent > 0) {
				t.Errorf("%d packets made here, want some: %v", sent, c.tokens)
			}
		})
	}
}

// A failed neighbour is refused without a lock or an allocation too.
func TestFailedNeighbourFloodDoesNotAllocate(t *testing.T) {
	if skb.Debug {
		t.Log("the debug build allocates on purpose; checked without the tag")
		return
	}
	l := newLab(t)
	l.run(numbered(t, "198.51.100.77", 1))
	for range 3 {
		l.clk.Advance(1e12)
		l.r.Housekeep()
		l.run()
	}
	for _, q := range l.wires {
		q.discard = true
	}
	l.wires[0].in, l.wires[0].loop, l.wires[0].pos = [][]byte{numbered(t, "198.51.100.77", 1)}, true, 0
	w := l.r.workers[0]
	for range 100 {
		w.Round()
	}
	if n := testing.AllocsPerRun(100, func() { w.Round() }); n != 0 {
		t.Errorf("%v allocations a round", n)
	}
	if w.stats.Live.Drops[skb.NeighFailed] == 0 {
		t.Errorf("drops %v", l.drops())
	}
}

// BenchmarkRound is the cost of a frame from receive to transmit without a
// device: the fake port copies each frame in.
func BenchmarkRound(b *testing.B) {
	for _, vector := range []int{1, 8, 32, 64} {
		b.Run(fmt.Sprintf("vector=%d", vector), func(b *testing.B) {
			var in [][]byte
			for i := range 256 {
				in = append(in, udp("192.0.2.2", fmt.Sprintf("10.%d.1.1", i%16)).bytes(b))
			}
			l := looping(b, in, options(func(o *Options) { o.Vector = vector }))
			for i := range 16 {
				l.via(fmt.Sprintf("10.%d.0.0/16", i), uint16(1+i%2), []string{"198.51.100.2", "203.0.113.0"}[i%2])
			}
			w := l.r.workers[0]
			b.ReportAllocs()
			b.ResetTimer()
			for b.Loop() {
				w.Round()
			}
			frames := float64(w.stats.Live.Forwarded)
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/frames, "ns/frame")
			b.ReportMetric(0, "ns/op")
		})
	}
}
