package model

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"testing"

	"pgregory.net/rapid"

	"gorouter/internal/inet"
	"gorouter/nic/e1000/regs"
	"gorouter/skb"
)

func TestReceiveAtEveryRingSize(t *testing.T) {
	arena := newArena(t, skb.Options{Buffers: 8192})
	for _, n := range []int{8, 16, 80, 256, 4096} {
		d := newDriver(t, arena, n, Config{CheckContent: n < 4096}).up().fill(n)
		s := d.plug(CableOptions{Lossless: true})
		sent, got := 0, 0
		for got < 3*n {
			for len(s.out) < 1+got%50 {
				s.out = append(s.out, makeFrame(testMAC, 60+sent%100, byte(sent)))
				sent++
			}
			d.step()
			for _, f := range d.recv() {
				if want := makeFrame(testMAC, 60+got%100, byte(got)); !bytes.Equal(f.data, want) {
					t.Fatalf("ring %d: frame %d changed", n, got)
				}
				got++
			}
			d.fill(n)
		}
		d.clean()
		_ = d.chip.Close()
		d.freeAll()
	}
}

// freeAll gives up every buffer; the chip must be off.
func (d *driver) freeAll() {
	d.EachHeld(func(h skb.Handle) { d.cache.Free(h) })
	for i := range d.rxBuf {
		d.rxBuf[i], d.txBuf[i] = skb.None, skb.None
	}
	d.cache.Flush()
}

func TestFCSIsStoredAndTrueUnlessStripped(t *testing.T) {
	for _, strip := range []bool{false, true} {
		d := newDriver(t, nil, 8, Config{})
		if !strip {
			d.rctl &^= regs.RctlSECRC
		}
		d.up().fill(8)
		s := d.plug(CableOptions{})
		f := makeFrame(testMAC, 100, 1)
		s.out = [][]byte{f}
		d.step()
		want := f
		if !strip {
			want = binary.LittleEndian.AppendUint32(append([]byte(nil), f...), crc32.ChecksumIEEE(f))
		}
		got := d.recv()
		if len(got) != 1 || !bytes.Equal(got[0].data, want) {
			t.Errorf("strip %v: got %x", strip, got)
		}
		d.clean()
	}
}

func TestStatusWord(t *testing.T) {
	d := newDriver(t, nil, 8, Config{}).up().fill(8)
	s := d.plug(CableOptions{})
	f := makeFrame(testMAC, 101, 1)
	s.out = [][]byte{f}
	d.step()
	got := d.recv()
	if len(got) != 1 {
		t.Fatal("nothing received")
	}
	want := uint64(101) | uint64(inet.Fold(inet.Sum(f, 0)))<<16 | 7<<32 // DD, EOP, IXSM
	if got[0].status != want {
		t.Errorf("word is %#x, expected %#x", got[0].status, want)
	}
	d.chip.Write(regs.RXCSUM, 14)
	s.out = [][]byte{f}
	d.step()
	if sum := uint16(d.recv()[0].status >> 16); sum != inet.Fold(inet.Sum(f[14:], 0)) {
		t.Errorf("packet checksum from 14 is %#x", sum)
	}
	d.clean()
}

func TestPacketSumAgainstTheSlowForm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// Bytes of all ones bring out the carries.
		b := rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 0x7F, 0x80, 0xFE, 0xFF}), 0, 100).Draw(t, "bytes")
		if got, want := packetSum(b), inet.Fold(inet.Sum(b, 0)); got != want {
			t.Fatalf("%#x, expected %#x", got, want)
		}
	})
}

func TestChecksumOffload(t *testing.T) {
	d := newDriver(t, nil, 16, Config{}).up().fill(16)
	d.chip.Write(regs.RXCSUM, regs.RxcsumIPOFLD|regs.RxcsumTUOFLD)
	s := d.plug(CableOptions{})
	udp := makeFrame(testMAC, 80, 1)
	binary.BigEndian.PutUint16(udp[12:], inet.EtherIPv4)
	ip := udp[14:]
	copy(ip, []byte{0x45, 0, 0, 66, 0, 0, 0, 0, 64, inet.ProtoUDP, 0, 0})
	binary.BigEndian.PutUint16(ip[10:], inet.Checksum(ip[:20]))
	seg := ip[20:66]
	binary.BigEndian.PutUint16(seg[4:], 46)
	seg[6], seg[7] = 0, 0
	sum := ^inet.Fold(inet.Sum(seg, inet.Pseudo4([4]byte(ip[12:]), [4]byte(ip[16:]), inet.ProtoUDP, 46)))
	binary.BigEndian.PutUint16(seg[6:], sum)
	change := func(at int) []byte {
		f := append([]byte(nil), udp...)
		f[at] ^= 0x55
		return f
	}
	none := append([]byte(nil), udp...)
	none[40], none[41] = 0, 0
	fragment := append([]byte(nil), udp...)
	fragment[20] = 0x20
	binary.BigEndian.PutUint16(fragment[24:], 0)
	binary.BigEndian.PutUint16(fragment[24:], inet.Checksum(fragment[14:34]))
	cases := []struct {
		name string
		f    []byte
		want uint64
	}{
		{"good", udp, rxIPCS | rxTCPCS},
		{"bad header", change(22), rxIPCS | rxTCPCS | rxIPE},
		{"bad segment", change(60), rxIPCS | rxTCPCS | rxTCPE},
		{"no checksum", none, rxIPCS},
		{"fragment", fragment, rxIPCS},
		{"not IP", makeFrame(testMAC, 80, 1), 0},
	}
	for _, k := range cases {
		s.out = [][]byte{k.f}
		d.step()
		got := d.recv()
		if len(got) != 1 {
			t.Fatalf("%s: not received", k.name)
		}
		const mask = rxIPCS | rxTCPCS | rxIPE | rxTCPE | rxIXSM
		if got[0].status&mask != k.want {
			t.Errorf("%s: %#x, expected %#x", k.name, got[0].status&mask, k.want)
		}
		d.fill(1)
	}
	d.clean()
}

