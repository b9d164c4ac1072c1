package dataplane

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"gorouter/clock"
	"gorouter/rx"
	"gorouter/tx"
)

// tunedRx and tunedTx are queues with options; they note on which worker they
// were changed.
type tunedRx struct {
	wireRx
	opts    rx.Options
	changes int // plain: the race detector watches who writes it
}

func (q *tunedRx) Options() rx.Options    { return q.opts }
func (q *tunedRx) Configure(o rx.Options) { q.opts = o; q.changes++ }

type tunedTx struct {
	wireTx
	opts    tx.Options
	changes int
}

func (q *tunedTx) Options() tx.Options    { return q.opts }
func (q *tunedTx) Configure(o tx.Options) { q.opts = o; q.changes++ }

// twoWorkersWith is twoWorkers with queues that the caller makes of wires.
func twoWorkersWith(t testing.TB, c *clock.Clock, queues func(i int, w *wire) (rx.Queue, tx.Queue)) *lab {
	return newLabWith(t, queues, func(k *Config) {
		if c != nil {
			k.Clock = c
		}
		k.Workers = NewWorkers(k.Arena, k.FIB, k.Clock, 2)
		k.Assign = []int{0, 1, 0}
	})
}

// newTuned is a lab with two workers; the queues of ports 0 and 1 have options,
// those of port 2 have none.
func newTuned(t testing.TB, c *clock.Clock) (l *lab, rxs []*tunedRx, txs []*tunedTx) {
	t.Helper()
	l = twoWorkersWith(t, c, func(i int, w *wire) (rx.Queue, tx.Queue) {
		if i == 2 {
			return w.rxq(), w.txq()
		}
		r := &tunedRx{wireRx: wireRx{w}, opts: rx.OptionTable.Defaults()}
		x := &tunedTx{wireTx: wireTx{w}, opts: tx.OptionTable.Defaults()}
		rxs, txs = append(rxs, r), append(txs, x)
		return r, x
	})
	return l, rxs, txs
}

func TestSettingsByName(t *testing.T) {
	for _, c := range []struct{ name, value, problem string }{
		{"poll.weight", "32", ""},
		{"poll.vector", "1", ""},
		{"poll.budget", "65536", ""},
		{"poll.time_limit", "50us", ""},
		{"poll.idle", "spin", ""},
		{"poll.idle_max", "1ms", ""},
		{"ip.icmp_rate", "7", ""},
		{"ip.icmp_redirects", "true", ""},
		{"ip.icmp_burst", "0", `ip.icmp_burst is "0", expected 1 to 100000 messages`},
		{"ip.ttl", "0", "ip.ttl: there is no such option, expected one of icmp_rate"},
		{"ports.p0.weight", "16", ""},
		{"ports.p2.weight", "16", ""},
		{"ports.p0.weight", "auto", ""},
		{"ports.p0.rx.replenish", "64", ""},
		{"ports.p0.rx.replenish_at", "end", ""},
		{"ports.p0.rx.copybreak", "200", ""},
		{"ports.p1.tx.doorbell", "timer", ""},
		{"ports.p1.tx.doorbell_timer", "50us", ""},
		{"ports.p1.tx.report_every", "1", ""},
		{"ports.p1.tx.reclaim_at", "128", ""},
		{"ports.p1.tx.wake_at", "8", ""},

		{"poll.weight", "0", `poll.weight is "0", expected 1 to 4096 frames`},
		{"poll.vector", "65", `poll.vector is "65", expected 1 to 64 frames`},
		{"poll.idle", "sleep", `poll.idle is "sleep", expected one of spin, backoff, interrupt`},
		{"poll.time_limit", "2", `poll.time_limit is "2", expected a time with unit`},
		{"poll.wieght", "1", "poll.wieght: there is no such option, expected one of weight, vector"},
		{"ports.p0.weight", "4097", `ports.p0.weight is "4097", expected auto or 1 to 4096 frames`},
		{"ports.p0.weight", "010", `ports.p0.weight is "010", expected auto or 1 to 4096 frames`},
		{"ports.p0.rx.replenish", "0", `ports.p0.rx.replenish is "0", expected 1 to 4096 descriptors`},
		{"ports.p0.rx.replenish_at", "later", `ports.p0.rx.replenish_at is "later", expected one of turn, end`},
		{"ports.p0.rx.ring", "512", "ports.p0.rx.ring cannot be changed on a running router"},
		{"ports.p0.tx.reclaim", "lazy", "ports.p0.tx.reclaim cannot be changed on a running router"},
		{"ports.p0.tx.doorbel", "frame", "ports.p0.tx.doorbel: there is no such option, expected one of ring, reclaim"},
		{"ports.p0.mtu", "1500", "ports.p0.mtu: there is no such option of a port that can be changed"},
		{"ports.p2.rx.replenish", "64", "ports.p2.rx: queues of this kind of port have no ring and no options"},
		{"ports.p2.tx.doorbell", "frame", "ports.p2.tx: queues of this kind of port have no ring and no options"},
		{"ports.p9.rx.replenish", "64", "ports.p9: there is no such port, expected one of p0, p1, p2"},
		{"ports.p0", "64", "ports.p0: that is a port"},
		{"ports.", "", "there is no such port"},
		{"buffers.count", "64", "buffers.count: there is no such option, expected poll.…, ip.… or ports.…"},
		{"", "", "there is no such option"},
	} {
		l, _, _ := newTuned(t, nil)
		before := l.r.conf.clone()
		err := l.r.Set(c.name, c.value)
		switch {
		case c.problem == "":
			got, getErr := l.r.Setting(c.name)
			if err != nil || getErr != nil || strings.ReplaceAll(got, "µs", "us") != c.value {
				t.Errorf("%s=%s: %v; reads %q, %v", c.name, c.value, err, got, getErr)
			}
		case err == nil || !strings.Contains(err.Error(), c.problem):
			t.Errorf("%s=%s: %v, want %s", c.name, c.value, err, c.problem)
		case fmt.Sprint(before) != fmt.Sprint(l.r.conf.values):
			t.Errorf("%s=%s failed and changed something", c.name, c.value)
		}
		l.close()
	}
}

