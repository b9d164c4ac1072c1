package dataplane

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"testing"

	"github.com/google/gopacket/ip4defrag"
	"github.com/google/gopacket/layers"
	"pgregory.net/rapid"

	"gorouter/fib"
	"gorouter/internal/inet"
	"gorouter/skb"
)

// setMTU limits the way to the host on a port.
func (l *lab) setMTU(portIndex uint16, host string, mtu int) {
	l.t.Helper()
	adj, ok := l.r.neigh.Find(portIndex, addr4(netip.MustParseAddr(host)))
	if !ok {
		l.t.Fatal("no neighbour")
	}
	l.fib.SetAdjacency(adj, func(a *fib.Adjacency) { a.MTU = uint16(mtu) })
}

// copiedOptions are the options of a list that every fragment has.
func copiedOptions(o []byte) (out []byte) {
	for len(o) > 0 && o[0] != 0 {
		n := 1
		if o[0] != 1 {
			n = int(o[1])
		}
		if o[0] >= 128 {
			out = append(out, o[:n]...)
		}
		o = o[n:]
	}
	return out
}

// checkFragments puts fragments of a packet together, byte by byte, and says
// what is wrong with them. whole is the packet as it would have left in one
// piece, mtu the limit.
func checkFragments(whole []byte, fragments [][]byte, mtu int) error {
	hl := int(whole[0]&15) * 4
	data := whole[hl:]
	base := int(binary.BigEndian.Uint16(whole[6:])&0x1fff) * 8
	more := binary.BigEndian.Uint16(whole[6:])&0x2000 != 0
	got := make([]byte, len(data))
	seen := make([]int, len(data))
	next := base
	for i, f := range fragments {
		p := f[14:]
		h := int(p[0]&15) * 4
		word := binary.BigEndian.Uint16(p[6:])
		at, last := int(word&0x1fff)*8, i == len(fragments)-1
		switch {
		case len(p) > mtu:
			return fmt.Errorf("fragment %d has %d bytes, the limit is %d", i, len(p), mtu)
		case int(binary.BigEndian.Uint16(p[2:])) != len(p) || h < 20 || h > len(p):
			return fmt.Errorf("fragment %d: lengths %x in %d bytes", i, p[:4], len(p))
		case inet.Checksum(p[:h]) != 0:
			return fmt.Errorf("fragment %d: checksum", i)
		case at != next:
			return fmt.Errorf("fragment %d begins at %d, want %d", i, at, next)
		case word&0xc000 != binary.BigEndian.Uint16(whole[6:])&0xc000:
			return fmt.Errorf("fragment %d: flags %#x", i, word)
		case (word&0x2000 != 0) != (!last || more):
			return fmt.Errorf("fragment %d of %d: more fragments is %v", i, len(fragments), word&0x2000 != 0)
		case !last && (len(p)-h)%8 != 0, len(p) == h:
			return fmt.Errorf("fragment %d has %d bytes of data", i, len(p)-h)
		case p[1] != whole[1] || !bytes.Equal(p[4:6], whole[4:6]) || p[8] != whole[8] || p[9] != whole[9] || !bytes.Equal(p[12:20], whole[12:20]):
			return fmt.Errorf("fragment %d: header %x of %x", i, p[:20], whole[:20])
		case i == 0 && !bytes.Equal(p[20:h], whole[20:hl]):
			return fmt.Errorf("first fragment's options %v, want %v", p[20:h], whole[20:hl])
		case i > 0 && !bytes.Equal(copiedOptions(p[20:h]), copiedOptions(whole[20:hl])):
			return fmt.Errorf("fragment %d's options %v of %v", i, p[20:h], whole[20:hl])
		}
		for o := p[20:h]; i > 0 && len(o) > 0 && o[0] != 0; {
			if o[0] < 128 && o[0] != 1 {
				return fmt.Errorf("fragment %d has option %d, which is the first one's", i, o[0])
			}
			if o[0] == 1 {
				o = o[1:]
			} else {
				o = o[o[1]:]
			}
		}
		for k, b := range p[h:] {
			if at-base+k >= len(got) {
				return fmt.Errorf("fragment %d goes beyond the packet", i)
			}
			got[at-base+k] = b
			seen[at-base+k]++
		}
		next = at + len(p) - h
		// No fragment is shorter than it has to be, but the last.
		if !last && len(p)+8 <= mtu {
			return fmt.Errorf("fragment %d has %d bytes where %d fit", i, len(p), mtu)
		}
	}
	for i, n := range seen {
		if n != 1 {
			return fmt.Errorf("byte %d was sent %d times", i, n)
		}
	}
	if !bytes.Equal(got, data) {
		return fmt.Errorf("data changed")
	}
	return nil
}

