package e1000_test

import (
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gorouter/internal/inet"
	"gorouter/nic/e1000"
	"gorouter/nic/e1000/regs"
	"gorouter/port"
	"gorouter/tx"
)

func readable(fd int) bool {
	p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(p, 0)
	return err == nil && n == 1
}

func TestInterruptsWakeAndStaySilent(t *testing.T) {
	o := defaultRig()
	o.irq = true
	r := newRig(t, o)
	defer r.close()
	ev := r.dev[1].Port().Events
	if ev == nil {
		t.Fatal("the port has no event source")
	}
	spoke := func() bool { r.step(); return readable(ev.FD()) }
	// Polled: not a word.
	r.send(0, 60)
	if spoke() {
		t.Error("a port that was never armed spoke")
	}
	// The frame that came before is found by the second look.
	if !ev.Arm() {
		t.Error("a waiting frame is not pending")
	}
	ev.Disarm()
	r.receive(1, nil)
	if ev.Arm() {
		t.Error("pending with nothing there")
	}
	if spoke() {
		t.Error("old causes spoke")
	}
	r.send(0, 60)
	if !spoke() {
		t.Error("a received frame does not wake")
	}
	ev.Disarm()
	if readable(ev.FD()) {
		t.Error("not silent after Disarm")
	}
	r.send(0, 60)
	if spoke() {
		t.Error("a disarmed port spoke")
	}
	r.receive(1, nil)
	r.step()
	r.tx[0].Reclaim()

	// The end of a transmit wakes only while one is on the ring.
	r.send(1, 60)
	if ev.Arm() {
		t.Error("pending while the frame is being sent")
	}
	if !spoke() {
		t.Error("a finished transmit does not wake")
	}
	ev.Disarm()
	if !ev.Arm() {
		t.Error("a finished frame is not pending")
	}
	ev.Disarm()
	r.tx[1].Reclaim()
	if ev.Arm() {
		t.Error("pending after the reclaim")
	}
	ev.Disarm()

	// Frames that wait for a timed doorbell keep the worker awake.
	to := r.tx[1].Options()
	to.Doorbell = tx.DoorbellTimer
	r.tx[1].Configure(to)
	r.send(1, 60)
	if !ev.Arm() {
		t.Error("not pending while a frame waits for the doorbell")
	}
	ev.Disarm()
	to.Doorbell = tx.DoorbellBatch
	r.tx[1].Configure(to)
	r.step()
	r.receive(0, nil)
	r.step()
	r.tx[1].Reclaim()

	// A link change wakes, and is seen at the next Arm.
	ev.Arm()
	r.cable.SetLink(false)
	if !spoke() {
		t.Error("a link change does not wake")
	}
	ev.Disarm()
	ev.Arm()
	if r.dev[1].Port().Up() {
		t.Error("the link change was not taken notice of")
	}
	ev.Disarm()
	r.cable.SetLink(true)
	ev.Arm()
	ev.Disarm()
	if !r.dev[1].Port().Up() {
		t.Error("the link is not up again")
	}
	// A stopped port is silent and not pending.
	if err := r.dev[1].Stop(); err != nil {
		t.Fatal(err)
	}
	if ev.Arm() || r.dev[1].Cause() != 0 {
		t.Error("a stopped port speaks")
	}
	ev.Disarm()
}

// A worker that sleeps between frames gets all of them, the chip being stepped
// by another goroutine. The sleep has no other end than the interrupt.
func TestSleepingWorkerLosesNothing(t *testing.T) {
	o := defaultRig()
	o.irq, o.threaded = true, true
	r := newRig(t, o)
	defer r.close()
	if err := r.chip[0].Start(); err != nil {
		t.Fatal(err)
	}
	defer r.chip[0].Stop()
	s, err := port.NewSleeper()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, d := range r.dev {
		s.Add(d.Port().Events)
	}
	const total = 2000
	sent, got, sleeps := 0, 0, 0
	for got < total || r.tx[0].Pending() > 0 {
		if sent == got && sent < total {
			r.send(0, make60(1+sent%7)...)
			sent += 1 + sent%7
		}
		n := r.receive(1, nil)
		got += n
		r.tx[0].Reclaim()
		if n > 0 {
			continue
		}
		slept, err := s.Sleep(time.Hour, nil)
		if err != nil {
			t.Fatal(err)
		}
		if slept {
			sleeps++
		}
	}
	if sleeps == 0 {
		t.Error("never slept")
	}
}

