package model

import (
	"fmt"
	"testing"
	"unsafe"

	"gorouter/nic/e1000/regs"
)

// resend puts the same n buffers on the transmit ring again and gives the
// received ones straight back, so that only the chips do work.
func (d *driver) resend(n int, words []desc) {
	for range n {
		d.tx[d.txNext] = words[d.txNext]
		d.txNext = d.after(d.txNext)
	}
	d.bell()
}

func (d *driver) giveBack(n int) {
	for range n {
		d.rx[d.rxFill] = desc{addr: d.arena.Bus(d.rxBuf[d.rxNext])}
		d.rxBuf[d.rxFill] = d.rxBuf[d.rxNext]
		d.rxFill, d.rxNext = d.after(d.rxFill), d.after(d.rxNext)
	}
	d.chip.Write(regs.RDT, d.rxFill)
}

// loop makes a pair of which a sends bursts to b.
func loop(t testing.TB, size, burst int, cfg Config) (a, b *driver, round func()) {
	a, b, c := pair(t, 256, cfg, CableOptions{Lossless: true})
	words := make([]desc, a.n)
	for i := range words {
		f := makeFrame(b.chip.cfg.MAC, size, byte(i))
		h := a.alloc()
		copy(unsafe.Slice((*byte)(a.arena.Head(h)), size), f)
		words[i] = desc{addr: a.arena.Bus(h), word: uint64(size) | testCmd}
	}
	now := int64(0)
	return a, b, func() {
		a.resend(burst, words)
		now += 1000
		c.Step(now, burst)
		b.giveBack(burst)
	}
}

func TestStepDoesNotAllocate(t *testing.T) {
	for _, content := range []bool{false, true} {
		for _, size := range []int{60, 1514} {
			a, b, round := loop(t, size, 32, Config{CheckContent: content})
			for range 20 {
				round()
			}
			if n := testing.AllocsPerRun(200, round); n != 0 {
				t.Errorf("%d bytes: %v allocations a round", size, n)
			}
			if _, tx := a.chip.Holds(); tx != 0 {
				t.Error("nothing was sent")
			}
			a.clean()
			b.clean()
		}
	}
}

// BenchmarkChipToChip is the price of one frame that leaves one chip and
// enters another, with the drivers' descriptor writes.
func BenchmarkChipToChip(b *testing.B) {
	for _, k := range []struct {
		name  string
		size  int
		burst int
		cfg   Config
	}{
		{"strict/60/burst32", 60, 32, Config{}},
		{"strict/60/burst1", 60, 1, Config{}},
		{"strict/1514/burst32", 1514, 32, Config{}},
		{"content/60/burst32", 60, 32, Config{CheckContent: true}},
		{"threaded/60/burst32", 60, 32, Config{Threaded: true}},
	} {
		b.Run(k.name, func(b *testing.B) {
			da, db, round := loop(b, k.size, k.burst, k.cfg)
			b.ResetTimer()
			for n := 0; n < b.N; n += k.burst {
				round()
			}
			b.StopTimer()
			if got := db.chip.stats[sGPRC]; got < uint64(b.N) {
				b.Fatal(fmt.Sprint("only ", got, " frames arrived"))
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/2, "ns/frame/side")
			da.clean()
			db.clean()
		})
	}
}
