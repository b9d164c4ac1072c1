package model

import "gorouter/nic/e1000/regs"

// microwire is the serial EEPROM behind the four lines of EECD (13.4.3): a
// start bit, two bits of operation and the word number go in on DI, one a
// rising clock, highest first; the word comes out on DO the same way, and
// after it the next.
type microwire struct {
	lines   uint32 // SK, CS, DI and REQ as last written
	in      uint32 // bits taken since the start bit, itself included
	got     int
	reading bool
	word    uint32
	bit     int // of the word that DO shows, -1 before the first
}

const (
	microwireRead = 6 // start bit 1, operation 10
	microwireBits = 6 // of the number of one of 64 words
)

// writeEECD moves the lines.
func (c *Chip) writeEECD(v uint32) {
	w := &c.wire
	const lines = regs.EecdSK | regs.EecdCS | regs.EecdDI
	if v&lines != 0 {
		if c.info.SPI && c.breachReg(RuleUnsupported, regs.EECD, "%#x moves the lines of an SPI EEPROM", v) {
			return
		}
		if !c.qemu && c.raw[regs.EECD/4]&regs.EecdGNT == 0 && c.breachReg(RuleEEPROMGrant, regs.EECD, "%#x written, REQ has not been answered by GNT", v) {
			return
		}
	}
	rose := v &^ w.lines
	out := v&(regs.EecdREQ|regs.EecdFWE|lines) | regs.EecdPRES
	if c.info.SPI {
		out |= regs.EecdTYPE
	}
	if c.qemu || v&regs.EecdREQ != 0 && (c.raw[regs.EECD/4]&regs.EecdGNT != 0 || rose&regs.EecdREQ != 0 && !c.strike(FaultEEPROMStuck)) {
		out |= regs.EecdGNT
	}
	c.raw[regs.EECD/4] = out
	if out&regs.EecdGNT != 0 && !c.info.SPI {
		c.shift(v, rose)
	}
	w.lines = v & (lines | regs.EecdREQ)
}

// shift is the EEPROM's side of the lines.
func (c *Chip) shift(v, rose uint32) {
	w := &c.wire
	if v&regs.EecdCS == 0 || rose&regs.EecdCS != 0 {
		w.in, w.got, w.reading, w.bit = 0, 0, false, -1
	}
	if v&regs.EecdCS == 0 || rose&regs.EecdSK == 0 {
		return
	}
	if w.reading {
		if w.bit++; w.bit == 16 {
			w.bit = 0
			w.word = (w.word + 1) % eepromWords
		}
		return
	}
	if w.got == 0 && v&regs.EecdDI == 0 {
		return // zeros before the start bit do not count
	}
	w.in = w.in<<1 | v&regs.EecdDI/regs.EecdDI
	if w.got++; w.got < 3+microwireBits {
		return
	}
	if op := w.in >> microwireBits; op != microwireRead {
		c.breachReg(RuleUnsupported, regs.EECD, "EEPROM operation %#x is not a read", op)
		return
	}
	w.reading, w.word = true, w.in%eepromWords
}

// readEECD shows the lines. DO is high while the EEPROM is not read, and low
// between the number and the first bit of a word.
func (c *Chip) readEECD() uint32 {
	v, w := c.raw[regs.EECD/4], &c.wire
	if c.qemu {
		v |= regs.EecdGNT
	}
	if !w.reading || w.bit >= 0 && c.eepromWord(w.word)>>(15-w.bit)&1 != 0 {
		v |= regs.EecdDO
	}
	return v
}
