package model

import (
	"testing"

	"gorouter/nic/e1000/regs"
	"gorouter/rx"
	"gorouter/skb"
	"gorouter/tx"
)

// TestRealRingsKeepTheRules lets the rings of the router, driven as a worker does,
// meet the chip: all frames come back, no rule is broken, no buffer is lost.
func TestRealRingsKeepTheRules(t *testing.T) {
	d := newDriver(t, nil, 80, Config{CheckContent: true})
	opt := rx.OptionTable.Defaults()
	opt.Ring = 80
	r, err := rx.NewE1000(rx.E1000Config{Name: "rx", Arena: d.arena, Cache: d.cache, Regs: d.chip, Tail: regs.RDT, Options: opt})
	if err != nil {
		t.Fatal(err)
	}
	topt := tx.OptionTable.Defaults()
	topt.Ring = 80
	q, err := tx.NewE1000(tx.E1000Config{Name: "tx", Arena: d.arena, Cache: d.cache, Regs: d.chip, Tail: regs.TDT, MaxFrame: 1518, Options: topt})
	if err != nil {
		t.Fatal(err)
	}
	d.rxMem, d.txMem = r.Memory(), q.Memory()
	d.up()
	r.Start()
	s := d.plug(CableOptions{})
	var b skb.Batch
	got := 0
	for i := range 500 {
		for k := range 1 + i%30 {
			s.out = append(s.out, makeFrame(testMAC, 60+k*40, byte(k)))
			got++
		}
		d.step()
		for r.Poll(&b, 64, 0) > 0 {
			r.Replenish()
			q.Send(&b, true)
		}
		r.EndTurn(true)
		q.Flush()
		d.step()
		q.Reclaim()
	}
	if len(s.got) != got {
		t.Errorf("%d of %d", len(s.got), got)
	}
	d.clean()
	if _, err := d.arena.Audit(r, q); err != nil {
		t.Error(err)
	}
}
