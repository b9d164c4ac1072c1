package e1000

import (
	"time"

	"gorouter/nic/e1000/regs"
)

// The 82544's EEPROM is a Microwire part on four lines that software moves
// (13.4.3): a command of a start bit, a two-bit operation and the address goes
// out on DI, the word comes back on DO, one bit a clock, highest first.
const (
	microwireRead   = 6 // start bit 1, operation 10
	microwireOpBits = 3
	eecdHalfClock   = 50 * time.Microsecond
	grantCeiling    = 5 * time.Millisecond
)

// requestEEPROM takes the EEPROM away from the hardware and returns the
// function that gives it back.
func (d *Device) requestEEPROM() (release func(), err error) {
	eecd := d.read(regs.EECD)
	d.write(regs.EECD, eecd|regs.EecdREQ)
	_, err = d.waitFor("EEPROM request", regs.EECD,
		func(v uint32) bool { return v&regs.EecdGNT != 0 }, grantCeiling,
		"power the card off and on, or set the port's mac")
	release = func() {
		d.write(regs.EECD, d.read(regs.EECD)&^(regs.EecdREQ|regs.EecdCS|regs.EecdSK|regs.EecdDI))
	}
	if err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// eecdWord reads one word; the EEPROM must have been requested.
func (d *Device) eecdWord(word uint16) (uint16, error) {
	eecd := d.read(regs.EECD) &^ (regs.EecdSK | regs.EecdDI | regs.EecdCS)
	addrBits := 6
	if eecd&regs.EecdSIZE != 0 {
		addrBits = 8
	}
	step := func(v uint32) {
		d.write(regs.EECD, v)
		d.flush()
		d.clock.Sleep(eecdHalfClock)
	}
	clock := func(di uint32) {
		step(eecd | di)
		step(eecd | di | regs.EecdSK)
		step(eecd | di)
	}
	step(eecd) // select falls and rises: a new command begins
	eecd |= regs.EecdCS
	step(eecd)
	cmd := uint32(microwireRead)<<addrBits | uint32(word)
	for bit := addrBits + microwireOpBits - 1; bit >= 0; bit-- {
		di := uint32(0)
		if cmd>>bit&1 != 0 {
			di = regs.EecdDI
		}
		clock(di)
	}
	var w uint16
	for range 16 {
		step(eecd | regs.EecdSK)
		w <<= 1
		if d.read(regs.EECD)&regs.EecdDO != 0 {
			w |= 1
		}
		step(eecd)
	}
	step(eecd &^ regs.EecdCS)
	return w, nil
}
