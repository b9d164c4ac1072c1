package dataplane

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"gorouter/dataplane/neigh"
	"gorouter/internal/inet"
	"gorouter/skb"
)

// state is what the neighbour table says of a host on port 1.
func (l *lab) state(addr string) neigh.State {
	n, _ := l.r.Neighbours().Get(1, netip.MustParseAddr(addr))
	return n.State
}

// stale makes 198.51.100.77 a neighbour and lets it become stale.
func (l *lab) stale() {
	l.t.Helper()
	l.run(numbered(l.t, "198.51.100.77", 1))
	l.runAt(1, answer("198.51.100.77", hostMAC[2]))
	l.pass(46 * time.Second)
	l.out(1)
	if s := l.state("198.51.100.77"); s != neigh.Stale {
		l.t.Fatalf("after 46 s the neighbour is %v", s)
	}
}

func TestAStaleNeighbourIsUsedAndThenProbed(t *testing.T) {
	for _, c := range []struct{ name, dst string }{{"on-link host", "198.51.100.77"}, {"gateway", "10.1.2.3"}} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t)
			l.via("10.0.0.0/8", 1, "198.51.100.77")
			l.stale()
			l.run(numbered(t, c.dst, 2), numbered(t, c.dst, 3))
			out := l.out(1)
			if fmt.Sprint(ids(out)) != "[2 3]" || len(out) != 2 {
				t.Fatalf("left %v", ids(out))
			}
			for _, f := range out {
				if eth, ip, _ := decode(t, f); ip.TTL != 63 || inet.MAC(eth.DstMAC) != hostMAC[2] {
					t.Errorf("%v %v", eth, ip)
				}
			}
			l.r.Housekeep()
			if s := l.state("198.51.100.77"); s != neigh.Delay {
				t.Fatalf("after its use the neighbour is %v", s)
			}
			l.pass(5 * time.Second)
			out = l.out(1)
			if requests(out) != 1 || inet.MAC(out[0][0:6]) != hostMAC[2] || l.state("198.51.100.77") != neigh.Probe {
				t.Fatalf("probe %x, %v", out, l.state("198.51.100.77"))
			}
			l.runAt(1, answer("198.51.100.77", hostMAC[2]))
			if s := l.state("198.51.100.77"); s != neigh.Reachable {
				t.Errorf("after its answer the neighbour is %v", s)
			}
			if s := l.r.Stats(); s.Forwarded != 3 || len(l.drops()) != 1 {
				t.Errorf("forwarded %d, drops %v", s.Forwarded, l.drops())
			}
		})
	}
}

func TestAnUnusedStaleNeighbourIsLeftAlone(t *testing.T) {
	l := newLab(t, func(c *Config) { c.Neigh.GCMin = 0 })
	l.stale()
	for range 59 {
		l.pass(time.Second)
	}
	if n := requests(l.out(1)); n != 0 || l.state("198.51.100.77") != neigh.Stale {
		t.Errorf("%d requests, %v", n, l.state("198.51.100.77"))
	}
	l.pass(2 * time.Second)
	if s := l.state("198.51.100.77"); s != neigh.None {
		t.Errorf("it is %v after a minute", s)
	}
}

// Which frames of a host whose address is wanted are the answer to our question,
// and which only tell where it is; these are believed as well, but the packets
// that go there are watched.
func TestWhatConfirmsANeighbourThatIsAskedFor(t *testing.T) {
	for _, c := range []struct {
		name  string
		frame []byte
		want  neigh.State
	}{
		{"answer to us", answer("198.51.100.77", hostMAC[2]), neigh.Reachable},
		{"answer to us as a broadcast", arpFrame(arpReply, inet.Broadcast, hostMAC[2], "198.51.100.77", routerMAC[1], "198.51.100.1"), neigh.Delay},
		{"answer about another", arpFrame(arpReply, routerMAC[1], hostMAC[2], "198.51.100.77", routerMAC[1], "198.51.100.2"), neigh.Delay},
		{"announcement by an answer", arpFrame(arpReply, inet.Broadcast, hostMAC[2], "198.51.100.77", inet.Broadcast, "198.51.100.77"), neigh.Delay},
		{"announcement by a request", arpFrame(arpRequest, inet.Broadcast, hostMAC[2], "198.51.100.77", inet.MAC{}, "198.51.100.77"), neigh.Delay},
		{"request for us", arpFrame(arpRequest, inet.Broadcast, hostMAC[2], "198.51.100.77", inet.MAC{}, "198.51.100.1"), neigh.Delay},
		{"request for another", arpFrame(arpRequest, inet.Broadcast, hostMAC[2], "198.51.100.77", inet.MAC{}, "198.51.100.2"), neigh.Delay},
		{"probe for the address", arpFrame(arpRequest, inet.Broadcast, hostMAC[2], "0.0.0.0", inet.MAC{}, "198.51.100.77"), neigh.Incomplete},
	} {
		l := newLab(t)
		l.run(numbered(t, "198.51.100.77", 1))
		l.out(1)
		l.runAt(1, c.frame)
		left := ids(l.out(1))
		l.r.Housekeep() // the packet that waited was the first use
		if s := l.state("198.51.100.77"); s != c.want || (len(left) == 1) != (s != neigh.Incomplete) {
			t.Errorf("%s: the neighbour is %v, want %v; left %v", c.name, s, c.want, left)
		}
	}
}

