package e1000_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"gorouter/nic/e1000"
	"gorouter/nic/model"
	"gorouter/skb"
)

// eachChip runs f on every chip of the model, on its usual bus and on PCI-X.
func eachChip(t *testing.T, f func(t *testing.T, o rigOptions)) {
	for _, info := range model.Chips() {
		buses := []string{""}
		if info.Wide {
			buses = append(buses, "pcix133")
		}
		for _, bus := range buses {
			t.Run(strings.TrimSpace(info.Name+" "+bus), func(t *testing.T) {
				o := defaultRig()
				o.chip = func(_ int, c *model.Config) { c.Chip, c.Bus = info.Name, bus }
				f(t, o)
			})
		}
	}
}

// Every chip is brought up without a breach of its rules and without a
// complaint, passes frames of any length from any address both ways, filters
// group addresses, and does so again after a reset.
func TestEveryChip(t *testing.T) {
	eachChip(t, func(t *testing.T, o rigOptions) {
		var log strings.Builder
		o.arena.Stride, o.mtu = 4096, 2026
		o.device = func(_ int, c *e1000.Config) {
			c.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
		}
		r := newRig(t, o)
		defer r.close()
		if log.Len() != 0 {
			t.Errorf("bring-up complains:\n%s", log.String())
		}
		for round := range 2 {
			for i := range 260 {
				from := i & 1
				n := 14 + i*37%(2044-14+1)
				shift := i * 5 % 16
				h := r.cache.Alloc()
				r.arena.Put(h, shift)
				r.arena.Pull(h, shift)
				fill(r.arena.Put(h, n), 1-from, i)
				want := padded(bytes.Clone(r.arena.Bytes(h)))
				var b skb.Batch
				b.Add(h)
				r.tx[from].Send(&b, false)
				r.step()
				got := 0
				r.receive(1-from, func(f []byte) {
					got++
					if !bytes.Equal(f, want) {
						t.Fatalf("%d bytes at offset %d came out as %d bytes", n, shift, len(f))
					}
				})
				if got != 1 {
					r.ok()
					t.Fatalf("%d bytes at offset %d: %d frames arrived", n, shift, got)
				}
				r.step()
				if r.tx[from].Reclaim(); r.tx[from].Pending() != 0 {
					t.Fatal("a sent frame is captive")
				}
			}
			r.ok()
			if round == 0 {
				testMulticast(t, r)
				for _, d := range r.dev {
					if err := d.Reset("test"); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		for _, d := range r.dev {
			if len(d.Dump()) == 0 {
				t.Error("no dump")
			}
		}
		r.ok()
	})
}

// The emulated chips of QEMU, which differ from hardware in many ways, run
// with the same code: a reset that leaves rings and tables, a receiver that is
// deaf for a second after RCTL was written, an FCS that is counted and not
// stored, statistics that do not clear.
func TestQEMUChips(t *testing.T) {
	for _, chip := range []string{"82540EM", "82544GC", "82545EM"} {
		for _, keep := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s keepFCS=%v", chip, keep), func(t *testing.T) {
				o := defaultRig()
				o.keepFCS = keep
				o.chip = func(_ int, c *model.Config) { c.Chip, c.Mode, c.CheckContent = chip, model.ModeQEMU, false }
				r := newRig(t, o)
				defer r.close()
				for round := range 3 {
					r.clk.Sleep(1100 * time.Millisecond)
					for i := range 300 {
						from := i & 1
						n := 14 + i*37%1500
						r.send(from, n)
						want := make([]byte, n)
						fill(want, 1-from, 0)
						r.step()
						got := 0
						r.receive(1-from, func(f []byte) {
							got++
							if !bytes.Equal(f, padded(want)) {
								t.Fatalf("%d bytes came out as %d", n, len(f))
							}
						})
						if got != 1 {
							t.Fatalf("round %d: %d bytes: %d frames arrived", round, n, got)
						}
						r.step()
						r.tx[from].Reclaim()
					}
					for i, d := range r.dev {
						if err := d.CheckLink(); err != nil {
							t.Fatal(err)
						}
						if got, want := d.Stats()["GPRC"], r.rx[i].Counters().Live.Packets; got != want {
							t.Errorf("round %d: GPRC %d, the ring counted %d", round, got, want)
						}
						if err := d.Reset("test"); err != nil {
							t.Fatal(err)
						}
					}
				}
			})
		}
	}
}