func TestOptionsInForceAreKnown(t *testing.T) {
	l, _, _ := newTuned(t, nil)
	for name, want := range map[string]string{
		"poll.weight": "64", "ip.icmp_rate": "1000", "ip.directed_broadcast": "false", "ports.p0.weight": "auto", "ports.p0.rx.ring": "256", "ports.p1.tx.doorbell": "batch",
	} {
		if got, err := l.r.Setting(name); err != nil || got != want {
			t.Errorf("%s is %q, %v; want %q", name, got, err, want)
		}
	}
	for _, name := range []string{"poll.none", "ports.p0.rx.none", "ports.p0.tx.none", "ports.p2.rx.ring", "ports.p9.weight", "x"} {
		if got, err := l.r.Setting(name); err == nil {
			t.Errorf("%s is %q", name, got)
		}
	}
}

func TestWholeTablesOfOptions(t *testing.T) {
	l, rxs, txs := newTuned(t, nil)
	r, x := rxs[0].opts, txs[0].opts
	r.Replenish, r.ReplenishAt = 100, rx.ReplenishEnd
	x.Doorbell, x.ReclaimAt = tx.DoorbellFrame, 10
	if err := l.r.SetRx("p0", r); err != nil || rxs[0].opts != r || rxs[1].changes != 0 {
		t.Errorf("%v, %+v", err, rxs[0].opts)
	}
	if err := l.r.SetTx("p0", x); err != nil || txs[0].opts != x || txs[1].changes != 0 {
		t.Errorf("%v, %+v", err, txs[0].opts)
	}
	r.Ring, r.Replenish = 512, 0
	x.Ring, x.ReportEvery = 512, 0
	for _, c := range []struct {
		err  error
		want []string
	}{
		{l.r.SetRx("p0", r), []string{"ports.p0.rx.ring cannot be changed", "ports.p0.rx.replenish is 0, expected 1 to 4096"}},
		{l.r.SetTx("p0", x), []string{"ports.p0.tx.ring cannot be changed", "ports.p0.tx.report_every is 0, expected 1 to 256"}},
		{l.r.SetRx("p2", r), []string{"ports.p2.rx: queues of this kind"}},
		{l.r.SetTx("p2", x), []string{"ports.p2.tx: queues of this kind"}},
		{l.r.SetRx("none", r), []string{"ports.none: there is no such port"}},
		{l.r.SetTx("none", x), []string{"ports.none: there is no such port"}},
	} {
		for _, want := range c.want {
			if c.err == nil || !strings.Contains(c.err.Error(), want) {
				t.Errorf("%v does not say %q", c.err, want)
			}
		}
	}
	if rxs[0].opts.Ring != 256 || txs[0].opts.Ring != 256 || rxs[0].changes != 1 || txs[0].changes != 1 {
		t.Error("a refused change arrived")
	}
}

