package model

import (
	"bytes"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"gorouter/clock"
	"gorouter/nic/e1000/regs"
	"gorouter/skb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestOwnThread has one goroutine step two chips and two others drive them,
// while a third reads statistics and pulls the plug now and then.
func TestOwnThread(t *testing.T) {
	const frames = 3000
	clk := clock.Machine()
	a, b, cable := pair(t, 64, Config{Threaded: true, Clock: clk, CheckContent: true}, CableOptions{Lossless: true})
	if err := a.chip.Start(); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var all, reader sync.WaitGroup
	reader.Go(func() {
		for i := 1; ; i++ {
			select {
			case <-stop:
				return
			default:
				cable.SetLink(i%8 != 0)
				a.chip.Read(regs.STATUS)
				b.chip.Read(regs.GPRC)
				b.chip.Asserted()
				time.Sleep(50 * time.Microsecond)
			}
		}
	})
	run := func(d, peer *driver) {
		sent, got := 0, 0
		for deadline := time.Now().Add(60 * time.Second); sent < frames || got < frames || d.txClean != d.txNext; {
			if time.Now().After(deadline) {
				t.Errorf("%s: sent %d, got %d", d.chip.Name(), sent, got)
				return
			}
			before := d.txNext
			for sent < frames && d.after(d.txNext) != d.txClean && (d.txNext+d.n-before)%d.n < 20 {
				d.queue(makeFrame(peer.chip.cfg.MAC, 60+sent%400, byte(sent)), d.cmd)
				sent++
			}
			if d.txNext != before {
				d.bell()
			}
			for _, f := range d.recv() {
				if !bytes.Equal(f.data, makeFrame(d.chip.cfg.MAC, 60+got%400, byte(got))) {
					t.Errorf("%s: frame %d changed", d.chip.Name(), got)
					return
				}
				got++
			}
			d.fill(int(d.n))
			if d.reclaim() == 0 {
				time.Sleep(20 * time.Microsecond)
			}
		}
	}
	all.Go(func() { run(a, b) })
	all.Go(func() { run(b, a) })
	all.Wait()
	close(stop)
	reader.Wait()
	a.chip.Stop()
	a.chip.Stop()
	a.clean()
	b.clean()
	if _, err := a.arena.Audit(a, b); err != nil {
		t.Error(err)
	}
}

// TestOwnThreadOfQEMU is the same with chips that send inside the tail write.
func TestOwnThreadOfQEMU(t *testing.T) {
	const frames = 2000
	a, b, _ := pair(t, 64, Config{Threaded: true, Mode: ModeQEMU, Strict: true, Clock: clock.Machine()}, CableOptions{Lossless: true})
	if err := a.chip.Start(); err != nil {
		t.Fatal(err)
	}
	sent, got := 0, 0
	for deadline := time.Now().Add(60 * time.Second); got < frames; {
		if time.Now().After(deadline) {
			t.Fatalf("sent %d, got %d", sent, got)
		}
		if sent < frames && sent-got < 1000 {
			a.send(makeFrame(b.chip.MAC(), 60+sent%400, byte(sent)))
			sent++
			if a.reclaim() != 1 {
				t.Fatal("not done when the tail write returned")
			}
		} else {
			time.Sleep(50 * time.Microsecond) // the link and RCTL want a second
		}
		for _, f := range b.recv() {
			if !bytes.Equal(f.data, makeFrame(b.chip.MAC(), 60+got%400, byte(got))) {
				t.Fatalf("frame %d changed", got)
			}
			got++
		}
		b.fill(64)
	}
	a.chip.Stop()
	a.clean()
	b.clean()
}

// TestFaultsFromAnotherGoroutine injects and clears faults, and reads what
// became of them, while a thread steps the chips and a driver drives.
func TestFaultsFromAnotherGoroutine(t *testing.T) {
	a, b, cable := pair(t, 64, Config{Threaded: true, Clock: clock.Machine()}, CableOptions{
		AToB:  Impairment{Loss: 1000, Corrupt: 1000, Duplicate: 1000, Delay: 10 * time.Microsecond, Reorder: 1000},
		Flaps: []Flap{{First: 5 * time.Millisecond, Down: time.Millisecond, Every: 7 * time.Millisecond}}})
	if err := a.chip.Start(); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		kinds := []FaultKind{FaultTxHang, FaultRxHang, FaultTxNoWriteBack, FaultLostInterrupt, FaultStuckInterrupt, FaultMDICStuck, FaultEEPROMChecksum}
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			k := kinds[i%len(kinds)]
			for _, c := range []*Chip{a.chip, b.chip} {
				if err := c.Inject(Fault{Kind: k, Chance: 100_000, Times: 1}); err != nil {
					t.Error(err)
				}
			}
			time.Sleep(100 * time.Microsecond)
			for _, c := range []*Chip{a.chip, b.chip} {
				c.Clear(k)
				c.Faults()
				c.FaultStats()
			}
			cable.Wires()
		}
	})
	for sent := 0; sent < 2000; {
		if a.after(a.txNext) != a.txClean {
			a.send(makeFrame(b.chip.MAC(), 60, byte(sent)))
			sent++
		} else {
			// A missing DD holds the ring up for ever: take it as given.
			for i := a.txClean; i != a.txNext; i = a.after(i) {
				if !a.done(i) {
					time.Sleep(200 * time.Microsecond)
				}
			}
			if _, tx := a.chip.Holds(); tx == 0 {
				for a.txClean != a.txNext {
					a.cache.Free(a.txBuf[a.txClean])
					a.txBuf[a.txClean] = skb.None
					a.txClean = a.after(a.txClean)
				}
			}
		}
		a.reclaim()
		b.recv()
		b.fill(64)
	}
	close(stop)
	all.Wait()
	a.chip.Stop()
	w, _ := cable.Wires()
	if w.Unaccounted() != 0 {
		t.Errorf("%+v", w)
	}
	a.clean()
	b.clean()
	if _, err := a.arena.Audit(a, b); err != nil {
		t.Error(err)
	}
}

