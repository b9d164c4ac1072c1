package tx

import (
	"sync/atomic"

	"gorouter/skb"
)

// splitter is why a frame may need more than one descriptor. Both rules come
// from PCI-X, and both look at the bus address of the frame's bytes:
//
//   - the first descriptor of a frame holds a limited number of bytes
//     (specification update of the family, erratum 10);
//   - on the 82544 no descriptor of more than four bytes ends in the lower half
//     of an aligned quadword, or data may be corrupted; the last four bytes go
//     into a descriptor of their own.
type splitter struct {
	most     uint32 // descriptors of a frame at most
	firstMax uint32 // 0: no limit
	even     bool
	start    uint32 // first slot of the frame written last
	extra    uint32 // descriptors on the ring that are not their frame's last
}

func newSplitter(firstMax int, even bool) splitter {
	s := splitter{most: 1, firstMax: uint32(firstMax), even: even}
	if firstMax > 0 {
		s.most++
	}
	if even {
		s.most++
	}
	return s
}

const evenTail = 4 // bytes that are split off

// endsEven reports whether the last of n bytes at addr lies in an even
// doubleword.
func endsEven(addr uint64, n uint32) bool { return (addr+uint64(n)-1)&4 == 0 }

// spread writes all descriptors of a frame but the last and returns what is
// left for that one. There must be room for split.most.
func (r *E1000) spread(addr uint64, n uint32) (uint64, uint32) {
	s := &r.split
	s.start = r.next
	if s.firstMax != 0 && n > s.firstMax {
		k := s.firstMax
		if s.even && endsEven(addr, k) {
			k -= evenTail
		}
		r.lead(addr, k)
		addr, n = addr+uint64(k), n-k
	}
	if s.even && n > evenTail && endsEven(addr, n) {
		k := n - evenTail
		r.lead(addr, k)
		addr, n = addr+uint64(k), evenTail
	}
	return addr, n
}

// lead writes a descriptor that is not its frame's last. It never reports:
// frames are reclaimed whole.
func (r *E1000) lead(addr uint64, n uint32) {
	d := r.at(r.next)
	d.addr = addr
	atomic.StoreUint64(&d.word, uint64(n)|r.cmd&^DescCmdEOP)
	r.next = r.after(r.next)
	r.used++
	r.split.extra++
	r.stats.Live.Descriptors++
}

// freeSparse frees the frames of slots that are not all a frame's last.
func (r *E1000) freeSparse(s []skb.Handle) int {
	n := 0
	for _, h := range s {
		if h != skb.None {
			s[n] = h
			n++
		}
	}
	r.cache.FreeBatch(s[:n])
	for i := range s {
		s[i] = skb.None
	}
	r.split.extra -= uint32(len(s) - n)
	return n
}
