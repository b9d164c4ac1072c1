package model

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"testing"

	"gorouter/internal/inet"
	"gorouter/nic/e1000/regs"
)

var farMAC = inet.MAC{2, 0, 0, 0, 9, 9}

func TestTransmitAtEveryRingSize(t *testing.T) {
	for _, n := range []int{8, 16, 80, 256, 4096} {
		d := newDriver(t, nil, n, Config{CheckContent: true}).up()
		s := d.plug(CableOptions{})
		sent := 0
		for sent < 3*n {
			k := min(n-1, 1+sent%70)
			for i := range k {
				d.queue(makeFrame(farMAC, 60+(sent+i)%100, byte(sent+i)), d.cmd)
			}
			d.bell()
			for d.step() > 0 {
			}
			if got := d.reclaim(); got != k {
				t.Fatalf("ring %d: %d of %d reported", n, got, k)
			}
			for i, f := range s.got {
				if want := makeFrame(farMAC, 60+(sent+i)%100, byte(sent+i)); !bytes.Equal(f, want) {
					t.Fatalf("ring %d: frame %d changed", n, sent+i)
				}
			}
			s.got = nil
			sent += k
		}
		d.clean()
	}
}

func TestFrameOfSeveralDescriptors(t *testing.T) {
	d := newDriver(t, nil, 8, Config{CheckContent: true}).up()
	s := d.plug(CableOptions{})
	whole := makeFrame(farMAC, 300, 1)
	d.queue(whole[:100], 0)
	d.queue(whole[100:101], 0)
	d.bell()
	d.step()
	if len(s.got) != 0 {
		t.Fatal("half a frame was sent")
	}
	if rx, tx := d.chip.Holds(); rx != 0 || tx != 2 {
		t.Errorf("holds %d, %d", rx, tx)
	}
	d.queue(whole[101:], testCmd)
	d.send(whole[:60])
	d.step()
	if len(s.got) != 2 || !bytes.Equal(s.got[0], whole) || !bytes.Equal(s.got[1], whole[:60]) {
		t.Fatalf("got %d frames", len(s.got))
	}
	if d.done(0) || d.done(1) || !d.done(2) || !d.done(3) {
		t.Error("DD only where RS is set")
	}
	if d.reclaim() != 4 {
		t.Error("not all reclaimed")
	}
	d.clean()
}

func TestReportStatusOnlyWhereAsked(t *testing.T) {
	d := newDriver(t, nil, 32, Config{}).up()
	d.plug(CableOptions{})
	for i := range 10 {
		cmd := txEOP | txIFCS
		if i == 7 {
			cmd |= txRS
		}
		d.queue(makeFrame(farMAC, 60, 0), cmd)
	}
	d.bell()
	d.step()
	for i := range uint32(10) {
		if d.done(i) != (i == 7) {
			t.Errorf("descriptor %d: DD is %v", i, d.done(i))
		}
	}
	if v := d.chip.Read(regs.TDH); v != 10 {
		t.Errorf("TDH is %d", v)
	}
	if v := d.chip.Read(regs.ICR); v&regs.IcrTXDW == 0 || v&regs.IcrTXQE == 0 {
		t.Errorf("ICR is %#x", v)
	}
	d.clean()
}

func TestWriteBackWaitsForThreshold(t *testing.T) {
	d := newDriver(t, nil, 32, Config{})
	d.chip.Write(regs.TXDCTL, 4<<regs.TxdctlWTHRESHShift|regs.TxdctlGRAN)
	d.up()
	d.plug(CableOptions{})
	d.chip.Read(regs.ICR)
	f := makeFrame(farMAC, 60, 0)
	d.send(f, f, f)
	d.step()
	if d.done(0) || d.chip.Read(regs.ICR)&regs.IcrTXDW != 0 {
		t.Error("written back below the threshold")
	}
	if _, tx := d.chip.Holds(); tx != 3 {
		t.Errorf("holds %d", tx)
	}
	d.send(f)
	d.step()
	if !d.done(0) || !d.done(3) || d.chip.Read(regs.ICR)&regs.IcrTXDW == 0 {
		t.Error("not written back at the threshold")
	}
	if d.reclaim() != 4 {
		t.Error("not all reported")
	}
	// The rest is written back when the unit is turned off.
	d.send(f)
	d.step()
	if d.done(4) {
		t.Error("written back below the threshold")
	}
	d.chip.Write(regs.TCTL, 0)
	if !d.done(4) {
		t.Error("not written back at disable")
	}
	d.clean()
}

func TestInterruptDelayEnable(t *testing.T) {
	for _, threshold := range []uint32{0, 8} {
		d := newDriver(t, nil, 32, Config{})
		d.chip.Write(regs.TIDV, 8)  // 8.192 us
		d.chip.Write(regs.TADV, 12) // 12.288 us
		d.chip.Write(regs.TXDCTL, threshold<<regs.TxdctlWTHRESHShift|regs.TxdctlGRAN)
		d.up()
		d.plug(CableOptions{})
		d.cmd |= txIDE
		f := makeFrame(farMAC, 60, 0)
		d.send(f)
		d.step()
		if d.done(0) != (threshold == 0) {
			t.Errorf("threshold %d: DD is %v before the timer", threshold, d.done(0))
		}
		if d.chip.Read(regs.ICR)&regs.IcrTXDW != 0 {
			t.Errorf("threshold %d: TXDW is not delayed", threshold)
		}
		d.wait(6000)
		d.send(f) // starts TIDV again, TADV runs on
		d.step()
		d.wait(6000)
		if d.chip.Read(regs.ICR)&regs.IcrTXDW != 0 {
			t.Errorf("threshold %d: TXDW before either timer", threshold)
		}
		d.wait(300)
		if d.chip.Read(regs.ICR)&regs.IcrTXDW == 0 || !d.done(1) {
			t.Errorf("threshold %d: no TXDW after TADV", threshold)
		}
		d.clean()
	}
}