// Without an interrupt line the moderation timers stay zero and no descriptor
// asks for a delay.
func TestTimersOnlyWithInterrupts(t *testing.T) {
	for _, irq := range []bool{false, true} {
		f := newFake(regs.MAC82540)
		cfg := fakeConfig(t, f, 0x100E)
		cfg.Interrupts = e1000.Interrupts{RDTR: 1, RADV: 2, ITR: 3, TIDV: 4, TADV: 5}
		if irq {
			s, err := port.NewSignal()
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			cfg.IRQ = s
		}
		d, err := e1000.Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if (d.Port().Events != nil) != irq {
			t.Errorf("interrupts %v: events %v", irq, d.Port().Events)
		}
		if err := d.Start(); err != nil {
			t.Fatal(err)
		}
		for off, want := range map[uint32]uint32{regs.RDTR: 1, regs.RADV: 2, regs.ITR: 3, regs.TIDV: 4, regs.TADV: 5} {
			if !irq {
				want = 0
			}
			if f.val[off] != want {
				t.Errorf("interrupts %v: %s is %d", irq, name(off), f.val[off])
			}
		}
		q := d.Port().Tx[0].(*tx.E1000)
		w := &watched{t: t, f: f, cfg: cfg, dev: d, tx: q}
		w.send(1)
		if got := strings.Contains(strings.Join(q.Describe(0), "\n"), "IDE"); got != irq {
			t.Errorf("interrupts %v: IDE %v", irq, got)
		}
		if !irq && (d.FD() != -1 || !d.Arm()) {
			t.Error("a port without interrupts can be slept on")
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A device that vanished while the worker slept is set down by Housekeep at
// once, not after a second.
func TestInterruptOfAVanishedDevice(t *testing.T) {
	f := newFake(regs.MAC82540)
	cfg := fakeConfig(t, f, 0x100E)
	s, err := port.NewSignal()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	cfg.IRQ = s
	d, err := e1000.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Start(); err != nil {
		t.Fatal(err)
	}
	f.gone = true
	d.Arm()
	d.Disarm()
	if err := d.Housekeep(f.clk.Now()); err == nil || d.Port().Up() {
		t.Errorf("%v, up %v", err, d.Port().Up())
	}
	f.took()
	if d.Arm() {
		t.Error("a vanished port is pending")
	}
	d.Disarm()
	if l := f.took(); len(l) != 0 {
		t.Errorf("accessed: %v", l)
	}
}

// Group addresses are let in by hash, promisc and all-multicast by choice, on
// a running device and across a reset.
func TestMulticast(t *testing.T) {
	r := newRig(t, defaultRig())
	defer r.close()
	testMulticast(t, r)
}

func testMulticast(t *testing.T, r *rig) {
	t.Helper()
	in := func(dst inet.MAC) bool {
		r.sendTo(0, dst)
		r.step()
		n := r.receive(1, nil)
		r.step()
		r.tx[0].Reclaim()
		return n == 1
	}
	var groups []inet.MAC
	for i := range 200 { // more than fit without neighbours in the table
		groups = append(groups, inet.MAC{1, 0, 0x5e, byte(i), byte(i * 37), byte(i * 101)})
	}
	strange := inet.MAC{1, 0, 0x5e, 1, 2, 3}
	for _, list := range [][]inet.MAC{nil, groups[:1], groups, groups[:7], nil, groups[100:101]} {
		if err := r.dev[1].SetMulticast(list); err != nil {
			t.Fatal(err)
		}
		for _, m := range list {
			if !in(m) {
				t.Fatalf("%v of a list of %d is not let in", m, len(list))
			}
		}
		if len(list) < 10 && in(strange) {
			t.Errorf("%v is let in by a list of %d", strange, len(list))
		}
	}
	if err := r.dev[1].Reset("test"); err != nil {
		t.Fatal(err)
	}
	if !in(groups[100]) || in(groups[3]) || len(r.dev[1].Multicast()) != 1 {
		t.Error("the list did not outlive a reset")
	}
	if err := r.dev[1].SetMulticast([]inet.MAC{{2, 0, 0, 0, 0, 1}}); err == nil {
		t.Error("a unicast address was accepted")
	}
	other := inet.MAC{2, 9, 9, 9, 9, 9}
	for _, on := range []bool{true, false, true} {
		if err := r.dev[1].SetAllMulti(on); err != nil {
			t.Fatal(err)
		}
		if in(strange) != on || in(other) {
			t.Errorf("all multicast %v: wrong filter", on)
		}
	}
	for _, on := range []bool{true, false} {
		if err := r.dev[1].SetPromisc(on); err != nil {
			t.Fatal(err)
		}
		if in(other) != on {
			t.Errorf("promisc %v: wrong filter", on)
		}
	}
	r.ok()
}

// A filter that does not change is not written: on QEMU that costs a second of
// reception.
func TestUnchangedFilterIsNotWritten(t *testing.T) {
	f := newFake(regs.MAC82540)
	d, err := e1000.Open(fakeConfig(t, f, 0x100E))
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Start(); err != nil {
		t.Fatal(err)
	}
	f.took()
	if err := d.SetPromisc(false); err != nil {
		t.Fatal(err)
	}
	if err := d.SetMulticast(nil); err != nil {
		t.Fatal(err)
	}
	if l := f.took(); len(l) != 0 {
		t.Errorf("written: %v", l)
	}
}