// defragment has gopacket put fragments together. It does not take a last one
// of less than eight bytes, nor headers with options; then the answer is nil.
func defragment(t interface{ Fatalf(string, ...any) }, tb testing.TB, fragments [][]byte) *layers.IPv4 {
	if f := fragments[len(fragments)-1]; f[14] != 0x45 || len(f)-34 < 8 {
		return nil
	}
	d := ip4defrag.NewIPv4Defragmenter()
	var whole *layers.IPv4
	for i, f := range fragments {
		_, ip, _ := decode(tb, f)
		got, err := d.DefragIPv4(ip)
		if err != nil || (got != nil) != (i == len(fragments)-1) {
			t.Fatalf("fragment %d of %d: %v, %v", i, len(fragments), got, err)
		}
		whole = got
	}
	return whole
}

func TestLongPacketsLeaveInFragments(t *testing.T) {
	for _, c := range []struct {
		length, mtu, want int // length of the IP packet
	}{
		{1400, 1400, 1}, {1401, 1400, 2}, {1500, 1400, 2}, {1500, 68, 31}, {1500, 1499, 2}, {1500, 576, 3}, {1500, 571, 3}, {69, 68, 2}, {600, 599, 2},
	} {
		l := newLab(t)
		l.via("10.0.0.0/8", 1, "198.51.100.2")
		l.setMTU(1, "198.51.100.2", c.mtu)
		p := udp("192.0.2.2", "10.0.0.1")
		p.id, p.payload = 0x1234, make([]byte, c.length-28)
		for i := range p.payload {
			p.payload[i] = byte(i * 7)
		}
		in := p.bytes(t)
		whole := append([]byte(nil), packet(in)...)
		whole[8]--
		l.run(in)
		out := l.out(1)
		if len(out) != c.want {
			t.Errorf("%d bytes by %d: %d frames, want %d; drops %v", c.length, c.mtu, len(out), c.want, l.drops())
			continue
		}
		if err := checkFragments(whole, out, c.mtu); err != nil {
			t.Errorf("%d bytes by %d: %v", c.length, c.mtu, err)
		}
		for _, f := range out {
			if inet.MAC(f[0:6]) != hostMAC[1] || inet.MAC(f[6:12]) != routerMAC[1] || binary.BigEndian.Uint16(f[12:]) != inet.EtherIPv4 {
				t.Errorf("link header %x", f[:14])
			}
		}
		s := l.r.Stats()
		if c.want > 1 {
			if ip := defragment(t, t, out); ip != nil && !bytes.Equal(ip.Payload, whole[20:]) {
				t.Errorf("%d bytes by %d: gopacket put something else together", c.length, c.mtu)
			}
			if s.Fragmented != 1 || s.Fragments != uint64(c.want) {
				t.Errorf("counted %+v", s)
			}
		}
		if s.Forwarded != 1 || s.Originated != uint64(c.want-1) {
			t.Errorf("forwarded %d, originated %d", s.Forwarded, s.Originated)
		}
		if err := checkConservation(l); err != nil {
			t.Error(err)
		}
		if err := checkStages(l); err != nil {
			t.Error(err)
		}
	}
}

// A fragment of a fragment keeps its place in the datagram and its flag.
func TestFragmentsAreFragmented(t *testing.T) {
	for _, mf := range []bool{false, true} {
		for _, offset := range []uint16{0, 1, 185, 8000} {
			if offset == 0 && !mf {
				continue
			}
			l := newLab(t)
			l.via("10.0.0.0/8", 1, "198.51.100.2")
			l.setMTU(1, "198.51.100.2", 600)
			p := pkt{dstMAC: routerMAC[0], srcMAC: hostMAC[0], src: "192.0.2.2", dst: "10.0.0.1", ttl: 64, id: 77, mf: mf, frag: offset,
				proto: layers.IPProtocolUDP, payload: bytes.Repeat([]byte("abcdefg."), 150)}
			in := p.bytes(t)
			whole := append([]byte(nil), packet(in)...)
			whole[8]--
			l.run(in)
			out := l.out(1)
			if err := checkFragments(whole, out, 600); err != nil || len(out) != 3 {
				t.Errorf("offset %d, more %v: %d frames: %v", offset, mf, len(out), err)
			}
		}
	}
}

// What nobody could put together is not taken apart.
func TestAFragmentBeyondTheLongestDatagramIsDropped(t *testing.T) {
	l := newLab(t)
	l.via("10.0.0.0/8", 1, "198.51.100.2")
	l.setMTU(1, "198.51.100.2", 600)
	p := pkt{dstMAC: routerMAC[0], srcMAC: hostMAC[0], src: "192.0.2.2", dst: "10.0.0.1", ttl: 64, frag: 8191,
		proto: layers.IPProtocolUDP, payload: make([]byte, 1000)}
	l.run(p.bytes(t))
	if d := l.drops(); d["ip4_too_big"] != 1 || len(d) != 1 || len(l.out(1)) != 0 || l.r.Stats().Forwarded != 0 {
		t.Errorf("drops %v", d)
	}
}

