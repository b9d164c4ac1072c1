package tx

import "sync/atomic"

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

// write shows the device every descriptor before slot i.
func (r *E1000) write(i uint32) {
	r.bell = i
	r.stats.Live.Doorbells++
	r.regs.Write(r.tail, i)
}

// ringAll makes the last written descriptor report and shows all of them.
func (r *E1000) ringAll() {
	if r.bell == r.next {
		return
	}
	if r.since > 0 {
		last := r.last()
		d := r.at(last)
		atomic.StoreUint64(&d.word, d.word|DescCmdRS)
		r.noteReport(last)
	}
	r.write(r.next)
}

// ringHeldBack shows all descriptors but the last, unless that one reports
// anyway or ends a full ring: no frame can follow it before its report.
func (r *E1000) ringHeldBack() {
	if r.since == 0 || r.n-1-r.used < r.split.most {
		r.ringAll()
		return
	}
	start := r.last()
	if r.split.most > 1 {
		start = r.split.start // a frame is shown whole
	}
	if start != r.bell {
		r.write(start)
	}
}

// last is the slot before next.
func (r *E1000) last() uint32 {
	if r.next == 0 {
		return r.n - 1
	}
	return r.next - 1
}
