package e1000_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"gorouter/nic/e1000"
	"gorouter/skb"
)

// The strict model finds nothing wrong with the bring-up at any ring size, nor
// with a ring's worth of frames and a second bring-up after a stop.
func TestBringUpAtEveryRingSize(t *testing.T) {
	sizes := []int{80, 88, 96, 104, 112, 120, 128, 136, 256, 504, 512, 1000, 1024, 2040, 2048, 3000, 4088, 4096}
	for _, n := range sizes {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			o := defaultRig()
			o.arena = skb.Options{Buffers: 4*n + 1024, RingBytes: 2 << 20}
			o.rx.Ring, o.tx.Ring = n, n
			r := newRig(t, o)
			defer r.close()
			for round := range 2 {
				if got := r.rx[0].Owned(); got != n-1 {
					t.Fatalf("the device owns %d of %d descriptors", got, n)
				}
				got := 0
				for range n/3 + 1 {
					r.send(0, 60, 61, 62, 63, 64)
					r.step()
					got += r.receive(1, nil)
					r.tx[0].Reclaim()
				}
				if want := 5 * (n/3 + 1); got != want {
					t.Fatalf("round %d: %d of %d frames arrived", round, got, want)
				}
				r.ok()
				if round == 1 {
					break
				}
				for _, d := range r.dev {
					if err := d.Stop(); err != nil {
						t.Fatal(err)
					}
				}
				for _, d := range r.dev {
					if err := d.Start(); err != nil {
						t.Fatal(err)
					}
				}
			}
			r.step()
		})
	}
}

// Every length arrives as it was sent, padded with zeros to 60 bytes, whoever
// strips the FCS.
func TestFramesBothWays(t *testing.T) {
	for _, keep := range []bool{false, true} {
		t.Run(fmt.Sprintf("keepFCS=%v", keep), func(t *testing.T) {
			o := defaultRig()
			o.keepFCS = keep
			r := newRig(t, o)
			defer r.close()
			for from := range 2 {
				for n := 14; n <= skb.MaxFrame; n++ {
					// Old content behind a short frame must not leak.
					h := r.cache.Alloc()
					full := r.arena.Put(h, 100)
					for i := range full {
						full[i] = 0xee
					}
					r.arena.Trim(h, 0)
					fill(r.arena.Put(h, n), 1-from, n)
					want := padded(bytes.Clone(r.arena.Bytes(h)))
					var b skb.Batch
					b.Add(h)
					r.tx[from].Send(&b, false)
					r.step()
					got := 0
					r.receive(1-from, func(f []byte) {
						got++
						if !bytes.Equal(f, want) {
							t.Fatalf("%d bytes from port %d: got %d bytes\n%x\nwant\n%x", n, from, len(f), f, want)
						}
					})
					if got != 1 {
						t.Fatalf("%d bytes from port %d: %d frames arrived", n, from, got)
					}
					r.step()
					r.tx[from].Reclaim()
				}
				if p := r.tx[from].Pending(); p != 0 {
					t.Errorf("%d frames still on the transmit ring", p)
				}
			}
		})
	}
}

// The filter lets pass what it should, and promisc more.
func TestAddressFilter(t *testing.T) {
	r := newRig(t, defaultRig())
	defer r.close()
	count := func(dst [6]byte) int {
		h := r.frame(60, 1, 0)
		copy(r.arena.Bytes(h), dst[:])
		var b skb.Batch
		b.Add(h)
		r.tx[0].Send(&b, false)
		r.step()
		n := r.receive(1, nil)
		r.step()
		r.tx[0].Reclaim()
		return n
	}
	other, group, bcast := [6]byte{2, 9, 9, 9, 9, 9}, [6]byte{1, 0, 0x5e, 0, 0, 5}, [6]byte{255, 255, 255, 255, 255, 255}
	if count(rigMAC(1)) != 1 || count(bcast) != 1 {
		t.Error("own address or broadcast was not taken")
	}
	if count(other) != 0 || count(group) != 0 {
		t.Error("a frame for others was taken")
	}
	if err := r.dev[1].SetMAC(other); err != nil {
		t.Fatal(err)
	}
	if count(other) != 1 || count(rigMAC(1)) != 0 {
		t.Error("the address did not change on the running device")
	}
	if r.dev[1].Port().MAC() != other || r.dev[1].MACSource() != e1000.MACConfigured {
		t.Error("the port does not know its new address")
	}
	if err := r.dev[1].SetMAC(group); err == nil {
		t.Error("a group address was accepted")
	}
	// A changed address outlives a restart.
	if err := r.dev[1].Reset("test"); err != nil {
		t.Fatal(err)
	}
	if count(other) != 1 {
		t.Error("the changed address was lost in a reset")
	}
}

