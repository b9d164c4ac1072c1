package neigh

import (
	"net/netip"
	"testing"

	"gorouter/fib"
)

func TestGarbageCollectionThresholds(t *testing.T) {
	for _, c := range []struct {
		name      string
		min, soft int
		gone      int64 // seconds after it went stale, 0 = never
	}{
		{"few are kept for ever", 2, 100, 0},
		{"some are kept for gc_stale", 1, 100, 60},
		{"many are kept for 5 s", 1, 1, 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, func(o *Options) { o.GCMin, o.GCSoft = c.min, c.soft })
			for _, a := range []netip.Addr{hostA, hostB} {
				b.need(a, 0)
				b.answered(a, macA, 0)
			}
			for now := int64(30); now < 300; now++ {
				b.tick(now * second)
				left := len(b.tab.All())
				if gone := c.gone > 0 && now >= 30+c.gone; left < 2 != gone {
					t.Fatalf("%d left after %d s of staleness", left, now-30)
				}
			}
		})
	}
}

// A burst of new neighbours must not become a burst of questions, nor may the
// limit leave anybody out.
func TestQuestionsOfManyAreSpreadOut(t *testing.T) {
	b := newBench(t, func(o *Options) { o.RequestRate = 100000 })
	const n = 5000
	for i := range n {
		b.need(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}).Next(), 0)
	}
	asked := map[netip.Addr]int{}
	for now := second; now < 2*second; now += second / 10 {
		qs := b.tick(now)
		// One hold of the lock may go over by what its buckets have.
		if len(qs) > tickQuestions+n/8 {
			t.Fatalf("%d questions at once", len(qs))
		}
		for _, q := range qs {
			asked[q.Addr]++
		}
	}
	if len(asked) != n {
		t.Errorf("%d of %d asked within a second", len(asked), n)
	}
	for a, k := range asked {
		if k != 1 {
			t.Fatalf("%v asked %d times within a second", a, k)
		}
	}
}

// Somebody scans a /16: the questions stay under the rate, the table is bounded,
// those who were asked first fail first, and a known neighbour lives on.
func TestAScanIsBoundedByTheRequestRate(t *testing.T) {
	b := newBench(t, func(o *Options) { o.RequestRate = 300; o.Max = 500 })
	live, _ := b.need(hostA, 0)
	b.answered(hostA, macA, 0)
	questions, refused, most := 0, 0, 0
	const seconds = 40
	for ms := range int64(seconds * 1000) {
		now := ms * second / 1000
		for k := range int64(5) {
			i := (ms*5 + k) % 65536
			a := netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)})
			_, _, ask, ok := b.tab.Need(0, a, now)
			if ask {
				questions++
			}
			if !ok {
				if refused++; !b.tab.Busy(now) {
					t.Fatalf("%v refused in a table of %d that is not busy", a, len(b.tab.All()))
				}
			}
		}
		if ms%100 == 0 {
			b.tab.Used(live, now)
			for _, q := range b.tick(now) {
				if q.Addr == hostA {
					b.answered(hostA, macA, now)
				}
				questions++
			}
			b.reader.Quiescent()
			most = max(most, len(b.tab.All()))
		}
		if s := b.state(live); s != fib.Reachable && s != fib.Stale {
			t.Fatalf("after %d ms the known neighbour is %v", ms, s)
		}
	}
	if questions > 300*(seconds+1) || questions < 300*(seconds-3) {
		t.Errorf("%d questions in %d s", questions, seconds)
	}
	// A third of the questions is for new ones: 100 a second, each kept for 6 s.
	if most > 500 || refused == 0 || b.tab.Counts.Failures.Load() == 0 {
		t.Errorf("at most %d entries, %d refused, %+v", most, refused, b.tab.Stats())
	}
}

func TestOneRequestASecondIsEnoughToGetOn(t *testing.T) {
	b := newBench(t, func(o *Options) { o.RequestRate = 1 })
	b.need(hostA, 0)
	if _, _, _, ok := b.tab.Need(0, hostB, 0); ok {
		t.Error("two questions at once")
	}
	for now := int64(0); now < 20*second; now += second / 10 {
		b.tick(now)
	}
	if b.tab.Counts.Failures.Load() != 1 || b.tab.Counts.Requests.Load() != 3 {
		t.Errorf("%+v", b.tab.Stats())
	}
	if _, ask := b.need(hostB, 20*second); !ask {
		t.Error("the second is never asked for")
	}
}
