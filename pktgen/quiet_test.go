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
