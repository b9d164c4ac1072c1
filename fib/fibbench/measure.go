package main

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// batch is the number of lookups of one call.
const batch = 32

// chunk is the number of lookups between two looks at the clock. It is short
// against the time slice of a busy machine, so that the median of the chunks
// does not count the time this process did not run.
const chunk = 2048

// passes is how often a structure looks all keys up in one turn.
const passes = 3

// measureLookups times all structures with all kinds of keys. Structures take
// turns in each round, and the median of all chunks counts.
func measureLookups(o *options, t *table, subjects []subject) []lookupRow {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // the others' heaps take long to mark
	times := make([]map[string]float64, len(subjects))
	for i := range times {
		times[i] = make(map[string]float64)
	}
	press := newPressure()
	for _, kind := range keyKinds {
		from := kind
		if kind == "pressure" || kind == "dependent" {
			from = "announced"
		}
		keys := makeKeys(t, from, o.keys)
		chunks := make([][]float64, len(subjects))
		for _, s := range subjects {
			s.use(keys)
		}
		runtime.GC()
		for range o.rounds {
			for i, s := range subjects {
				lookups(s, len(keys)) // after the others, the caches are theirs
				for range passes {
					switch kind {
					case "pressure":
						chunks[i] = append(chunks[i], press.lookups(s, len(keys))...)
					case "dependent":
						chunks[i] = append(chunks[i], chained(s, len(keys))...)
					default:
						chunks[i] = append(chunks[i], lookups(s, len(keys))...)
					}
				}
			}
		}
		for i := range subjects {
			times[i][kind] = median(chunks[i])
		}
	}
	var rows []lookupRow
	for i, s := range subjects {
		for _, kind := range keyKinds {
			n := batch
			if kind == "dependent" {
				n = 1
			}
			rows = append(rows, lookupRow{Family: t.family, Structure: s.name(), Keys: kind, Batch: n, NsPerLookup: times[i][kind]})
		}
	}
	return rows
}

// lookups returns the time per lookup of each chunk of n keys.
func lookups(s subject, n int) (list []float64) {
	var out [batch]uint32
	for c := 0; c+chunk <= n; c += chunk {
		start := time.Now()
		for i := c; i < c+chunk; i += batch {
			s.lookup(i, batch, out[:])
		}
		list = append(list, float64(time.Since(start))/chunk)
	}
	return list
}

// zero is not a constant, so that the compiler cannot cut the chain.
var zero atomic.Uint32

func chained(s subject, n int) (list []float64) {
	for c := 0; c+chunk <= n; c += chunk {
		start := time.Now()
		sink.Add(s.chain(c, chunk, zero.Load()))
		list = append(list, float64(time.Since(start))/chunk)
	}
	return list
}

var sink atomic.Uint32

// pressure is what else a router does with its caches: for each batch it reads
// 64 random lines of 4 MiB.
type pressure struct {
	lines [][8]uint64
	rng   *rand.Rand
}

func newPressure() *pressure {
	p := &pressure{lines: make([][8]uint64, 4<<20/64), rng: rand.New(rand.NewPCG(3, 3))}
	for i := range p.lines {
		p.lines[i][0] = uint64(i)
	}
	return p
}

func (p *pressure) touch() (sum uint64) {
	for range 64 {
		sum += p.lines[p.rng.Uint32()%uint32(len(p.lines))][0]
	}
	return sum
}

// lookups returns the time per lookup of each chunk, without the median time of
// the pressure itself.
func (p *pressure) lookups(s subject, n int) (list []float64) {
	var out [batch]uint32
	var itself []float64
	sum := uint64(0)
	for c := 0; c+chunk <= n; c += chunk {
		start := time.Now()
		for i := c; i < c+chunk; i += batch {
			sum += p.touch()
			s.lookup(i, batch, out[:])
		}
		list = append(list, float64(time.Since(start))/chunk)
		start = time.Now()
		for range chunk / batch {
			sum += p.touch()
		}
		itself = append(itself, float64(time.Since(start))/chunk)
	}
	sink.Add(uint32(sum))
	own := median(itself)
	for i := range list {
		list[i] -= own
	}
	return list
}

func median(list []float64) float64 { return percentile(list, 50) }

func percentile(list []float64, p int) float64 {
	if len(list) == 0 {
		return 0
	}
	list = slices.Sorted(slices.Values(list))
	return list[min(len(list)-1, len(list)*p/100)]
}

