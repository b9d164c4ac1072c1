package dataplane

import (
	"fmt"
	"testing"

	"gorouter/skb"
)

// liveStats is Stats of workers that stand still, published or not.
func (l *lab) liveStats() Stats {
	for _, w := range l.r.workers {
		w.publish()
	}
	return l.r.Stats()
}

// checkConservation: frames in + made here = frames out + drops + what waits.
func checkConservation(l *lab) error {
	s := l.liveStats()
	var in, out, waits uint64
	drops := s.Drops
	for _, q := range l.wires {
		in += q.rxStats.Live.Packets
		out += q.txStats.Live.Packets
		drops.Add(&q.txStats.Live.Drops)
	}
	for _, w := range l.r.workers {
		w.EachHeld(func(skb.Handle) { waits++ })
	}
	if in+s.Originated != out+drops.Total()+waits {
		return fmt.Errorf("%d in + %d made here, but %d out + %d dropped + %d waiting; %v", in, s.Originated, out, drops.Total(), waits, drops.Map())
	}
	_, err := l.arena.Audit(l.r.Holders()...)
	return err
}

// checkStages: what one stage hands on is what the next one counts.
func checkStages(l *lab) error {
	s := l.liveStats()
	row := map[string]Stage{}
	for _, r := range s.Stages {
		row[r.Name] = r
		if r.Packets < r.Calls || (r.Calls == 0) != (r.Packets == 0) {
			return fmt.Errorf("stage %s: %d packets in %d calls", r.Name, r.Packets, r.Calls)
		}
	}
	if len(row) != int(numStages) {
		return fmt.Errorf("%d stages", len(row))
	}
	sum := func(reasons ...skb.Reason) (n uint64) {
		for _, r := range reasons {
			n += s.Drops[r]
		}
		return n
	}
	var in, tx uint64
	for _, q := range l.wires {
		in += q.rxStats.Live.Packets
		tx += q.txStats.Live.Packets + q.txStats.Live.Drops.Total()
	}
	p := func(name string) uint64 { return row[name].Packets }
	eth := sum(skb.EthShort, skb.EthOtherHost, skb.EthGroupSource, skb.EthVLAN, skb.EthUnknownType, skb.IP6Unsupported)
	checked := sum(skb.IP4Short, skb.IP4Version, skb.IP4HeaderLength, skb.IP4TotalLength, skb.IP4Checksum,
		skb.IP4MartianSource, skb.IP4MartianDestination, skb.IP4OwnSource, skb.IP4Broadcast, skb.IP4Multicast, skb.IP4LinkMulticast)
	for _, c := range []struct {
		what      string
		got, want uint64
	}{
		{"rx", p("rx"), in},
		{"ethernet", p("ethernet"), p("rx")},
		{"ip4-input", p("ip4-input"), p("ethernet") - eth - p("arp")},
		{"ip4-lookup", p("ip4-lookup"), p("ip4-input") - checked},
		{"ip4-rewrite and slow-path", p("ip4-rewrite") + p("slow-path"), p("ip4-lookup")},
		// A frame for another worker's port goes through tx on both. One whose
		// link went down meanwhile may have been dropped there.
		{"tx", p("tx"), tx + s.Handed + sum(skb.HandoffFull)},
	} {
		slack := uint64(0)
		if c.what == "tx" {
			slack = sum(skb.TxLinkDown)
		}
		if c.got < c.want || c.got > c.want+slack {
			return fmt.Errorf("stage %s: %d packets, want %d; drops %v", c.what, c.got, c.want, s.Drops.Map())
		}
	}
	return nil
}

func TestStageTable(t *testing.T) {
	l := newLab(t)
	l.via("10.0.0.0/8", 1, "198.51.100.2")
	var in [][]byte
	for range 100 {
		in = append(in, numbered(t, "10.0.0.1", 1))
	}
	in = append(in, numbered(t, "11.0.0.1", 1), echo("192.0.2.2", "192.0.2.1").bytes(t),
		arpFrame(arpRequest, routerMAC[0], hostMAC[0], "192.0.2.2", routerMAC[0], "192.0.2.1"))
	l.run(in...)
	if err := checkStages(l); err != nil {
		t.Error(err)
	}
	if err := checkConservation(l); err != nil {
		t.Error(err)
	}
	want := map[string][2]uint64{"rx": {103, 4}, "ethernet": {103, 4}, "arp": {1, 1}, "ip4-input": {102, 4}, "ip4-lookup": {102, 4},
		"ip4-rewrite": {100, 4}, "slow-path": {2, 2}, "tx": {103, 5}}
	for _, r := range l.r.Stats().Stages {
		if w := want[r.Name]; r.Packets != w[0] || (r.Name != "tx" && r.Calls != w[1]) {
			t.Errorf("%s: %d packets in %d calls, want %v", r.Name, r.Packets, r.Calls, w)
		}
	}
	s := l.r.Stats()
	if s.Forwarded != 100 || s.Answered != 2 || s.Originated != 1 {
		t.Errorf("forwarded %d, answered %d, originated %d", s.Forwarded, s.Answered, s.Originated)
	}
}

// Time is measured on some trips; the slow path's is not put on the fast one.
func TestStageTimes(t *testing.T) {
	l := newLab(t, options(func(o *Options) { o.Vector = 1 }))
	for _, q := range l.wires {
		q.note = func(e event) {
			switch e.what {
			case "poll":
				l.clk.Advance(5000 * int64(e.n)) // 5 ns in rx
			case "send":
				l.clk.Advance(7000 * int64(e.n)) // 7 ns in tx
			}
		}
	}
	for range 64 {
		l.wires[0].in = append(l.wires[0].in, numbered(t, "198.51.100.2", 1))
	}
	l.run()
	for _, r := range l.liveStats().Stages {
		want := map[string]float64{"rx": 5, "tx": 7}[r.Name]
		if r.NsPerPacket != want {
			t.Errorf("%s: %v ns a packet, want %v", r.Name, r.NsPerPacket, want)
		}
	}
}
