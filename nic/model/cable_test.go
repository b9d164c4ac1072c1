package model

import (
	"bytes"
	"testing"

	"gorouter/internal/inet"
	"gorouter/nic/e1000/regs"
	"gorouter/skb"
)

// pair is two chips with a driver each on one cable and one arena.
func pair(t testing.TB, n int, cfg Config, o CableOptions) (a, b *driver, c *Cable) {
	t.Helper()
	arena := newArena(t, skb.Options{Buffers: max(256, 8*n)})
	cfg.Name, cfg.MAC = "a", inet.MAC{2, 0, 0, 0, 0, 0xA}
	a = newDriver(t, arena, n, cfg)
	cfg.Name, cfg.MAC = "b", inet.MAC{2, 0, 0, 0, 0, 0xB}
	b = newDriver(t, arena, n, cfg)
	c, err := NewCable(a.chip, b.chip, o)
	if err != nil {
		t.Fatal(err)
	}
	a.up().fill(n)
	b.up().fill(n)
	return a, b, c
}

func TestChipToChip(t *testing.T) {
	a, b, c := pair(t, 64, Config{CheckContent: true}, CableOptions{})
	for round := range 40 {
		var fa, fb [][]byte
		for i := range 1 + round%20 {
			fa = append(fa, makeFrame(b.chip.cfg.MAC, 60+round*30+i, byte(i)))
			fb = append(fb, makeFrame(a.chip.cfg.MAC, 60+round*20+i, byte(i)))
		}
		a.send(fa...)
		b.send(fb...)
		if n := a.step(); n != len(fa)+len(fb) {
			t.Fatalf("round %d: %d frames moved", round, n)
		}
		if b.step() != 0 {
			t.Error("the second step of a round finds work")
		}
		for _, k := range []struct {
			d    *driver
			want [][]byte
		}{{a, fb}, {b, fa}} {
			got := k.d.recv()
			if len(got) != len(k.want) {
				t.Fatalf("round %d: %d of %d frames", round, len(got), len(k.want))
			}
			for i, f := range got {
				if !bytes.Equal(f.data, k.want[i]) {
					t.Fatalf("round %d: frame %d changed", round, i)
				}
			}
			k.d.fill(64)
		}
		if a.reclaim() != len(fa) || b.reclaim() != len(fb) {
			t.Fatal("not all reported as sent")
		}
	}
	if s := c.Stats(); s.LostAToB+s.LostBToA != 0 || s.AToB == 0 || s.BToA == 0 {
		t.Errorf("cable counts %+v", s)
	}
	a.clean()
	b.clean()
	if _, err := a.arena.Audit(a, b); err != nil {
		t.Error(err)
	}
}

func TestLosslessCableWaits(t *testing.T) {
	for _, lossless := range []bool{false, true} {
		a, b, c := pair(t, 64, Config{}, CableOptions{Lossless: lossless})
		f := makeFrame(b.chip.cfg.MAC, 60, 0)
		got := 0
		for range 10 {
			for range 30 {
				a.queue(f, a.cmd)
			}
			a.bell()
			a.step()
			a.reclaim()
			if !lossless {
				continue
			}
			got += len(b.recv())
			b.fill(64)
		}
		s := c.Stats()
		switch {
		case lossless && (got != 300 || s.LostAToB != 0):
			t.Errorf("lossless: %d of 300, %+v", got, s)
		case !lossless && (s.LostAToB != 300-63 || b.stat(regs.MPC) != 300-63):
			t.Errorf("lossy: %+v", s)
		}
		a.clean()
		b.clean()
	}
	// A full receiver holds the sender up.
	a, b, _ := pair(t, 16, Config{}, CableOptions{Lossless: true})
	f := makeFrame(b.chip.cfg.MAC, 60, 0)
	for i := range 30 {
		if i == 15 {
			a.step()
			a.reclaim()
		}
		a.send(f)
	}
	a.step()
	if rx, _ := b.chip.Holds(); rx != 0 {
		t.Errorf("the receiver still has %d descriptors", rx)
	}
	if _, tx := a.chip.Holds(); tx != 15 {
		t.Errorf("the sender keeps %d of 15 frames", tx)
	}
	if b.stat(regs.MPC) != 0 {
		t.Error("missed on a lossless cable")
	}
	a.clean()
	b.clean()
}

func TestCableBurstIsBounded(t *testing.T) {
	a, b, c := pair(t, 64, Config{}, CableOptions{})
	for range 40 {
		a.queue(makeFrame(b.chip.cfg.MAC, 60, 0), a.cmd)
	}
	a.bell()
	for want := 40; want > 0; want -= 10 {
		if _, tx := a.chip.Holds(); tx != want {
			t.Errorf("holds %d, expected %d", tx, want)
		}
		if n := c.Step(0, 10); n != 10 {
			t.Errorf("moved %d", n)
		}
	}
	a.clean()
}

func TestCableBetweenStations(t *testing.T) {
	a, b := &station{out: [][]byte{{1}, {2}, {3}}, bad: []FrameError{0, ErrCRC}}, &station{keep: true}
	c, err := NewCable(a, b, CableOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c.SetLink(false)
	if c.Step(0, 10) != 0 {
		t.Error("frames move over a cable that is out")
	}
	c.SetLink(true)
	if c.Step(0, 10) != 3 || len(b.got) != 3 || b.gotE[1] != ErrCRC {
		t.Errorf("got %v %v", b.got, b.gotE)
	}
}

// deaf takes no damaged frames.
type deaf struct{ n int }

func (d *deaf) Deliver([]byte) bool { d.n++; return true }
func (d *deaf) Next(int64) []byte   { return nil }

func TestDamagedFramesAreLostOnTheDeaf(t *testing.T) {
	d := &deaf{}
	c, err := NewCable(&station{out: [][]byte{{1}, {2}}, bad: []FrameError{ErrCRC}}, d, CableOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c.Step(0, 10)
	if s := c.Stats(); d.n != 1 || s.AToB != 2 || s.LostAToB != 1 {
		t.Errorf("%d delivered, %+v", d.n, s)
	}
}

func TestCableRefusals(t *testing.T) {
	a, b, _ := pair(t, 32, Config{}, CableOptions{})
	s := &station{}
	for name, ends := range map[string][2]Endpoint{"taken": {a.chip, s}, "taken b": {s, b.chip}, "same": {s, s}, "nil": {nil, s}} {
		if _, err := NewCable(ends[0], ends[1], CableOptions{}); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestDeliverDirectly(t *testing.T) {
	d := newDriver(t, nil, 16, Config{}).up().fill(4)
	d.plug(CableOptions{})
	if !d.chip.Deliver(makeFrame(testMAC, 60, 0)) || d.chip.Deliver(makeFrame(otherMAC, 60, 0)) {
		t.Error("Deliver does not tell what was taken")
	}
	if d.chip.Room() != 3 || d.chip.Errors() != 0 {
		t.Errorf("room is %d", d.chip.Room())
	}
	d.chip.Write(regs.RCTL, 0)
	if d.chip.Room() != 0 || d.chip.Deliver(makeFrame(testMAC, 60, 0)) {
		t.Error("receives while disabled")
	}
	d.clean()
}
