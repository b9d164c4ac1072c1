package e1000_test

import (
	"bytes"
	"runtime"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"gorouter/skb"
)

// The chips step on a thread of their own, a worker drives the rings and keeps
// house, and the control side looks at link and statistics meanwhile. Run with -race.
func TestChipOnItsOwnThread(t *testing.T) {
	defer goleak.VerifyNone(t)
	o := defaultRig()
	o.threaded = true
	o.rx.Ring, o.tx.Ring = 80, 80
	o.tx.ReportEvery = 4
	r := newRig(t, o)
	defer r.close()
	if err := r.chip[0].Start(); err != nil {
		t.Fatal(err)
	}
	defer r.chip[0].Stop()

	stop := make(chan struct{})
	var control sync.WaitGroup
	control.Add(1)
	go func() {
		defer control.Done()
		for {
			select {
			case <-stop:
				return
			default:
			}
			for _, d := range r.dev {
				if err := d.CheckLink(); err != nil {
					t.Error(err)
				}
				d.Stats()
				d.Link()
				d.LastHang()
				d.Dump()
			}
			runtime.Gosched()
		}
	}()

	const frames = 4000
	var sent, got [2]int
	want := make([]byte, 200)
	exchange := func(total int) {
		var b skb.Batch
		for got[0] < total || got[1] < total {
			r.ok() // a chip that stopped would never deliver the rest
			for p := range 2 {
				if err := r.dev[p].Housekeep(r.clk.Now()); err != nil {
					t.Fatal(err)
				}
				for sent[p] < total && b.N < min(16, r.tx[p].Room()) {
					b.Add(r.frame(60+sent[p]%140, 1-p, sent[p]))
					sent[p]++
				}
				r.tx[p].Send(&b, false)
				r.tx[p].Reclaim()
				r.receive(p, func(f []byte) {
					w := want[:60+got[p]%140]
					fill(w, p, got[p])
					if !bytes.Equal(f, w) {
						t.Fatalf("port %d frame %d: %x, want %x", p, got[p], f, w)
					}
					got[p]++
				})
			}
			runtime.Gosched()
		}
	}
	exchange(frames)
	r.ok()
	// A reset while the chip's thread and the control side are at work. Frames
	// on the way are lost by name; none are when the rings have been emptied.
	for p := range 2 {
		for r.tx[p].Pending() > 0 {
			r.ok()
			r.tx[p].Reclaim()
			runtime.Gosched()
		}
		if err := r.dev[p].Reset("test"); err != nil {
			t.Fatal(err)
		}
	}
	exchange(frames + 500)
	close(stop)
	control.Wait()
	r.ok()
	for p, d := range r.dev {
		if err := d.CheckLink(); err != nil {
			t.Fatal(err)
		}
		if s := d.Stats(); s["GPRC"] != frames+500 || s["GPTC"] != frames+500 {
			t.Errorf("p%d: GPRC %d, GPTC %d, want %d", p, s["GPRC"], s["GPTC"], frames+500)
		}
	}
}