func TestThreadRefusals(t *testing.T) {
	a, b, _ := pair(t, 16, Config{Threaded: true, Clock: clock.Machine()}, CableOptions{})
	if err := a.chip.Start(); err != nil {
		t.Fatal(err)
	}
	if a.chip.Start() == nil || b.chip.Start() == nil {
		t.Error("a cable is stepped twice")
	}
	a.chip.Stop()
	if err := b.chip.Start(); err != nil {
		t.Errorf("after the other end stopped: %v", err)
	}
	_ = b.chip.Close() // stops the thread

	inline := newDriver(t, nil, 16, Config{Clock: clock.Machine()})
	if inline.chip.Start() == nil {
		t.Error("an inline chip is started")
	}
	virtual := newDriver(t, nil, 16, Config{Threaded: true})
	if virtual.chip.Start() == nil {
		t.Error("a thread on a virtual clock")
	}
	mixed := newDriver(t, nil, 16, Config{Threaded: true, Clock: clock.Machine()})
	if _, err := NewCable(mixed.chip, inline.chip, CableOptions{}); err != nil {
		t.Fatal(err)
	}
	if mixed.chip.Start() == nil {
		t.Error("an inline chip at the other end is stepped by a thread")
	}
	if _, err := StartThread(clock.Machine(), inline.chip); err == nil {
		t.Error("an inline chip is stepped by a thread")
	}
}

func TestThreadWorksAfterSleeping(t *testing.T) {
	clk := clock.Machine()
	d := newDriver(t, nil, 16, Config{Threaded: true, Clock: clk}).up().fill(15)
	d.plug(CableOptions{})
	if err := d.chip.Start(); err != nil {
		t.Fatal(err)
	}
	defer d.chip.Stop()
	time.Sleep(20 * time.Millisecond) // long enough for the back-off to be at its end
	d.send(makeFrame(farMAC, 60, 0))
	for deadline := time.Now().Add(10 * time.Second); d.reclaim() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("not sent")
		}
	}
	d.clean()
}
