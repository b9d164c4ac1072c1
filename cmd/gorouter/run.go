package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"
	"unicode/utf8"

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
	gone     <-chan struct{} // closed when nobody reads out any more
	log      *slog.Logger
}

// minInterval is the shortest time between two updates; what is shown faster
// nobody can read, and reading the counters costs the workers.
const minInterval = 100 * time.Millisecond

// run is the router from opening to the last line of its report.
func run(ctx context.Context, cfg *config.Config, o runOptions) error {
	if o.interval < minInterval {
		return fmt.Errorf("--interval is %v, expected at least %v", o.interval, minInterval)
	}
	if o.duration < 0 {
		return fmt.Errorf("--duration is %v, expected a positive time such as 10s, or 0 for no end", o.duration)
	}
	profile, err := startProfile(o.profile)
	if err != nil {
		return err
	}
	return errors.Join(route(ctx, cfg, o), profile.stop())
}

// route is run without the profile.
func route(ctx context.Context, cfg *config.Config, o runOptions) error {
	b, err := openBox(cfg, o.log)
	if err != nil {
		return err
	}
	defer b.onPanic()()
	rep, err := drive(ctx, b, o)
	err = errors.Join(err, b.close())
	// What went wrong at the end does not take away what was measured.
	if rep == nil {
		return err
	}
	if o.json {
		return errors.Join(err, printJSON(o.out, rep))
	}
	return errors.Join(err, rep.print(o.out))
}

// printJSON writes the one object of --json.
func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// drive starts the box, shows what happens until it is time to stop, and
// reports. It leaves closing to the caller.
func drive(ctx context.Context, b *box, o runOptions) (*report, error) {
	if err := b.start(); err != nil {
		return nil, err
	}
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
		case <-o.gone:
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
	b.halt()
	show.end()
	if failure == nil {
		failure = b.failure()
	}
	rep := newReport(b, b.covered())
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
	shown string // the table on the screen
	last  *report
	at    int64
}

func newDisplay(o runOptions, b *box) *display {
	d := &display{b: b, w: o.out, at: b.clk.Now(), last: newReport(b, 0)}
	if o.json {
		d.w = os.Stderr
	}
	if f := file(d.w); f != nil {
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
	text, _ := delta.table(rep)
	width := d.width()
	text = cut(text, width)
	if d.shown != "" {
		// Back over the old table, then clear to the end of the screen.
		fmt.Fprintf(d.w, "\x1b[%dA\x1b[J", rows(d.shown, width))
	}
	fmt.Fprint(d.w, text)
	d.shown = text
}

// rows is how many rows lines take on a terminal of that width. One that was
// made narrower after they were written has wrapped them.
func rows(text string, width int) int {
	n := 0
	for l := range strings.Lines(text) {
		n += max(1, (utf8.RuneCountInString(strings.TrimSuffix(l, "\n"))+width-1)/width)
	}
	return n
}

// width is the terminal's in characters.
func (d *display) width() int {
	if f := file(d.w); f != nil {
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
	if d.shown != "" {
		fmt.Fprintln(d.w)
	}
}
