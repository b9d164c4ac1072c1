package model

import (
	"math/bits"

	"gorouter/nic/e1000/regs"
)

const (
	statBase  = regs.CRCERRS
	statWords = (regs.TSCTFC-statBase)/4 + 1
)

// Places of the counters that the packet path moves. A wide counter lives at
// the place of its low word.
const (
	sCRCERRS = (regs.CRCERRS - statBase) / 4
	sSYMERRS = (regs.SYMERRS - statBase) / 4
	sRXERRC  = (regs.RXERRC - statBase) / 4
	sMPC     = (regs.MPC - statBase) / 4
	sSEC     = (regs.SEC - statBase) / 4
	sCEXTERR = (regs.CEXTERR - statBase) / 4
	sPRC64   = (regs.PRC64 - statBase) / 4
	sGPRC    = (regs.GPRC - statBase) / 4
	sBPRC    = (regs.BPRC - statBase) / 4
	sMPRC    = (regs.MPRC - statBase) / 4
	sGPTC    = (regs.GPTC - statBase) / 4
	sGORC    = (regs.GORCL - statBase) / 4
	sGOTC    = (regs.GOTCL - statBase) / 4
	sRNBC    = (regs.RNBC - statBase) / 4
	sRUC     = (regs.RUC - statBase) / 4
	sRFC     = (regs.RFC - statBase) / 4
	sROC     = (regs.ROC - statBase) / 4
	sRJC     = (regs.RJC - statBase) / 4
	sTOR     = (regs.TORL - statBase) / 4
	sTOT     = (regs.TOTL - statBase) / 4
	sTPR     = (regs.TPR - statBase) / 4
	sTPT     = (regs.TPT - statBase) / 4
	sPTC64   = (regs.PTC64 - statBase) / 4
	sMPTC    = (regs.MPTC - statBase) / 4
	sBPTC    = (regs.BPTC - statBase) / 4
)

// wideLow gives for the high word of a wide counter the place of the low word,
// plus one; wideHigh marks low words.
var wideLow, isWide = func() (lo [statWords]uint8, wide [statWords]bool) {
	for _, s := range regs.Stats() {
		if s.Wide() {
			lo[(s.Hi-statBase)/4] = uint8((s.Lo-statBase)/4) + 1
			wide[(s.Lo-statBase)/4] = true
		}
	}
	return lo, wide
}()

// keepsQEMU marks narrow counters that QEMU does not clear.
var keepsQEMU = func() (keeps [statWords]bool) {
	for _, s := range regs.Stats() {
		keeps[(s.Lo-statBase)/4] = !s.ClearsQEMU && !s.Wide()
	}
	return keeps
}()

// countRxQEMU counts a received frame: totals are the good ones, bins go by
// the length reported.
func (c *Chip) countRxQEMU(n, reported uint32, dst uint64) {
	s := &c.stats
	s[sTPR]++
	s[sTOR] += uint64(n) + fcsBytes
	c.countRx(n+fcsBytes, dst)
	s[sPRC64+sizeBin(n+fcsBytes)]--
	s[sPRC64+sizeBin(reported)]++
}

// readStat reads a counter and clears it. A wide counter is cleared by the
// read of its high word; a narrow one sticks at its largest value (13.7).
func (c *Chip) readStat(off uint32) uint32 {
	i := (off - statBase) / 4
	if c.qemu && keepsQEMU[i] {
		return uint32(min(c.stats[i], 1<<32-1))
	}
	if isWide[i] {
		return uint32(c.stats[i])
	}
	if lo := wideLow[i]; lo != 0 {
		v := c.stats[lo-1]
		c.stats[lo-1] = 0
		return uint32(v >> 32)
	}
	v := c.stats[i]
	c.stats[i] = 0
	return uint32(min(v, 1<<32-1))
}

// sizeBin is the place of a frame of n bytes, FCS included, in the six size
// counters.
func sizeBin(n uint32) uint32 {
	if n <= 64 {
		return 0
	}
	return uint32(min(bits.Len32(n)-6, 5))
}

// countRx counts a good frame of n bytes that passed the filter.
func (c *Chip) countRx(n uint32, dst uint64) {
	s := &c.stats
	s[sGPRC]++
	s[sGORC] += uint64(n)
	s[sPRC64+sizeBin(n)]++
	if dst&1 != 0 {
		if dst == broadcast {
			s[sBPRC]++
		} else {
			s[sMPRC]++
		}
	}
}

// countTx counts a frame of n bytes that leaves.
func (c *Chip) countTx(n uint32, dst uint64) {
	s := &c.stats
	s[sTPT]++
	s[sTOT] += uint64(n)
	s[sGPTC]++
	s[sGOTC] += uint64(n)
	s[sPTC64+sizeBin(n)]++
	if dst&1 != 0 {
		if dst == broadcast {
			s[sBPTC]++
		} else {
			s[sMPTC]++
		}
	}
}
