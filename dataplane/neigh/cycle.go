package neigh

import (
	"net/netip"

	"gorouter/fib"
	"gorouter/internal/inet"
)

// Need is called for a packet whose next hop is not resolved. It makes the
// entry when there is none and returns its adjacency. ask says that a question
// has to be sent now; ok is false when there is no room for the neighbour.
func (t *Table) Need(port uint16, addr netip.Addr, now int64) (adj uint32, q Question, ask, ok bool) {
	if !addr.Is4() {
		return 0, q, false, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.find(port, addr)
	if e != nil {
		return e.adj, q, false, true
	}
	if e = t.add(port, addr); e == nil {
		return 0, q, false, false
	}
	e.state = Incomplete
	t.publish(e, fib.Incomplete)
	return e.adj, t.ask(e, inet.Broadcast, now), true, true
}

// ask counts a question and says when the next is due.
func (t *Table) ask(e *entry, to inet.MAC, now int64) Question {
	e.asked++
	e.due = now + int64(t.opts.Retransmit)
	t.Counts.Requests.Add(1)
	return Question{Port: e.port, Addr: e.addr, To: to}
}

// Heard is what an ARP frame said about its sender.
type Heard struct {
	Port uint16
	Addr netip.Addr
	MAC  inet.MAC
	// Reply: the frame is an answer. An answer that nobody asked for never
	// makes an entry.
	Reply bool
	// ForUs: the frame asks for one of our addresses, so that its sender is
	// about to talk to us; only then is an unknown sender worth an entry.
	ForUs bool
}

// Hear takes in what an ARP frame said. It reports whether anything was
// learned or confirmed.
func (t *Table) Hear(h Heard, now int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.find(h.Port, h.Addr)
	if e == nil {
		if h.Reply {
			t.Counts.Unasked.Add(1)
		}
		if h.Reply || !h.ForUs {
			return false
		}
		if e = t.add(h.Port, h.Addr); e == nil {
			return false
		}
		e.state = Incomplete
	}
	if e.state == Permanent {
		return false
	}
	was := e.state
	switch {
	case was == Incomplete || was == Failed:
		t.Counts.Learned.Add(1)
	case e.mac != h.MAC:
		t.Counts.Moved.Add(1)
	}
	changed := was == Incomplete || was == Failed || e.mac != h.MAC
	e.mac, e.state, e.asked = h.MAC, Reachable, 0
	e.due = now + int64(t.opts.Reachable)
	if changed {
		t.publish(e, fib.Reachable)
	}
	return true
}

// Bounds of one Tick.
const (
	// tickBuckets is how many buckets are visited in one hold of the lock, so
	// that no worker waits long for it however full the table is.
	tickBuckets = 32
	// tickQuestions is how many questions one Tick hands out. What is left is
	// still due at the next one, which goes on where this one stopped; an entry
	// that waits to be probed stays usable meanwhile.
	tickQuestions = 1024
)

// Tick moves every entry whose time has come and hands out the questions to
// send. Call it a few times a second, from one goroutine. send is called
// without the table's lock.
func (t *Table) Tick(now int64, send func(Question)) {
	asked := 0
	for range buckets / tickBuckets {
		t.mu.Lock()
		qs := t.questions[:0]
		for i := range tickBuckets {
			for e := t.hash[(t.cursor+i)%buckets].Load(); e != nil; {
				next := e.next.Load()
				if q, ask := t.age(e, now); ask {
					qs = append(qs, q)
				}
				e = next
			}
		}
		t.cursor = (t.cursor + tickBuckets) % buckets
		t.questions = qs
		t.mu.Unlock()
		for _, q := range qs {
			send(q)
		}
		if asked += len(qs); asked >= tickQuestions {
			return
		}
	}
}

// age moves an entry whose time has come; ask says that a question is due.
func (t *Table) age(e *entry, now int64) (q Question, ask bool) {
	if e.state == Permanent || now < e.due {
		return q, false
	}
	switch e.state {
	case Incomplete:
		if e.asked < t.opts.Broadcast {
			return t.ask(e, inet.Broadcast, now), true
		}
		t.fail(e, now)
	case Reachable, Stale:
		e.state, e.asked = Probe, 0
		return t.probe(e, now)
	case Probe:
		return t.probe(e, now)
	case Failed:
		// Forgotten: the next packet asks afresh.
		t.remove(e)
	}
	return q, false
}

// probe asks a known neighbour, first alone, then everybody, then gives up.
func (t *Table) probe(e *entry, now int64) (q Question, ask bool) {
	switch {
	case e.asked < t.opts.Unicast:
		return t.ask(e, e.mac, now), true
	case e.asked < t.opts.Unicast+t.opts.Broadcast:
		return t.ask(e, inet.Broadcast, now), true
	}
	t.fail(e, now)
	return q, false
}

func (t *Table) fail(e *entry, now int64) {
	e.state = Failed
	e.due = now + int64(t.opts.Negative)
	t.Counts.Failures.Add(1)
	t.publish(e, fib.Failed)
}
