package e1000

import (
	"fmt"
	"time"

	"gorouter/nic/e1000/regs"
)

// eepromCeiling is a hundred times what a serial EEPROM takes for a word.
const eepromCeiling = 10 * time.Millisecond

// readEEPROM reads the words that take part in the checksum (5.6).
func (d *Device) readEEPROM() ([]uint16, error) {
	words := make([]uint16, regs.EEPROMChecksumSpan)
	readWord := d.eerdWord
	if d.quirks.EEPROM == ReadEECD {
		release, err := d.requestEEPROM()
		if err != nil {
			return nil, err
		}
		defer release()
		readWord = d.eecdWord
	}
	for i := range words {
		w, err := readWord(uint16(i))
		if err != nil {
			return nil, err
		}
		words[i] = w
	}
	if err := d.alive(); err != nil {
		return nil, err
	}
	return words, nil
}

// eerdWord reads one word through EERD (13.4.4). There are two layouts of the
// register; which one holds goes by the chip and is never tried out.
func (d *Device) eerdWord(word uint16) (uint16, error) {
	l, ok := regs.EERDLayoutFor(d.quirks.Device.MAC)
	if !ok {
		return 0, fmt.Errorf("%s: the %s has no usable EERD register", d.name, d.quirks.Device.Name)
	}
	d.write(regs.EERD, l.Command(word))
	v, err := d.waitFor(fmt.Sprintf("EEPROM word %#x", word), regs.EERD, l.IsDone, eepromCeiling,
		"check that the board has an EEPROM (EECD.PRES), or set the port's mac")
	if err != nil {
		return 0, err
	}
	return l.Data(v), nil
}

// checkEEPROM warns about a bad checksum: many boards run for years with one,
// and the address is judged by itself.
func (d *Device) checkEEPROM(words []uint16) {
	if sum := regs.EEPROMSumOf(words); sum != regs.EEPROMSum {
		d.log.Warn("wrong EEPROM checksum", "sum", fmt.Sprintf("%#04x", sum), "expected", fmt.Sprintf("%#04x", regs.EEPROMSum))
	}
}
