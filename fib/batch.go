package fib

import "fmt"

// Tx collects the changes of one Batch. It belongs to the function it was given
// to and is of no use afterwards.
type Tx struct {
	ops  []txOp
	hops []NextHop // of all routes, so that the caller may reuse its slices
}

type txOp struct {
	verb  txVerb
	first int   // index of its next hops in Tx.hops
	count int   // number of them
	route Route // Replace: all; Delete: the key; DeleteTable: the table
}

type txVerb uint8

const (
	txReplace txVerb = iota
	txDelete
	txDeleteTable
)

// Replace adds the route to the batch, see FIB.Replace. A route that is refused
// is not added; the caller decides whether that ends the batch.
func (tx *Tx) Replace(r Route) error {
	if err := r.Validate(); err != nil {
		return err
	}
	op := txOp{verb: txReplace, first: len(tx.hops), count: len(r.NextHops), route: r}
	op.route.NextHops = nil
	tx.hops = append(tx.hops, r.NextHops...)
	tx.ops = append(tx.ops, op)
	return nil
}

// Delete adds a deletion to the batch, see FIB.Delete.
func (tx *Tx) Delete(k Key) {
	tx.ops = append(tx.ops, txOp{verb: txDelete,
		route: Route{Table: k.Table, Prefix: k.Prefix, TOS: k.TOS, Metric: k.Metric}})
}

// DeleteTable adds the removal of all routes of a table to the batch. Followed
// by the new routes it exchanges the contents of a table in one step.
func (tx *Tx) DeleteTable(id uint32) {
	tx.ops = append(tx.ops, txOp{verb: txDeleteTable, route: Route{Table: id}})
}

// Len returns the number of changes collected.
func (tx *Tx) Len() int { return len(tx.ops) }

// Batch calls fill to collect changes, makes them in order, and publishes each
// table once: a lookup in one table sees all of the batch or nothing. When fill
// returns an error, nothing is changed and Batch returns that error. When
// indices run out half way, the error wraps ErrFull and the changes before that
// one stay. fill may call the FIB; it runs without the lock.
func (f *FIB) Batch(fill func(*Tx) error) error {
	tx := new(Tx)
	if err := fill(tx); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	defer f.finish()
	for i := range tx.ops {
		op := &tx.ops[i]
		switch op.verb {
		case txReplace:
			op.route.NextHops = tx.hops[op.first : op.first+op.count]
			if err := f.replace(&op.route); err != nil {
				return fmt.Errorf("change %d of %d: %w", i+1, len(tx.ops), err)
			}
		case txDelete:
			k := op.route.Key()
			f.remove(&k)
		case txDeleteTable:
			f.removeTable(op.route.Table)
		}
	}
	return nil
}
