package dataplane

import (
	"encoding/binary"
	"fmt"
	"maps"
	"net/netip"
	"testing"
	"time"

	"github.com/google/gopacket/layers"

	"gorouter/fib"
	"gorouter/internal/inet"
)

// pass lets time go by, with the housekeeping that comes with it.
func (l *lab) pass(d time.Duration) {
	l.clk.Advance(int64(d) * 1000)
	l.r.Housekeep()
	l.run()
}

// numbered is a UDP packet whose identification is n, to tell packets apart.
func numbered(t testing.TB, dst string, n int) []byte {
	p := udp("192.0.2.2", dst)
	p.id = uint16(n)
	return p.bytes(t)
}

// ids are the identifications of the IPv4 packets among frames.
func ids(frames [][]byte) (got []int) {
	for _, f := range frames {
		if binary.BigEndian.Uint16(f[12:]) == inet.EtherIPv4 {
			got = append(got, int(binary.BigEndian.Uint16(f[18:])))
		}
	}
	return got
}

// requests counts the ARP requests among frames.
func requests(frames [][]byte) (n int) {
	for _, f := range frames {
		if binary.BigEndian.Uint16(f[12:]) == inet.EtherARP && f[21] == arpRequest {
			n++
		}
	}
	return n
}

// answer is the ARP answer of a host on port 1.
func answer(spa string, mac inet.MAC) []byte {
	return arpFrame(arpReply, routerMAC[1], mac, spa, routerMAC[1], "198.51.100.1")
}

func TestFirstPacketsWaitForTheAnswerAndLeaveInOrder(t *testing.T) {
	for _, c := range []struct{ name, dst, next string }{
		{"on-link host", "198.51.100.77", "198.51.100.77"},
		{"gateway", "10.1.2.3", "198.51.100.77"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t)
			l.via("10.0.0.0/8", 1, "198.51.100.77")
			const n = 20
			var in [][]byte
			for i := range n {
				in = append(in, numbered(t, c.dst, i))
			}
			l.run(in...)
			out := l.out(1)
			if len(out) != 1 || requests(out) != 1 {
				t.Fatalf("%d frames left, %d of them requests", len(out), requests(out))
			}
			q := out[0]
			if inet.MAC(q[0:6]) != inet.Broadcast || inet.MAC(q[22:28]) != routerMAC[1] ||
				from4(binary.BigEndian.Uint32(q[28:])).String() != "198.51.100.1" ||
				from4(binary.BigEndian.Uint32(q[38:])).String() != c.next || inet.MAC(q[32:38]) != (inet.MAC{}) {
				t.Errorf("request %x", q)
			}
			if d := l.drops(); d["neigh_queue_full"] != n-holdDepth || len(d) != 1 {
				t.Errorf("drops %v", d)
			}
			// The neighbours are one entry and one adjacency.
			if k := len(l.r.Neighbours().All()); k != 4 {
				t.Errorf("%d neighbours, want the three permanent ones and the new one", k)
			}
			l.runAt(1, answer(c.next, hostMAC[2]))
			out = l.out(1)
			if got, want := fmt.Sprint(ids(out)), fmt.Sprint([]int{12, 13, 14, 15, 16, 17, 18, 19}); got != want {
				t.Errorf("after the answer left %v, want %v", got, want)
			}
			for _, f := range out {
				if eth, ip, _ := decode(t, f); ip.TTL != 63 || inet.MAC(eth.DstMAC) != hostMAC[2] || inet.MAC(eth.SrcMAC) != routerMAC[1] {
					t.Errorf("%v %v", eth, ip)
				}
			}
			l.run(numbered(t, c.dst, 99))
			if got := ids(l.out(1)); len(got) != 1 || got[0] != 99 {
				t.Errorf("a later packet: %v", got)
			}
		})
	}
}

func TestASilentHostIsReportedToThoseWhoWaitAndToLaterOnes(t *testing.T) {
	l := newLab(t)
	in := numbered(t, "198.51.100.77", 7)
	l.run(in)
	asked := requests(l.out(1))
	for range 2 {
		l.pass(time.Second)
		asked += requests(l.out(1))
	}
	if asked != 3 || len(l.drops()) != 0 || len(l.out(0)) != 0 {
		t.Fatalf("asked %d times in 3 s, drops %v", asked, l.drops())
	}
	l.pass(time.Second)
	l.run(numbered(t, "198.51.100.77", 8)) // refused at once
	out := l.out(0)
	if len(out) != 2 || requests(l.out(1)) != 0 {
		t.Fatalf("%d ICMP errors, want 2", len(out))
	}
	for i, f := range out {
		_, _, p := decode(t, f)
		ic := p.Layer(layers.LayerTypeICMPv4).(*layers.ICMPv4)
		if ic.TypeCode != layers.CreateICMPv4TypeCode(3, 1) {
			t.Errorf("ICMP %v", ic.TypeCode)
		}
		// What is quoted is what was sent, the time to live included.
		want := numbered(t, "198.51.100.77", 7+i)
		want = want[14 : 14+binary.BigEndian.Uint16(want[16:])]
		if string(ic.Payload) != string(want) {
			t.Errorf("quoted %x\n   sent %x", ic.Payload, want)
		}
	}
	if d := l.drops(); !maps.Equal(d, map[string]uint64{"neigh_failed": 2}) {
		t.Errorf("drops %v", d)
	}
	// It speaks up after all.
	l.runAt(1, arpFrame(arpRequest, inet.Broadcast, hostMAC[2], "198.51.100.77", inet.MAC{}, "198.51.100.1"))
	l.run(numbered(t, "198.51.100.77", 9))
	if got := ids(l.out(1)); len(got) != 1 || got[0] != 9 {
		t.Errorf("after recovery left %v", got)
	}
}

