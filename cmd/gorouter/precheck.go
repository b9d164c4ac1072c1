package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"gorouter/config"
	"gorouter/nic/loop"
)

// precheck refuses what a configuration may ask for but this machine cannot
// give, before anything is opened.
func precheck(cfg *config.Config) error {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return fmt.Errorf("ask for the processors that may be used: %w", err)
	}
	var cpus []int
	for i := range 64 * len(set) {
		if set.IsSet(i) {
			cpus = append(cpus, i)
		}
	}
	return errors.Join(checkCPUs(cfg, cpus), checkFiles(cfg))
}

// checkCPUs finds workers that are to be pinned to a processor which the
// process may not run on.
func checkCPUs(cfg *config.Config, cpus []int) error {
	var errs []error
	for i, w := range cfg.Workers {
		if w.CPU != config.AnyCPU && !slices.Contains(cpus, w.CPU) {
			errs = append(errs, cfg.Errorf(w.Pos, "workers[%d].cpu is %d, expected one that this process may use, %s, or auto", i, w.CPU, ranges(cpus)))
		}
	}
	return errors.Join(errs...)
}

// checkFiles finds an output that would destroy what another port reads or
// writes. That two paths are one file can only be seen on this machine.
func checkFiles(cfg *config.Config) error {
	var uses []loop.Use
	for i := range cfg.Ports {
		p := &cfg.Ports[i]
		uses = append(uses, loop.Use{Port: p.Name, File: p.File, Output: p.Output})
	}
	err := loop.Distinct(uses)
	var c *loop.Conflict
	if errors.As(err, &c) {
		return cfg.Errorf(cfg.At("ports."+c.Port+".output"), "%w", err)
	}
	return err
}

// ranges writes ascending numbers as in 0-3, 8.
func ranges(n []int) string {
	var parts []string
	for i := 0; i < len(n); {
		k := i
		for k+1 < len(n) && n[k+1] == n[k]+1 {
			k++
		}
		if k == i {
			parts = append(parts, fmt.Sprint(n[i]))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", n[i], n[k]))
		}
		i = k + 1
	}
	return strings.Join(parts, ", ")
}

// unused says in one line each what the configuration has and the router does
// not use.
func unused(cfg *config.Config) []string {
	addresses, routes, neighbours := 0, 0, 0
	tables := map[uint32]int{}
	for i := range cfg.Ports {
		for _, a := range cfg.Ports[i].Addresses {
			if a.Prefix.Addr().Is6() {
				addresses++
			}
		}
	}
	for i := range cfg.Routes {
		r := &cfg.Routes[i]
		if r.Prefix.Addr().Is6() {
			routes++
		}
		if r.Table != 0 {
			tables[r.Table]++
		}
	}
	for i := range cfg.Neighbors {
		if cfg.Neighbors[i].Address.Is6() {
			neighbours++
		}
	}
	var lines []string
	if addresses+routes+neighbours > 0 {
		lines = append(lines, fmt.Sprintf("IPv6 is not forwarded yet and dropped as ip6_unsupported; of no use for now: addresses %d, routes %d, neighbours %d", addresses, routes, neighbours))
	}
	if len(tables) > 0 {
		var parts []string
		for t, n := range tables {
			parts = append(parts, fmt.Sprintf("%s in table %d", count(n, "route"), t))
		}
		slices.Sort(parts)
		if more := len(parts) - 8; more > 0 {
			parts = append(parts[:8], fmt.Sprintf("and in %d more", more))
		}
		lines = append(lines, "every port looks up the main table, 0; of no use for now: "+strings.Join(parts, ", "))
	}
	return lines
}
