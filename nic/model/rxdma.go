package model

import (
	"encoding/binary"
	"hash/crc32"
	"sync/atomic"

	"gorouter/internal/inet"
	"gorouter/nic/e1000/regs"
)

const (
	fcsBytes = inet.FCSLen
	minFrame = 64    // shorter ones are undersize; FCS included, as below
	maxShort = 1522  // longest while RCTL.LPE is clear (13.4.22)
	maxLong  = 16384 // longest of all
)

// rxState is what the receive side works with besides the ring.
type rxState struct {
	size      uint32 // of a buffer, from RCTL
	longest   uint32 // frame
	fcs       uint32 // bytes of FCS stored: 4 or 0
	perFrame  uint32 // descriptors of the longest frame
	threshold uint32 // RXDCTL.WTHRESH in descriptors
	held      uint32 // descriptors done and not yet written back
	pcss      uint32
	offload   bool
	buf       []byte // a frame that cannot be stored as it came
}

// FrameError says what is wrong with a frame on the cable. The bits are those
// of the error byte of a receive descriptor (3.2.3.2).
type FrameError uint8

// Errors of frames.
const (
	ErrCRC      FrameError = 1 << 0
	ErrSymbol   FrameError = 1 << 1
	ErrSequence FrameError = 1 << 2
	ErrCarrier  FrameError = 1 << 4
	ErrData     FrameError = 1 << 7
)

// handOverRx checks the receive descriptors from first up to last.
func (c *Chip) handOverRx(first, last uint32) bool {
	r := &c.rx
	need := c.rxNeed.Load()
	for i := first; i != last; i = r.after(i) {
		d := r.desc[i].load()
		if d.word&rxStatus != 0 && c.breachRing(RuleRxStatus, r, i, "status %#x", d.word>>32&0xFF) {
			return false
		}
		if d.addr == 0 {
			if c.breachRing(RuleNullAddress, r, i, "address 0") {
				return false
			}
		} else if !c.checkBuffer(r, i, d.addr, need) {
			return false
		}
		r.shadow[i] = d
		if c.content {
			r.sum[i] = digest(c.arena.DMA(d.addr, int(need)))
		}
	}
	return true
}

// available is the number of descriptors that can be filled.
func (c *Chip) available() uint32 {
	return c.rx.dist(c.rx.head, atomic.LoadUint32(&c.rx.tail))
}

func (c *Chip) room() int {
	if !c.rx.on.Load() || !c.link || c.qemu && (c.refusing() || c.faulty&noDMA != 0) {
		return 0
	}
	return int(c.available() / c.rxState.perFrame)
}

// deliver takes a frame from the cable.
func (c *Chip) deliver(f []byte, bad FrameError) bool {
	if c.qemu {
		return c.deliverQEMU(f, bad)
	}
	r, s := &c.rx, &c.rxState
	if !r.on.Load() || !c.link || c.faulty&rxFaults != 0 && c.rxFault() {
		return false
	}
	n := uint32(len(f)) + fcsBytes
	c.stats[sTPR]++
	c.stats[sTOR] += uint64(n)
	if (bad != 0 || n < minFrame || n > s.longest) && !c.oddFrame(n, bad) || n < 18 {
		return false
	}
	dst := frameDst(f)
	ok, hashed := c.accept(dst)
	if !ok {
		return false
	}
	word := rxDD | rxEOP | rxIXSM | uint64(bad)<<rxErrorShift
	if hashed {
		word |= rxPIF
	}
	fcs := s.fcs
	if c.filter.tagged {
		if ok, tagged := c.vlan(f); !ok {
			return false
		} else if tagged && c.raw[regs.CTRL/4]&regs.CtrlVME != 0 {
			word |= rxVP | uint64(binary.BigEndian.Uint16(f[14:]))<<rxVLANShift
			f = c.strip(f)
		}
	}
	stored := uint32(len(f)) + fcs
	avail := c.available()
	used := uint32(1)
	if stored > s.size {
		used = (stored + s.size - 1) / s.size
	}
	if avail < used {
		// The chip's own buffer is not modelled: a frame that finds no
		// descriptor is missed at once.
		c.stats[sRNBC]++
		c.stats[sMPC]++
		c.irq.cause |= regs.IcrRXO
		return false
	}
	if bad == 0 {
		c.countRx(n, dst)
	}
	word |= uint64(packetSum(f[min(uint32(len(f)), s.pcss):])) << rxSumShift
	if s.offload {
		word = c.offload(f, word)
	}
	if used == 1 {
		ok = c.store(f, fcs, bad, word|uint64(stored))
	} else {
		ok = c.scatter(f, fcs, bad, word)
	}
	if !ok {
		return false
	}
	c.received(avail, used)
	return true
}

// received raises the causes of a frame that is in memory.
func (c *Chip) received(before, used uint32) {
	limit := c.rx.size >> (1 + c.rctl&regs.RctlRDMTS>>regs.RctlRDMTSShift)
	if before > limit && before-used <= limit {
		c.irq.cause |= regs.IcrRXDMT0
	}
	if v := c.raw[regs.RDTR/4] & 0xFFFF; v != 0 {
		c.delay(&c.irq.rxDue, &c.irq.rxAbs, v, c.raw[regs.RADV/4]&0xFFFF)
		return
	}
	c.irq.cause |= regs.IcrRXT0
	if c.rxState.held != 0 {
		c.flushRx()
	}
}

