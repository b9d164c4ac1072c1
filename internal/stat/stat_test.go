package stat

import (
	"sync"
	"testing"
)

type words struct {
	A, B uint64
	C    [3]uint64
}

func TestReadersSeeWhatWasPublished(t *testing.T) {
	p := New[words]()
	p.Live = words{A: 1, B: 2, C: [3]uint64{3, 4, 5}}
	if got := p.Read(); got != (words{}) {
		t.Errorf("before Publish: %+v", got)
	}
	p.Publish()
	if got := p.Read(); got != p.Live {
		t.Errorf("after Publish: %+v, want %+v", got, p.Live)
	}
}

func TestPublishBesideReaders(t *testing.T) {
	p := New[words]()
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			var last uint64
			for last < 10000 {
				v := p.Read()
				if v.A < last {
					t.Errorf("counter went back from %d to %d", last, v.A)
					return
				}
				last = v.A
			}
		})
	}
	for i := uint64(1); i <= 10000; i++ {
		p.Live.A = i
		p.Publish()
	}
	wg.Wait()
}

func TestOddSizesAreRefused(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a page of bytes was accepted")
		}
	}()
	New[[3]byte]()
}
