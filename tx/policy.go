package tx

// reclaimer decides when a ring looks for sent frames. Its methods are called
// once per Send, per idle pass and per round.
type reclaimer interface {
	// before runs ahead of n frames being queued. Whatever else the policy
	// wants, it looks when the ring has no room for them.
	before(r *E1000, n uint32)
	// idle runs when the worker has nothing else to do.
	idle(r *E1000) int
	// tick runs once a round.
	tick(r *E1000, now int64)
}

// lazyReclaim frees at a watermark and when idle, told by DD alone.
type lazyReclaim struct{ at uint32 }

func (p lazyReclaim) before(r *E1000, n uint32) {
	if r.used+n > p.at {
		r.reclaimDone()
	}
}

func (p lazyReclaim) idle(r *E1000) int { return r.reclaimDone() }

func (p lazyReclaim) tick(*E1000, int64) {}

// doorbell decides when the tail register is written. Descriptors from bell
// to next are written and not yet shown to the device.
type doorbell interface {
	// sent runs after a Send; more as in Queue.Send.
	sent(r *E1000, more bool)
	// flush runs at the end of a run of Sends.
	flush(r *E1000)
	// tick runs once a round.
	tick(r *E1000, now int64)
}

// batchBell writes the tail once a Send. It serves the policy "frame" too,
// where the ring has already written it after every frame but the last.
type batchBell struct{}

func (batchBell) sent(r *E1000, more bool) {
	if more {
		r.ringHeldBack()
	} else {
		r.ringAll()
	}
}
func (batchBell) flush(r *E1000)     { r.ringAll() }
func (batchBell) tick(*E1000, int64) {}

// timerBell writes the tail once an interval, or when half the ring waits:
// waiting longer would only drop frames.
type timerBell struct {
	interval int64 // nanoseconds
	due      int64 // 0: no frame waits
}

func (p *timerBell) sent(r *E1000, _ bool) {
	if r.waiting() >= r.n/2 {
		r.ringAll()
	}
}
func (p *timerBell) flush(*E1000) {}

func (p *timerBell) tick(r *E1000, now int64) {
	switch {
	case r.waiting() == 0:
		p.due = 0
	case p.due == 0:
		p.due = now + p.interval
	case now >= p.due:
		r.ringAll()
		p.due = 0
	}
}
