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

// loadAddress is what the chip does with its EEPROM after power-up and, most
// of them, after a reset.
func (c *Chip) loadAddress() {
	w := &c.eeprom
	c.raw[regs.RAL/4] = uint32(w[0]) | uint32(w[1])<<16
	c.raw[regs.RAH/4] = (uint32(w[2]) ^ uint32(c.cfg.Port)<<8) | regs.RahAV
	c.rebuildFilter()
}

// SetEEPROM changes a word, for tests of what a driver makes of a bad one. The
// checksum is not made right.
func (c *Chip) SetEEPROM(word int, v uint16) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.eeprom[word] = v
}

// eepromWord is a word as it is read; there is nothing beyond the part's end.
func (c *Chip) eepromWord(i uint32) uint16 {
	if i >= eepromWords {
		return 0xFFFF
	}
	v := c.eeprom[i]
	if i == regs.EEPROMChecksum && c.strike(FaultEEPROMChecksum) {
		v = ^v
	}
	return v
}

// eerdLayout is the layout of EERD. QEMU has one for all chips.
func (c *Chip) eerdLayout() (regs.EERDLayout, bool) {
	if c.qemu {
		return regs.EERDLayoutFor(regs.MAC82540)
	}
	return regs.EERDLayoutFor(c.info.MAC)
}

// writeEERD starts a read (13.4.4). It takes until the register has been read
// once, so that a driver which does not wait for the end gets nothing. QEMU
// needs no time.
func (c *Chip) writeEERD(v uint32) {
	if c.eerdBusy && c.breachReg(RuleBusy, regs.EERD, "%#x written before the last read was done", v) {
		return
	}
	l, ok := c.eerdLayout()
	if !ok {
		return
	}
	c.raw[regs.EERD/4] = v
	c.eerdBusy = v&l.Start != 0 && !c.strike(FaultEEPROMStuck)
	if c.qemu && c.eerdBusy {
		c.finishEERD(l, v)
	}
}

func (c *Chip) finishEERD(l regs.EERDLayout, v uint32) {
	c.eerdBusy = false
	word := l.Addr(v)
	c.raw[regs.EERD/4] = l.Reply(word, c.eepromWord(uint32(word)))
}

func (c *Chip) readEERD() uint32 {
	l, ok := c.eerdLayout()
	v := c.raw[regs.EERD/4]
	if ok && c.eerdBusy {
		c.finishEERD(l, v)
	}
	return v
}
