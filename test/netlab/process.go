package netlab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"syscall"
	"time"
)

// killAfter is how long a process may take to end once its time is over.
const killAfter = 10 * time.Second

// Process is a program that runs in a namespace. It is killed, with all of its
// process group, at the end of the test.
type Process struct {
	n              *Namespace
	cmd            *exec.Cmd
	stdout, stderr *output
	done           chan struct{} // closed when the process has ended
	err            error         // valid after done
}

// output collects what a program says and tells those who wait.
type output struct {
	mu    sync.Mutex
	text  []byte
	grown chan struct{} // closed and replaced when text grows
}

func newOutput() *output { return &output{grown: make(chan struct{})} }

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text = append(o.text, p...)
	close(o.grown)
	o.grown = make(chan struct{})
	return len(p), nil
}

func (o *output) read() ([]byte, <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return bytes.Clone(o.text), o.grown
}

// command makes the command that runs a program in the namespace. The ip program
// also mounts the namespace's view of /sys, and then becomes the program.
func (n *Namespace) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command("ip", append([]string{"netns", "exec", n.name, name}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	// A grandchild that keeps the output open must not hold up the test.
	cmd.WaitDelay = killAfter
	return cmd
}

// Start runs a program in the namespace until it ends or the test does.
func (n *Namespace) Start(name string, args ...string) *Process {
	n.t.Helper()
	p, err := n.start(name, args...)
	if err != nil {
		n.t.Fatalf("start %s in %s: %v", name, n.name, err)
	}
	return p
}

func (n *Namespace) start(name string, args ...string) (*Process, error) {
	if _, err := exec.LookPath(name); err != nil {
		return nil, err
	}
	p := &Process{n: n, cmd: n.command(name, args...), stdout: newOutput(), stderr: newOutput(), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = p.stdout, p.stderr
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	n.processes = append(n.processes, p)
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// Run runs a program in the namespace to its end and returns its standard output
// and standard error, one after the other. When ctx ends the program is killed.
func (n *Namespace) Run(ctx context.Context, name string, args ...string) (string, error) {
	p, err := n.start(name, args...)
	if err != nil {
		return "", fmt.Errorf("start %s in %s: %w", name, n.name, err)
	}
	if err = p.wait(ctx); ctx.Err() != nil && !p.ended() {
		p.kill()
		err = ctx.Err()
	}
	if err != nil {
		err = fmt.Errorf("%s in %s: %w", name, n.name, err)
	}
	return p.Stdout() + p.Stderr(), err
}

// MustRun is Run with a time limit of a minute, and ends the test when the
// program does not succeed.
func (n *Namespace) MustRun(name string, args ...string) string {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	out, err := n.Run(ctx, name, args...)
	if err != nil {
		n.t.Fatalf("%v\n%s", err, out)
	}
	return out
}

// Stdout returns what the program has written to its standard output so far.
func (p *Process) Stdout() string { text, _ := p.stdout.read(); return string(text) }

// Stderr returns what the program has written to its standard error so far.
func (p *Process) Stderr() string { text, _ := p.stderr.read(); return string(text) }

// Pid returns the process id.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Signal sends a signal to the program.
func (p *Process) Signal(s os.Signal) error { return p.cmd.Process.Signal(s) }

// AwaitOutput waits until the standard output or the standard error matches. It
// fails when ctx ends or the program does before.
func (p *Process) AwaitOutput(ctx context.Context, pattern *regexp.Regexp) error {
	for {
		ended := p.ended() // before reading: nothing is written after it
		out, outGrown := p.stdout.read()
		errs, errGrown := p.stderr.read()
		if pattern.Match(out) || pattern.Match(errs) {
			return nil
		}
		if ended {
			return fmt.Errorf("%s ended (%v) without saying %q: %s%s", p.cmd, p.err, pattern, out, errs)
		}
		select {
		case <-outGrown:
		case <-errGrown:
		case <-p.done:
		case <-ctx.Done():
			return fmt.Errorf("%s did not say %q: %w: %s%s", p.cmd, pattern, ctx.Err(), out, errs)
		}
	}
}

// Stop asks the program to end by a signal and waits for it; after ten seconds
// it is killed, and that is an error. So is an unsuccessful end.
func (p *Process) Stop(s os.Signal) error {
	if err := p.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal %s: %w", p.cmd, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), killAfter)
	defer cancel()
	err := p.wait(ctx)
	if !p.ended() {
		p.kill()
		return fmt.Errorf("%s did not end within %v after the signal %v: %s", p.cmd, killAfter, s, p.Stderr())
	}
	return err
}

// Wait waits for the end of the program and says how it ended. It returns early
// when ctx ends.
func (p *Process) Wait(ctx context.Context) error { return p.wait(ctx) }

func (p *Process) wait(ctx context.Context) error {
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *Process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// kill ends the program's process group, unless it has ended, and waits.
func (p *Process) kill() {
	if !p.ended() {
		_ = syscall.Kill(-p.Pid(), syscall.SIGKILL) // fails when it ends just now
	}
	<-p.done
}

// killAll ends everything that was started in the namespace, and what that has
// left behind there.
func (n *Namespace) killAll() {
	n.mu.Lock()
	defer n.mu.Unlock()
	killInside(filepath.Join(namedDir, n.name)) // first: what is left may hold the output of one of ours open
	for _, p := range n.processes {
		p.kill()
	}
	n.processes = nil
}
