package clock

import (
	"testing"
	"time"
)

func TestVirtualMovesOnlyWhenTold(t *testing.T) {
	c := Virtual()
	for range 3 {
		if n := c.Now(); n != 0 {
			t.Errorf("moved by itself to %d", n)
		}
	}
	c.Advance(1999)
	if c.Now() != 1 || c.Picoseconds() != 1999 {
		t.Errorf("now %d ns, %d ps", c.Now(), c.Picoseconds())
	}
	before := time.Now()
	c.Sleep(time.Hour)
	if time.Since(before) > time.Minute {
		t.Error("a virtual sleep took real time")
	}
	if want := int64(3600e9) + 1; c.Now() != want {
		t.Errorf("after an hour: %d, want %d", c.Now(), want)
	}
}

func TestMachineNeverGoesBack(t *testing.T) {
	c := Machine()
	last := c.Now()
	for range 1000 {
		if n := c.Now(); n < last {
			t.Fatalf("%d after %d", n, last)
		} else {
			last = n
		}
	}
	c.Sleep(2 * time.Millisecond)
	if c.Now()-last < int64(2*time.Millisecond) {
		t.Error("sleep did not wait")
	}
}

func TestMachineIsNotMovedByHand(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("Advance on a machine clock was accepted")
		}
	}()
	Machine().Advance(1)
}
