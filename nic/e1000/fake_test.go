package e1000_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"gorouter/clock"
	"gorouter/internal/inet"
	"gorouter/nic/e1000"
	"gorouter/nic/e1000/regs"
	"gorouter/rx"
	"gorouter/skb"
	"gorouter/tx"
)

// fake is a register space that answers from a script and notes every access.
// Without a script it behaves like a healthy chip that moves no frames.
type fake struct {
	clk    *clock.Clock
	mac    regs.MACType
	val    map[uint32]uint32
	eeprom []uint16
	phy    [32]uint16
	wire   microwire
	log    []string
	seen   int64 // time of the last access

	gone    bool
	onRead  map[uint32]func() uint32
	onWrite map[uint32]func(v uint32)
}

var eepromAddress = inet.MAC{0x00, 0x1b, 0x21, 0x0a, 0x0b, 0x0c}

func newFake(mac regs.MACType) *fake {
	f := &fake{clk: clock.Virtual(), mac: mac, val: map[uint32]uint32{}, eeprom: goodEEPROM(eepromAddress),
		onRead: map[uint32]func() uint32{}, onWrite: map[uint32]func(uint32){}}
	f.val[regs.STATUS] = regs.StatusLU | regs.StatusFD | regs.StatusSPEED1000
	f.val[regs.MANC] = regs.MancARPEN | regs.MancSMBUSEN
	f.phy[regs.PhyCTRL] = uint16(regs.PhyCtrlANEN)
	return f
}

func goodEEPROM(m inet.MAC) []uint16 {
	w := make([]uint16, regs.EEPROMChecksumSpan)
	for i := range 3 {
		w[i] = uint16(m[2*i]) | uint16(m[2*i+1])<<8
	}
	w[regs.EEPROMChecksum] = regs.EEPROMChecksumFor(w[:regs.EEPROMChecksum])
	return w
}

func name(off uint32) string {
	r, i, ok := regs.Lookup(off)
	if !ok {
		return fmt.Sprintf("%#x", off)
	}
	return r.ElemName(i)
}

func (f *fake) note(s string) {
	if d := time.Duration(f.clk.Now() - f.seen); d >= time.Millisecond {
		f.log = append(f.log, fmt.Sprintf("wait %v", d.Round(time.Millisecond)))
	}
	f.seen = f.clk.Now()
	f.log = append(f.log, s)
}

func (f *fake) Read(off uint32) uint32 {
	f.note("read " + name(off))
	if f.gone {
		return 0xffffffff
	}
	if h := f.onRead[off]; h != nil {
		return h()
	}
	if off == regs.EECD {
		return f.wire.read(f)
	}
	return f.val[off]
}

func (f *fake) Write(off uint32, v uint32) {
	f.note(fmt.Sprintf("%s = %s", name(off), regs.DecodeFor(f.mac, off, v)))
	if h := f.onWrite[off]; h != nil {
		h(v)
		return
	}
	switch off {
	case regs.CTRL, regs.CTRLDUP:
		f.val[regs.CTRL] = v &^ (regs.CtrlRST | regs.CtrlPHYRST)
	case regs.EERD:
		if l, ok := regs.EERDLayoutFor(f.mac); ok {
			f.val[off] = l.Reply(l.Addr(v), f.eeprom[l.Addr(v)])
		}
	case regs.EECD:
		f.wire.write(v)
	case regs.MDIC:
		n := v & regs.MdicREGADD >> regs.MdicREGADDShift
		if v&regs.MdicOP == regs.MdicOPWrite {
			f.phy[n] = uint16(v)
		} else {
			v = v&^regs.MdicDATA | uint32(f.phy[n])
		}
		f.val[off] = v | regs.MdicREADY
	default:
		f.val[off] = v
	}
}

// io is an I/O BAR that reaches the fake's registers.
type io struct {
	f    *fake
	addr uint32
}

