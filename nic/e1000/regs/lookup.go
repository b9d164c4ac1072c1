package regs

import (
	"slices"
	"strconv"
	"strings"
)

type place struct{ row, elem int }

var (
	table    = buildTable()
	byOffset = indexOffsets(table)
	byName   = indexNames(table)
)

func buildTable() []Reg {
	t := slices.Concat(controlRows, receiveRows, transmitRows, filterRows, diagnosticRows, statRegs())
	slices.SortFunc(t, func(a, b Reg) int { return int(a.Offset) - int(b.Offset) })
	return t
}

func indexOffsets(t []Reg) map[uint32]place {
	m := make(map[uint32]place)
	for row := range t {
		for elem := range int(t[row].Len()) {
			m[t[row].At(elem)] = place{row, elem}
		}
	}
	return m
}

func indexNames(t []Reg) map[string]int {
	m := make(map[string]int, len(t))
	for row := range t {
		m[t[row].Name] = row
	}
	return m
}

// All returns every MAC register in order of offset. The slice is the
// caller's; the fields inside are shared and must not be changed.
func All() []Reg { return slices.Clone(table) }

// Lookup finds the register at a byte offset, and the element within it when
// it is an array (0 otherwise). It reports false for an offset that holds no
// known register.
func Lookup(off uint32) (r Reg, elem int, ok bool) {
	p, ok := byOffset[off]
	if !ok {
		return Reg{}, 0, false
	}
	return table[p.row], p.elem, true
}

// ByName finds a register by its datasheet name, in any case: "RCTL", or
// "RAL[3]" for an element of an array. The name of an array alone gives
// element 0.
func ByName(name string) (r Reg, elem int, ok bool) {
	name = strings.ToUpper(name)
	base, rest, indexed := strings.Cut(name, "[")
	row, ok := byName[base]
	if !ok {
		return Reg{}, 0, false
	}
	r = table[row]
	if !indexed {
		return r, 0, true
	}
	digits, closed := strings.CutSuffix(rest, "]")
	n, err := strconv.ParseUint(digits, 10, 16)
	if !closed || err != nil || n >= uint64(r.Count) {
		return Reg{}, 0, false
	}
	return r, int(n), true
}
