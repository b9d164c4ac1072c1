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
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := root().ExecuteContext(ctx); err != nil {
		var said saidError
		if !errors.As(err, &said) {
			fmt.Fprintf(os.Stderr, "gorouter: %v\n", err)
		}
		stop()
		os.Exit(1)
	}
}

// saidError is an error that the user has already been told.
type saidError struct{ error }
