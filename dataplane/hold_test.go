package dataplane

import (
	"fmt"
	"maps"
	"net/netip"
	"testing"
	"time"

	"gorouter/dataplane/neigh"
	"gorouter/skb"
)

// holdDepth is the default of neigh.hold.
const holdDepth = 8

// Somebody scans a silent network: no host gets many buffers, and all of them
// together only their share.
func TestAScanIsBounded(t *testing.T) {
	l := newLab(t)
	if err := l.r.AddAddress(1, netip.MustParsePrefix("10.0.0.1/16")); err != nil {
		t.Fatal(err)
	}
	w := l.r.workers[0]
	for i := range 1000 {
		dst := fmt.Sprintf("10.0.%d.%d", 1+i/200, 1+i%200)
		l.run(numbered(t, dst, i), numbered(t, dst, i), numbered(t, "198.51.100.2", i))
	}
	if w.held.total > l.arena.Count()/holdShare || w.held.used > holdQueues {
		t.Errorf("%d packets in %d queues", w.held.total, w.held.used)
	}
	if n := requests(l.wires[1].out); n != 1000 {
		t.Errorf("%d of 1000 asked", n)
	}
	if n := len(ids(l.out(1))); n != 1000 {
		t.Errorf("%d of 1000 packets reached the live host", n)
	}
	// A host that answers gets new packets at once, held ones or not.
	l.runAt(1, arpFrame(arpReply, routerMAC[1], hostMAC[2], "10.0.5.200", routerMAC[1], "10.0.0.1"))
	l.out(1)
	l.run(numbered(t, "10.0.5.200", 4242))
	if got := ids(l.out(1)); len(got) != 1 || got[0] != 4242 {
		t.Errorf("left %v", got)
	}
	for range 4 {
		l.pass(time.Second)
	}
	if w.held.total != 0 || w.held.used != 0 {
		t.Errorf("%d packets in %d queues after all failed", w.held.total, w.held.used)
	}
}

// The adjacency of a forgotten neighbour becomes another's while a worker still
// holds packets for the first (it was too busy to look): they must neither go
// to the second nor stay for ever.
func TestHeldPacketsDoNotFollowAReusedAdjacency(t *testing.T) {
	l := newLab(t)
	w := l.r.workers[0]
	l.run(numbered(t, "198.51.100.77", 1))
	first, _ := l.r.neigh.Find(1, addr4(netip.MustParseAddr("198.51.100.77")))
	for range 7 {
		l.clk.Advance(1e12)
		l.r.neigh.Tick(l.clk.Now(), func(neigh.Question) {})
	}
	w.reader.Quiescent()
	l.fib.Reclaim()
	w.gen = l.r.neigh.Generation() // as if it had looked just before
	adj, _, _, ok := l.r.neigh.Need(2, netip.MustParseAddr("203.0.113.0"), w.now)
	for i := 3; ok && adj != first && i < 20; i++ {
		adj, _, _, ok = l.r.neigh.Need(1, netip.AddrFrom4([4]byte{198, 51, 100, byte(i)}), w.now)
	}
	if adj != first {
		t.Fatalf("adjacency %d was not used again", first)
	}
	second := w.reader.Adjacency(adj).NextHop
	l.run(numbered(t, second.String(), 2))
	l.out(1)
	l.runAt(1, answer(second.String(), hostMAC[2]))
	if got := ids(l.out(1)); len(got) != 1 || got[0] != 2 {
		t.Errorf("to the second host left %v, want 2 alone", got)
	}
	if d := l.drops(); !maps.Equal(d, map[string]uint64{"neigh_failed": 1, "arp_consumed": 1}) || w.held.total != 0 {
		t.Errorf("drops %v, %d still held", d, w.held.total)
	}
}

// More queues than one probe sequence, collisions and a release in the middle:
// no packet may be lost or doubled.
func TestHoldTableKeepsCollidingQueuesApart(t *testing.T) {
	l := newLab(t)
	w := l.r.workers[0]
	w.held.limit = 1 << 20
	next := netip.MustParseAddr("198.51.100.77")
	want := 0
	for i := range holdQueues + 10 {
		for range 2 {
			h := w.cache.Alloc()
			w.arena.Put(h, 60)
			w.arena.Meta(h).Flags = skb.FlagLocal
			w.hold(h, 1<<20+uint32(i)*256, 1, next) // one bucket for all
			if i < holdQueues {
				want++
			}
		}
	}
	n := 0
	w.held.each(func(skb.Handle) { n++ })
	if n != want || w.held.total != want || w.held.used != holdQueues {
		t.Errorf("%d packets, counted %d, in %d queues; want %d", n, w.held.total, w.held.used, want)
	}
	if d := l.drops()["neigh_queue_full"]; d != 20 {
		t.Errorf("%d dropped, want 20", d)
	}
	w.releaseHeld() // none of these adjacencies exists
	if w.held.used != 0 || l.drops()["neigh_failed"] != uint64(want) {
		t.Errorf("%d queues left, drops %v", w.held.used, l.drops())
	}
}

func TestHeldPacketsOfTheRestStayWhenOneAnswers(t *testing.T) {
	l := newLab(t)
	for i := range 5 {
		dst := fmt.Sprintf("198.51.100.%d", 50+i)
		l.run(numbered(t, dst, 10*i), numbered(t, dst, 10*i+1))
	}
	l.out(1)
	for _, i := range []int{3, 0, 4} {
		l.runAt(1, answer(fmt.Sprintf("198.51.100.%d", 50+i), hostMAC[2]))
		if got, want := fmt.Sprint(ids(l.out(1))), fmt.Sprint([]int{10 * i, 10*i + 1}); got != want {
			t.Errorf("host %d: left %v, want %v", i, got, want)
		}
	}
	if w := l.r.workers[0]; w.held.total != 4 || w.held.used != 2 {
		t.Errorf("%d packets in %d queues stay", w.held.total, w.held.used)
	}
}

// However few buffers there are for all, one neighbour's may be as many as asked.
func TestHoldDepthRaisesTheLimitOfAll(t *testing.T) {
	h := holdTable{limit: 4}
	if h.setDepth(neigh.MaxHold); h.limit != neigh.MaxHold || h.depth != neigh.MaxHold {
		t.Errorf("limit %d, depth %d", h.limit, h.depth)
	}
	h = holdTable{limit: 100}
	if h.setDepth(8); h.limit != 100 {
		t.Errorf("limit %d", h.limit)
	}
}
