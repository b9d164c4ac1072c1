package main

import (
	"fmt"
	"os"
	"runtime/pprof"
)

// profile is a CPU profile under way; nil is none.
type profile struct{ *output }

// startProfile begins a CPU profile; without a path there is none.
func startProfile(path string) (*profile, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("--cpuprofile: %w", err)
	}
	p := &profile{newOutput(f)}
	if err := pprof.StartCPUProfile(p); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("--cpuprofile: %w", err)
	}
	return p, nil
}

// stop writes the profile. The package that makes it forgets the errors of
// writing; the output remembers them.
func (p *profile) stop() error {
	if p == nil {
		return nil
	}
	pprof.StopCPUProfile()
	err := p.f.Close()
	if e := p.failed(); e != nil {
		err = e
	}
	if err != nil {
		return fmt.Errorf("--cpuprofile: %w", err)
	}
	return nil
}