func (p *io) Write(off uint32, v uint32) {
	if off == regs.IOADDR {
		p.addr = v
		return
	}
	p.f.note("through the I/O BAR:")
	p.f.Write(p.addr, v)
}

// microwire is the serial EEPROM of an 82544 seen from its four lines, written
// from the part's data sheet: commands are taken on rising clocks, bits come
// out after them.
type microwire struct {
	lines   uint32
	in      uint32
	got     int
	reading bool
	out     int
	granted bool
}

func (m *microwire) write(v uint32) {
	rise := v&^m.lines&regs.EecdSK != 0
	if v&regs.EecdCS == 0 || m.lines&regs.EecdCS == 0 {
		m.in, m.got, m.reading, m.out = 0, 0, false, -1
	}
	if v&regs.EecdCS != 0 && rise {
		switch {
		case m.reading:
			m.out++
		default:
			m.in = m.in<<1 | v&regs.EecdDI/regs.EecdDI
			if m.in != 0 {
				m.got++ // leading zeros before the start bit do not count
			}
			m.reading = m.got == 9 && m.in>>6 == 6
		}
	}
	m.lines = v
	m.granted = v&regs.EecdREQ != 0
}

func (m *microwire) read(f *fake) uint32 {
	v := m.lines &^ (regs.EecdDO | regs.EecdGNT | regs.EecdSIZE)
	if m.granted {
		v |= regs.EecdGNT
	}
	if m.reading && m.out >= 0 && f.eeprom[m.in&0x3f]>>(15-m.out&15)&1 != 0 {
		v |= regs.EecdDO
	}
	return v | regs.EecdPRES
}

// took takes the log and empties it. Polls of one register and the words of
// one table are shown once with their number.
func (f *fake) took() []string {
	var out []string
	tables := map[string]int{}
	flush := ""
	for _, l := range f.log {
		base, rest, ok := strings.Cut(l, "[")
		if ok && (base == "MTA" || base == "VFTA") && strings.HasSuffix(rest, "] = 0x00000000") {
			if tables[base]++; tables[base] == 1 {
				out = append(out, fmt.Sprintf("%s all zero from [%s down, each flushed", base, strings.TrimSuffix(rest, " = 0x00000000")))
			}
			flush = base
			continue
		}
		if i := strings.TrimSuffix(strings.TrimSuffix(rest, "] = 0x00000000"), "] = 0"); (base == "RAH" || base == "RAL") && i != rest && i != "1" && i != "15" {
			if base == "RAH" && i == "2" {
				out = append(out, "… and so on")
			}
			flush = base
			continue
		}
		if l == "read STATUS" && flush != "" {
			flush = ""
			continue
		}
		out = append(out, l)
	}
	f.log = f.log[:0]
	for b, n := range tables {
		if n != 128 {
			out = append(out, fmt.Sprintf("%s: %d words written", b, n))
		}
	}
	return out
}

// testArena is an arena for unit tests; stride and headroom as given, 0 for
// the defaults.
func testArena(t testing.TB, buffers, stride, headroom int) *skb.Arena {
	t.Helper()
	a, err := skb.NewArena(skb.Options{Buffers: buffers, Stride: stride, Headroom: headroom, RingBytes: 2 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	return a
}

// fakeConfig is a configuration over a fake.
func fakeConfig(t testing.TB, f *fake, id uint16) e1000.Config {
	a := testArena(t, 1024, 0, 0)
	return e1000.Config{
		Name: "p0", Regs: f, Arena: a, Clock: f.clk, DeviceID: id,
		Rx: rx.OptionTable.Defaults(), Tx: tx.OptionTable.Defaults(),
		RxCache: a.NewCache("w0"), TxCache: a.NewCache("w0"),
	}
}

// capture is a logger whose lines a test can read.
func capture(b *strings.Builder) *slog.Logger {
	return slog.New(slog.NewTextHandler(b, nil))
}
