package model

import "gorouter/nic/e1000/regs"

// IOWindow is a chip's I/O BAR: the register number goes to IOADDR, its value
// to IODATA (13.2.2). Like the registers behind it, it may be used from any
// goroutine, but address and data of two of them would mix.
type IOWindow struct{ chip *Chip }

// IO is the chip's I/O BAR. Some chips can only be reset through it, see
// ResetIO. QEMU's takes everything and does nothing.
func (c *Chip) IO() *IOWindow { return &IOWindow{c} }

// Write sets the number of the register, or writes it.
func (w *IOWindow) Write(off, v uint32) {
	c := w.chip
	if c.qemu {
		return
	}
	switch off {
	case regs.IOADDR:
		c.mu.Lock()
		c.ioAddr = v
		c.mu.Unlock()
	case regs.IODATA:
		c.mu.Lock()
		reg := c.ioAddr
		c.mu.Unlock()
		c.writeVia(reg, v, true)
	}
}

// Read gives the number of the register, or reads it.
func (w *IOWindow) Read(off uint32) uint32 {
	c := w.chip
	if c.qemu {
		return 0
	}
	c.mu.Lock()
	reg, gone := c.ioAddr, c.gone
	c.mu.Unlock()
	switch {
	case gone:
		return allOnes
	case off == regs.IOADDR:
		return reg
	case off == regs.IODATA:
		return c.Read(reg)
	}
	return 0
}