// The chip's counters, collected by Housekeep, agree with the rings' own.
func TestStatisticsAgreeWithRings(t *testing.T) {
	r := newRig(t, defaultRig())
	defer r.close()
	now := r.clk.Now()
	var rest []string
	for round := range 50 {
		for from := range 2 {
			r.send(from, 60, 64, 100+round, 1514, 14)
		}
		r.step()
		r.receive(0, nil)
		r.receive(1, nil)
		r.tx[0].Reclaim()
		r.tx[1].Reclaim()
		if round%7 == 0 {
			now += 1e9
			for _, d := range r.dev {
				if err := d.Housekeep(now); err != nil {
					t.Fatal(err)
				}
			}
		}
		if round == 25 {
			if err := r.dev[1].Reset("test"); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i, d := range r.dev {
		if err := d.CheckLink(); err != nil {
			t.Fatal(err)
		}
		s := d.Stats()
		rc, tc := r.rx[i].Counters().Live, r.tx[i].Counters().Live
		// The chip counts the FCS.
		for name, want := range map[string]uint64{
			"GPRC": rc.Packets, "TPR": rc.Packets, "GORC": rc.Bytes + 4*rc.Packets, "TOR": rc.Bytes + 4*rc.Packets,
			"GPTC": tc.Packets, "TPT": tc.Packets, "GOTC": tc.Bytes + 4*tc.Packets, "TOT": tc.Bytes + 4*tc.Packets,
			"MPC": 0, "RNBC": 0, "CRCERRS": 0,
		} {
			if s[name] != want {
				t.Errorf("p%d: %s is %d, the ring counted %d", i, name, s[name], want)
			}
		}
		if tc.Packets != 250 || rc.Packets != 250 {
			t.Errorf("p%d: %d sent, %d received, want 250", i, tc.Packets, rc.Packets)
		}
		rest = append(rest, fmt.Sprint(s["resets"]))
	}
	if strings.Join(rest, " ") != "0 1" {
		t.Errorf("resets %v", rest)
	}
}

// A frame that finds no descriptor is the chip's to count.
func TestMissedFramesAreCounted(t *testing.T) {
	o := defaultRig()
	o.rx.Ring, o.lossless = 80, false
	r := newRig(t, o)
	defer r.close()
	for range 4 {
		r.send(0, make60(32)...)
		r.step()
		r.tx[0].Reclaim()
	}
	got := r.receive(1, nil)
	if err := r.dev[1].CheckLink(); err != nil {
		t.Fatal(err)
	}
	if got != 79 || r.dev[1].Stats()["MPC"] != 128-79 || r.dev[1].Stats()["rx_missed"] != 128-79 {
		t.Errorf("%d received, %d missed of 128", got, r.dev[1].Stats()["MPC"])
	}
}

func make60(n int) []int {
	l := make([]int, n)
	for i := range l {
		l[i] = 60
	}
	return l
}

// A cable that is pulled out is noticed, and frames flow again after.
func TestLinkFlap(t *testing.T) {
	r := newRig(t, defaultRig())
	defer r.close()
	now := r.clk.Now()
	see := func(want bool) {
		t.Helper()
		now += 1e9
		for i, d := range r.dev {
			if err := d.Housekeep(now); err != nil {
				t.Fatal(err)
			}
			if d.Port().Up() != want {
				t.Errorf("p%d: up %v, want %v", i, d.Port().Up(), want)
			}
		}
	}
	see(true)
	r.cable.SetLink(false)
	see(false)
	r.cable.SetLink(true)
	see(true)
	r.send(0, 60)
	r.step()
	if n := r.receive(1, nil); n != 1 {
		t.Errorf("%d frames after the flap", n)
	}
}

// MTU changes need a stop, and decide what is sent and received.
func TestMTUChange(t *testing.T) {
	o := defaultRig()
	o.arena.Stride = 4096
	r := newRig(t, o)
	defer r.close()
	through := func(n int) int {
		r.send(0, n)
		r.step()
		got := r.receive(1, func(b []byte) {
			want := make([]byte, n)
			fill(want, 1, 0)
			if !bytes.Equal(b, want) {
				t.Errorf("%d bytes arrived changed", n)
			}
		})
		r.step()
		r.tx[0].Reclaim()
		return got
	}
	if through(1518) != 1 || through(1519) != 0 {
		t.Error("MTU 1500: wrong limit")
	}
	if err := r.dev[0].SetMTU(2000); err == nil || !strings.Contains(err.Error(), "stop") {
		t.Errorf("MTU change while running: %v", err)
	}
	for i, mtu := range []int{2026, 1800} {
		if err := r.dev[i].Stop(); err != nil {
			t.Fatal(err)
		}
		if err := r.dev[i].SetMTU(9000); err == nil {
			t.Error("MTU 9000 was accepted")
		}
		if err := r.dev[i].SetMTU(mtu); err != nil {
			t.Fatal(err)
		}
		if err := r.dev[i].Start(); err != nil {
			t.Fatal(err)
		}
		if got := r.dev[i].Port().MTU; got != mtu {
			t.Errorf("port MTU %d", got)
		}
	}
	if through(1519) != 1 || through(1818) != 1 || through(2044) != 1 || through(2045) != 0 {
		t.Error("long frames: wrong limit")
	}
	if n := r.tx[0].Counters().Live.Drops[skb.TxTooLong]; n != 2 {
		t.Errorf("%d frames dropped as too long, want 2", n)
	}
}

// Frames that were on the rings when the device was stopped are dropped under
// their names, none is lost unnamed.
func TestRestartNamesEveryFrame(t *testing.T) {
	r := newRig(t, defaultRig())
	defer r.close()
	r.send(0, make60(40)...)
	r.step() // 40 received, not polled
	r.send(1, make60(30)...)
	// 30 queued, not yet sent
	for _, d := range r.dev {
		if err := d.Reset("test"); err != nil {
			t.Fatal(err)
		}
	}
	r.audit()
	rc, tc := r.rx[1].Counters().Live, r.tx[1].Counters().Live
	if rc.Packets != 0 || rc.Bytes != 0 || rc.Drops[skb.RxAborted] != 40 {
		t.Errorf("receive: %d packets, %d bytes, %d dropped", rc.Packets, rc.Bytes, rc.Drops[skb.RxAborted])
	}
	if tc.Packets != 0 || tc.Bytes != 0 || tc.Drops[skb.TxAborted] != 30 {
		t.Errorf("transmit: %d packets, %d bytes, %d aborted", tc.Packets, tc.Bytes, tc.Drops[skb.TxAborted])
	}
	if n := r.tx[0].Counters().Live.Drops[skb.TxAborted]; n != 0 {
		t.Errorf("%d frames that had been sent are counted as aborted", n)
	}
}

// The packet path over model and rings allocates nothing.
func TestNoAllocations(t *testing.T) {
	r := newRig(t, defaultRig())
	defer r.close()
	var b skb.Batch
	round := func() {
		for i := range 32 {
			b.Add(r.frame(60, 1, i))
		}
		r.tx[0].Send(&b, true)
		r.tx[0].Flush()
		r.step()
		r.rx[1].Poll(&b, 64, 0)
		r.rx[1].Replenish()
		r.rx[1].EndTurn(true)
		r.cache.FreeBatch(b.Handles())
		b.Reset()
		r.tx[0].Reclaim()
		r.tx[0].Tick(0)
	}
	round()
	if skb.Debug {
		return // the debug build keeps owners' names
	}
	if n := testing.AllocsPerRun(100, round); n != 0 {
		t.Errorf("%v allocations a round of 32 frames", n)
	}
	if n := testing.AllocsPerRun(100, func() { _ = r.dev[0].Housekeep(0) }); n != 0 {
		t.Errorf("%v allocations a Housekeep with nothing due", n)
	}
}
