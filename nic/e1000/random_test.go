package e1000_test

import (
	"testing"

	"pgregory.net/rapid"

	"gorouter/skb"
	"gorouter/tx"
)

// Whatever two ports do in whatever order, the strict model finds no breach,
// no buffer is lost, and every frame is accounted for by name.
func TestRandomOperations(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		o := defaultRig()
		o.arena.Buffers = 512
		o.arena.CacheSize = 32
		o.arena.AllocOrder = rapid.SampledFrom([]string{skb.OrderLIFO, skb.OrderFIFO}).Draw(rt, "order")
		o.rx.Ring = 8 * rapid.IntRange(10, 16).Draw(rt, "rx ring")
		o.tx.Ring = 8 * rapid.IntRange(10, 16).Draw(rt, "tx ring")
		o.rx.Replenish = rapid.SampledFrom([]int{1, 4, 16, 64, 4096}).Draw(rt, "replenish")
		o.rx.ReplenishAt = rapid.SampledFrom([]string{"turn", "end"}).Draw(rt, "replenish at")
		o.rx.Copybreak = rapid.SampledFrom([]int{0, 64, 1514}).Draw(rt, "copybreak")
		o.tx.ReportEvery = rapid.SampledFrom([]int{1, 2, 16, 256}).Draw(rt, "report every")
		o.tx.ReclaimAt = rapid.SampledFrom([]int{1, 32, 4096}).Draw(rt, "reclaim at")
		o.tx.Doorbell = rapid.SampledFrom([]string{tx.DoorbellFrame, tx.DoorbellBatch, tx.DoorbellTimer}).Draw(rt, "doorbell")
		o.keepFCS = rapid.Bool().Draw(rt, "keep FCS")
		o.lossless = rapid.Bool().Draw(rt, "lossless")
		r := newRig(rt, o)
		running := [2]bool{true, true}
		var polled, offered [2]uint64 // frames handed out and taken
		var held []skb.Handle         // frames in our hands
		var b skb.Batch

		poll := func(p int) {
			r.rx[p].Poll(&b, rapid.IntRange(1, 64).Draw(rt, "max"), r.clk.Now())
			polled[p] += uint64(b.N)
			for _, h := range b.Handles() {
				if f := r.arena.Bytes(h); f[11] != byte(1-p) || len(f) < 60 {
					rt.Fatalf("port %d received % x", p, f)
				}
				held = append(held, h)
			}
			b.Reset()
		}
		drop := func(n int) {
			for range min(n, len(held)) {
				r.cache.Free(held[len(held)-1])
				held = held[:len(held)-1]
			}
		}
		port := rapid.IntRange(0, 1)
		rt.Repeat(map[string]func(*rapid.T){
			"send": func(rt *rapid.T) {
				p := port.Draw(rt, "port")
				for range rapid.IntRange(1, 64).Draw(rt, "frames") {
					h := r.frame(rapid.IntRange(14, 1518).Draw(rt, "len"), 1-p, 0)
					if h == skb.None {
						break
					}
					b.Add(h)
					// Clones are held twice and only read.
					if !b.Full() && rapid.IntRange(0, 7).Draw(rt, "clone") == 0 {
						b.Add(r.arena.Clone(h))
					}
					if b.Full() {
						break
					}
				}
				more := rapid.Bool().Draw(rt, "more")
				offered[p] += uint64(b.N)
				r.tx[p].Send(&b, more)
				if more && rapid.Bool().Draw(rt, "again") {
					if h := r.frame(60, 1-p, 0); h != skb.None {
						b.Add(h)
						offered[p]++
						r.tx[p].Send(&b, false)
					}
				}
				if more {
					r.tx[p].Flush()
				}
			},
			"poll":      func(rt *rapid.T) { poll(port.Draw(rt, "port")) },
			"replenish": func(rt *rapid.T) { r.rx[port.Draw(rt, "port")].Replenish() },
			"end turn": func(rt *rapid.T) {
				r.rx[port.Draw(rt, "port")].EndTurn(rapid.Bool().Draw(rt, "idle"))
			},
			"reclaim": func(rt *rapid.T) { r.tx[port.Draw(rt, "port")].Reclaim() },
			"tick":    func(rt *rapid.T) { r.tx[port.Draw(rt, "port")].Tick(r.clk.Now()) },
			"step":    func(*rapid.T) { r.step() },
			"step2":   func(*rapid.T) { r.step() },
			"free":    func(rt *rapid.T) { drop(rapid.IntRange(1, 200).Draw(rt, "frames")) },
			"hoard": func(*rapid.T) { // run the arena dry
				for {
					h := r.cache.Alloc()
					if h == skb.None {
						break
					}
					held = append(held, h)
				}
			},
			"configure": func(rt *rapid.T) {
				p := port.Draw(rt, "port")
				ro, to := r.rx[p].Options(), r.tx[p].Options()
				ro.Replenish = rapid.SampledFrom([]int{1, 16, 64}).Draw(rt, "replenish")
				to.ReportEvery = rapid.SampledFrom([]int{1, 16}).Draw(rt, "report every")
				to.Doorbell = rapid.SampledFrom([]string{tx.DoorbellFrame, tx.DoorbellBatch, tx.DoorbellTimer}).Draw(rt, "doorbell")
				r.rx[p].Configure(ro)
				r.tx[p].Configure(to)
			},
			"link": func(rt *rapid.T) { r.cable.SetLink(rapid.Bool().Draw(rt, "up")) },
			"housekeep": func(*rapid.T) {
				for i, d := range r.dev {
					if err := d.CheckLink(); err != nil {
						rt.Fatal(err)
					}
					if running[i] && d.Port().Up() != r.chip[i].Link() {
						rt.Fatalf("port %d: up %v, the chip says %v", i, d.Port().Up(), r.chip[i].Link())
					}
				}
			},
			"stop": func(rt *rapid.T) {
				p := port.Draw(rt, "port")
				if err := r.dev[p].Stop(); err != nil {
					rt.Fatal(err)
				}
				running[p] = false
				if n, m := r.chip[p].Holds(); n != 0 || m != 0 {
					rt.Fatalf("a stopped chip holds %d and %d descriptors", n, m)
				}
			},
			"start": func(rt *rapid.T) {
				p := port.Draw(rt, "port")
				if err := r.dev[p].Start(); err != nil {
					rt.Fatal(err)
				}
				running[p] = true
			},
			"reset": func(rt *rapid.T) {
				p := port.Draw(rt, "port")
				if err := r.dev[p].Reset("test"); (err == nil) != running[p] {
					rt.Fatalf("reset of a device with running=%v: %v", running[p], err)
				}
			},
			"": func(rt *rapid.T) {
				for i, c := range r.chip {
					if err := c.Err(); err != nil {
						rt.Fatal(err)
					}
					rc, tc := &r.rx[i].Counters().Live, &r.tx[i].Counters().Live
					if rc.Packets != polled[i] {
						rt.Fatalf("port %d received %d, handed out %d", i, rc.Packets, polled[i])
					}
					if tc.Packets != tc.Reclaimed+uint64(r.tx[i].Pending()) {
						rt.Fatalf("port %d queued %d, reclaimed %d, pending %d", i, tc.Packets, tc.Reclaimed, r.tx[i].Pending())
					}
					// Every frame offered was queued or dropped by name.
					if n := tc.Packets + tc.Drops.Total(); n != offered[i] {
						rt.Fatalf("port %d: %d offered, %d accounted for", i, offered[i], n)
					}
				}
				hands := holder(held)
				if _, err := r.arena.Audit(r.rx[0], r.rx[1], r.tx[0], r.tx[1], hands); err != nil {
					rt.Fatal(err)
				}
			},
		})
		drop(len(held))
		r.close()
	})
}

// holder is what the test itself holds.
type holder []skb.Handle

func (holder) HolderName() string { return "hands" }
func (h holder) EachHeld(f func(skb.Handle)) {
	for _, x := range h {
		f(x)
	}
}
