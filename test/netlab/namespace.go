package netlab

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// namedDir is where iproute2 and the netns package keep named namespaces.
const namedDir = "/run/netns"

// Namespace is one network namespace of a Lab.
type Namespace struct {
	t        testing.TB
	name     string
	handle   netns.NsHandle
	netlinks *netlink.Handle

	mu        sync.Mutex
	processes []*Process
}

// Option changes how a namespace is made.
type Option func(*options)

type options struct{ ipv6 bool }

// IPv6 leaves IPv6 on. Without it the namespace is silent until somebody sends:
// no neighbour or router solicitations, no multicast reports. Even with it no
// address is made up and none is probed; link-local ones have to be asked for.
func IPv6(o *options) { o.ipv6 = true }

// Namespace makes a network namespace with its loopback interface up. The name
// is for messages, and has to be unique in the lab.
func (l *Lab) Namespace(name string, opts ...Option) *Namespace {
	l.t.Helper()
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	n := &Namespace{t: l.t, name: l.names + name}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		l.t.Fatalf("namespace %s: the lab is closed", name)
	}
	if err := n.make(); err != nil {
		l.t.Fatalf("namespace %s: %v", name, err)
	}
	l.namespaces = append(l.namespaces, n)
	settings := map[string]string{
		"accept_ra": "0", "autoconf": "0", "router_solicitations": "0",
		"accept_dad": "0", "addr_gen_mode": "1", "disable_ipv6": "1",
	}
	if o.ipv6 {
		settings["disable_ipv6"] = "0"
	}
	for key, value := range settings {
		for _, scope := range []string{"all", "default"} {
			// A kernel without IPv6 has none of these, and needs none.
			if err := n.setSysctl("net.ipv6.conf."+scope+"."+key, value); err != nil && !errors.Is(err, fs.ErrNotExist) {
				l.t.Fatalf("namespace %s: %v", name, err)
			}
		}
	}
	if err := n.up("lo"); err != nil {
		l.t.Fatalf("namespace %s: %v", name, err)
	}
	return n
}

// make creates the namespace on a thread of its own and comes back.
func (n *Namespace) make() error {
	return onThread(func() error {
		handle, err := netns.NewNamed(n.name)
		if err != nil {
			return fmt.Errorf("create: %w", err)
		}
		netlinks, err := netlink.NewHandleAt(handle, unix.NETLINK_ROUTE)
		if err != nil {
			return errors.Join(fmt.Errorf("open netlink: %w", err), handle.Close(), netns.DeleteNamed(n.name))
		}
		n.handle, n.netlinks = handle, netlinks
		return nil
	})
}

// remove deletes the namespace. Its links go first and one by one: the kernel
// takes down those of a deleted namespace at some later time.
func (n *Namespace) remove() error {
	if links, err := n.netlinks.LinkList(); err == nil {
		for _, link := range links {
			if link.Type() == "veth" {
				_ = n.netlinks.LinkDel(link) // gone already if its peer was deleted
			}
		}
	}
	n.netlinks.Close()
	return errors.Join(n.handle.Close(), netns.DeleteNamed(n.name))
}

// Name returns the name under which iproute2 knows the namespace.
func (n *Namespace) Name() string { return n.name }

// Do runs f on a thread that is in the namespace. Sockets that f opens stay in
// the namespace. Threads and goroutines which f starts need not be in it.
func (n *Namespace) Do(f func() error) error {
	return onThread(func() error {
		if err := netns.Set(n.handle); err != nil {
			return fmt.Errorf("enter namespace %s: %w", n.name, err)
		}
		return f()
	})
}

// onThread runs f on an operating system thread that f may move to another
// network namespace; it is moved back afterwards.
func onThread(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		home, err := netns.Get()
		if err != nil {
			runtime.UnlockOSThread()
			done <- fmt.Errorf("find the own network namespace: %w", err)
			return
		}
		finished := false
		defer func() {
			// A thread that cannot go home stays locked, and so dies with this goroutine.
			if netns.Set(home) == nil {
				runtime.UnlockOSThread()
			}
			home.Close()
			if !finished { // f ended the goroutine, as t.Fatal does
				err = errors.New("the function did not return")
			}
			done <- err
		}()
		err = f()
		finished = true
	}()
	return <-done
}

// Sysctl sets a kernel variable of the namespace, such as net.ipv4.ip_forward.
func (n *Namespace) Sysctl(key, value string) {
	n.t.Helper()
	if err := n.setSysctl(key, value); err != nil {
		n.t.Fatal(err)
	}
}

func (n *Namespace) setSysctl(key, value string) error {
	// Under /proc/sys/net a thread sees the variables of the namespace it is in.
	path := filepath.Join("/proc/sys", strings.ReplaceAll(key, ".", "/"))
	return n.Do(func() error {
		if err := os.WriteFile(path, []byte(value), 0o644); err != nil {
			return fmt.Errorf("set %s in %s: %w", key, n.name, err)
		}
		return nil
	})
}
