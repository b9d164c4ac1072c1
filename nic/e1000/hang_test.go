package e1000_test

import (
	"testing"
	"time"

	"gorouter/skb"
)

// A chip that stops sending under load is brought back, no frame is lost
// unnamed, no buffer is lost at all, and frames flow again. The chip is hung by
// not being stepped; its rules are watched through the reset.
func TestHangUnderLoadOnTheModel(t *testing.T) {
	r := newRig(t, defaultRig())
	defer r.close()
	house := func(d time.Duration) {
		t.Helper()
		for range d / (10 * time.Millisecond) {
			r.clk.Sleep(10 * time.Millisecond)
			for _, dev := range r.dev {
				if err := dev.Housekeep(r.clk.Now()); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	sent, received := 0, 0
	for range 20 {
		r.send(0, make60(20)...)
		sent += 20
		r.step()
		received += r.receive(1, nil)
		r.tx[0].Reclaim()
	}
	r.send(0, make60(20)...)
	r.send(1, make60(20)...)
	sent += 20
	r.step() // 20 received by p0, not polled
	house(200 * time.Millisecond)
	r.send(0, make60(30)...)
	sent += 30
	house(1300 * time.Millisecond)
	r.audit()
	s := r.dev[0].Stats()
	if s["tx_hangs"] != 1 || s["resets"] != 1 || r.dev[1].Stats()["resets"] != 0 {
		t.Errorf("%d hangs, %d resets", s["tx_hangs"], s["resets"])
	}
	tc, rc := &r.tx[0].Counters().Live, &r.rx[0].Counters().Live
	if rc.Drops[skb.RxAborted] != 20 {
		t.Errorf("%d received frames aborted, want 20", rc.Drops[skb.RxAborted])
	}
	received += r.receive(1, nil)
	if received != int(tc.Packets) || sent != int(tc.Packets+tc.Drops[skb.TxAborted]) || tc.Drops[skb.TxAborted] != 30 {
		t.Errorf("%d sent, %d aborted, %d of %d received", tc.Packets, tc.Drops[skb.TxAborted], received, sent)
	}
	for range 10 {
		r.send(0, make60(20)...)
		r.send(1, make60(20)...)
		r.step()
		if n, m := r.receive(1, nil), r.receive(0, nil); n != 20 || m != 20 {
			t.Fatalf("%d and %d of 20 frames arrive after the reset", n, m)
		}
		r.step()
		r.tx[0].Reclaim()
		r.tx[1].Reclaim()
		house(50 * time.Millisecond)
	}
	r.ok()
}