// oddFrame counts a frame that is not good and reports whether it goes on: bad
// ones do while RCTL.SBP is set, too long ones never do.
func (c *Chip) oddFrame(n uint32, bad FrameError) bool {
	s := &c.stats
	if bad&ErrSymbol != 0 {
		s[sSYMERRS]++
	}
	if bad&ErrData != 0 {
		s[sRXERRC]++
	}
	if bad&ErrSequence != 0 {
		s[sSEC]++
		c.irq.cause |= regs.IcrRXSEQ
	}
	if bad&ErrCarrier != 0 {
		s[sCEXTERR]++
	}
	crc := bad&ErrCRC != 0
	switch {
	case n > c.rxState.longest:
		if crc {
			s[sRJC]++
		} else {
			s[sROC]++
		}
		return false
	case n < minFrame:
		if crc {
			s[sRFC]++
		} else {
			s[sRUC]++
		}
	case crc:
		s[sCRCERRS]++
	}
	return c.rctl&regs.RctlSBP != 0
}

// fcsOf is the frame check sequence as it goes over the wire. That of a frame
// with a CRC error is wrong.
func fcsOf(f []byte, bad FrameError) uint32 {
	v := crc32.ChecksumIEEE(f)
	if bad&ErrCRC != 0 {
		v = ^v
	}
	return v
}

// store puts a frame that fits into one buffer.
func (c *Chip) store(f []byte, fcs uint32, bad FrameError, word uint64) bool {
	i, ok := c.usable()
	if !ok {
		return false
	}
	n := uint32(len(f)) + fcs
	buf, ok := c.rxBytes(i, n)
	if !ok {
		return false
	}
	if buf != nil {
		copy(buf, f)
		if fcs != 0 {
			binary.LittleEndian.PutUint32(buf[len(f):], fcsOf(f, bad))
		}
	}
	c.filled(i, word)
	return true
}

// scatter puts a frame into several buffers. Only the last descriptor says
// how the frame fared.
func (c *Chip) scatter(f []byte, fcs uint32, bad FrameError, word uint64) bool {
	s := &c.rxState
	if fcs != 0 {
		sum := fcsOf(f, bad)
		if len(s.buf) == 0 || &s.buf[0] != &f[0] {
			s.buf = append(s.buf[:0], f...)
		} else {
			s.buf = s.buf[:len(f)]
		}
		s.buf = binary.LittleEndian.AppendUint32(s.buf, sum)
		f = s.buf
	}
	for len(f) > 0 {
		i, ok := c.usable()
		if !ok {
			return false
		}
		n := min(uint32(len(f)), s.size)
		buf, ok := c.rxBytes(i, n)
		if !ok {
			return false
		}
		copy(buf, f[:n])
		f = f[n:]
		w := rxDD | uint64(n)
		if len(f) == 0 {
			w |= word
		}
		c.filled(i, w)
	}
	return true
}

// usable is the next descriptor to fill. Those with a null address are passed
// over: the device writes DD and nothing else (3.2.6).
func (c *Chip) usable() (uint32, bool) {
	r := &c.rx
	for r.on.Load() {
		i := r.head
		if i == atomic.LoadUint32(&r.tail) {
			c.stats[sRNBC]++
			c.stats[sMPC]++
			c.irq.cause |= regs.IcrRXO
			return 0, false
		}
		d, ok := c.fetch(r, i)
		if !ok {
			return 0, false
		}
		if d.addr != 0 {
			return i, true
		}
		c.filled(i, d.word|rxDD)
	}
	return 0, false
}

// rxBytes is where n bytes of descriptor i go. nil with true means that the
// address leads nowhere: the transfer ends in a master abort and the data is
// lost.
func (c *Chip) rxBytes(i, n uint32) ([]byte, bool) {
	r := &c.rx
	addr := r.shadow[i].addr
	if c.strict {
		if !c.checkBuffer(r, i, addr, n) {
			return nil, false
		}
		if c.content {
			need := c.rxNeed.Load()
			if digest(c.arena.DMA(addr, int(need))) != r.sum[i] &&
				c.breachRing(RuleRxContent, r, i, "the %d bytes at %#x are not what they were", need, addr) {
				return nil, false
			}
		}
	}
	return c.arena.DMA(addr, int(n)), true
}

// filled gives descriptor i back, at once or when the threshold is reached.
// The word is stored whole, after the data.
func (c *Chip) filled(i uint32, word uint64) {
	r, s := &c.rx, &c.rxState
	next := r.after(i)
	r.head = next
	if s.threshold == 0 && s.held == 0 {
		c.publish32(&r.clean, next)
		c.writeBack(&r.desc[i].word, word, FaultRxNoWriteBack)
		return
	}
	r.shadow[i].word = word
	if s.held++; s.held >= s.threshold {
		c.flushRx()
	}
}

// flushRx writes back what was held.
func (c *Chip) flushRx() {
	r := &c.rx
	if !r.on.Load() {
		c.rxState.held = 0
	}
	for i := r.clean; c.rxState.held > 0; c.rxState.held-- {
		word := r.shadow[i].word
		slot := &r.desc[i].word
		i = r.after(i)
		c.publish32(&r.clean, i)
		c.writeBack(slot, word, FaultRxNoWriteBack)
	}
}

// strip takes the VLAN tag out of a frame.
func (c *Chip) strip(f []byte) []byte {
	s := &c.rxState
	s.buf = append(append(s.buf[:0], f[:12]...), f[16:]...)
	return s.buf
}