func TestFrameSplitOverBuffers(t *testing.T) {
	arena := newArena(t, skb.Options{Buffers: 512, Stride: 4096, DeviceMax: 2048})
	sizes := map[uint32]int{regs.RctlBSIZE256: 256, regs.RctlBSIZE512: 512, regs.RctlBSIZE1024: 1024, regs.RctlBSIZE2048: 2048}
	for bits, size := range sizes {
		for _, strip := range []uint32{0, regs.RctlSECRC} {
			d := newDriver(t, arena, 80, Config{CheckContent: true})
			d.rctl = regs.RctlEN | regs.RctlLPE | bits | strip
			d.up().fill(79)
			s := d.plug(CableOptions{})
			for _, n := range []int{60, size - 4, size - 3, size, size + 1, 3*size - 4, 3*size + 17} {
				if n < 60 {
					continue
				}
				f := makeFrame(testMAC, n, byte(n))
				s.out = [][]byte{f}
				d.step()
				want := f
				if strip == 0 {
					want = binary.LittleEndian.AppendUint32(append([]byte(nil), f...), crc32.ChecksumIEEE(f))
				}
				got := d.recv()
				if len(got) != 1 || !bytes.Equal(got[0].data, want) {
					t.Fatalf("buffers of %d, frame of %d: changed", size, n)
				}
				if parts := (len(want) + size - 1) / size; got[0].parts != parts {
					t.Errorf("buffers of %d, frame of %d: %d parts, expected %d", size, n, got[0].parts, parts)
				}
				d.fill(80)
			}
			d.clean()
			_ = d.chip.Close()
			d.freeAll()
		}
	}
}

func TestLongFramesNeedLPE(t *testing.T) {
	arena := newArena(t, skb.Options{Buffers: 256, Stride: 4096, DeviceMax: 2048})
	for _, lpe := range []uint32{0, regs.RctlLPE} {
		d := newDriver(t, arena, 16, Config{})
		d.rctl |= lpe
		d.up().fill(15)
		s := d.plug(CableOptions{})
		s.out = [][]byte{makeFrame(testMAC, 1518, 1), makeFrame(testMAC, 1519, 1), makeFrame(testMAC, 16381, 1)}
		d.step()
		got := d.recv()
		want, roc := 1, uint32(2)
		if lpe != 0 {
			want, roc = 2, 1
		}
		if len(got) != want || d.stat(regs.ROC) != roc {
			t.Errorf("LPE %v: %d frames", lpe != 0, len(got))
		}
		d.clean()
		_ = d.chip.Close()
		d.freeAll()
	}
}

func TestEmptyRingMissesFrames(t *testing.T) {
	d := newDriver(t, nil, 8, Config{}).up().fill(3)
	s := d.plug(CableOptions{})
	d.chip.Read(regs.ICR)
	for i := range 5 {
		s.out = append(s.out, makeFrame(testMAC, 60, byte(i)))
	}
	d.step()
	if got := d.recv(); len(got) != 3 {
		t.Errorf("%d received with 3 buffers", len(got))
	}
	if d.chip.Read(regs.ICR)&regs.IcrRXO == 0 {
		t.Error("no RXO")
	}
	if mpc, rnbc, gprc, tpr := d.stat(regs.MPC), d.stat(regs.RNBC), d.stat(regs.GPRC), d.stat(regs.TPR); mpc != 2 || rnbc != 2 || gprc != 3 || tpr != 5 {
		t.Errorf("MPC %d RNBC %d GPRC %d TPR %d", mpc, rnbc, gprc, tpr)
	}
	d.fill(3)
	s.out = [][]byte{makeFrame(testMAC, 60, 9)}
	d.step()
	if len(d.recv()) != 1 {
		t.Error("does not go on after the ring was filled again")
	}
	d.clean()
}

