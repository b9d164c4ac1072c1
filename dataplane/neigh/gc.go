package neigh

import "time"

// softAge is how long an unused neighbour stays when there are more than
// Options.GCSoft.
const softAge = 5 * time.Second

// list is a doubly linked list through the entries, in order of arrival.
type list struct{ first, last *entry }

// listOf is the list on which entries of a state wait to make room.
func (t *Table) listOf(s State) *list {
	switch s {
	case Incomplete, Failed:
		return &t.waiting
	case Stale:
		return &t.unused
	}
	return nil
}

// move puts an entry at the end of a list, or on none. One that is on the list
// already keeps its place: a neighbour that failed is no younger for it.
func (e *entry) move(to *list) {
	if e.in == to {
		return
	}
	if l := e.in; l != nil {
		if e.prev == nil {
			l.first = e.succ
		} else {
			e.prev.succ = e.succ
		}
		if e.succ == nil {
			l.last = e.prev
		} else {
			e.succ.prev = e.prev
		}
		e.prev, e.succ = nil, nil
	}
	if e.in = to; to == nil {
		return
	}
	if e.prev = to.last; e.prev == nil {
		to.first = e
	} else {
		e.prev.succ = e
	}
	to.last = e
}

// evict makes room for one entry: the oldest that has no address goes, else the
// one that was unused longest. Those in use and the configured ones stay.
func (t *Table) evict() bool {
	e := t.waiting.first
	if e == nil {
		e = t.unused.first
	}
	if e == nil {
		return false
	}
	t.Counts.Evicted.Add(1)
	t.remove(e)
	return true
}

// collect removes a stale entry that nothing was sent to for long enough.
func (t *Table) collect(e *entry, now int64) {
	limit := t.opts.GCStale
	switch {
	case t.count > t.opts.GCSoft:
		limit = min(limit, softAge)
	case t.count <= t.opts.GCMin:
		return
	}
	if now-e.since >= int64(limit) {
		t.Counts.Collected.Add(1)
		t.remove(e)
	}
}

// spend pays for one question to everybody out of what a second allows.
// Questions for new neighbours leave half of it to those that are asked again,
// so that a scan cannot keep these from failing or being confirmed.
func (t *Table) spend(fresh bool) bool {
	step := int64(time.Second) / int64(t.opts.RequestRate)
	full := int64(time.Second)
	if fresh {
		full = max(full/2, step)
	}
	paid := max(t.paid, t.now) + step
	if paid > t.now+full {
		if fresh {
			t.dry.Store(paid - full)
		}
		return false
	}
	t.paid = paid
	return true
}

// Busy reports whether Need would refuse a new neighbour because too many
// questions are on the wire. It takes no lock, so that a scan costs little.
func (t *Table) Busy(now int64) bool { return now < t.dry.Load() }
