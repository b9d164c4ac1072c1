package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gorouter/pktgen"
)

func pktgenCommand() *cobra.Command {
	var file, portName string
	var duration time.Duration
	var asJSON, verbose bool
	c := &cobra.Command{
		Use:   "pktgen -c FILE --port NAME",
		Short: "Generate the streams of a port through its own transmit ring",
		Long: `pktgen opens one port of a configuration and sends its streams through the
port's transmit ring, with buffers from the router's allocator, instead of
routing. On a software port the far end of the cable counts; on a kernel
interface frames that come back are counted.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if duration < 0 {
				return fmt.Errorf("--duration is %v, expected a positive time such as 10s, or 0 for no end", duration)
			}
			if asJSON {
				if err := checkOpen(cmd.OutOrStdout()); err != nil {
					return err
				}
			}
			cfg, err := load(cmd, file)
			if err != nil {
				return err
			}
			log := logger(cmd.ErrOrStderr(), verbose)
			i := cfg.PortIndex(portName)
			if i < 0 {
				return fmt.Errorf("no port %q in %s (use --port with one of its ports)", portName, file)
			}
			b, streams, err := openGenerator(cfg, i, log)
			if err != nil {
				return err
			}
			defer b.onPanic()()
			rep, err := b.generate(cmd, streams, duration)
			err = errors.Join(err, b.close())
			// What went wrong at the end does not take away what was measured.
			switch {
			case rep == nil:
				return err
			case asJSON:
				return errors.Join(err, printJSON(cmd.OutOrStdout(), rep))
			}
			return errors.Join(err, printGenerated(cmd.OutOrStdout(), rep, len(b.chips) > 0))
		},
	}
	f := c.Flags()
	f.StringVarP(&file, "config", "c", "", "configuration `FILE` (required)")
	f.StringVar(&portName, "port", "", "`NAME` of the port to send on (required)")
	f.DurationVar(&duration, "duration", 0, "stop after this `TIME`; 0 sends until every count is reached or until interrupted")
	f.BoolVar(&asJSON, "json", false, "print one JSON object at the end")
	f.BoolVarP(&verbose, "verbose", "v", false, "log in detail")
	return c
}

// printGenerated writes what was sent and what came in, for people. Nothing
// need come back to a port, so a stream of which nothing did is not called lost.
func printGenerated(out io.Writer, rep *pktgen.Report, emulated bool) error {
	var s strings.Builder
	for _, r := range rep.Streams {
		fmt.Fprintln(&s, r)
	}
	back := false
	for _, r := range rep.Sink {
		if r.Packets > 0 || emulated {
			back = true
			fmt.Fprintf(&s, "received %s: %d frames, lost %d, duplicated %d, reordered %d\n", r.Stream, r.Packets, r.Lost, r.Duplicates, r.Reordered)
		}
	}
	if !back {
		s.WriteString("received: no frame of the streams came back\n")
	}
	if emulated {
		s.WriteString("rates include the emulated device (software 8254x)\n")
	}
	_, err := io.WriteString(out, s.String())
	return err
}