func TestAForgottenHostIsAskedAgain(t *testing.T) {
	l := newLab(t)
	l.run(numbered(t, "198.51.100.77", 1))
	for range 8 {
		l.pass(time.Second)
	}
	l.out(1)
	l.run(numbered(t, "198.51.100.77", 2))
	if requests(l.out(1)) != 1 {
		t.Error("not asked again after the failure was forgotten")
	}
	l.runAt(1, answer("198.51.100.77", hostMAC[2]))
	if got := ids(l.out(1)); len(got) != 1 || got[0] != 2 {
		t.Errorf("left %v", got)
	}
}

// 100,000 packets a second to a silent host for more than a second, a tenth of that
// to a live one.
func TestASilentHostDoesNotDisturbALiveOne(t *testing.T) {
	l := newLab(t)
	dead, live := numbered(t, "198.51.100.77", 1), numbered(t, "198.51.100.2", 2)
	l.wires[0].discard = true
	const ms, perMs, liveMs = 1200, 100, 10
	sent, got, asked := 0, 0, 0
	for i := range ms {
		var in [][]byte
		for k := range perMs {
			in = append(in, dead)
			if k%(perMs/liveMs) == 0 {
				in = append(in, live)
				sent++
			}
		}
		l.wires[0].in, l.wires[0].pos = nil, 0
		l.run(in...)
		l.clk.Advance(1e9)
		if i%100 == 0 {
			l.r.Housekeep()
		}
		out := l.out(1)
		got += len(ids(out))
		asked += requests(out)
		if l.r.workers[0].held.total > holdDepth {
			t.Fatalf("%d packets held", l.r.workers[0].held.total)
		}
	}
	if got != sent {
		t.Errorf("%d of %d packets reached the live host", got, sent)
	}
	if asked > ms/1000+1 {
		t.Errorf("%d requests in %d ms", asked, ms)
	}
	d := l.drops()
	if want := uint64(ms*perMs - holdDepth); d["neigh_queue_full"] != want || len(d) != 1 {
		t.Errorf("drops %v, want %d neigh_queue_full", d, want)
	}
	c, err := l.arena.Audit(l.r.Holders()...)
	if err != nil || c.Places["worker 0"] != holdDepth {
		t.Errorf("buffers %+v: %v", c, err)
	}
	l.wires[0].in = nil
	l.wires[0].pos = 0
}

func TestAMovedHostAndANewOwnAddress(t *testing.T) {
	l := newLab(t)
	l.run(numbered(t, "198.51.100.77", 1))
	l.runAt(1, answer("198.51.100.77", hostMAC[1]))
	l.out(1)
	l.runAt(1, arpFrame(arpRequest, inet.Broadcast, hostMAC[2], "198.51.100.77", inet.MAC{}, "198.51.100.77"))
	l.run(numbered(t, "198.51.100.77", 2))
	if f := l.out(1); len(f) != 1 || inet.MAC(f[0][0:6]) != hostMAC[2] {
		t.Fatalf("after the move %x", f)
	}
	mac := inet.MAC{2, 0, 0, 0, 9, 9}
	l.r.ports[1].SetMAC(mac)
	l.run(numbered(t, "198.51.100.77", 3))
	if f := l.out(1); len(f) != 1 || inet.MAC(f[0][6:12]) != mac || inet.MAC(f[0][0:6]) != hostMAC[2] {
		t.Errorf("after our change %x", f)
	}
	// And from now on frames to the new address are ours, those to the old not.
	f := numbered(t, "203.0.113.0", 4)
	copy(f, mac[:])
	l.runAt(1, f, append(append([]byte(nil), routerMAC[1][:]...), f[6:]...))
	if n := len(l.out(2)); n != 1 || l.drops()["eth_other_host"] != 1 {
		t.Errorf("%d forwarded, drops %v", n, l.drops())
	}
}

