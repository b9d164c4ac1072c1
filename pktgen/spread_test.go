package pktgen

import (
	"net/netip"
	"testing"
)

func addr4(lo uint64) netip.Addr {
	return netip.AddrFrom4([4]byte{byte(lo >> 24), byte(lo >> 16), byte(lo >> 8), byte(lo)})
}

// Every host of a prefix once before any twice, and nothing but hosts.
func TestPrefixIsCoveredExactly(t *testing.T) {
	for _, c := range []struct {
		prefix string
		hosts  int
	}{
		{"198.51.100.0/24", 254}, {"198.51.100.77/24", 254}, {"10.1.0.0/16", 65534}, {"192.0.2.4/30", 2},
		{"192.0.2.8/29", 6}, {"192.0.2.4/31", 2}, {"192.0.2.4/32", 1}, {"203.0.112.0/22", 1022},
	} {
		p := netip.MustParsePrefix(c.prefix)
		for seed := range uint64(3) {
			w := newPrefixWalk(p, mix(seed))
			seen := map[netip.Addr]bool{}
			for range c.hosts {
				_, lo := w.take()
				a := addr4(lo)
				if !p.Contains(a) || seen[a] {
					t.Fatalf("%s: %v after %d others", c.prefix, a, len(seen))
				}
				seen[a] = true
			}
			if p.Bits() < 31 {
				net := p.Masked().Addr()
				if seen[net] {
					t.Errorf("%s: the network address was used", c.prefix)
				}
				last := net
				for n := last.Next(); p.Contains(n); n = n.Next() {
					last = n
				}
				if seen[last] {
					t.Errorf("%s: the broadcast address %v was used", c.prefix, last)
				}
			}
		}
	}
}

func TestPrefix6StaysInside(t *testing.T) {
	for _, text := range []string{"2000::/1", "2001:db8::/2", "2001:db8::/32", "2001:db8::/64", "2001:db8::/65", "2001:db8::/66", "2001:db8::/67", "2001:db8::/120", "2001:db8::4/126", "2001:db8::4/127", "2001:db8::4/128"} {
		p := netip.MustParsePrefix(text)
		w := newPrefixWalk(p, 12345)
		seen := map[netip.Addr]bool{}
		n := int(min(w.span, 1000))
		for range n {
			hi, lo := w.take()
			var b [16]byte
			for i := range 8 {
				b[i], b[8+i] = byte(hi>>(56-8*i)), byte(lo>>(56-8*i))
			}
			a := netip.AddrFrom16(b)
			if !p.Contains(a) || p.Bits() < 127 && a == p.Masked().Addr() {
				t.Fatalf("%s: %v", text, a)
			}
			seen[a] = true
		}
		if len(seen) != n {
			t.Errorf("%s: %d different addresses in %d", text, len(seen), n)
		}
	}
}

// Destinations in turn, ports in turn, and every pair of them in the end.
func TestDestinationsAndFlowsAreUsedInTurn(t *testing.T) {
	for _, c := range []struct{ dsts, flows int }{{1, 1}, {1, 5}, {4, 1}, {3, 4}, {4, 4}, {4, 6}, {6, 4}, {10, 100}} {
		s := testStream(nil)
		s.Dst, s.Flows = nil, c.flows
		for i := range c.dsts {
			s.Dst = append(s.Dst, netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, byte(i), 1}), 32))
		}
		sp := newSpread(s)
		type pair struct{ dst, flow int }
		seen := map[pair]int{}
		perDst, perFlow := make([]int, c.dsts), make([]int, c.flows)
		total := c.dsts * c.flows * 10
		for i := range total {
			_, lo, flow := sp.take()
			d := int(lo>>8) & 255
			if d != i%c.dsts {
				t.Fatalf("frame %d goes to destination %d of %d", i, d, c.dsts)
			}
			if gcd(c.dsts, c.flows) == 1 && flow != i%c.flows {
				t.Fatalf("%+v: frame %d is of flow %d", c, i, flow)
			}
			seen[pair{d, flow}]++
			perDst[d]++
			perFlow[flow]++
		}
		if len(seen) != c.dsts*c.flows {
			t.Errorf("%+v: %d pairs of %d", c, len(seen), c.dsts*c.flows)
		}
		for _, n := range perFlow {
			if want := total / c.flows; n < want-total/10 || n > want+total/10 {
				t.Errorf("%+v: flows are used %v times", c, perFlow)
				break
			}
		}
	}
}

func TestSpreadIsDeterministic(t *testing.T) {
	a, b := newSpread(testStream(nil)), newSpread(testStream(nil))
	c := newSpread(testStream(func(s *Stream) { s.Seed = 1 }))
	same := 0
	for range 100 {
		_, x, _ := a.take()
		_, y, _ := b.take()
		_, z, _ := c.take()
		if x != y {
			t.Fatal("the same stream gave other addresses")
		}
		if x == z {
			same++
		}
	}
	if same > 60 { // every second destination is one host
		t.Errorf("another seed gave the same addresses in %d of 100 frames", same)
	}
}
