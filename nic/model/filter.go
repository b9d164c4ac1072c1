package model

import (
	"encoding/binary"

	"gorouter/nic/e1000/regs"
)

// broadcast is the broadcast address as the low 48 bits of a frame's first
// eight bytes.
const broadcast = uint64(1)<<48 - 1

// filter is the receive filter of section 3.2.1, worked out from RCTL and the
// address registers when they are written.
type filter struct {
	exact   [regs.RARCount]uint64 // valid receive addresses
	n       int
	allUni  bool
	allMult bool
	bcast   bool
	shift   uint // where the hash of a group address begins, from RCTL.MO
	tagged  bool // tags have to be looked at: VFE, CFIEN or CTRL.VME
}

func (c *Chip) rebuildFilter() {
	f := &c.filter
	*f = filter{
		allUni:  c.rctl&regs.RctlUPE != 0,
		allMult: c.rctl&regs.RctlMPE != 0,
		bcast:   c.rctl&(regs.RctlBAM|regs.RctlMPE) != 0,
		shift:   36 - uint(c.rctl&regs.RctlMO>>regs.RctlMOShift),
		tagged:  c.rctl&(regs.RctlVFE|regs.RctlCFIEN) != 0 || c.raw[regs.CTRL/4]&regs.CtrlVME != 0,
	}
	if c.rctl&regs.RctlMO == regs.RctlMO {
		f.shift = 32 // 43:32, one further than the pattern
	}
	for i := range uint32(regs.RARCount) {
		lo, hi := c.raw[regs.RAL/4+2*i], c.raw[regs.RAH/4+2*i]
		if hi&regs.RahAV != 0 && hi>>16&3 == 0 {
			f.exact[f.n] = uint64(hi&regs.RahADDR)<<32 | uint64(lo)
			f.n++
		}
	}
}

// accept applies the address filter to a destination. hashed says that only
// the multicast hash let it pass.
func (c *Chip) accept(dst uint64) (ok, hashed bool) {
	f := &c.filter
	for _, a := range f.exact[:f.n] {
		if a == dst {
			return true, false
		}
	}
	if dst&1 == 0 {
		return f.allUni, false
	}
	if f.allMult || dst == broadcast && f.bcast {
		return true, false
	}
	h := uint32(dst>>f.shift) & 0xFFF
	if c.raw[regs.MTA/4+h>>5]>>(h&31)&1 != 0 {
		return true, true
	}
	return false, false
}

// frameDst is the destination of a frame, as the filter keeps addresses.
func frameDst(f []byte) uint64 { return binary.LittleEndian.Uint64(f) & broadcast }

// vlanQEMU is vlan without the CFI bit, which QEMU does not look at.
func (c *Chip) vlanQEMU(f []byte) (ok, tagged bool) {
	if len(f) < 18 || uint32(binary.BigEndian.Uint16(f[12:])) != c.raw[regs.VET/4]&0xFFFF {
		return true, false
	}
	id := uint32(binary.BigEndian.Uint16(f[14:])) & 0xFFF
	return c.rctl&regs.RctlVFE == 0 || c.raw[regs.VFTA/4+id>>5]>>(id&31)&1 != 0, true
}

// vlan looks at the tag of a frame: whether the VLAN filter lets it pass, and
// whether there is a tag (9.2, 9.3).
func (c *Chip) vlan(f []byte) (ok, tagged bool) {
	if len(f) < 18 || uint32(binary.BigEndian.Uint16(f[12:])) != c.raw[regs.VET/4]&0xFFFF {
		return true, false
	}
	tci := uint32(binary.BigEndian.Uint16(f[14:]))
	if c.rctl&regs.RctlVFE != 0 {
		id := tci & 0xFFF
		if c.raw[regs.VFTA/4+id>>5]>>(id&31)&1 == 0 {
			return false, true
		}
		if c.rctl&regs.RctlCFIEN != 0 && (tci>>12&1 != 0) != (c.rctl&regs.RctlCFI != 0) {
			return false, true
		}
	}
	return true, true
}
