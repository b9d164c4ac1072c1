package packet

import (
	"bytes"
	"testing"

	"gorouter/port"
	"gorouter/skb"
)

// Two ports in one broadcast domain hear each other and not themselves: nothing
// goes round.
func TestTwoPortsInOneBridgeDoNotLoop(t *testing.T) {
	const secondDev = "p1"
	r := newCable(t)
	r.lab.Link(r.here, secondDev, r.peer, "far1")
	r.peer.MustRun("ip", "link", "add", "br0", "type", "bridge", "mcast_snooping", "0")
	for _, dev := range []string{peerDev, "far1", "br0"} {
		if dev != "br0" {
			r.peer.MustRun("ip", "link", "set", dev, "master", "br0")
		}
		r.peer.Up(dev)
	}
	r.open()
	c := r.config()
	c.Interface = secondDev
	var second *port.Port
	err := r.here.Do(func() (err error) {
		second, err = Open(c)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := second.Device.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := second.Device.Start(); err != nil {
		t.Fatal(err)
	}
	r.until("both links", func() bool { return r.port.Up() && second.Up() })

	both := []*port.Port{r.port, second}
	take := func(p *port.Port) (got [][]byte) {
		var b skb.Batch
		p.Rx[0].Poll(&b, skb.BatchSize, 1)
		for _, h := range b.Handles() {
			got = append(got, bytes.Clone(r.arena.Bytes(h)))
		}
		r.cache.FreeBatch(b.Handles())
		p.Rx[0].EndTurn(true)
		return got
	}
	broadcast := func(n int) []byte {
		f := plain(60, n)
		copy(f, []byte{255, 255, 255, 255, 255, 255})
		return f
	}
	// The bridge begins to forward when it has seen the carriers.
	r.until("a frame from port to port", func() bool {
		r.port.Tx[0].Send(r.batch(broadcast(0)), false)
		return len(take(second)) > 0
	})
	r.until("silence", func() bool { return len(take(r.port))+len(take(second)) == 0 })
	for n := 1; n <= 20; n++ {
		from, to := both[n%2], both[1-n%2]
		from.Tx[0].Send(r.batch(broadcast(n)), false)
		var got [][]byte
		r.until("the frame", func() bool { got = append(got, take(to)...); return len(got) > 0 })
		if len(got) != 1 || numberOf(got[0]) != n {
			t.Fatalf("frame %d came as %d frames, the first %x", n, len(got), got[0])
		}
		// What would come back is queued before the other port has its copy.
		if echo := take(from); len(echo) != 0 {
			t.Fatalf("frame %d came back to its own port: %x", n, echo)
		}
	}
}
