package main

import (
	"fmt"

	"gorouter/config"
	"gorouter/fib/routefile"
	"gorouter/pktgen"
)

// streamsOf are the streams of a port, with the destinations that their files
// list.
func streamsOf(cfg *config.Config, port string) ([]*pktgen.Stream, error) {
	var streams []*pktgen.Stream
	for i := range cfg.Streams {
		c := &cfg.Streams[i]
		if c.Port != port {
			continue
		}
		s := c.Stream
		if c.DstFile != "" {
			if err := addDestinations(&s, c.DstFile); err != nil {
				return nil, cfg.Errorf(c.Pos, "stream %s: %w", s.Name, err)
			}
		}
		streams = append(streams, &s)
	}
	return streams, nil
}

// addDestinations appends the prefixes of a list that are of the family of the
// stream's source.
func addDestinations(s *pktgen.Stream, file string) error {
	_, err := routefile.ReadFile(file, routefile.Options{}, func(r routefile.Route) error {
		if r.Prefix.Addr().Is4() == s.Src.Is4() && r.Prefix.Bits() > 0 {
			s.Dst = append(s.Dst, r.Prefix)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("dst_file: %w", err)
	}
	if len(s.Dst) == 0 {
		return fmt.Errorf("dst_file: %s has no destination of the address family of %v", file, s.Src)
	}
	return nil
}
