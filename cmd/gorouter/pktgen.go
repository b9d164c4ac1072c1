package main

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"
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
			rep, err := b.generate(cmd, streams, duration)
			if closeErr := b.close(); err == nil {
				err = closeErr
			}
			if err != nil {
				return err
			}
			if asJSON {
				e := json.NewEncoder(cmd.OutOrStdout())
				e.SetIndent("", "  ")
				return e.Encode(rep)
			}
			w := cmd.OutOrStdout()
			for _, s := range rep.Streams {
				fmt.Fprintln(w, s)
			}
			for _, s := range rep.Sink {
				fmt.Fprintf(w, "received %s: %d frames, lost %d, duplicated %d, reordered %d\n", s.Stream, s.Packets, s.Lost, s.Duplicates, s.Reordered)
			}
			if len(b.chips) > 0 {
				fmt.Fprintln(w, "rates include the emulated device (software 8254x)")
			}
			return nil
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