// measureUpdates times single changes of random prefixes: each is withdrawn,
// announced again, and then given another next hop; and a default route that
// comes and goes.
func measureUpdates(o *options, t *table, subjects []subject) ([]opRow, error) {
	var rows []opRow
	clock := clockCost()
	for _, s := range subjects {
		rng := rand.New(rand.NewPCG(5, 5))
		ops := o.ops
		if s.name() != "gorouter" {
			ops /= 10
		}
		def := netip.MustParsePrefix("0.0.0.0/0")
		if t.family == 6 {
			def = netip.MustParsePrefix("::/0")
		}
		var deletes, inserts, replaces, flaps []float64
		for range ops {
			i := rng.IntN(len(t.prefixes))
			p, hop := t.prefixes[i], t.hops[i]
			start := time.Now()
			s.delete(p)
			deleted := time.Now()
			if err := s.insert(p, hop); err != nil {
				return nil, err
			}
			inserted := time.Now()
			// Another prefix, because this one is in all caches now.
			j := rng.IntN(len(t.prefixes))
			again := time.Now()
			if err := s.insert(t.prefixes[j], t.hops[j]%nextHops+1); err != nil {
				return nil, err
			}
			replaced := time.Now()
			t.hops[j] = t.hops[j]%nextHops + 1
			from := time.Now()
			if err := s.insert(def, 1); err != nil {
				return nil, err
			}
			s.delete(def)
			flapped := time.Now()
			deletes = append(deletes, float64(deleted.Sub(start))-clock)
			inserts = append(inserts, float64(inserted.Sub(deleted))-clock)
			replaces = append(replaces, float64(replaced.Sub(again))-clock)
			flaps = append(flaps, float64(flapped.Sub(from))-clock)
		}
		for _, x := range []struct {
			op    string
			times []float64
		}{{"delete", deletes}, {"insert", inserts}, {"replace", replaces}, {"default route flap", flaps}} {
			p50 := percentile(x.times, 50)
			rows = append(rows, opRow{Family: t.family, Structure: s.name(), Op: x.op, P50: p50, P99: percentile(x.times, 99), PerSecond: 1e9 / max(p50, 1)})
		}
	}
	return rows, nil
}

// clockCost is what reading the clock adds to each interval.
func clockCost() float64 {
	var list []float64
	for range 1000 {
		start := time.Now()
		list = append(list, float64(time.Since(start)))
	}
	return median(list)
}

// churnPrefixes flap as in a busy hour: 77 of 100 changes announce, with another
// next hop, the others withdraw.
const churnPrefixes = 3551

// measureChurn runs a reader alone and beside a writer that changes the table
// without a pause. The other structures need a lock or a pointer for that, which
// this does not compare.
func measureChurn(o *options, t *table, subjects []subject) ([]opRow, error) {
	keys := makeKeys(t, "announced", o.keys)
	var rows []opRow
	for _, s := range subjects {
		if _, ok := s.(*own); !ok {
			continue
		}
		s.use(keys)
		var alone, beside, change []float64
		for range 4 {
			alone = append(alone, reading(s, len(keys), o.churn/2)...)
			var stop atomic.Bool
			var wg sync.WaitGroup
			var failure error
			wg.Go(func() {
				var list []float64
				list, failure = churn(s, t, &stop)
				change = append(change, list...)
			})
			beside = append(beside, reading(s, len(keys), o.churn)...)
			stop.Store(true)
			wg.Wait()
			if failure != nil {
				return nil, fmt.Errorf("churn: %w", failure)
			}
		}
		for _, x := range []struct {
			op    string
			times []float64
		}{{"churn", change}, {"lookup alone", alone}, {"lookup beside churn", beside}} {
			p50 := median(x.times)
			rows = append(rows, opRow{Family: t.family, Structure: s.name(), Op: x.op, P50: p50, P99: percentile(x.times, 99), PerSecond: 1e9 / p50})
		}
	}
	return rows, nil
}

// reading looks up for a while.
func reading(s subject, n int, d time.Duration) (list []float64) {
	for start := time.Now(); time.Since(start) < d; {
		list = append(list, lookups(s, n)...)
	}
	return list
}

// churn returns the time per change of each 256 changes.
func churn(s subject, t *table, stop *atomic.Bool) (list []float64, err error) {
	rng := rand.New(rand.NewPCG(9, 9))
	n := min(churnPrefixes, len(t.prefixes))
	type step struct {
		at       int32
		hop      uint16
		withdraw bool
	}
	steps := make([]step, 1<<16)
	for i := range steps {
		steps[i] = step{int32(rng.IntN(n)), uint16(1 + rng.IntN(nextHops)), rng.IntN(100) >= 77}
	}
	const turn = 256
	for at := 0; !stop.Load(); at = (at + turn) % len(steps) {
		start := time.Now()
		for _, x := range steps[at : at+turn] {
			if x.withdraw {
				s.delete(t.prefixes[x.at])
			} else if err := s.insert(t.prefixes[x.at], x.hop); err != nil {
				return list, err
			}
		}
		list = append(list, float64(time.Since(start))/turn)
	}
	for i := range n { // as they were
		if err := s.insert(t.prefixes[i], t.hops[i]); err != nil {
			return list, err
		}
	}
	return list, nil
}