func TestOptionsOfFragments(t *testing.T) {
	l := newLab(t)
	l.via("10.0.0.0/8", 1, "198.51.100.2")
	l.setMTU(1, "198.51.100.2", 600)
	p := udp("192.0.2.2", "10.0.0.1")
	p.payload = make([]byte, 1400)
	// Router alert and a copied unknown one go with every fragment; a record
	// route and an uncopied unknown one with the first alone.
	in := withOptions(t, p, cat(148, 4, 0, 0, 7, 7, 4, make([]byte, 4), 30, 3, 9, 0x9e, 4, 5, 6)...)
	l.run(in)
	out := l.out(1)
	if len(out) != 3 {
		t.Fatalf("%d frames, drops %v", len(out), l.drops())
	}
	first := cat(148, 4, 0, 0, 7, 7, 8, rightAddr, 30, 3, 9, 0x9e, 4, 5, 6, 0, 0)
	later := cat(148, 4, 0, 0, bytes.Repeat([]byte{1}, 10), 0x9e, 4, 5, 6, 0, 0)
	for i, f := range out {
		want := later
		if i == 0 {
			want = first
		}
		if !bytes.Equal(optionsOf(f), want) {
			t.Errorf("fragment %d: options %v, want %v", i, optionsOf(f), want)
		}
	}
}

// checkFragmenting sends one packet through a narrow way and looks at what
// comes out in every respect.
func checkFragmenting(t interface{ Fatalf(string, ...any) }, tb testing.TB, l *lab, in []byte, mtu int) int {
	whole := append([]byte(nil), packet(in)...)
	opts, why, _ := refOptions(append([]byte(nil), whole[20:int(whole[0]&15)*4]...), rightAddr, uint32(l.clk.Now()/1e6%86400000), isLabAddress)
	before := l.drops()
	l.run(in)
	out := l.out(1)
	l.out(0)
	df := whole[6]&0x40 != 0
	end := int(binary.BigEndian.Uint16(whole[6:])&0x1fff)*8 + len(whole)
	if why != skb.ReasonNone || (len(whole) > mtu && (df || end > 65535)) {
		name := "ip4_too_big"
		if why != skb.ReasonNone {
			name = why.String()
		}
		if len(out) != 0 || l.drops()[name] != before[name]+1 {
			t.Fatalf("%x by %d: %d frames, drops %v", whole, mtu, len(out), l.drops())
		}
		return 0
	}
	copy(whole[20:], opts)
	whole[8]--
	if err := checkFragments(whole, out, mtu); err != nil {
		t.Fatalf("%x by %d: %v", whole, mtu, err)
	}
	if binary.BigEndian.Uint16(whole[6:])&0x3fff == 0 && len(out) > 1 {
		if ip := defragment(t, tb, out); ip != nil && !bytes.Equal(ip.Payload, whole[int(whole[0]&15)*4:]) {
			t.Fatalf("%x by %d: gopacket put something else together", whole, mtu)
		}
	}
	if err := checkConservation(l); err != nil {
		t.Fatalf("%x by %d: %v", whole, mtu, err)
	}
	return len(out)
}

func TestFragmentsAgainstAPlainReassembler(t *testing.T) {
	seen := map[bool]int{}
	rapid.Check(t, func(rt *rapid.T) {
		l := optionLab(t)
		defer l.close()
		mtu := rapid.OneOf(rapid.IntRange(68, 1500), rapid.IntRange(68, 90)).Draw(rt, "mtu")
		l.setMTU(1, "198.51.100.2", mtu)
		p := pkt{dstMAC: routerMAC[0], srcMAC: hostMAC[0], src: "192.0.2.2", dst: "10.0.0.1", ttl: 64, id: rapid.Uint16().Draw(rt, "id"),
			df: rapid.IntRange(0, 5).Draw(rt, "df") == 0, mf: rapid.Bool().Draw(rt, "mf"), proto: layers.IPProtocolUDP}
		if rapid.Bool().Draw(rt, "a fragment") {
			p.frag = rapid.OneOf(rapid.Uint16Range(0, 0x1fff), rapid.Uint16Range(0x1f00, 0x1fff)).Draw(rt, "offset")
		}
		p.payload = make([]byte, rapid.OneOf(rapid.IntRange(1, 1400), rapid.IntRange(max(1, min(1440, mtu)-70), min(1440, mtu+10))).Draw(rt, "length"))
		for i := range p.payload {
			p.payload[i] = byte(i) ^ byte(i>>8)*31
		}
		n := checkFragmenting(rt, t, l, withOptions(t, p, drawOptions(rt)...), mtu)
		seen[n > 1]++
	})
	if seen[true] == 0 || seen[false] == 0 {
		t.Errorf("examples by whether they were fragmented: %v", seen)
	}
}

