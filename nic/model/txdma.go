package model

import (
	"encoding/binary"
	"hash/crc32"
	"sync/atomic"

	"gorouter/internal/inet"
	"gorouter/nic/e1000/regs"
)

const (
	maxTx       = 16288 // bytes of a descriptor and of a frame (3.3.3)
	maxTxBuffer = maxTx + 64
	txCache     = 64 // descriptors that the chip fetches ahead (3.4.1)
	minData     = minFrame - fcsBytes
)

// txState is what the transmit side works with besides the ring.
//
//	clean ... done, held ... head ... n of the frame on its way ... fetched ... tail
type txState struct {
	fetched   uint32 // first descriptor that is not in the cache
	n         uint32 // descriptors of the frame that Next gave last
	bad       FrameError
	threshold uint32 // TXDCTL.WTHRESH in descriptors
	held      uint32 // reports waiting for it
	buf       []byte // a frame that cannot be sent from where it lies
	early     []earlyFrame
}

// drop forgets what is under way.
func (s *txState) drop() { s.n, s.held, s.bad, s.fetched, s.early = 0, 0, 0, 0, nil }

// handOverTx checks the transmit descriptors from first up to last.
func (c *Chip) handOverTx(first, last uint32) bool {
	t := &c.tx
	for i := first; i != last; i = t.after(i) {
		d := t.desc[i].load()
		const special = txRPS | txDEXT | txIDE | txStatus
		if (d.word&special != 0 || d.word&(txEOP|txRS) == txEOP) && !c.checkCommand(i, d.word) {
			return false
		}
		n := uint32(d.word & txLength)
		switch {
		case d.addr == 0:
			if c.breachRing(RuleNullAddress, t, i, "address 0") {
				return false
			}
		case n == 0 || n > maxTx:
			if c.breachRing(RuleTxLength, t, i, "%d bytes", n) {
				return false
			}
		case !c.checkBuffer(t, i, d.addr, n):
			return false
		}
		if c.busRules && !c.checkBus(i, d.addr, n) {
			return false
		}
		t.mid = d.word&txEOP == 0
		t.shadow[i] = d
		if c.content {
			t.sum[i] = digest(c.arena.DMA(d.addr, int(n)))
		}
	}
	return true
}

// maxFirst is the most bytes of a frame's first descriptor on PCI-X (erratum
// 10 of the family's specification updates).
const maxFirst = 2015

// checkBus checks what PCI-X asks of a transmit descriptor.
func (c *Chip) checkBus(i uint32, addr uint64, n uint32) bool {
	if !c.tx.mid && n > maxFirst && c.breachRing(RuleFirstLength, &c.tx, i, "%d bytes", n) {
		return false
	}
	return !c.info.EvenEnd || n <= 4 || (addr+uint64(n)-1)&4 != 0 ||
		!c.breachRing(RuleEvenEnd, &c.tx, i, "%d bytes at %#x end at %#x", n, addr, addr+uint64(n)-1)
}

func (c *Chip) checkCommand(i uint32, w uint64) bool {
	t, rule := &c.tx, c.txRule.Load()
	switch {
	case w&txDEXT != 0:
		return !c.breachRing(RuleExtendedDescriptor, t, i, "command %#x", w>>24&0xFF)
	case w&txRPS != 0:
		return !c.breachRing(RuleCommandBits, t, i, "command %#x", w>>24&0xFF)
	case w&txStatus != 0:
		return !c.breachRing(RuleTxStatus, t, i, "status %#x", w>>32&0xFF)
	case w&txIDE != 0 && rule&txNoTimer != 0:
		return !c.breachRing(RuleDelayWithoutTimer, t, i, "IDE is set and TIDV is 0")
	case w&(txEOP|txRS) == txEOP && rule&txNeedsRS != 0:
		return !c.breachRing(RuleReportWithThreshold, t, i, "no RS")
	}
	return true
}

