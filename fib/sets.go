package fib

import (
	"cmp"
	"slices"
)

// cand is one candidate of a prefix.
type cand struct {
	paths  *paths
	metric uint32
	tos    uint8
}

func (c *cand) compare(o *cand) int {
	return cmp.Or(cmp.Compare(c.metric, o.metric), cmp.Compare(c.tos, o.tos))
}

// candset is the candidates of a prefix. Sets of one candidate are shared by all
// prefixes with the same; nearly all prefixes have such a set, so that a prefix
// costs the number of its set.
type candset struct {
	cands  []cand // by metric and TOS; never edited
	active *paths // of the candidate that forwards: TOS 0, lowest metric; may be nil
	id     uint32 // in FIB.sets
	refs   int    // prefixes
}

// chosen returns the candidate that forwards; there must be one.
func (s *candset) chosen() *cand {
	return &s.cands[slices.IndexFunc(s.cands, func(c cand) bool { return c.tos == 0 })]
}

func (s *candset) find(metric uint32, tos uint8) int {
	for i := range s.cands {
		if s.cands[i].metric == metric && s.cands[i].tos == tos {
			return i
		}
	}
	return -1
}

// result returns the word that lookups give, AdjMiss if nothing forwards.
func (s *candset) result() uint32 {
	if s == nil || s.active == nil {
		return AdjMiss
	}
	return s.active.result
}

// maxSets leaves one number for a deletion, which takes a new set before it
// gives up the old one.
const maxSets = setMask - 1

// setsLeft says whether another route can get a set of its own.
func (f *FIB) setsLeft() bool { return len(f.sets)-len(f.freeSets) < maxSets }

// single takes a reference to the set of one candidate.
func (f *FIB) single(c cand) *candset {
	for _, s := range c.paths.singles {
		if s.cands[0].metric == c.metric && s.cands[0].tos == c.tos {
			s.refs++
			return s
		}
	}
	s := f.newSet([]cand{c})
	c.paths.singles = append(c.paths.singles, s)
	return s
}

// newSet makes a set with one reference.
func (f *FIB) newSet(cands []cand) *candset {
	s := &candset{cands: cands, refs: 1}
	for i := range cands {
		if cands[i].tos == 0 {
			s.active = cands[i].paths
			break
		}
	}
	if n := len(f.freeSets); n > 0 {
		s.id = f.freeSets[n-1]
		f.freeSets = f.freeSets[:n-1]
		f.sets[s.id] = s
		return s
	}
	s.id = uint32(len(f.sets))
	f.sets = append(f.sets, s)
	return s
}

// dropSet gives a prefix's reference to its set back; the candidates' own
// references to their paths are the caller's.
func (f *FIB) dropSet(s *candset) {
	if s.refs--; s.refs > 0 {
		return
	}
	f.sets[s.id] = nil
	f.freeSets = append(f.freeSets, s.id)
	if p := s.cands[0].paths; len(s.cands) == 1 {
		if i := slices.Index(p.singles, s); i >= 0 {
			p.singles = slices.Delete(p.singles, i, i+1)
		}
	}
}

// with takes a reference to the set with the candidate added or replaced. s may
// be nil.
func (f *FIB) with(s *candset, c cand) *candset {
	if s == nil {
		return f.single(c)
	}
	i := s.find(c.metric, c.tos)
	if i >= 0 && len(s.cands) == 1 {
		return f.single(c)
	}
	return f.newSet(s.among(i, c))
}

// among returns the candidates with one more, or with another one at i.
func (s *candset) among(i int, c cand) []cand {
	cands := slices.Clone(s.cands)
	if i >= 0 {
		cands[i] = c
		return cands
	}
	at := 0
	for at < len(cands) && cands[at].compare(&c) < 0 {
		at++
	}
	return slices.Insert(cands, at, c)
}

// without takes a reference to the set without candidate i, nil if it was the
// only one.
func (f *FIB) without(s *candset, i int) *candset {
	if len(s.cands) == 1 {
		return nil
	}
	cands := slices.Delete(slices.Clone(s.cands), i, i+1)
	if len(cands) == 1 {
		return f.single(cands[0])
	}
	return f.newSet(cands)
}
