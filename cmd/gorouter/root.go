package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gorouter/config"
)

// version is set at release with -ldflags "-X main.version=…".
var version = ""

func root() *cobra.Command {
	var file string
	var o runOptions
	c := &cobra.Command{
		Use:   "gorouter -c FILE",
		Short: "A software router that drives its own rings",
		Long: `gorouter forwards packets between its ports with NAPI-style poll loops over
receive and transmit rings, and counts and times every step of the way.

The configuration says which ports, routes and streams there are; see router.yaml
for a tutorial and "gorouter check -c FILE" for the effective configuration.`,
		Example: `  gorouter -c router.yaml                       run until interrupted
  gorouter -c router.yaml --duration 10s --json   run, then print one JSON object`,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       versionText(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.json {
				if err := checkOpen(cmd.OutOrStdout()); err != nil {
					return err
				}
			}
			cfg, err := load(cmd, file)
			if err != nil {
				return err
			}
			o.out, o.gone, o.log = cmd.OutOrStdout(), reader(cmd.OutOrStdout()), logger(cmd.ErrOrStderr(), o.verbose)
			return run(cmd.Context(), cfg, o)
		},
	}
	f := c.Flags()
	f.StringVarP(&file, "config", "c", "", "configuration `FILE` (required)")
	f.DurationVar(&o.duration, "duration", 0, "stop after this `TIME`; 0 runs until interrupted")
	f.DurationVar(&o.interval, "interval", time.Second, "`TIME` between two updates of the table or summary, at least 100ms")
	f.BoolVar(&o.json, "json", false, "print one JSON object at the end on standard output, and nothing else there")
	f.StringVar(&o.profile, "cpuprofile", "", "write a CPU profile for go tool pprof to `FILE`")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "log in detail")
	c.AddCommand(checkCommand(), versionCommand(), pktgenCommand())
	c.SetVersionTemplate(versionLine())
	c.InitDefaultHelpCmd()
	c.InitDefaultCompletionCmd()
	for _, sub := range c.Commands() {
		if sub.Name() == "completion" {
			sub.Args = cobra.ArbitraryArgs
			sub.RunE = func(cmd *cobra.Command, args []string) error {
				if len(args) > 0 {
					return fmt.Errorf("no completion for %q (there is bash, zsh, fish and powershell)", args[0])
				}
				return cmd.Help()
			}
		}
		if sub.Name() == "help" {
			help := sub.Run
			sub.Run = nil
			sub.RunE = func(cmd *cobra.Command, args []string) error {
				if to, _, err := c.Find(args); err != nil || to == c && len(args) > 0 {
					return fmt.Errorf("no help on %q (see gorouter --help)", strings.Join(args, " "))
				}
				help(cmd, args)
				return nil
			}
		}
	}
	return c
}

// load reads the configuration. Its errors are a list with places, printed as
// they are.
func load(cmd *cobra.Command, file string) (*config.Config, error) {
	if file == "" {
		return nil, errors.New("no configuration given (use -c FILE, for example -c router.yaml)")
	}
	cfg, err := loadUntil(cmd.Context(), file)
	if err == nil {
		return cfg, nil
	}
	var list config.Errors
	if errors.As(err, &list) {
		w := cmd.ErrOrStderr()
		for _, e := range list {
			fmt.Fprintln(w, e)
		}
		fmt.Fprintf(w, "gorouter: %s: %s; nothing was started\n", file, count(len(list), "problem"))
		return nil, saidError{err}
	}
	return nil, err
}

// loadUntil is config.Load that ends with ctx: a huge file or a slow file
// system is left to the end of the program, which is near then.
func loadUntil(ctx context.Context, file string) (*config.Config, error) {
	type result struct {
		cfg *config.Config
		err error
	}
	done := make(chan result, 1)
	go func() {
		cfg, err := config.Load(file)
		done <- result{cfg, err}
	}()
	select {
	case r := <-done:
		return r.cfg, r.err
	case <-ctx.Done():
		return nil, fmt.Errorf("interrupted while reading %s", file)
	}
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func logger(w io.Writer, verbose bool) *slog.Logger {
	level := slog.LevelInfo
	if verbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level}))
}

func checkCommand() *cobra.Command {
	var file string
	c := &cobra.Command{
		Use:   "check -c FILE",
		Short: "Check a configuration and print what it means with all defaults",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOpen(cmd.OutOrStdout()); err != nil {
				return err
			}
			cfg, err := load(cmd, file)
			if err != nil {
				return err
			}
			return cfg.Effective(cmd.OutOrStdout())
		},
	}
	c.Flags().StringVarP(&file, "config", "c", "", "configuration `FILE` (required)")
	return c
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOpen(cmd.OutOrStdout()); err != nil {
				return err
			}
			_, err := io.WriteString(cmd.OutOrStdout(), versionLine())
			return err
		},
	}
}

func versionLine() string {
	return fmt.Sprintf("gorouter %s %s %s/%s\n", versionText(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

func versionText() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	rev, dirty := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			rev = s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+changes"
		}
	}
	if rev == "" {
		return "development"
	}
	return rev + dirty
}