// next takes the next frame off the ring, or nil. The frame before it is given
// back first: its bytes have been on the cable by now.
func (c *Chip) next() []byte {
	if c.qemu {
		return c.outbox.next(c.plugged)
	}
	c.finishTx()
	t, s := &c.tx, &c.txState
	s.bad = 0
	if c.faulty&(1<<FaultEarlyWriteBack) != 0 || s.early != nil {
		return c.nextEarly()
	}
	for t.on.Load() && c.link {
		tail := atomic.LoadUint32(&t.tail)
		if t.head == tail {
			return nil
		}
		if c.faulty&txFaults != 0 && c.txFault() {
			return nil
		}
		if s.fetched == t.head && !c.prefetch(tail, txCache) {
			return nil
		}
		d := t.shadow[t.head]
		n := uint32(d.word & txLength)
		const kind = txEOP | txIFCS | txIC | txVLE | txDEXT
		if d.word&kind != txEOP|txIFCS || n < minData || n > maxTx || d.addr == 0 {
			f, more := c.gather(tail)
			if f != nil || !more {
				return f
			}
			continue
		}
		f, ok := c.txBytes(t.head, d.addr, n)
		if !ok {
			return nil
		}
		s.n = 1
		if f == nil {
			c.finishTx()
			continue
		}
		c.countSent(f)
		return f
	}
	return nil
}

// countSent counts a frame that leaves.
func (c *Chip) countSent(f []byte) {
	c.countTx(uint32(len(f))+fcsBytes, frameDst(f))
}

// wholeFrame is the descriptors of the frame at the ring's head, fetched and
// checked, or nil while its end has not been handed over.
func (c *Chip) wholeFrame() (parts []desc) {
	t := &c.tx
	tail := atomic.LoadUint32(&t.tail)
	for i := t.head; i != tail; i = t.after(i) {
		d, ok := c.fetch(t, i)
		n := uint32(d.word & txLength)
		if !ok {
			return nil
		}
		if c.strict && n > 0 && n <= maxTx && d.addr != 0 {
			if _, ok = c.txBytes(i, d.addr, n); !ok {
				return nil
			}
		}
		if parts = append(parts, d); d.word&txEOP != 0 {
			return parts
		}
	}
	return nil
}

// prefetch takes up to n descriptors into the cache.
func (c *Chip) prefetch(tail, n uint32) bool {
	t, s := &c.tx, &c.txState
	for i := s.fetched; n > 0 && i != tail; n-- {
		if _, ok := c.fetch(t, i); !ok {
			return false
		}
		i = t.after(i)
		s.fetched = i
	}
	return true
}

// txBytes is the n bytes that descriptor i points to. nil with true means that
// the address leads nowhere.
func (c *Chip) txBytes(i uint32, addr uint64, n uint32) ([]byte, bool) {
	if c.strict && !c.checkBuffer(&c.tx, i, addr, n) {
		return nil, false
	}
	b := c.arena.DMA(addr, int(n))
	if c.content && digest(b) != c.tx.sum[i] && c.breachRing(RuleTxContent, &c.tx, i, "the %d bytes at %#x are not what they were", n, addr) {
		return nil, false
	}
	return b, true
}

// gather puts together a frame of several descriptors, or one that the chip
// has to work on. more says whether to look for another when there is none: a
// frame whose end has not been handed over is waited for.
func (c *Chip) gather(tail uint32) (frame []byte, more bool) {
	t, s := &c.tx, &c.txState
	buf, total, lost := s.buf[:0], uint32(0), false
	count := uint32(0)
	var last desc
	for i := t.head; ; i = t.after(i) {
		if i == tail {
			return nil, false
		}
		if i == s.fetched && !c.prefetch(tail, txCache) {
			return nil, false
		}
		count++
		last = t.shadow[i]
		n := uint32(last.word & txLength)
		if total+n > maxTx {
			if c.breachRing(RuleTxLength, t, i, "frame of more than %d bytes", total+n) {
				return nil, false
			}
			lost = true
		}
		lost = lost || last.word&txDEXT != 0
		if n != 0 && last.addr != 0 && !lost {
			b, ok := c.txBytes(i, last.addr, n)
			if !ok {
				return nil, false
			}
			lost = b == nil
			buf = append(buf, b...)
			total += n
		}
		if last.word&txEOP != 0 {
			break
		}
	}
	s.n = count
	if !lost {
		buf = c.edit(buf, last.word)
	}
	if lost || len(buf) == 0 {
		c.finishTx()
		return nil, t.on.Load()
	}
	c.countSent(buf)
	return buf, true
}

