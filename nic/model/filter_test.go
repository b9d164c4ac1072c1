package model

import (
	"bytes"
	"encoding/binary"
	"testing"

	"gorouter/internal/inet"
	"gorouter/nic/e1000/regs"
)

var (
	otherMAC = inet.MAC{2, 0, 0, 0, 0, 2}
	bcastMAC = inet.MAC{255, 255, 255, 255, 255, 255}
	multMAC  = inet.MAC{0x01, 0x00, 0x5E, 0x12, 0x34, 0x56}
)

// passes sends one frame and tells whether it arrived.
func (d *driver) passes(s *station, f []byte) bool {
	d.t.Helper()
	s.out = [][]byte{f}
	d.step()
	got := d.recv()
	d.fill(len(got))
	return len(got) == 1
}

func TestAddressFilter(t *testing.T) {
	d := newDriver(t, nil, 16, Config{})
	d.rctl = regs.RctlEN | regs.RctlSECRC
	d.up().fill(15)
	s := d.plug(CableOptions{})
	check := func(what string, rctl uint32, own, other, bcast, mult bool) {
		t.Helper()
		d.chip.Write(regs.RCTL, d.rctl|rctl)
		for _, k := range []struct {
			m    inet.MAC
			want bool
		}{{testMAC, own}, {otherMAC, other}, {bcastMAC, bcast}, {multMAC, mult}} {
			if got := d.passes(s, makeFrame(k.m, 60, 0)); got != k.want {
				t.Errorf("%s: frame to %v passes: %v", what, k.m, got)
			}
		}
	}
	check("plain", 0, true, false, false, false)
	check("BAM", regs.RctlBAM, true, false, true, false)
	check("UPE", regs.RctlUPE, true, true, false, false)
	check("MPE", regs.RctlMPE, true, false, true, true)
	check("UPE MPE", regs.RctlUPE|regs.RctlMPE, true, true, true, true)

	d.chip.Write(regs.RAL+8*3, 0x00000002)
	d.chip.Write(regs.RAH+8*3, 0x80000200)
	check("RAR 3", 0, true, true, false, false)
	d.chip.Write(regs.RAH+8*3, 0x00000200)
	check("RAR 3 not valid", 0, true, false, false, false)
	d.chip.Write(regs.RAH, 0)
	check("RAR 0 not valid", 0, false, false, false, false)
	d.clean()
}

func TestMulticastHash(t *testing.T) {
	// The hash of 01:00:5e:12:34:56 by RCTL.MO, worked out by hand: the
	// twelve bits of 0x5634 seen from bit 4, 3, 2 and 0.
	for mo, hash := range []uint32{0x563, 0xAC6, 0x58D, 0x634} {
		d := newDriver(t, nil, 16, Config{})
		d.rctl = regs.RctlEN | regs.RctlSECRC | uint32(mo)<<regs.RctlMOShift
		d.up().fill(15)
		s := d.plug(CableOptions{})
		if d.passes(s, makeFrame(multMAC, 60, 0)) {
			t.Errorf("MO %d: passes an empty table", mo)
		}
		d.chip.Write(regs.MTA+4*(hash>>5), 1<<(hash&31))
		if !d.passes(s, makeFrame(multMAC, 60, 0)) {
			t.Errorf("MO %d: hash %#x does not let it pass", mo, hash)
		}
		other := multMAC
		other[5] ^= 1
		if d.passes(s, makeFrame(other, 60, 0)) {
			t.Errorf("MO %d: another address passes", mo)
		}
		d.clean()
	}
}

func TestVLANFilterAndStrip(t *testing.T) {
	d := newDriver(t, nil, 16, Config{}).up().fill(15)
	s := d.plug(CableOptions{})
	f := makeFrame(testMAC, 100, 4)
	binary.BigEndian.PutUint16(f[12:], inet.EtherVLAN)
	binary.BigEndian.PutUint16(f[14:], 0x6000|77)
	if !d.passes(s, f) {
		t.Error("a tag matters without VFE")
	}
	d.chip.Write(regs.RCTL, d.rctl|regs.RctlVFE)
	if d.passes(s, f) {
		t.Error("VLAN 77 passes an empty table")
	}
	if !d.passes(s, makeFrame(testMAC, 60, 0)) {
		t.Error("untagged frames are filtered")
	}
	d.chip.Write(regs.VFTA+4*2, 1<<13)
	if !d.passes(s, f) {
		t.Error("VLAN 77 does not pass")
	}
	d.chip.Write(regs.RCTL, d.rctl|regs.RctlVFE|regs.RctlCFIEN|regs.RctlCFI)
	if d.passes(s, f) {
		t.Error("CFI is not compared")
	}
	d.chip.Write(regs.RCTL, d.rctl)
	d.chip.Write(regs.CTRL, regs.CtrlSLU|regs.CtrlVME)
	s.out = [][]byte{f}
	d.step()
	got := d.recv()
	want := append(append([]byte(nil), f[:12]...), f[16:]...)
	if len(got) != 1 || !bytes.Equal(got[0].data, want) || got[0].status&rxVP == 0 || got[0].status>>48 != 0x6000|77 {
		t.Errorf("not stripped: %x", got)
	}
	d.clean()
}