// Both workers' uses count, whichever of them owns the port.
func TestEveryWorkersUseCounts(t *testing.T) {
	for user := range 2 {
		l := newLab(t, func(c *Config) {
			c.Workers = NewWorkers(c.Arena, c.FIB, c.Clock, 2)
			c.Assign = []int{user, 1, 0}
		})
		l.stale()
		l.run(numbered(t, "198.51.100.77", 2))
		if got := ids(l.out(1)); len(got) != 1 {
			t.Errorf("left %v", got)
		}
		l.r.Housekeep()
		if s := l.state("198.51.100.77"); s != neigh.Delay {
			t.Errorf("used by worker %d it is %v", user, s)
		}
	}
}

// What our own messages are sent to is used as well.
func TestAnICMPErrorUsesANeighbour(t *testing.T) {
	l := newLab(t)
	l.stale()
	p := udp("198.51.100.77", "10.99.0.1") // no route
	p.dstMAC, p.srcMAC = routerMAC[1], hostMAC[2]
	l.runAt(1, p.bytes(t))
	if n := len(l.out(1)); n != 1 {
		t.Fatalf("%d ICMP errors", n)
	}
	l.r.Housekeep()
	if s := l.state("198.51.100.77"); s != neigh.Delay {
		t.Errorf("it is %v", s)
	}
}

func TestAFloodToAStaleNeighbourDoesNotAllocate(t *testing.T) {
	if skb.Debug {
		t.Log("the debug build allocates on purpose; checked without the tag")
		return
	}
	l := newLab(t)
	l.stale()
	for _, q := range l.wires {
		q.discard = true
	}
	l.wires[0].in, l.wires[0].loop, l.wires[0].pos = [][]byte{numbered(t, "198.51.100.77", 1)}, true, 0
	w := l.r.workers[0]
	for range 100 {
		w.Round()
	}
	before := w.stats.Live.Forwarded
	if n := testing.AllocsPerRun(100, func() { w.Round() }); n != 0 {
		t.Errorf("%v allocations a round", n)
	}
	if w.stats.Live.Forwarded == before || l.state("198.51.100.77") != neigh.Stale {
		t.Errorf("forwarded %d, state %v", w.stats.Live.Forwarded-before, l.state("198.51.100.77"))
	}
}

// Somebody scans more of a silent network than may be asked for: what is over
// the rate costs neither memory nor a lock.
func TestAScanOverTheRateDoesNotAllocate(t *testing.T) {
	if skb.Debug {
		t.Log("the debug build allocates on purpose; checked without the tag")
		return
	}
	var scan [][]byte
	for i := range 1024 {
		scan = append(scan, numbered(t, fmt.Sprintf("10.1.%d.%d", i/256, i%256), i))
	}
	l := looping(t, scan, func(c *Config) { c.Neigh.RequestRate = 10 })
	if err := l.r.AddAddress(1, netip.MustParsePrefix("10.1.255.1/16")); err != nil {
		t.Fatal(err)
	}
	w := l.r.workers[0]
	for range 100 {
		w.Round()
	}
	if n := testing.AllocsPerRun(100, func() { w.Round() }); n != 0 {
		t.Errorf("%v allocations a round", n)
	}
	if w.stats.Live.Drops[skb.NeighRequestRate] == 0 {
		t.Errorf("drops %v", l.drops())
	}
}