// edit does to a frame what the command of its last descriptor asks for; the
// three bits count only there (3.3.3.1). Empty means that nothing is sent.
func (c *Chip) edit(f []byte, w uint64) []byte {
	if len(f) == 0 {
		return f
	}
	if w&txIC != 0 {
		css, cso := int(w>>txCSSShift&0xFF), int(w>>txCSOShift&0xFF)
		if css < len(f) && cso+2 <= len(f) {
			binary.BigEndian.PutUint16(f[cso:], inet.Checksum(f[css:]))
		}
	}
	if w&txVLE != 0 && c.raw[regs.CTRL/4]&regs.CtrlVME != 0 && len(f) >= 12 {
		f = c.insertTag(f, uint16(w>>txVLANShift))
	}
	if w&txIFCS == 0 {
		// Software brought the frame check sequence along.
		if len(f) <= fcsBytes {
			return nil
		}
		n := len(f) - fcsBytes
		if binary.LittleEndian.Uint32(f[n:]) != crc32.ChecksumIEEE(f[:n]) {
			c.txState.bad = ErrCRC
		}
		f = f[:n]
	}
	if len(f) < minData {
		if c.raw[regs.TCTL/4]&regs.TctlPSP != 0 {
			var zero [minData]byte
			return append(f, zero[:minData-len(f)]...)
		}
		if c.breachRing(RuleShortFrame, &c.tx, c.tx.head, "%d bytes", len(f)) || len(f) < inet.EthHeaderLen {
			return nil
		}
	}
	return f
}

// insertTag puts a VLAN tag in.
func (c *Chip) insertTag(f []byte, tci uint16) []byte {
	f = append(f, 0, 0, 0, 0)
	copy(f[16:], f[12:])
	binary.BigEndian.PutUint16(f[12:], uint16(c.raw[regs.VET/4]))
	binary.BigEndian.PutUint16(f[14:], tci)
	return f
}

// finishTx gives back the descriptors of the frame that Next gave last.
func (c *Chip) finishTx() {
	t, s := &c.tx, &c.txState
	n := s.n
	if n == 0 {
		return
	}
	s.n = 0
	for ; n > 0; n-- {
		if !t.on.Load() {
			return
		}
		i := t.head
		d := t.shadow[i]
		if c.strict {
			if _, ok := c.fetch(t, i); !ok {
				return
			}
			if d.addr != 0 && !c.checkBuffer(t, i, d.addr, 1) {
				return
			}
		}
		c.sent(i, d.word)
	}
	left := t.dist(t.head, atomic.LoadUint32(&t.tail))
	if left == 0 {
		c.irq.cause |= regs.IcrTXQE
	}
	if low := c.raw[regs.TXDCTL/4] >> regs.TxdctlLWTHRESHShift * 8; low != 0 && left < low {
		c.irq.cause |= regs.IcrTXDLOW
	}
}

// sent is the end of one descriptor. With a threshold of zero one that asks
// for it is written back at once; else reports collect until there are
// enough, or until the delay timer of one with IDE ends (3.4.3).
func (c *Chip) sent(i uint32, word uint64) {
	t, s := &c.tx, &c.txState
	next := t.after(i)
	t.head = next
	delayed := false
	if word&txIDE != 0 {
		if v := c.raw[regs.TIDV/4] & 0xFFFF; v != 0 {
			c.delay(&c.irq.txDue, &c.irq.txAbs, v, c.raw[regs.TADV/4]&0xFFFF)
			delayed = true
		}
	}
	if s.threshold == 0 && s.held == 0 {
		c.publish32(&t.clean, next)
		if word&txRS != 0 {
			c.writeBack(&t.desc[i].word, word|txDD, FaultTxNoWriteBack)
			if !delayed {
				c.irq.cause |= regs.IcrTXDW
			}
		}
		return
	}
	if word&txRS != 0 {
		s.held++
	}
	if s.held >= s.threshold && s.held > 0 {
		c.flushTx()
		if !delayed {
			c.irq.cause |= regs.IcrTXDW
		}
	}
}

// flushTx writes back the reports that were held.
func (c *Chip) flushTx() {
	t := &c.tx
	c.txState.held = 0
	if !t.on.Load() {
		return
	}
	for i := t.clean; i != t.head; {
		word := t.shadow[i].word
		slot := &t.desc[i].word
		i = t.after(i)
		c.publish32(&t.clean, i)
		if word&txRS != 0 {
			c.writeBack(slot, word|txDD, FaultTxNoWriteBack)
		}
	}
}
