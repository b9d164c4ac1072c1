package model

import "gorouter/nic/e1000/regs"

const eepromWords = 64

// loadEEPROM makes a sound EEPROM (5.6): the address, the identity and a
// checksum word that brings the sum to 0xBABA.
func (c *Chip) loadEEPROM() {
	w := &c.eeprom
	for i := range w {
		w[i] = 0xFFFF
	}
	m := c.cfg.MAC
	for i := range 3 {
		w[regs.EEPROMMAC+i] = uint16(m[2*i]) | uint16(m[2*i+1])<<8
	}
	w[regs.EEPROMInit1] = 0x640A
	w[regs.EEPROMSubsystem] = 0x001E
	w[regs.EEPROMSubvendor] = regs.VendorIntel
	w[regs.EEPROMDevice] = c.info.Device
	w[regs.EEPROMVendor] = regs.VendorIntel
	w[regs.EEPROMInit2] = 0x3040
	w[regs.EEPROMChecksum] = regs.EEPROMChecksumFor(w[:regs.EEPROMChecksum])
}

// SetEEPROM changes a word, for tests of what a driver makes of a bad one. The
// checksum is not made right.
func (c *Chip) SetEEPROM(word int, v uint16) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.eeprom[word] = v
}

// writeEERD starts a read (13.4.4). It takes until the register has been read
// once, so that a driver which does not wait for the end gets nothing.
func (c *Chip) writeEERD(v uint32) {
	if c.eerdBusy && c.breachReg(RuleBusy, regs.EERD, "%#x written before the last read was done", v) {
		return
	}
	l, ok := regs.EERDLayoutFor(c.info.MAC)
	if !ok {
		return
	}
	c.raw[regs.EERD/4] = v
	c.eerdBusy = v&l.Start != 0
}

func (c *Chip) readEERD() uint32 {
	l, ok := regs.EERDLayoutFor(c.info.MAC)
	v := c.raw[regs.EERD/4]
	if ok && c.eerdBusy {
		c.eerdBusy = false
		word := l.Addr(v)
		data := uint16(0xFFFF)
		if int(word) < len(c.eeprom) {
			data = c.eeprom[word]
		}
		c.raw[regs.EERD/4] = l.Reply(word, data)
	}
	return v
}

// writeEECD grants the EEPROM to software that asks. Clocking words out bit by
// bit is not modelled: this chip reads through EERD.
func (c *Chip) writeEECD(v uint32) {
	if v&(regs.EecdSK|regs.EecdCS|regs.EecdDI) != 0 && c.breachReg(RuleUnsupported, regs.EECD, "%#x clocks the EEPROM bit by bit", v) {
		return
	}
	v = v&(regs.EecdREQ|regs.EecdFWE|regs.EecdSK|regs.EecdCS|regs.EecdDI) | regs.EecdPRES
	if v&regs.EecdREQ != 0 {
		v |= regs.EecdGNT
	}
	c.raw[regs.EECD/4] = v
}
