package fib

// retiree owns things that readers may still be looking at after they were
// unpublished: indices, blocks of nodes, whole tables.
type retiree interface {
	// reuse gets an item back that no reader can see any more.
	reuse(item uint64)
}

// retired is an item that no lookup started from now on can find.
type retired struct {
	epoch uint64 // 0 until closeEpoch
	owner retiree
	item  uint64
}

// limbo is the queue of retired items, in order of epoch.
type limbo struct {
	list []retired
	head int
}

func (l *limbo) len() int { return len(l.list) - l.head }

func (l *limbo) push(r retired) {
	if l.head > 64 && l.head > len(l.list)/2 {
		n := copy(l.list, l.list[l.head:])
		clear(l.list[n:])
		l.list, l.head = l.list[:n], 0
	}
	l.list = append(l.list, r)
}

func (l *limbo) pop() {
	l.list[l.head] = retired{}
	if l.head++; l.head == len(l.list) {
		l.list, l.head = l.list[:0], 0
		if cap(l.list) > 1<<16 {
			l.list = nil
		}
	}
}

// retire puts an item aside. The caller has unpublished it or does so before
// closeEpoch.
func (f *FIB) retire(owner retiree, item uint64) {
	f.limbo.push(retired{owner: owner, item: item})
}

// closeEpoch dates what was retired since the last call. A reader whose epoch is
// that date or later started its batch after the item was unpublished.
func (f *FIB) closeEpoch() {
	list := f.limbo.list
	n := len(list)
	if n == 0 || list[n-1].epoch != 0 {
		return
	}
	e := f.epoch.Add(1)
	for i := n - 1; i >= f.limbo.head && list[i].epoch == 0; i-- {
		list[i].epoch = e
	}
}

// waiting returns the number of retired indices.
func (f *FIB) waiting() int { return f.adj.waiting + f.groups.waiting }

// reclaim gives the items back that all online readers are done with, and
// returns how many of them were indices.
func (f *FIB) reclaim() int {
	if f.limbo.len() == 0 {
		return 0
	}
	before := f.waiting()
	oldest := offline
	for _, r := range f.readers {
		oldest = min(oldest, r.seen.Load())
	}
	for f.limbo.len() > 0 {
		r := f.limbo.list[f.limbo.head]
		if r.epoch == 0 || r.epoch > oldest {
			break
		}
		f.limbo.pop()
		r.owner.reuse(r.item)
	}
	return before - f.waiting()
}

// Reclaim frees the indices, and the memory of tables, that all online readers
// are done with and returns the number of indices. Every change does the same;
// calling it is useful only when changes are rare.
func (f *FIB) Reclaim() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reclaim()
}
