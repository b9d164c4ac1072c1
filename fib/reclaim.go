package fib

// retired is an index that no lookup started from now on can find. GroupFlag
// tells groups from adjacencies.
type retired struct {
	epoch uint64 // 0 until closeEpoch
	index uint32
}

// retire puts an index aside. The caller has unpublished it or does so before
// closeEpoch.
func (f *FIB) retire(index uint32) {
	if index&GroupFlag != 0 {
		f.groups.waiting++
	} else {
		f.adj.waiting++
	}
	f.limbo = append(f.limbo, retired{index: index})
}

// closeEpoch dates what was retired since the last call. A reader whose epoch is
// that date or later started its batch after the index was unpublished.
func (f *FIB) closeEpoch() {
	n := len(f.limbo)
	if n == 0 || f.limbo[n-1].epoch != 0 {
		return
	}
	e := f.epoch.Add(1)
	for i := n - 1; i >= 0 && f.limbo[i].epoch == 0; i-- {
		f.limbo[i].epoch = e
	}
}

// reclaim frees the indices all online readers are done with.
func (f *FIB) reclaim() int {
	if len(f.limbo) == 0 {
		return 0
	}
	oldest := offline
	for _, r := range f.readers {
		oldest = min(oldest, r.seen.Load())
	}
	n := 0
	for n < len(f.limbo) && f.limbo[n].epoch <= oldest {
		index := f.limbo[n].index
		if index&GroupFlag != 0 {
			f.groups.release(index &^ GroupFlag)
		} else {
			f.adj.release(index)
		}
		n++
	}
	if n > 0 {
		f.limbo = append(f.limbo[:0], f.limbo[n:]...)
	}
	return n
}

// Reclaim frees the indices that all online readers are done with and returns
// their number. Every change does the same; calling it is useful only when
// changes are rare.
func (f *FIB) Reclaim() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reclaim()
}
