package model

// An 82546 that sends large frames may report a descriptor before it has
// fetched the data (specification update, early write-back). A driver escapes
// with a last descriptor of at most 8 bytes: it is fetched whole, after all
// the others, before it is reported. While the fault is injected frames are
// taken off the ring at one step, with DD, and their data is fetched at the
// next.

// earlyFrame is a frame that is off the ring and not yet on the cable.
type earlyFrame struct {
	parts []desc
	word  uint64 // of the last descriptor
	data  []byte // when it was fetched in time
	sum   uint64 // of the data at the time of the report
}

// earlyLimit is the most bytes of a last descriptor that is reported in time.
const earlyLimit = 8

// nextEarly is next while DD is written early, and until what was reported is
// sent.
func (c *Chip) nextEarly() []byte {
	s := &c.txState
	for c.link && len(s.early) > 0 {
		e := s.early[0]
		s.early = s.early[1:]
		f := e.data
		if f == nil {
			f = c.collect(e.parts)
			if digest(f) != e.sum {
				c.faultStats.Stale++
			}
		}
		if f = c.edit(append(s.buf[:0], f...), e.word); len(f) > 0 {
			c.countSent(f)
			return f
		}
	}
	if c.faulty&(1<<FaultEarlyWriteBack) == 0 && len(s.early) == 0 {
		s.early = nil
		return c.next()
	}
	if len(s.early) == 0 {
		c.takeEarly()
	}
	return nil
}

// collect fetches the bytes of descriptors.
func (c *Chip) collect(parts []desc) (f []byte) {
	for _, d := range parts {
		f = append(f, c.arena.DMA(d.addr, int(d.word&txLength))...)
	}
	return f
}

// takeEarly takes whole frames off the ring and reports them.
func (c *Chip) takeEarly() {
	t, s := &c.tx, &c.txState
	for t.on.Load() && c.link {
		parts := c.wholeFrame()
		if parts == nil || c.txFault() {
			return
		}
		e := earlyFrame{parts: parts, word: parts[len(parts)-1].word}
		data := c.collect(parts)
		if e.word&txLength > earlyLimit && c.strike(FaultEarlyWriteBack) {
			e.sum = digest(data)
		} else {
			e.data = data
		}
		s.early = append(s.early, e)
		for range parts {
			c.sent(t.head, t.shadow[t.head].word)
		}
		s.fetched = t.head
	}
}
