package e1000

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"

	"gorouter/internal/inet"
	"gorouter/nic/e1000/regs"
)

// MACSource says where a device's Ethernet address came from.
type MACSource uint8

// Sources, in the order in which they are tried.
const (
	MACConfigured MACSource = iota // Config.MAC
	MACEEPROM                      // the board's EEPROM
	MACFirmware                    // receive address 0 as firmware or hypervisor left it
	MACRandom                      // made up, locally administered
)

// String describes the source.
func (s MACSource) String() string {
	return [...]string{"configuration", "EEPROM", "receive address left by firmware", "random, locally administered"}[min(s, MACRandom)]
}

// usable reports whether an address can be a port's.
func usable(m inet.MAC) bool { return !m.IsMulticast() && m != inet.MAC{} }

// chooseMAC gives the port its address. words is the EEPROM, nil when it could
// not be read; the candidates are receive address 0 after and before reset.
func (d *Device) chooseMAC(override *inet.MAC, words []uint16, candidates ...inet.MAC) (inet.MAC, MACSource, error) {
	if override != nil {
		return *override, MACConfigured, nil
	}
	if words != nil {
		if m := eepromMAC(words, d.quirks.SecondPortMAC && d.function() == 1); usable(m) {
			return m, MACEEPROM, nil
		}
	}
	for _, m := range candidates {
		if usable(m) {
			return m, MACFirmware, nil
		}
	}
	var m inet.MAC
	if _, err := rand.Read(m[:]); err != nil {
		return m, MACRandom, fmt.Errorf("%s: no Ethernet address in EEPROM or registers, and none could be made up (set the port's mac): %w", d.name, err)
	}
	m[0] = m[0]&^1 | 2
	return m, MACRandom, nil
}

// eepromMAC is the address in the first three words, lower byte first (5.6.1).
// The second port of a dual chip has the same with the last bit flipped.
func eepromMAC(words []uint16, second bool) inet.MAC {
	var m inet.MAC
	for i := range 3 {
		binary.LittleEndian.PutUint16(m[2*i:], words[regs.EEPROMMAC+i])
	}
	if second {
		m[5] ^= 1
	}
	return m
}

// function is the number of the port on a chip with two (13.4.2, FUNC ID).
func (d *Device) function() uint32 {
	return d.read(regs.STATUS) & regs.StatusFUNC >> regs.StatusFUNCShift
}

// receiveAddress is receive address 0, all zero when it is not valid (13.5.2).
func (d *Device) receiveAddress() inet.MAC {
	lo, hi := d.read(regs.RAL), d.read(regs.RAH)
	if hi&regs.RahAV == 0 {
		return inet.MAC{}
	}
	return inet.MAC{byte(lo), byte(lo >> 8), byte(lo >> 16), byte(lo >> 24), byte(hi), byte(hi >> 8)}
}
