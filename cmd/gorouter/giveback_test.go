package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"gorouter/config"
	"gorouter/dataplane"
	"gorouter/port"
)

// lent is a device that has something to give back.
type lent struct{ port.Device }

func (lent) GiveBack() error {
	fmt.Fprintln(os.Stderr, "given back")
	return nil
}

// A panic, on a worker or on the goroutine that runs the router, ends the
// program as a panic does, but first gives the interfaces back.
func TestPanicGivesInterfacesBack(t *testing.T) {
	if where := os.Getenv("GOROUTER_TEST_PANIC"); where != "" {
		panicky(t, where)
		return
	}
	for _, where := range []string{"worker", "main"} {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestPanicGivesInterfacesBack$")
		cmd.Env = append(os.Environ(), "GOROUTER_TEST_PANIC="+where)
		out, err := cmd.CombinedOutput()
		back, boom := strings.Index(string(out), "given back"), strings.Index(string(out), "panic: boom")
		if err == nil || back < 0 || boom < 0 || !strings.Contains(string(out), "panicky") {
			t.Errorf("%s: %v\n%s", where, err, out)
		}
	}
}

func panicky(t *testing.T, where string) {
	cfg, err := config.Load("../../router.yaml")
	if err != nil {
		t.Fatal(err)
	}
	b, err := openBox(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	b.ports[1].Device = lent{b.ports[1].Device}
	if err := b.start(); err != nil {
		t.Fatal(err)
	}
	if where == "worker" {
		b.router.Do(func(*dataplane.Worker) { panic("boom") })
		select {}
	}
	defer b.onPanic()()
	panic("boom")
}

// A box of one port is what pktgen has; the places of the others are empty.
func TestBoxOfOnePortOfSeveral(t *testing.T) {
	cfg, err := config.Load("../../router.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for i := range cfg.Ports {
		b, streams, err := openGenerator(cfg, i, slog.New(slog.DiscardHandler))
		if err != nil || len(streams) != 1 {
			t.Fatalf("port %d: %v, %d streams", i, err, len(streams))
		}
		if err := b.failure(); err != nil {
			t.Error(err)
		}
		b.giveBack()
		if err := b.close(); err != nil {
			t.Error(err)
		}
	}
}