func TestHeadShowsFetchedOrSent(t *testing.T) {
	for _, tdh := range []string{TDHSent, TDHFetched} {
		d := newDriver(t, nil, 128, Config{TDH: tdh}).up()
		s := &limited{station{keep: true, space: 3}}
		if _, err := NewCable(d.chip, s, CableOptions{Lossless: true}); err != nil {
			t.Fatal(err)
		}
		for range 100 {
			d.queue(makeFrame(farMAC, 60, 0), testCmd)
		}
		d.bell()
		d.step()
		want := uint32(3)
		if tdh == TDHFetched {
			want = 64
		}
		if v := d.chip.Read(regs.TDH); v != want {
			t.Errorf("%s: TDH is %d after 3 frames, expected %d", tdh, v, want)
		}
		if d.reclaim() != 3 {
			t.Errorf("%s: reports do not match what was sent", tdh)
		}
		d.clean()
	}
}

func TestShortFramesArePadded(t *testing.T) {
	d := newDriver(t, nil, 8, Config{}).up()
	s := d.plug(CableOptions{})
	d.send(makeFrame(farMAC, 20, 3))
	d.step()
	want := append(makeFrame(farMAC, 20, 3), make([]byte, 40)...)
	if len(s.got) != 1 || !bytes.Equal(s.got[0], want) {
		t.Errorf("got %x", s.got)
	}
	if d.stat(regs.PTC64) != 1 || d.stat(regs.GOTCL) != 64 {
		t.Error("a padded frame counts with its padding")
	}
	d.clean()
}

func TestSoftwareFCS(t *testing.T) {
	d := newDriver(t, nil, 8, Config{}).up()
	s := d.plug(CableOptions{})
	f := makeFrame(farMAC, 80, 3)
	good := binary.LittleEndian.AppendUint32(append([]byte(nil), f...), crc32.ChecksumIEEE(f))
	wrong := append(append([]byte(nil), f...), 1, 2, 3, 4)
	d.queue(good, txEOP|txRS)
	d.queue(wrong, txEOP|txRS)
	d.bell()
	d.step()
	if len(s.got) != 2 || !bytes.Equal(s.got[0], f) || s.gotE[0] != 0 {
		t.Fatal("a good FCS was not taken off")
	}
	if s.gotE[1] != ErrCRC {
		t.Error("a wrong FCS goes unnoticed")
	}
	d.clean()
}

func TestChecksumInsertion(t *testing.T) {
	d := newDriver(t, nil, 8, Config{}).up()
	s := d.plug(CableOptions{})
	f := makeFrame(farMAC, 74, 9)
	f[24], f[25] = 0, 0
	d.queue(f, testCmd|txIC|24<<txCSOShift|14<<txCSSShift)
	d.bell()
	d.step()
	want := append([]byte(nil), f...)
	binary.BigEndian.PutUint16(want[24:], inet.Checksum(f[14:]))
	if len(s.got) != 1 || !bytes.Equal(s.got[0], want) {
		t.Error("checksum not inserted")
	}
	d.clean()
}

func TestVLANInsertionNeedsVME(t *testing.T) {
	for _, vme := range []bool{false, true} {
		d := newDriver(t, nil, 8, Config{}).up()
		if vme {
			d.chip.Write(regs.CTRL, regs.CtrlSLU|regs.CtrlVME)
		}
		s := d.plug(CableOptions{})
		f := makeFrame(farMAC, 74, 9)
		d.queue(f, testCmd|txVLE|0x6123<<txVLANShift)
		d.bell()
		d.step()
		want := f
		if vme {
			want = append(append(append([]byte(nil), f[:12]...), 0x81, 0x00, 0x61, 0x23), f[12:]...)
		}
		if len(s.got) != 1 || !bytes.Equal(s.got[0], want) {
			t.Errorf("VME %v: got %x", vme, s.got)
		}
		d.clean()
	}
}

func TestTransmitLowWatermark(t *testing.T) {
	d := newDriver(t, nil, 32, Config{})
	d.chip.Write(regs.TXDCTL, 1<<regs.TxdctlLWTHRESHShift) // 8 descriptors
	d.up()
	d.plug(CableOptions{})
	d.send(makeFrame(farMAC, 60, 0))
	d.step()
	if d.chip.Read(regs.ICR)&regs.IcrTXDLOW == 0 {
		t.Error("no TXDLOW")
	}
	d.clean()
}

func TestNextWithoutCable(t *testing.T) {
	d := newDriver(t, nil, 8, Config{}).up()
	d.send(makeFrame(farMAC, 60, 0))
	if d.chip.Next(1) != nil {
		t.Error("a frame leaves without a link")
	}
	if d.step() != 0 {
		t.Error("work without a cable")
	}
	d.clean()
}
