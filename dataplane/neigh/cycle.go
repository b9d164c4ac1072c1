package neigh

import (
	"net/netip"

	"gorouter/internal/inet"
)

// Need is called for a packet whose next hop is not resolved. It makes the
// entry when there is none and returns its adjacency. ask says that a question
// has to be sent now; ok is false when there is no room for the neighbour, or,
// if Busy says so, when too many are asked for already.
func (t *Table) Need(port uint16, addr netip.Addr, now int64) (adj uint32, q Question, ask, ok bool) {
	if !addr.Is4() {
		return 0, q, false, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tell(now)
	e := t.find(port, addr)
	if e != nil {
		return e.adj, q, false, true
	}
	if !t.spend(true) {
		return 0, q, false, false
	}
	if e = t.add(port, addr); e == nil {
		return 0, q, false, false
	}
	t.become(e, Incomplete)
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
	// ForUs: the frame is meant for one of our addresses. A request shows that
	// its sender is about to talk to us; only then is an unknown sender worth an
	// entry. An answer confirms the neighbour.
	ForUs bool
	// Gratuitous: the sender speaks of itself, on purpose.
	Gratuitous bool
}

// Hear takes in what an ARP frame said. It reports whether the frame made an
// entry or was about one that may change.
func (t *Table) Hear(h Heard, now int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tell(now)
	e := t.find(h.Port, h.Addr)
	if e == nil {
		if h.Reply {
			t.Counts.Unasked.Add(1)
		}
		if h.Reply || !h.ForUs || !t.spend(true) {
			return false
		}
		if e = t.add(h.Port, h.Addr); e == nil {
			return false
		}
	}
	if e.state == Permanent {
		return false
	}
	moved := e.state.Usable() && e.mac != h.MAC
	if moved {
		if !h.Gratuitous && now < e.confirmed+int64(t.opts.Lock) {
			t.Counts.Locked.Add(1)
			return false
		}
		t.Counts.Moved.Add(1)
	}
	if !e.state.Usable() {
		t.Counts.Learned.Add(1)
	}
	confirms := h.Reply && h.ForUs
	s := e.state
	switch {
	case confirms:
		s = Reachable
	case moved || !s.Usable():
		s = Stale
	default:
		return true // a word from a known neighbour proves nothing new
	}
	same := s.shown() == e.state.shown()
	e.mac, e.confirmed, e.asked = h.MAC, now, 0
	if confirms {
		e.due = now + t.believe()
	}
	t.become(e, s)
	if moved && same {
		t.publish(e)
	}
	return true
}

// believe is how long an answer is believed this time: at random between half
// and one and a half of the option, so that neighbours which were learned
// together are not asked together for ever.
func (t *Table) believe() int64 {
	base := int64(t.opts.Reachable)
	return base/2 + t.random(base+1)
}

// Used says that packets go to the neighbour of a stale adjacency.
func (t *Table) Used(adj uint32, now int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tell(now)
	if int(adj) >= len(t.byAdj) {
		return
	}
	if e := t.byAdj[adj]; e != nil && e.state == Stale {
		e.due = now + int64(t.opts.Delay)
		t.become(e, Delay)
	}
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
		t.tell(now)
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
	if e.state == Stale {
		t.collect(e, now)
		return q, false
	}
	if e.state == Permanent || now < e.due {
		return q, false
	}
	switch e.state {
	case Incomplete:
		return t.everybody(e, t.opts.Broadcast, now)
	case Reachable:
		t.become(e, Stale)
	case Delay:
		t.become(e, Probe)
		e.asked = 0
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
	if e.asked < t.opts.Unicast {
		return t.ask(e, e.mac, now), true
	}
	return t.everybody(e, t.opts.Unicast+t.opts.Broadcast, now)
}

// everybody asks all hosts for a neighbour, or gives up after limit questions.
// When too many questions are on the wire it stays due.
func (t *Table) everybody(e *entry, limit int, now int64) (q Question, ask bool) {
	switch {
	case e.asked >= limit:
		e.due = now + int64(t.opts.Negative)
		t.Counts.Failures.Add(1)
		t.become(e, Failed)
	case t.spend(false):
		return t.ask(e, inet.Broadcast, now), true
	}
	return q, false
}