// Any list of settings of which one is wrong changes nothing, in whatever place
// that one is.
func TestChangesAreAllOrNothing(t *testing.T) {
	good := []Setting{{"poll.weight", "7"}, {"poll.budget", "9"}, {"ip.icmp_burst", "3"}, {"ports.p0.rx.replenish", "33"}, {"ports.p1.tx.doorbell", "frame"}, {"ports.p2.weight", "5"}}
	bad := []Setting{{"poll.weight", "0"}, {"ports.p0.rx.ring", "80"}, {"ports.p2.rx.replenish", "1"}, {"nothing", "1"}}
	rapid.Check(t, func(rt *rapid.T) {
		l, rxs, txs := newTuned(t, nil)
		defer l.close()
		list := rapid.SliceOf(rapid.SampledFrom(good)).Draw(rt, "good")
		i := rapid.IntRange(0, len(list)).Draw(rt, "place")
		wrong := rapid.SampledFrom(bad).Draw(rt, "bad")
		mixed := append(append(append([]Setting{}, list[:i]...), wrong), list[i:]...)
		before := fmt.Sprint(l.r.conf.values, l.r.workers[0].opts, rxs[0].opts, txs[1].opts)
		err := l.r.Configure(mixed...)
		if err == nil || !strings.Contains(err.Error(), strings.TrimSuffix(wrong.Name, ".replenish")) {
			rt.Fatalf("%v: %v", mixed, err)
		}
		if after := fmt.Sprint(l.r.conf.values, l.r.workers[0].opts, rxs[0].opts, txs[1].opts); after != before {
			rt.Fatalf("%v: %s became %s", mixed, before, after)
		}
		if err := l.r.Configure(list...); err != nil {
			rt.Fatalf("%v: %v", list, err)
		}
		for _, s := range list {
			if got, err := l.r.Setting(s.Name); err != nil || got != s.Value {
				rt.Fatalf("%s is %q, %v", s.Name, got, err)
			}
		}
	})
}

// Changes reach the queues on their own workers, between rounds: the race
// detector watches the plain fields.
func TestChangesOnARunningRouter(t *testing.T) {
	defer goleak.VerifyNone(t)
	l, rxs, txs := newTuned(t, clock.Machine())
	for i := range 3 {
		l.load(t, i)
	}
	l.start()
	var wg sync.WaitGroup
	for g := range 3 {
		wg.Go(func() {
			for i := range 100 {
				err := l.r.Configure(Setting{"ip.icmp_rate", fmt.Sprint(1 + i)},
					Setting{"poll.weight", fmt.Sprint(1 + i)}, Setting{"poll.vector", fmt.Sprint(1 + (i+g)%64)},
					Setting{"poll.budget", fmt.Sprint(10 + i)}, Setting{fmt.Sprintf("ports.p%d.weight", g), fmt.Sprint(1 + i%30)},
					Setting{"ports.p0.rx.replenish", fmt.Sprint(1 + i)}, Setting{"ports.p1.tx.report_every", fmt.Sprint(1 + i)})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	was := l.r.Stats().Forwarded
	until(t, "traffic after the changes", func() bool { return l.r.Stats().Forwarded > was+1000 })
	want := l.r.conf.clone()
	l.r.Do(func(w *Worker) {
		if w.opts != want.poll || w.ip4 != want.ip {
			t.Errorf("worker %d has %+v %+v, want %+v %+v", w.id, w.opts, w.ip4, want.poll, want.ip)
		}
		for _, q := range w.queues {
			if q.weight != want.ports[q.port].weight {
				t.Errorf("port %d has weight %d, want %d", q.port, q.weight, want.ports[q.port].weight)
			}
		}
	})
	l.r.Stop()
	if rxs[0].opts != want.ports[0].rx || txs[1].opts != want.ports[1].tx || rxs[0].changes == 0 || rxs[1].changes != 0 {
		t.Errorf("%+v %+v", rxs[0].opts, txs[1].opts)
	}
	if err := l.r.Set("poll.weight", "1"); err == nil || !strings.Contains(err.Error(), "stopped") {
		t.Errorf("a stopped router: %v", err)
	}
	if err := checkConservation(l); err != nil {
		t.Error(err)
	}
}
