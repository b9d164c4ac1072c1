// Command gorouter is a software router: it drives receive and transmit rings
// of its own, on software 8254x chips, on kernel interfaces or from files, and
// measures what each step of the way costs.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), endings()...)
	defer stop()
	// A reader of our output that goes away must not end the program at once:
	// interfaces have to be given back first. Writing fails instead.
	signal.Ignore(syscall.SIGPIPE)
	if !execute(ctx, os.Args[1:], newOutput(os.Stdout), os.Stderr) {
		stop()
		os.Exit(1)
	}
}

// endings are the signals that end the program in good order. nohup has a
// program ignore SIGHUP, and that stays so.
func endings() []os.Signal {
	all := []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT}
	if !signal.Ignored(syscall.SIGHUP) {
		all = append(all, syscall.SIGHUP)
	}
	return all
}

// execute runs one command line and says what went wrong, unless it went well.
func execute(ctx context.Context, args []string, out *output, errs *os.File) bool {
	c := root()
	c.SetArgs(args)
	c.SetOut(out)
	c.SetErr(errs)
	err := c.ExecuteContext(ctx)
	if failed := out.failed(); failed != nil && !errors.Is(err, failed) {
		err = errors.Join(err, failed)
	}
	var said saidError
	if err != nil && !errors.As(err, &said) {
		fmt.Fprintf(errs, "gorouter: %v\n", err)
	}
	return err == nil
}

// saidError is an error that the user has already been told.
type saidError struct{ error }
