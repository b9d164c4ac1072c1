package e1000

import (
	"fmt"
	"slices"

	"gorouter/internal/inet"
	"gorouter/nic/e1000/regs"
)

// groupHash is a group address's place in MTA: the word and the bit in it. With
// RCTL.MO at 0 it is taken from address bits 47:36 (13.4.22, 13.5.1).
func groupHash(m inet.MAC) (word int, bit uint) {
	h := uint(m[4])>>4 | uint(m[5])<<4
	return int(h >> 5), h & 31
}

// SetMulticast makes the device accept these group addresses, on a running
// device too; the list replaces the one before. The filter is a hash, so some
// others come in as well.
func (d *Device) SetMulticast(groups []inet.MAC) error {
	var mta [regs.MTACount]uint32
	for _, m := range groups {
		if !m.IsMulticast() {
			return fmt.Errorf("%s: %v is no group address (set the lowest bit of the first byte)", d.name, m)
		}
		w, b := groupHash(m)
		mta[w] |= 1 << b
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return fmt.Errorf("%s: set multicast: %w", d.name, ErrClosed)
	}
	d.groups = slices.Clone(groups)
	old := d.mta
	d.mta = mta
	if d.running {
		for i := len(mta) - 1; i >= 0; i-- {
			// A write to an odd word destroys the even one before it on the
			// 82544, so that one is written again.
			if mta[i] != old[i] || i+1 < len(mta) && i&1 == 0 && mta[i+1] != old[i+1] {
				d.writeMTA(i)
			}
		}
	}
	return nil
}

// writeMTA writes a word of the table. The flush keeps a bridge from combining
// writes.
func (d *Device) writeMTA(i int) {
	d.write(regs.MTA+uint32(i)*4, d.mta[i])
	d.flush()
}

// Multicast is the list of SetMulticast.
func (d *Device) Multicast() []inet.MAC {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.groups)
}

// SetPromisc accepts every unicast destination, or only the port's own.
func (d *Device) SetPromisc(on bool) error {
	return d.changeReceive(func(c *Config) { c.Promisc = on })
}

// SetAllMulti accepts every group address, or only those of SetMulticast.
func (d *Device) SetAllMulti(on bool) error {
	return d.changeReceive(func(c *Config) { c.AllMulti = on })
}

// changeReceive changes what RCTL is made of, on a running device too. RCTL is
// written only when it differs: on QEMU each write refuses reception for a
// second.
func (d *Device) changeReceive(change func(*Config)) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return fmt.Errorf("%s: set receive filter: %w", d.name, ErrClosed)
	}
	before := d.receiveControl()
	change(&d.cfg)
	if v := d.receiveControl(); d.running && v != before {
		d.write(regs.RCTL, v)
		d.flush()
	}
	return nil
}