// 100,000 packets a second to every host of a silent /16 in turn, and a hundredth
// of that to a live one that has to be confirmed again and again meanwhile.
func TestAScanOfA16DoesNotDisturbALiveHost(t *testing.T) {
	l := newLab(t, func(c *Config) { c.Neigh.Max, c.Neigh.Reachable, c.Neigh.Delay = 1000, time.Second, time.Second/2 })
	if err := l.r.AddAddress(1, netip.MustParsePrefix("10.1.0.1/16")); err != nil {
		t.Fatal(err)
	}
	live := numbered(t, "198.51.100.77", 4242)
	l.run(live)
	l.runAt(1, answer("198.51.100.77", hostMAC[2]))
	l.out(1)
	w := l.r.workers[0]
	const seconds = 3
	perMs := 100
	if skb.Debug {
		perMs = 20 // each costs a hundred times as much
	}
	sent, got, asked, probes := 0, 0, 0, 0
	scanned := udp("192.0.2.2", "10.1.0.2").bytes(t)
	for ms := range seconds * 1000 {
		in := [][]byte{live}
		sent++
		for k := range perMs {
			host := (ms*perMs+k)%65000 + 2
			scanned[32], scanned[33] = byte(host>>8), byte(host)
			in = append(in, append([]byte(nil), resum(scanned)...))
		}
		l.wires[0].in, l.wires[0].pos = nil, 0
		l.run(in...)
		l.clk.Advance(1e9)
		if ms%100 == 0 {
			l.r.Housekeep()
			l.run()
		}
		out := l.out(1)
		got += len(ids(out))
		asked += requests(out)
		for _, f := range out {
			if f[13] == inet.EtherARP&0xff && inet.MAC(f[0:6]) == hostMAC[2] {
				probes++
				l.runAt(1, answer("198.51.100.77", hostMAC[2]))
			}
		}
		l.wires[1].in, l.wires[1].pos = nil, 0
		l.out(0)
		if w.held.total > l.arena.Count()/holdShare {
			t.Fatalf("%d packets held", w.held.total)
		}
	}
	if got != sent {
		t.Errorf("%d of %d packets reached the live host, drops %v", got, sent, l.drops())
	}
	if probes < 1 || asked > 3000*(seconds+1) {
		t.Errorf("%d probes of the live host, %d requests in all", probes, asked)
	}
	s := l.r.Neighbours().Stats()
	if n := len(l.r.Neighbours().All()); n > 1000 || s.Evicted == 0 {
		t.Errorf("%d entries, %+v", n, s)
	}
	if _, err := l.arena.Audit(l.r.Holders()...); err != nil {
		t.Error(err)
	}
	// When the scan is over, what it left goes.
	for range 10 {
		l.pass(time.Second)
	}
	if n := len(l.r.Neighbours().All()); n > 4 || w.held.total != 0 {
		t.Errorf("%d entries and %d packets stay", n, w.held.total)
	}
}

// A gateway outside of every network of its port can be resolved: its answer
// updates the entry that the route made, but strangers make none.
func TestAGatewayOutsideThePortsNetworks(t *testing.T) {
	l := newLab(t)
	l.via("10.0.0.0/8", 1, "172.16.0.1")
	stranger := arpFrame(arpRequest, inet.Broadcast, hostMAC[2], "172.16.0.1", inet.MAC{}, "198.51.100.1")
	l.runAt(1, stranger)
	if l.r.isNeighbour(1, "172.16.0.1") {
		t.Fatal("a stranger became a neighbour")
	}
	l.out(1)
	l.run(numbered(t, "10.1.1.1", 1))
	out := l.out(1)
	if requests(out) != 1 {
		t.Fatalf("%d requests", requests(out))
	}
	_, a := readARP(t, out[0])
	if netip.AddrFrom4([4]byte(a.SourceProtAddress)).String() != "198.51.100.1" {
		t.Errorf("asked as %v", a.SourceProtAddress)
	}
	l.runAt(1, answer("172.16.0.1", hostMAC[2]))
	if got := ids(l.out(1)); len(got) != 1 || l.state("172.16.0.1") != neigh.Reachable {
		t.Errorf("left %v, %v", got, l.state("172.16.0.1"))
	}
}

func TestALostLinkForgetsNeighbours(t *testing.T) {
	l := newLab(t)
	l.run(numbered(t, "198.51.100.77", 1))
	l.runAt(1, answer("198.51.100.77", hostMAC[2]))
	l.out(1)
	l.r.ports[1].SetUp(false)
	l.r.ports[1].SetUp(true)
	l.run(numbered(t, "198.51.100.77", 2))
	if n := requests(l.out(1)); n != 1 {
		t.Errorf("%d requests after the link came back", n)
	}
	l.runAt(1, answer("198.51.100.77", hostMAC[1])) // another machine now
	if f := l.out(1); len(f) != 1 || inet.MAC(f[0][0:6]) != hostMAC[1] {
		t.Errorf("left %x", f)
	}
}

func TestHoldDepthIsAnOption(t *testing.T) {
	for _, depth := range []int{1, 3, neigh.MaxHold} {
		l := newLab(t, func(c *Config) { c.Neigh.Hold = depth })
		for i := range 40 {
			l.run(numbered(t, "198.51.100.77", i))
		}
		l.out(1)
		l.runAt(1, answer("198.51.100.77", hostMAC[2]))
		var want []int
		for i := 40 - depth; i < 40; i++ {
			want = append(want, i)
		}
		if got := ids(l.out(1)); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("hold %d: left %v", depth, got)
		}
	}
}

func TestNeighbourOptionsOutOfRangeAreRefused(t *testing.T) {
	l := newLab(t)
	c := Config{Arena: l.arena, FIB: l.fib, Clock: l.clk, Ports: l.r.ports, Workers: l.r.workers, Assign: []int{0, 0, 0},
		Options: OptionTable.Defaults(), Neigh: neigh.DefaultOptions()}
	c.Neigh.Hold = neigh.MaxHold + 1
	if _, err := New(c); err == nil {
		t.Error("accepted")
	}
}
