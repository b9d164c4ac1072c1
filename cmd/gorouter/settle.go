package main

import (
	"maps"
	"time"

	"gorouter/nic/model"
)

// settleTime is the longest wait for generated frames to cross the router.
const settleTime = time.Second

// settle ends the generated streams and waits until their frames have crossed
// cables, chips and router, so that a report counts them all. It does not wait
// for ever: a port without link keeps its frames, and others may send too. It
// returns when the last frame was seen to move, 0 if it did not wait, and how
// many had moved by then.
func (b *box) settle() (at int64, moved uint64) {
	if len(b.stations) == 0 {
		return 0, 0
	}
	for _, st := range b.stations {
		st.Quiet()
	}
	// A frame that passed from one place to the next between two looks moved
	// a cable's counters, or is seen by the second look.
	end := b.clk.Now() + int64(settleTime)
	at, moved = b.clk.Now(), b.moved()
	var last map[string][2]model.WireStats
	for same := 0; same < 3 && b.clk.Now() < end; {
		now := b.wires()
		if b.router.Drained() && b.quiet(now) && maps.Equal(now, last) {
			same++
		} else {
			same = 0
		}
		last = now
		if n := b.moved(); n != moved {
			at, moved = b.clk.Now(), n
		}
		b.clk.Sleep(time.Millisecond)
	}
	return at, moved
}

// wires are the counters of every cable, out of its first end and into it.
func (b *box) wires() map[string][2]model.WireStats {
	m := map[string][2]model.WireStats{}
	for name, c := range b.cables {
		out, in := c.Wires()
		m[name] = [2]model.WireStats{out, in}
	}
	return m
}

// quiet reports whether no frame is on a cable or in a chip.
func (b *box) quiet(wires map[string][2]model.WireStats) bool {
	for _, w := range wires {
		if w[0].InFlight+w[1].InFlight > 0 {
			return false
		}
	}
	for _, c := range b.chips {
		if _, tx := c.Holds(); tx > 0 {
			return false
		}
	}
	return true
}

// inFlight names the frames that were on their way when the workers ended:
// on a cable, delivered to a chip and not received, or queued and not sent.
// Workers and threads must have stopped, the devices not yet.
func (b *box) inFlight() map[string]uint64 {
	left := map[string]uint64{}
	add := func(port, place string, n uint64) {
		if int64(n) > 0 {
			left[port+" "+place] = n
		}
	}
	into := map[string]uint64{} // frames that cables delivered, by port
	for name, w := range b.wires() {
		add(name, "cable", w[0].InFlight+w[1].InFlight)
		into[name] = w[1].Delivered
		if i := b.cfg.PortIndex(name); b.cfg.Ports[i].Cable != "" {
			into[b.cfg.Ports[i].Cable] = w[0].Delivered
		}
	}
	for _, p := range b.ports {
		c := b.chips[p.Name]
		if c == nil {
			continue
		}
		if _, tx := c.Holds(); tx > 0 {
			add(p.Name, "tx ring", uint64(tx))
		}
		if p.Device.Stats()["resets"] > 0 {
			continue // what a reset threw away is not on its way
		}
		n := into[p.Name]
		for _, q := range p.Rx {
			r := q.Counters().Read()
			n -= r.Packets + r.Drops.Total()
		}
		add(p.Name, "rx ring", n)
	}
	return left
}