func TestNeighbourTableFullIsItsOwnDrop(t *testing.T) {
	l := newLab(t, func(c *Config) { c.Neigh.Max = 3 })
	l.run(numbered(t, "198.51.100.77", 1), numbered(t, "198.51.100.78", 2))
	if d := l.drops(); !maps.Equal(d, map[string]uint64{"neigh_table_full": 2}) {
		t.Errorf("drops %v", d)
	}
}

// Where there is room for one that does not answer, the newest has it, and who
// waited for the one before is told.
func TestTheNewestUnresolvedNeighbourMakesItsRoom(t *testing.T) {
	l := newLab(t, func(c *Config) { c.Neigh.Max = 4 })
	l.run(numbered(t, "198.51.100.77", 1), numbered(t, "198.51.100.78", 2))
	if d := l.drops(); !maps.Equal(d, map[string]uint64{"neigh_failed": 1}) || len(l.out(0)) != 1 {
		t.Errorf("drops %v", d)
	}
	l.runAt(1, answer("198.51.100.78", hostMAC[2]))
	if got := ids(l.out(1)); len(got) != 1 || got[0] != 2 {
		t.Errorf("left %v", got)
	}
}

func TestTooManyNewNeighboursIsItsOwnDrop(t *testing.T) {
	l := newLab(t, func(c *Config) { c.Neigh.RequestRate = 10 })
	var in [][]byte
	for i := range 20 {
		in = append(in, numbered(t, fmt.Sprintf("198.51.100.%d", 100+i), i))
	}
	l.run(in...)
	if n := requests(l.out(1)); n != 5 { // half of a second's
		t.Errorf("%d requests, want 5", n)
	}
	if d := l.drops(); !maps.Equal(d, map[string]uint64{"neigh_request_rate": 15}) {
		t.Errorf("drops %v", d)
	}
	// What is known is not bounded by it, and a little later there is room.
	l.run(numbered(t, "198.51.100.2", 99))
	l.pass(time.Second / 10)
	l.run(numbered(t, "198.51.100.119", 100))
	if out := l.out(1); len(ids(out)) != 1 || requests(out) != 1 {
		t.Errorf("left %v and %d requests", ids(out), requests(out))
	}
}

func TestAPermanentNeighbourIsNotTakenOver(t *testing.T) {
	l := newLab(t)
	l.runAt(1, answer("198.51.100.2", inet.MAC{2, 6, 6, 6, 6, 6}))
	l.run(numbered(t, "198.51.100.2", 1))
	if f := l.out(1); len(f) != 1 || inet.MAC(f[0][0:6]) != hostMAC[1] {
		t.Errorf("%x", f)
	}
}

func TestReprobingGoesOutByThePort(t *testing.T) {
	l := newLab(t)
	l.run(numbered(t, "198.51.100.77", 1))
	l.runAt(1, answer("198.51.100.77", hostMAC[2]))
	l.out(1)
	var to []inet.MAC
	sent := 0
	for i := range 70 {
		// Packets flow until it is asked again, between 20 and 50 s from now.
		if len(to) == 0 {
			sent++
			l.run(numbered(t, "198.51.100.77", i))
		}
		l.pass(time.Second)
		for _, f := range l.out(1) {
			if f[13] == 0 {
				sent--
				continue
			}
			to = append(to, inet.MAC(f[0:6]))
		}
	}
	b := inet.Broadcast
	if got, want := fmt.Sprint(to), fmt.Sprint([]inet.MAC{hostMAC[2], hostMAC[2], hostMAC[2], b, b, b}); got != want {
		t.Errorf("asked %v, want %v", got, want)
	}
	if d := l.drops(); uint64(sent) != d["neigh_failed"]+d["neigh_queue_full"] {
		t.Errorf("%d packets did not leave, drops %v", sent, d)
	}
	l.run(numbered(t, "198.51.100.77", 2))
	if requests(l.out(1)) != 1 {
		t.Error("a host that was forgotten is not asked for")
	}
}

func TestLinkDownIsItsOwnDropAndLegsLeave(t *testing.T) {
	l := newLab(t)
	l.via("10.0.0.0/8", 1, "198.51.100.2")
	l.route(fib.Route{Prefix: netip.MustParsePrefix("10.9.0.0/16"), Kind: fib.Forward, NextHops: []fib.NextHop{
		{Port: 1, Via: netip.MustParseAddr("198.51.100.2")}, {Port: 2, Via: netip.MustParseAddr("203.0.113.0")}}})
	l.r.ports[1].SetUp(false)
	l.run(numbered(t, "10.1.1.1", 1))
	for i := range 20 {
		l.run(udp("192.0.2.2", fmt.Sprintf("10.9.0.%d", i)).bytes(t))
	}
	if d := l.drops(); !maps.Equal(d, map[string]uint64{"tx_link_down": 1}) || len(l.out(2)) != 20 {
		t.Errorf("drops %v", d)
	}
	l.r.ports[1].SetUp(true)
	l.run(numbered(t, "10.1.1.1", 2))
	if len(l.out(1)) != 1 {
		t.Error("nothing leaves after the link came back")
	}
}
