package model

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	"gorouter/nic/e1000/regs"
	"gorouter/skb"
)

// TestRandomOperationsOfACorrectDriver lets two drivers that keep the rules do
// random things, on any two chips and buses: nothing is a breach, every frame
// arrives once, in order and unchanged, and no buffer is lost.
func TestRandomOperationsOfACorrectDriver(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := 8 * rapid.IntRange(1, 12).Draw(rt, "ring/8")
		every := rapid.IntRange(1, 8).Draw(rt, "RS interval")
		bsize := rapid.SampledFrom([]uint32{regs.RctlBSIZE2048, regs.RctlBSIZE1024, regs.RctlBSIZE512, regs.RctlBSIZE256}).Draw(rt, "buffer size")
		tdh := rapid.SampledFrom([]string{TDHSent, TDHFetched}).Draw(rt, "tdh")
		arena, err := skb.NewArena(skb.Options{Buffers: 1024})
		if err != nil {
			rt.Fatal(err)
		}
		defer arena.Close()
		board := func(name string) Config {
			chip := rapid.SampledFrom(Chips()).Draw(rt, name)
			bus := rapid.SampledFrom(Buses()).Filter(func(b Bus) bool { _, err := chip.bus(b.Name); return err == nil }).Draw(rt, name+" bus")
			return Config{Name: name, Chip: chip.Name, Bus: bus.Name, TDH: tdh, CheckContent: true,
				Port: rapid.IntRange(0, chip.Ports-1).Draw(rt, name+" port")}
		}
		a, b := newDriver(t, arena, n, board("a")), newDriver(t, arena, n, board("b"))
		defer a.chip.Close()
		defer b.chip.Close()
		for _, d := range []*driver{a, b} {
			d.rctl = regs.RctlEN | regs.RctlUPE | regs.RctlSECRC | bsize
			d.start()
		}
		if _, err := NewCable(a.chip, b.chip, CableOptions{Lossless: true}); err != nil {
			rt.Fatal(err)
		}
		var flying [2][][]byte
		ends := [2]*driver{a, b}
		since := [2]int{}
		seed := byte(0)
		free := func(d *driver) int { return int(d.n) - 1 - int((d.txNext+d.n-d.txClean)%d.n) }
		transmit := func(i int, f []byte, parts int) {
			d := ends[i]
			if free(d) < 2*parts {
				return // some chips want buffers split
			}
			flying[i] = append(flying[i], f)
			rest := f
			for p := range parts {
				k := len(rest)
				cmd := uint64(0)
				if p < parts-1 {
					k /= 2
				} else {
					cmd = txEOP | txIFCS
				}
				if since[i]++; since[i] >= every {
					cmd |= txRS
					since[i] = 0
				}
				d.queueSplit(rest[:k], cmd)
				rest = rest[k:]
			}
		}
		receive := func(i int) {
			from := 1 - i
			for _, f := range ends[i].recv() {
				if len(flying[from]) == 0 {
					rt.Fatal("a frame that was never sent")
				}
				if !bytes.Equal(f.data, flying[from][0]) {
					rt.Fatalf("frame changed or out of order: %d bytes, expected %d", len(f.data), len(flying[from][0]))
				}
				flying[from] = flying[from][1:]
			}
		}
		i := func() int { return rapid.IntRange(0, 1).Draw(rt, "end") }
		rt.Repeat(map[string]func(*rapid.T){
			"send": func(*rapid.T) {
				seed++
				transmit(i(), makeFrame(otherMAC, rapid.IntRange(60, 1514).Draw(rt, "bytes"), seed), rapid.IntRange(1, 3).Draw(rt, "parts"))
			},
			"bell":    func(*rapid.T) { ends[i()].bell() },
			"receive": func(*rapid.T) { receive(i()) },
			"fill":    func(*rapid.T) { ends[i()].fill(rapid.IntRange(1, n).Draw(rt, "buffers")) },
			"reclaim": func(*rapid.T) { ends[i()].reclaim() },
			"step":    func(*rapid.T) { a.step() },
			"": func(*rapid.T) {
				for _, d := range ends {
					if len(d.breaches) > 0 {
						rt.Fatal(d.breaches[0])
					}
				}
			},
		})
		// Everything arrives in the end. A frame longer than the ring's
		// buffers would never: give each receiver enough room.
		for range 400 {
			for k, d := range ends {
				d.bell()
				d.fill(n)
				d.reclaim()
				receive(k)
			}
			a.step()
		}
		frames := (1518 + 2047>>(bsize>>16)) / (2048 >> (bsize >> 16))
		if left := len(flying[0]) + len(flying[1]); left > 0 && n > frames {
			rt.Fatalf("%d frames never arrived", left)
		}
		if _, err := arena.Audit(a, b); err != nil {
			rt.Fatal(err)
		}
		for _, d := range ends {
			if len(d.breaches) > 0 {
				rt.Fatal(d.breaches[0])
			}
		}
	})
}
