package netlab

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"syscall"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

var sweepOnce sync.Once

var ownName = regexp.MustCompile(`^` + prefix + `(\d+)-`)

// sweepStale removes what test programs left that were killed: namespaces, the
// processes in them, and folders with programs built for them.
func sweepStale() {
	for _, dir := range []string{namedDir, os.TempDir()} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue // no namespace was ever made here
		}
		for _, e := range entries {
			if !stale(e.Name()) {
				continue
			}
			path := filepath.Join(dir, e.Name())
			if dir == namedDir {
				killInside(path)
				_ = netns.DeleteNamed(e.Name()) // another test program may be at it as well
			} else {
				_ = os.RemoveAll(path)
			}
		}
	}
}

// stale reports whether the name is one of ours and its process is no more.
func stale(name string) bool {
	m := ownName.FindStringSubmatch(name)
	if m == nil {
		return false
	}
	pid, err := strconv.Atoi(m[1])
	return err == nil && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}

// killInside kills the processes whose network namespace is the one at path;
// not this process, a thread of which may just be visiting.
func killInside(path string) {
	var want, got unix.Stat_t
	if unix.Stat(path, &want) != nil {
		return
	}
	links, _ := filepath.Glob("/proc/[0-9]*/ns/net")
	for _, link := range links {
		if unix.Stat(link, &got) != nil || got.Ino != want.Ino || got.Dev != want.Dev {
			continue
		}
		var pid int
		if _, err := fmt.Sscanf(link, "/proc/%d/", &pid); err == nil && pid != os.Getpid() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// open holds the labs to take down when a signal ends the test program. The
// handler runs only while there are any, so that leak checks see no goroutine.
var open struct {
	sync.Mutex
	labs    map[*Lab]bool
	signals chan os.Signal
	ended   chan struct{}
}

func register(l *Lab) {
	open.Lock()
	defer open.Unlock()
	if open.labs == nil {
		open.labs = map[*Lab]bool{}
	}
	open.labs[l] = true
	if len(open.labs) > 1 {
		return
	}
	open.signals, open.ended = make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(open.signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	go handle(open.signals, open.ended)
}

func unregister(l *Lab) {
	open.Lock()
	delete(open.labs, l)
	last := len(open.labs) == 0
	signals, ended := open.signals, open.ended
	open.Unlock()
	if last {
		signal.Stop(signals)
		close(signals)
		<-ended
	}
}

// handle takes everything down and lets the signal do what it would have done.
func handle(signals <-chan os.Signal, ended chan<- struct{}) {
	defer close(ended)
	s, ok := <-signals
	if !ok {
		return
	}
	open.Lock()
	for l := range open.labs {
		if err := l.close(); err != nil {
			fmt.Fprintln(os.Stderr, "netlab:", err)
		}
	}
	open.Unlock()
	removeBinaries()
	signal.Reset(s)
	_ = syscall.Kill(os.Getpid(), s.(syscall.Signal))
	select {} // the signal is on its way
}
