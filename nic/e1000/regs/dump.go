package regs

import (
	"fmt"
	"io"
)

// DumpOptions says what Dump reads.
type DumpOptions struct {
	// MAC chooses the field layout; MACUnknown gives the usual one.
	MAC MACType
	// Clearing also reads registers which a read changes: ICR and the
	// statistics. A running driver loses interrupts and counts by it.
	Clearing bool
	// Tables also reads the big filter tables, MTA and VFTA. The receive
	// addresses are always read.
	Tables bool
}

// Line is one register, or one element of an array, in a dump.
type Line struct {
	Name   string
	Offset uint32
	Value  uint32
	// Skipped, if not empty, says why the register was not read; Value and
	// Text then mean nothing.
	Skipped string
	Text    string // as Decode
	mac     MACType
	array   bool
}

// String formats the line: name, offset, value and decoded fields in columns.
func (l Line) String() string {
	if l.Skipped != "" {
		return fmt.Sprintf("%-9s 0x%05x  not read: %s", l.Name, l.Offset, l.Skipped)
	}
	s := fmt.Sprintf("%-9s 0x%05x  0x%08x", l.Name, l.Offset, l.Value)
	if l.Text != hex(l.Value, 8) && l.Text != "0" {
		s += "  " + l.Text
	}
	return s
}

// Dump reads the registers through read, which gets byte offsets, and returns
// them in the order of All, arrays element by element. Without
// options.Clearing it reads nothing that a read changes; it never reads a
// write-only register. Registers that were not read have a line which says so,
// except the tables, which are left out altogether.
func Dump(read func(off uint32) uint32, options DumpOptions) []Line {
	var out []Line
	for row := range table {
		r := &table[row]
		if r.Count > RARCount && !options.Tables {
			continue
		}
		skipped := ""
		switch {
		case r.Mode == WO:
			skipped = "write-only"
		case !r.Mode.ReadSafe() && !options.Clearing:
			skipped = "reading clears it"
		}
		for i := range int(r.Len()) {
			l := Line{Name: r.ElemName(i), Offset: r.At(i), Skipped: skipped, mac: options.MAC, array: r.Count > 0}
			if skipped == "" {
				l.Value = read(l.Offset)
				l.Text = decode(r.FieldsFor(options.MAC), l.Value, 8)
			}
			out = append(out, l)
		}
	}
	return out
}

// Write prints a dump, one line each. Registers that were not read and array
// elements that are zero are left out, unless all is set.
func Write(w io.Writer, lines []Line, all bool) error {
	for _, l := range lines {
		if !all && (l.Skipped != "" || l.array && l.Value == 0) {
			continue
		}
		if _, err := fmt.Fprintln(w, l); err != nil {
			return fmt.Errorf("write register dump: %w", err)
		}
	}
	return nil
}

// Change is a register whose value differs between two dumps.
type Change struct {
	Name     string
	Offset   uint32
	Old, New uint32
	Text     string // as Diff
}

// String formats the change: name, then the changed fields.
func (c Change) String() string { return fmt.Sprintf("%-9s %s", c.Name, c.Text) }

// DiffDump compares two dumps and returns the registers that changed, in the
// order of the newer dump. Registers read in only one of them are left out.
func DiffDump(old, now []Line) []Change {
	before := make(map[uint32]uint32, len(old))
	for _, l := range old {
		if l.Skipped == "" {
			before[l.Offset] = l.Value
		}
	}
	var out []Change
	for _, l := range now {
		was, ok := before[l.Offset]
		if !ok || l.Skipped != "" || was == l.Value {
			continue
		}
		out = append(out, Change{
			Name: l.Name, Offset: l.Offset, Old: was, New: l.Value,
			Text: DiffFor(l.mac, l.Offset, was, l.Value),
		})
	}
	return out
}