func FuzzFragments(f *testing.F) {
	f.Add([]byte{148, 4, 0, 0, 7, 7, 4, 0, 0, 0, 0}, uint16(1400), uint16(0), uint16(576))
	f.Add([]byte{}, uint16(600), uint16(0x2000+17), uint16(68))
	f.Add([]byte{1, 1, 1}, uint16(1200), uint16(0x1ff0), uint16(100))
	l := optionLab(f)
	f.Fuzz(func(t *testing.T, opts []byte, n, word, mtu uint16) {
		l.clk.Advance(1e12)
		l.t = t
		mtu = 68 + mtu%1433
		l.setMTU(1, "198.51.100.2", int(mtu))
		p := pkt{dstMAC: routerMAC[0], srcMAC: hostMAC[0], src: "192.0.2.2", dst: "10.0.0.1", ttl: 64, id: n,
			df: word&0x4000 != 0, mf: word&0x2000 != 0, frag: word & 0x1fff, proto: layers.IPProtocolUDP, payload: make([]byte, 1+n%1400)}
		for i := range p.payload {
			p.payload[i] = byte(i) ^ byte(i>>8)
		}
		checkFragmenting(t, t, l, withOptions(t, p, opts[:min(len(opts), 40)]...), int(mtu))
	})
}

// A packet that waits is fragmented when it leaves.
func TestAWaitingPacketIsFragmented(t *testing.T) {
	l := newLab(t, func(c *Config) {})
	s := *l.r.ifaces.Load()
	s.ifs[1].mtu = 600
	l.r.ifaces.Store(&s)
	p := udp("192.0.2.2", "198.51.100.77")
	p.payload = make([]byte, 1000)
	in := p.bytes(t)
	whole := append([]byte(nil), packet(in)...)
	whole[8]--
	l.run(in)
	if n := requests(l.out(1)); n != 1 {
		t.Fatalf("%d requests", n)
	}
	l.runAt(1, arpFrame(arpReply, routerMAC[1], hostMAC[2], "198.51.100.77", routerMAC[1], "198.51.100.1"))
	if err := checkFragments(whole, l.out(1), 600); err != nil {
		t.Error(err)
	}
}

// What is made here is fragmented too, whatever the request forbade for itself.
func TestALongEchoReplyIsFragmented(t *testing.T) {
	for _, df := range []bool{false, true} {
		l := newLab(t)
		l.setMTU(0, "192.0.2.2", 600)
		p := echo("192.0.2.2", "192.0.2.1")
		p.payload, p.df = bytes.Repeat([]byte("0123456"), 200), df
		in := p.bytes(t)
		in[20] |= 0x80
		data := append([]byte(nil), packet(in)[28:]...)
		l.run(resum(in))
		out := l.out(0)
		if len(out) != 3 || out[0][20] != 0x20 {
			t.Fatalf("%d frames, drops %v", len(out), l.drops())
		}
		if ip := defragment(t, t, out); !bytes.Equal(ip.Payload[8:], data) || inet.Checksum(ip.Payload) != 0 || ip.TTL != icmpTTL {
			t.Errorf("put together: %+v", ip)
		}
	}
}

// When buffers run out in the middle the rest is dropped by name, and the
// frames still add up.
func TestNoBufferForAFragmentIsCounted(t *testing.T) {
	for left := range 4 {
		l := newLab(t)
		l.via("10.0.0.0/8", 1, "198.51.100.2")
		l.setMTU(1, "198.51.100.2", 600)
		w := l.r.workers[0]
		p := udp("192.0.2.2", "10.0.0.1")
		p.payload = make([]byte, 1400)
		in := p.bytes(t)
		h := w.cache.Alloc()
		copy(w.arena.Put(h, len(in)), in)
		l.wires[0].rxStats.Live.Packets++
		var taken []skb.Handle
		for x := w.cache.Alloc(); x != skb.None; x = w.cache.Alloc() {
			taken = append(taken, x)
		}
		w.cache.FreeBatch(taken[:left])
		w.in.Reset()
		w.in.Add(h)
		w.ifs = l.r.ifaces.Load()
		w.process(0)
		w.sendAll(false)
		w.cache.FreeBatch(taken[left:])
		want := uint64(0)
		if left < 3 {
			want = 1
		}
		c := &w.stats.Live
		if n := len(l.out(1)); n != left || c.Drops[skb.IP4FragmentNoBuffer] != want || c.Forwarded != 1-want || c.Fragmented != 1-want {
			t.Errorf("%d buffers: %d fragments, drops %v", left, n, l.drops())
		}
		if err := checkConservation(l); err != nil {
			t.Errorf("%d buffers: %v", left, err)
		}
	}
}
