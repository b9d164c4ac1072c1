package main

import (
	"fmt"
	"time"

	"gorouter/config"
	"gorouter/fib"
	"gorouter/fib/routefile"
)

// progressEvery is how often loading a long list says how far it is.
const progressEvery = time.Second

// loadRoutes puts the routes of the configuration and of its routes_file into
// the FIB; of a list with an error none is. The configuration's own come last
// and win.
func (b *box) loadRoutes() error {
	if b.cfg.RoutesFile.File != "" {
		if err := b.fib.Batch(b.readRoutesFile); err != nil {
			return b.cfg.Errorf(b.cfg.RoutesFile.Pos, "%w", err)
		}
	}
	for i := range b.cfg.Routes {
		r := &b.cfg.Routes[i]
		if err := b.router.AddRoutes([]fib.Route{b.cfg.FIBRoute(r)}); err != nil {
			return b.cfg.Errorf(r.Pos, "%w", err)
		}
	}
	return nil
}

func (b *box) readRoutesFile(tx *fib.Tx) error {
	f := &b.cfg.RoutesFile
	start, said := time.Now(), time.Now()
	turn := 0
	o := routefile.Options{Every: 10_000, Progress: func(n int) {
		if time.Since(said) >= progressEvery {
			said = time.Now()
			b.log.Info("loading routes", "file", f.File, "routes", n)
		}
	}}
	n, err := routefile.ReadFile(f.File, o, func(r routefile.Route) error {
		hop, err := b.fileHop(&r, turn)
		if err != nil {
			return err
		}
		turn++
		route := fib.Route{Prefix: r.Prefix, Kind: fib.Forward, NextHops: []fib.NextHop{hop}}
		if !hop.Via.IsValid() {
			route.Kind = fib.Connected
		}
		return tx.Replace(route)
	})
	if err != nil {
		return fmt.Errorf("routes_file: %w", err)
	}
	b.log.Info("routes loaded", "file", f.File, "routes", n, "took", time.Since(start).Round(time.Millisecond))
	return nil
}

// fileHop is the next hop of a line: its own, or the next in turn of those in
// the configuration.
func (b *box) fileHop(r *routefile.Route, turn int) (fib.NextHop, error) {
	if r.Port != "" {
		i := b.cfg.PortIndex(r.Port)
		if i < 0 {
			return fib.NextHop{}, fmt.Errorf("no port %q", r.Port)
		}
		return fib.NextHop{Port: uint16(i), Via: r.Via, Weight: 1}, nil
	}
	if r.Via.IsValid() {
		i := b.cfg.PortTo(r.Via)
		if i < 0 {
			return fib.NextHop{}, fmt.Errorf("next hop %v is on no connected network; name its port behind it", r.Via)
		}
		return fib.NextHop{Port: uint16(i), Via: r.Via, Weight: 1}, nil
	}
	var fit []config.NextHop
	for _, h := range b.cfg.RoutesFile.Hops {
		if h.Gateway.Is4() == r.Prefix.Addr().Is4() {
			fit = append(fit, h)
		}
	}
	if len(fit) == 0 {
		return fib.NextHop{}, fmt.Errorf("%v has no next hop (write one behind it, or give routes_file a via of its family)", r.Prefix)
	}
	h := fit[turn%len(fit)]
	return fib.NextHop{Port: uint16(b.cfg.PortIndex(h.Port)), Via: h.Gateway, Weight: 1}, nil
}