func TestReceiveThresholdInterrupt(t *testing.T) {
	for rdmts, limit := range []int{32, 16, 8} {
		d := newDriver(t, nil, 64, Config{})
		d.rctl |= uint32(rdmts) << regs.RctlRDMTSShift
		d.up().fill(63)
		s := d.plug(CableOptions{})
		for left := 62; left >= limit-2; left-- {
			d.chip.Read(regs.ICR)
			s.out = [][]byte{makeFrame(testMAC, 60, 0)}
			d.step()
			if got := d.chip.Read(regs.ICR)&regs.IcrRXDMT0 != 0; got != (left == limit) {
				t.Errorf("RDMTS %d: RXDMT0 is %v with %d left", rdmts, got, left)
			}
		}
		d.clean()
	}
}

func TestReceiveTimers(t *testing.T) {
	d := newDriver(t, nil, 32, Config{}).up().fill(31)
	s := d.plug(CableOptions{})
	one := func() {
		s.out = [][]byte{makeFrame(testMAC, 60, 0)}
		d.step()
	}
	icr := func() bool { return d.chip.Read(regs.ICR)&regs.IcrRXT0 != 0 }
	one()
	if !icr() {
		t.Error("no RXT0 at once with RDTR 0")
	}
	d.chip.Write(regs.RDTR, 10)
	d.chip.Write(regs.RADV, 15)
	d.chip.Write(regs.RXDCTL, 8<<regs.RxdctlWTHRESHShift|regs.RxdctlGRAN)
	one()
	d.wait(8000)
	one()
	if got := d.recv(); icr() || len(got) != 1 {
		t.Errorf("RXT0 or write-back before the timers: %d frames", len(got))
	}
	d.wait(7000)
	if icr() {
		t.Error("RXT0 before RADV")
	}
	d.wait(400)
	if got := d.recv(); !icr() || len(got) != 2 {
		t.Errorf("after RADV: %d frames", len(got))
	}
	for range 8 {
		one()
	}
	if got := d.recv(); len(got) != 8 || icr() {
		t.Errorf("at the write-back threshold: %d frames", len(got))
	}
	one()
	d.chip.Write(regs.RDTR, 1<<31|10)
	if got := d.recv(); len(got) != 1 || !icr() {
		t.Error("FPD does not flush")
	}
	d.clean()
}

func TestBadFrames(t *testing.T) {
	f := makeFrame(testMAC, 80, 1)
	cases := []struct {
		e    FrameError
		stat uint32
	}{
		{ErrCRC, regs.CRCERRS}, {ErrSymbol, regs.SYMERRS}, {ErrSequence, regs.SEC},
		{ErrCarrier, regs.CEXTERR}, {ErrData, regs.RXERRC},
	}
	for _, sbp := range []bool{false, true} {
		d := newDriver(t, nil, 16, Config{})
		d.rctl &^= regs.RctlSECRC
		if sbp {
			d.rctl |= regs.RctlSBP
		}
		d.up().fill(15)
		s := d.plug(CableOptions{})
		for _, k := range cases {
			s.out, s.bad = [][]byte{f}, []FrameError{k.e}
			d.step()
			if v := d.stat(k.stat); v != 1 {
				t.Errorf("error %#x: counter %#x is %d", k.e, k.stat, v)
			}
			got := d.recv()
			if !sbp {
				if len(got) != 0 {
					t.Errorf("error %#x: stored without SBP", k.e)
				}
				continue
			}
			if len(got) != 1 || FrameError(got[0].status>>40) != k.e {
				t.Fatalf("error %#x: got %#x", k.e, got)
			}
			true4 := crc32.ChecksumIEEE(f)
			if ok := binary.LittleEndian.Uint32(got[0].data[80:]) == true4; ok != (k.e != ErrCRC) {
				t.Errorf("error %#x: stored FCS good is %v", k.e, ok)
			}
		}
		if d.stat(regs.GPRC) != 0 {
			t.Error("bad frames counted as good")
		}
		d.clean()
	}
}

func TestUndersizeFrames(t *testing.T) {
	d := newDriver(t, nil, 16, Config{}).up().fill(15)
	s := d.plug(CableOptions{})
	s.out = [][]byte{makeFrame(testMAC, 59, 1), makeFrame(testMAC, 40, 1), makeFrame(testMAC, 16, 1)[:6], {}}
	s.bad = []FrameError{0, ErrCRC}
	d.step()
	if ruc, rfc := d.stat(regs.RUC), d.stat(regs.RFC); ruc != 3 || rfc != 1 {
		t.Errorf("RUC %d, RFC %d", ruc, rfc)
	}
	if len(d.recv()) != 0 {
		t.Error("undersize frame received")
	}
	d.clean()
}
