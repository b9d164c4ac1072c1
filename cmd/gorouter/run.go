package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/pprof"
	"strings"
	"time"

	"golang.org/x/term"

	"gorouter/config"
)

type runOptions struct {
	duration time.Duration
	interval time.Duration
	json     bool
	verbose  bool
	profile  string
	out      io.Writer
	log      *slog.Logger
}

// run is the router from opening to the last line of its report.
func run(ctx context.Context, cfg *config.Config, o runOptions) error {
	if o.interval <= 0 {
		return fmt.Errorf("--interval is %v, expected a positive time such as 1s", o.interval)
	}
	if o.duration < 0 {
		return fmt.Errorf("--duration is %v, expected a positive time such as 10s, or 0 for no end", o.duration)
	}
	if o.profile != "" {
		f, err := os.Create(o.profile)
		if err != nil {
			return fmt.Errorf("--cpuprofile: %w", err)
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return fmt.Errorf("--cpuprofile: %w", err)
		}
		defer pprof.StopCPUProfile()
	}
	b, err := openBox(cfg, o.log)
	if err != nil {
		return err
	}
	rep, err := drive(ctx, b, o)
	if closeErr := b.close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	if o.json {
		e := json.NewEncoder(o.out)
		e.SetIndent("", "  ")
		return e.Encode(rep)
	}
	return rep.print(o.out)
}

// drive starts the box, shows what happens until it is time to stop, and
// reports. It leaves closing to the caller.
func drive(ctx context.Context, b *box, o runOptions) (*report, error) {
	if err := b.start(); err != nil {
		return nil, err
	}
	start := b.clk.Now()
	for _, p := range b.ports {
		o.log.Info("port", "name", p.Name, "driver", p.Device.Driver(), "mac", p.MAC(), "mtu", p.MTU, "up", p.Up())
	}
	o.log.Info("ready")
	var end <-chan time.Time
	if o.duration > 0 {
		t := time.NewTimer(o.duration)
		defer t.Stop()
		end = t.C
	}
	show := newDisplay(o, b)
	tick := time.NewTicker(o.interval)
	defer tick.Stop()
	var failure error
loop:
	for {
		select {
		case <-ctx.Done():
			break loop
		case <-end:
			break loop
		case <-tick.C:
			show.update()
			if failure = b.failure(); failure != nil {
				break loop
			}
		}
	}
	took := b.clk.Now() - start
	b.halt()
	show.end()
	if failure == nil {
		failure = b.failure()
	}
	rep := newReport(b, time.Duration(took))
	census, err := b.arena.Audit(b.holders()...)
	rep.buffers(census)
	rep.InFlight = b.inFlight()
	if err != nil {
		err = fmt.Errorf("buffers are not conserved: %w", err)
	}
	return rep, errors.Join(failure, err)
}

// display is what is shown while the router runs: a table on a terminal, a
// line an interval elsewhere, on standard error when standard output is kept
// for JSON.
type display struct {
	b     *box
	w     io.Writer
	table bool
	lines int // of the table on the screen
	last  *report
	at    int64
}

func newDisplay(o runOptions, b *box) *display {
	d := &display{b: b, w: o.out, at: b.clk.Now(), last: newReport(b, 0)}
	if o.json {
		d.w = os.Stderr
	}
	if f, ok := d.w.(*os.File); ok {
		d.table = term.IsTerminal(int(f.Fd()))
	}
	return d
}

func (d *display) update() {
	now := d.b.clk.Now()
	rep := newReport(d.b, time.Duration(now-d.at))
	delta := rep.since(d.last)
	d.last, d.at = rep, now
	if !d.table {
		fmt.Fprintln(d.w, delta.line())
		return
	}
	text, n := delta.table(rep)
	text = cut(text, d.width())
	if d.lines > 0 {
		// Back over the old table, then clear to the end of the screen.
		fmt.Fprintf(d.w, "\x1b[%dA\x1b[J", d.lines)
	}
	fmt.Fprint(d.w, text)
	d.lines = n
}

// width is the terminal's in characters.
func (d *display) width() int {
	if f, ok := d.w.(*os.File); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
			return w
		}
	}
	return 80
}

// cut shortens lines that a terminal of that width would wrap, since the table
// is overwritten by counting its lines.
func cut(text string, width int) string {
	lines := strings.SplitAfter(text, "\n")
	for i, l := range lines {
		if r := []rune(strings.TrimSuffix(l, "\n")); len(r) > width {
			lines[i] = string(r[:max(0, width-1)]) + "…\n"
		}
	}
	return strings.Join(lines, "")
}

func (d *display) end() {
	if d.lines > 0 {
		fmt.Fprintln(d.w)
	}
}
