package model

import (
	"testing"

	"gorouter/nic/e1000/regs"
)

func TestSizeBins(t *testing.T) {
	for n, want := range map[uint32]uint32{64: 0, 65: 1, 127: 1, 128: 2, 255: 2, 256: 3, 511: 3, 512: 4, 1023: 4, 1024: 5, 1522: 5, 16384: 5} {
		if got := sizeBin(n); got != want {
			t.Errorf("%d bytes are in bin %d, expected %d", n, got, want)
		}
	}
}

// TestStatisticsBothWays sends and receives one frame of each size and kind,
// and checks every counter against a count by hand, then that all are cleared.
func TestStatisticsBothWays(t *testing.T) {
	d := newDriver(t, nil, 32, Config{})
	d.rctl |= regs.RctlMPE
	d.up().fill(31)
	s := d.plug(CableOptions{})
	var frames [][]byte
	total := uint64(0)
	for _, n := range []int{60, 61, 200, 400, 800, 1514} {
		frames = append(frames, makeFrame(testMAC, n, 0))
		total += uint64(n) + 4
	}
	frames = append(frames, makeFrame(bcastMAC, 60, 0), makeFrame(multMAC, 60, 0))
	total += 128
	s.out = append([][]byte{makeFrame(otherMAC, 96, 0)}, frames...)
	d.send(frames...)
	d.step()
	want := map[string]uint64{
		"GPRC": 8, "TPR": 9, "GORC": total, "TOR": total + 100, "BPRC": 1, "MPRC": 1,
		"PRC64": 3, "PRC127": 1, "PRC255": 1, "PRC511": 1, "PRC1023": 1, "PRC1522": 1,
		"GPTC": 8, "TPT": 8, "GOTC": total, "TOT": total, "BPTC": 1, "MPTC": 1,
		"PTC64": 3, "PTC127": 1, "PTC255": 1, "PTC511": 1, "PTC1023": 1, "PTC1522": 1,
	}
	for _, st := range regs.Stats() {
		if got := st.Read(d.chip.Read); got != want[st.Name] {
			t.Errorf("%s is %d, expected %d", st.Name, got, want[st.Name])
		}
	}
	for _, st := range regs.Stats() {
		if got := st.Read(d.chip.Read); got != 0 {
			t.Errorf("%s is %d after it was read", st.Name, got)
		}
	}
	d.clean()
}

func TestCountersStick(t *testing.T) {
	d := newDriver(t, nil, 8, Config{})
	d.chip.stats[sGPRC] = 1<<32 + 5
	d.chip.stats[sGORC] = 3<<32 + 5
	if v := d.chip.Read(regs.GPRC); v != 1<<32-1 {
		t.Errorf("GPRC is %#x", v)
	}
	for range 2 {
		if v := d.chip.Read(regs.GORCL); v != 5 {
			t.Errorf("GORCL is %d", v)
		}
	}
	if v := d.chip.Read(regs.GORCH); v != 3 || d.chip.Read(regs.GORCL) != 0 {
		t.Errorf("GORCH is %d, or reading it does not clear the pair", v)
	}
	d.clean()
}
