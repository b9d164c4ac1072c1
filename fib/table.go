package fib

import "net/netip"

// table is one routing table. Readers see its views only.
type table struct {
	tableViews
	id     uint32
	v4, v6 family
}

// table returns the table and makes it if needed.
func (f *FIB) table(id uint32) *table {
	if t := f.recentTable; t != nil && t.id == id {
		return t
	}
	t := f.tables[id]
	if t == nil {
		t = &table{id: id}
		t.v4.init(f, IPv4, &t.tableViews.v4, new(rib4))
		t.v6.init(f, IPv6, &t.tableViews.v6, new(rib6))
		f.tables[id] = t
	}
	f.recentTable = t
	return t
}

// of returns the part of the table for a family.
func (t *table) of(number Family) *family {
	if number == IPv4 {
		return &t.v4
	}
	return &t.v6
}

// family returns the part of the table for prefixes or addresses like a.
func (t *table) family(a netip.Addr) *family { return t.of(FamilyOf(a)) }

// routes returns the number of candidates.
func (t *table) routes() int { return t.v4.routes + t.v6.routes }
