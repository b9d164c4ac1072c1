package model

import (
	"sync/atomic"

	"gorouter/nic/e1000/regs"
)

// ModeQEMU is the e1000 of QEMU where it differs from the chip:
//
//   - The I/O window is inert. CTRL.RST clears itself at once and resets
//     nothing; CTRLDUP and CTRLEXT do not exist.
//   - A write to RCTL refuses reception for a second; frames wait at their
//     source, or are lost without being counted. So they are without link,
//     RCTL.EN or bus mastering.
//   - A write to TDT or TCTL sends inside the write, link or not: DD is set
//     when it returns. Thresholds, IFCS, checksum offload and padding are
//     ignored, and so is the end of a frame: parts are taken as they come.
//   - A received frame counts four bytes of FCS unless RCTL.SECRC is set, but
//     they are not stored. IXSM is always set, the packet checksum is not
//     written, the hash filter does not show in PIF.
//   - A frame that finds too few descriptors raises RNBC, MPC and RXO. Total
//     counters count only what the filter passed.
//   - Some statistics clear on reading, others do not. ICS reads as ICR does,
//     without clearing. MDIC and EERD are done at once; EECD is granted always.
//   - The link does not wait for CTRL.SLU. It comes up half a second after the
//     cable or a restart of autonegotiation.
//   - Interrupts are at least 128 us apart; of the delay timers only the
//     absolute ones count, and only then.

const (
	qemuRefuse   = int64(1e9)   // ns after a write to RCTL
	qemuLinkTime = int64(500e6) // ns of autonegotiation
	qemuOutbox   = 10000        // frames that wait for the other end
	qemuLongest  = 1522         // without FCS and without LPE
	qemuGap      = 500          // ITR units, least gap between interrupts
)

// outbox holds frames that left the ring and are not on the cable yet.
type outbox struct {
	queue [][]byte
	head  int
	spare [][]byte
	last  []byte // given by next
	build []byte // a frame whose end has not come
	lost  Discards
}

// Discards are frames that ModeQEMU took off the ring and threw away.
type Discards struct {
	Full      uint64 // 10000 were waiting
	Unplugged uint64 // there was no cable
}

// Discards is what was thrown away since the chip was made; zero but with
// ModeQEMU. Safe for concurrent use.
func (c *Chip) Discards() Discards {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.outbox.lost
}

// push copies a frame in.
func (o *outbox) push(f []byte) {
	if len(o.queue)-o.head >= qemuOutbox {
		o.lost.Full++
		return
	}
	var b []byte
	if n := len(o.spare); n > 0 {
		b, o.spare = o.spare[n-1], o.spare[:n-1]
	}
	if o.head > 0 && len(o.queue) == cap(o.queue) {
		n := copy(o.queue, o.queue[o.head:])
		o.queue, o.head = o.queue[:n], 0
	}
	o.queue = append(o.queue, append(b[:0], f...))
}

// next takes a frame out; it stays valid until the next call.
func (o *outbox) next(plugged bool) []byte {
	if o.last != nil {
		o.spare = append(o.spare, o.last)
		o.last = nil
	}
	if o.head == len(o.queue) || !plugged {
		return nil
	}
	o.last = o.queue[o.head]
	if o.head++; o.head == len(o.queue) {
		o.queue, o.head = o.queue[:0], 0
	}
	return o.last
}

// sendInWrite is the part of a tail write that moves frames.
func (c *Chip) sendInWrite() {
	c.mu.Lock()
	c.transmitNow()
	c.evaluate()
	call := c.irq.take()
	c.mu.Unlock()
	if call {
		c.cfg.Interrupt()
	}
}

// transmitNow takes everything off the transmit ring.
func (c *Chip) transmitNow() {
	t, o := &c.tx, &c.outbox
	if !t.on.Load() || c.raw[regs.TCTL/4]&regs.TctlEN == 0 || c.faulty&noDMA != 0 {
		return
	}
	c.irq.cause |= regs.IcrTXQE
	for t.on.Load() {
		i := t.head
		if i == atomic.LoadUint32(&t.tail) || c.faulty&txFaults != 0 && c.txFault() {
			break
		}
		d, ok := c.fetch(t, i)
		if !ok {
			return
		}
		n := uint32(d.word & txLength)
		c.irq.delayed = c.irq.delayed || d.word&txIDE != 0
		if n != 0 && d.addr != 0 && d.word&txDEXT == 0 {
			b, ok := c.txBytes(i, d.addr, n)
			if !ok {
				return
			}
			o.build = append(o.build, b...)
		}
		if d.word&txEOP != 0 {
			c.frameBuilt(d.word)
		}
		t.head = t.after(i)
		c.txState.fetched = t.head
		c.publish32(&t.clean, t.head)
		if d.word&txRS != 0 {
			c.irq.cause |= regs.IcrTXDW
			c.writeBack(&t.desc[i].word, d.word|txDD, FaultTxNoWriteBack)
		}
	}
}

// frameBuilt sends what the descriptors so far have given.
func (c *Chip) frameBuilt(word uint64) {
	o := &c.outbox
	f := o.build
	o.build = f[:0]
	if len(f) < 14 {
		return
	}
	if word&txVLE != 0 && c.raw[regs.CTRL/4]&regs.CtrlVME != 0 {
		f = c.insertTag(f, uint16(word>>txVLANShift))
		o.build = f[:0]
	}
	c.countSent(f)
	if !c.plugged {
		o.lost.Unplugged++
		return
	}
	o.push(f)
}

// refusing tells whether a write to RCTL still keeps frames out.
func (c *Chip) refusing() bool {
	if c.rxRefuse != 0 && c.cfg.Clock.Now() >= c.rxRefuse {
		c.rxRefuse = 0
	}
	return c.rxRefuse != 0
}

