package fib

import (
	"fmt"
	"slices"
)

// Tx collects the changes of one Batch. It belongs to the function it was given
// to and is of no use afterwards.
type Tx struct {
	chunks [][]txOp
	n      int
	specs  []txSpec
	index  map[string]uint32 // of specs
	keyBuf []byte
}

// txOp is one change, small because a full table has a million of them.
type txOp struct {
	key    key
	table  uint32
	metric uint32
	spec   uint32 // Replace: where the packets go, in Tx.specs
	tos    uint8
	verb   txVerb
	family Family
	bad    bool // Delete: a prefix that no route can have
}

// txSpec is what routes of the batch have in common.
type txSpec struct {
	route Route // its kind, next hops and source
	paths *paths
}

type txVerb uint8

const (
	txReplace txVerb = iota
	txDelete
	txDeleteTable
)

const txChunk = 4096

func (tx *Tx) add(op txOp) {
	last := len(tx.chunks) - 1
	if last < 0 || len(tx.chunks[last]) == txChunk {
		size := txChunk
		if last < 0 {
			size = 16 // most batches are small
		}
		tx.chunks = append(tx.chunks, make([]txOp, 0, size))
		last++
	}
	tx.chunks[last] = append(tx.chunks[last], op)
	tx.n++
}

// Replace adds the route to the batch, see FIB.Replace. A route that is refused
// is not added; the caller decides whether that ends the batch.
func (tx *Tx) Replace(r Route) error {
	if err := r.Validate(); err != nil {
		return err
	}
	tx.add(txOp{verb: txReplace, key: keyOf(r.Prefix), family: FamilyOf(r.Prefix.Addr()),
		table: r.Table, metric: r.Metric, tos: r.TOS, spec: tx.spec(&r)})
	return nil
}

// spec returns the number of what the route has in common with others.
func (tx *Tx) spec(r *Route) uint32 {
	if n := len(tx.specs); n > 0 && tx.specs[n-1].route.sameWay(r) {
		return uint32(n - 1)
	}
	tx.keyBuf = appendWay(tx.keyBuf[:0], r)
	if i, ok := tx.index[string(tx.keyBuf)]; ok {
		return i
	}
	if tx.index == nil {
		tx.index = make(map[string]uint32)
	}
	i := uint32(len(tx.specs))
	tx.specs = append(tx.specs, txSpec{route: Route{Kind: r.Kind, Source: r.Source, NextHops: slices.Clone(r.NextHops)}})
	tx.index[string(tx.keyBuf)] = i
	return i
}

// Delete adds a deletion to the batch, see FIB.Delete.
func (tx *Tx) Delete(k Key) {
	op := txOp{verb: txDelete, table: k.Table, metric: k.Metric, tos: k.TOS, family: IPv4}
	if k.deletable() {
		op.key, op.family = keyOf(k.Prefix), FamilyOf(k.Prefix.Addr())
	} else {
		op.bad = true
	}
	tx.add(op)
}

// deletable says whether a route can have the key: with host bits set, say, it
// is none.
func (k *Key) deletable() bool { return k.Prefix.IsValid() && k.Prefix == k.Prefix.Masked() }

// DeleteTable adds the removal of all routes of a table to the batch. Followed
// by the new routes it exchanges the contents of a table in one step.
func (tx *Tx) DeleteTable(id uint32) { tx.add(txOp{verb: txDeleteTable, table: id}) }

// Len returns the number of changes collected.
func (tx *Tx) Len() int { return tx.n }

// Batch calls fill to collect changes, makes them in order, and publishes them
// at the end. One family of a table is published in one step, so that a batch
// of lookups sees all changes or none, if the table is small, if the batch
// empties it first (DeleteTable) or if the batch changes a large part of it. In
// other tables of Internet size the changes become visible one by one, in no
// particular order: each answer is the state before or after.
//
// When fill returns an error, nothing is changed and Batch returns that error.
// When indices run out half way, the error wraps ErrFull and the changes before
// that one stay. fill may call the FIB; it runs without the lock.
func (f *FIB) Batch(fill func(*Tx) error) error {
	tx := new(Tx)
	if err := fill(tx); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.apply(tx)
	if e := f.finish(); err == nil {
		err = e
	}
	return err
}

func (f *FIB) apply(tx *Tx) error {
	done := 0
	for c, chunk := range tx.chunks {
		for i := range chunk {
			op := &chunk[i]
			done++
			switch op.verb {
			case txReplace:
				if err := f.applyReplace(tx, op, tx.n-done+1); err != nil {
					return fmt.Errorf("change %d of %d: %w", done, tx.n, err)
				}
			case txDelete:
				f.removeKey(op.table, op.family, op.key, op.metric, op.tos, op.bad)
			case txDeleteTable:
				f.removeTable(op.table)
			}
		}
		tx.chunks[c] = nil
	}
	return nil
}

// applyReplace makes one change; left is the number of changes with it still to
// be made.
func (f *FIB) applyReplace(tx *Tx, op *txOp, left int) error {
	m := f.table(op.table).of(op.family)
	if m.rib.len() == 0 && left > bulkMin {
		m.rib.grow(tx.count(op))
	}
	spec := &tx.specs[op.spec]
	spec.route.Table, spec.route.Metric, spec.route.TOS = op.table, op.metric, op.tos
	p, err := f.replace(m, op.key, &spec.route, spec.paths)
	if err != nil {
		return err
	}
	if p.group == nil { // a group depends on what it replaces
		spec.paths = p
	}
	return nil
}

// count returns the number of routes for the same family of the same table.
func (tx *Tx) count(like *txOp) int {
	n := 0
	for _, chunk := range tx.chunks {
		for i := range chunk {
			if op := &chunk[i]; op.verb == txReplace && op.table == like.table && op.family == like.family {
				n++
			}
		}
	}
	return n
}
