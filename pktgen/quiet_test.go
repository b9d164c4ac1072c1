package pktgen

import (
	"net/netip"
	"testing"

	"gorouter/internal/inet"
)

func TestQuietStationSendsNoMoreStreams(t *testing.T) {
	s, err := NewStation(StationConfig{MAC: inet.MAC{2, 0, 0, 0, 0, 9}, Peer: inet.MAC{2, 0, 0, 0, 0, 1}, Streams: []*Stream{{
		Name: "a", StreamOptions: StreamTable.Defaults(), Src: netip.MustParseAddr("192.0.2.2"),
		Dst: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24")},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	if s.Next(1) == nil {
		t.Fatal("an unpaced stream has no frame")
	}
	s.Quiet()
	if f := s.Next(2); f != nil {
		t.Errorf("a frame after Quiet: %x", f)
	}
}

// A station is every host of its network, but it must not answer for the
// router, which asks for its own address to find others that use it.
func TestStationDoesNotClaimTheRoutersAddress(t *testing.T) {
	router := netip.MustParseAddr("192.0.2.1")
	s, err := NewStation(StationConfig{MAC: inet.MAC{2, 0, 0, 0, 0, 9}, Addrs: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}, Except: []netip.Addr{router}})
	if err != nil {
		t.Fatal(err)
	}
	for target, want := range map[netip.Addr]bool{router: false, netip.MustParseAddr("192.0.2.7"): true} {
		f := make([]byte, 60)
		copy(f, inet.Broadcast[:])
		copy(f[6:], []byte{2, 0, 0, 0, 0, 1, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1, 0, 0, 0, 0})
		copy(f[arpDstIP:], target.AsSlice())
		s.Deliver(f)
		if got := s.Next(1) != nil; got != want {
			t.Errorf("answer for %v: %v, want %v", target, got, want)
		}
	}
}