// deliverQEMU takes a frame from the cable. A damaged one never gets as far as
// QEMU.
func (c *Chip) deliverQEMU(f []byte, bad FrameError) bool {
	r, s := &c.rx, &c.rxState
	if bad != 0 || !r.on.Load() || !c.link || c.refusing() || c.faulty&rxFaults != 0 && c.rxFault() {
		return false
	}
	if len(f) < minData {
		var zero [minData]byte
		s.buf = append(append(s.buf[:0], f...), zero[len(f):]...)
		f = s.buf
	}
	n := uint32(len(f))
	if (n > maxLong || n > qemuLongest && c.rctl&regs.RctlLPE == 0) && c.rctl&regs.RctlSBP == 0 {
		c.stats[sROC]++
		return false
	}
	dst := frameDst(f)
	if ok, _ := c.accept(dst); !ok {
		return false
	}
	var special uint64
	if c.filter.tagged {
		ok, tagged := c.vlanQEMU(f)
		if !ok {
			return false
		}
		if tagged && c.raw[regs.CTRL/4]&regs.CtrlVME != 0 {
			special = rxVP | uint64(f[14])<<(rxVLANShift+8) | uint64(f[15])<<rxVLANShift
			f = c.strip(f)
		}
	}
	total := uint32(len(f)) + s.fcs
	if (total+s.size-1)/s.size > c.available() {
		c.stats[sRNBC]++
		c.stats[sMPC]++
		c.irq.cause |= regs.IcrRXO
		return false
	}
	if !c.scatterQEMU(f, total, special) {
		return false
	}
	c.countRxQEMU(uint32(len(f)), total, dst)
	c.irq.cause |= regs.IcrRXT0
	if c.available() <= r.size>>(1+c.rctl&regs.RctlRDMTS>>regs.RctlRDMTSShift) {
		c.irq.cause |= regs.IcrRXDMT0
	}
	return true
}

// scatterQEMU writes buffers and descriptors. The bytes of the FCS are counted
// and not written; of the descriptor only what QEMU knows is changed.
func (c *Chip) scatterQEMU(f []byte, total uint32, special uint64) bool {
	s := &c.rxState
	for total > 0 {
		i, ok := c.usable()
		if !ok {
			return false
		}
		n := min(total, s.size)
		total -= n
		data := f[:min(n, uint32(len(f)))]
		f = f[len(data):]
		if len(data) > 0 {
			buf, ok := c.rxBytes(i, uint32(len(data)))
			if !ok {
				return false
			}
			copy(buf, data)
		}
		const mine = uint64(0xFFFF) | rxDD | rxEOP | uint64(0xFFFF)<<rxVLANShift
		w := c.rx.shadow[i].word&^mine | uint64(n) | rxDD | special
		if total == 0 {
			w |= rxEOP | rxIXSM
		}
		c.filled(i, w)
	}
	return true
}

// qemuCTRL is a write to CTRL.
func (c *Chip) qemuCTRL(v uint32) {
	c.raw[regs.CTRL/4] = v &^ regs.CtrlRST
	if v&regs.CtrlRST != 0 {
		c.endFaults()
	}
	c.rebuildFilter()
}

// qemuRead gives the registers that read differently.
func (c *Chip) qemuRead(off uint32) (uint32, bool) {
	switch off {
	case regs.ICS:
		return c.irq.cause, true
	case regs.STATUS:
		if c.linkDue != 0 {
			c.negotiated()
		}
		v := uint32(0x80080400) | regs.StatusASDV | regs.StatusSPEED1000 | regs.StatusFD
		if c.link {
			v |= regs.StatusLU
		}
		return v, true
	case regs.CTRLDUP, regs.CTRLEXT:
		return 0, true
	}
	return 0, false
}

// negotiated brings the link up when it is time.
func (c *Chip) negotiated() {
	if c.cfg.Clock.Now() < c.linkDue {
		return
	}
	c.linkDue = 0
	if c.plugged && !c.gone {
		c.anDone = true
		c.linkIs(true)
	}
}

// qemuLink is what plugging in and out does.
func (c *Chip) qemuLink() {
	switch up := c.plugged && !c.closed && !c.gone; {
	case !up:
		c.linkDue, c.anDone = 0, false
		c.linkIs(false)
	case c.link || c.linkDue != 0:
	case !c.anDone && uint32(c.phy.reg[regs.PhyCTRL])&regs.PhyCtrlANEN != 0:
		c.linkDue = c.cfg.Clock.Now() + qemuLinkTime
	default:
		c.linkIs(true)
	}
}

// renegotiate is a restart of autonegotiation: the link goes down without an
// interrupt.
func (c *Chip) renegotiate() {
	if !c.plugged {
		return
	}
	c.link, c.anDone = false, false
	c.linkDue = c.cfg.Clock.Now() + qemuLinkTime
}

// qemuMitigation is the gap after an interrupt in nanoseconds.
func (c *Chip) qemuMitigation() int64 {
	q := &c.irq
	gap := uint32(0)
	take := func(v uint32) {
		if v != 0 && (gap == 0 || v < gap) {
			gap = v
		}
	}
	pending := q.cause & q.mask
	if q.delayed && pending&(regs.IcrTXQE|regs.IcrTXDW) != 0 {
		take(c.raw[regs.TADV/4] & 0xFFFF * 4)
	}
	if c.raw[regs.RDTR/4] != 0 && pending&regs.IcrRXT0 != 0 {
		take(c.raw[regs.RADV/4] & 0xFFFF * 4)
	}
	take(c.raw[regs.ITR/4] & 0xFFFF)
	q.delayed = false
	return int64(max(gap, qemuGap)) * regs.ITRUnitNanos
}
