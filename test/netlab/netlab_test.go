package netlab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"gorouter/internal/testenv"
)

func needPing(t *testing.T) {
	t.Helper()
	testenv.NeedTool(t, "ping", "iputils-ping")
}

// ours returns the namespaces whose names begin with p.
func ours(t *testing.T, p string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(namedDir, p+"*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestTwoHostsPing(t *testing.T) {
	lab := New(t)
	needPing(t)
	a, b := lab.Namespace("a", IPv6), lab.Namespace("b", IPv6)
	lab.Link(a, "eth0", b, "eth0")
	a.Address("eth0", "10.0.0.1/24")
	b.Address("eth0", "10.0.0.2/24")
	a.Address("eth0", "2001:db8::1/64")
	b.Address("eth0", "2001:db8::2/64")
	a.MustRun("ping", "-c", "2", "-i", "0.2", "10.0.0.2")
	a.MustRun("ping", "-c", "2", "-i", "0.2", "2001:db8::2")

	// With the cable down the same ping fails, so the first one proved something.
	b.Down("eth0")
	ctx := context.Background()
	if out, err := a.Run(ctx, "ping", "-c", "1", "-W", "1", "10.0.0.2"); err == nil {
		t.Errorf("ping over a dead cable: %s", out)
	}
}

// A host that nobody talks to says nothing by itself.
func TestNamespaceIsSilent(t *testing.T) {
	lab := New(t)
	for _, opts := range [][]Option{nil, {IPv6}} {
		a, b := lab.Namespace(fmt.Sprintf("a%d", len(opts)), opts...), lab.Namespace(fmt.Sprintf("b%d", len(opts)), opts...)
		lab.Link(a, "eth0", b, "eth0")
		a.Address("eth0", "10.0.0.1/24")
		time.Sleep(100 * time.Millisecond) // time to say something
		if n := b.Interface("eth0").Attrs().Statistics.RxPackets; n != 0 {
			t.Errorf("%d options: %d frames on an idle cable", len(opts), n)
		}
	}
}

// The kernel as the router of a Line: what gorouter has to equal.
func TestLineWithTheKernelAsRouter(t *testing.T) {
	lab := New(t)
	needPing(t)
	testenv.NeedTool(t, "traceroute", "traceroute")
	n := lab.Line()
	n.Router.Address("lan0", RouterLAN+"/24")
	n.Router.Address("wan0", RouterWAN+"/24")
	n.Router.Sysctl("net.ipv4.ip_forward", "1")
	n.H1.MustRun("ping", "-c", "1", H2Address)
	n.H2.MustRun("ping", "-c", "1", H1Address)
	if out := n.H1.MustRun("traceroute", "-n", "-q", "1", H2Address); !strings.Contains(out, RouterLAN) {
		t.Errorf("the router does not show in\n%s", out)
	}
	n.Router.Sysctl("net.ipv4.ip_forward", "0")
	ctx := context.Background()
	if out, err := n.H1.Run(ctx, "ping", "-c", "1", "-W", "1", H2Address); err == nil {
		t.Errorf("ping without a router: %s", out)
	}
}

func TestInterfaceSettings(t *testing.T) {
	lab := New(t)
	a, b := lab.Namespace("a"), lab.Namespace("b")
	lab.Link(a, "left", b, "right")
	if len(a.MAC("left")) != 6 || a.MAC("left").String() == b.MAC("right").String() {
		t.Errorf("addresses %v and %v", a.MAC("left"), b.MAC("right"))
	}
	a.MTU("left", 1400)
	if got := a.Interface("left").Attrs().MTU; got != 1400 {
		t.Errorf("MTU %d", got)
	}
	for _, on := range []bool{false, true} {
		a.SetFeatures("left", map[string]bool{"rx-gro": on})
		if got := a.Features("left")["rx-gro"]; got != on {
			t.Errorf("rx-gro is %v, want %v", got, on)
		}
	}
	a.Address("left", "10.0.0.1/24")
	a.Neighbor("left", "10.0.0.9", b.MAC("right"))
	if out := a.MustRun("ip", "neigh", "show"); !strings.Contains(out, "10.0.0.9 dev left lladdr "+b.MAC("right").String()+" PERMANENT") {
		t.Errorf("neighbours: %s", out)
	}
}

func TestProcesses(t *testing.T) {
	lab := New(t)
	n := lab.Namespace("n")
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	if out, err := n.Run(ctx, "sh", "-c", "echo out; echo err >&2; exit 3"); err == nil || out != "out\nerr\n" {
		t.Errorf("got %q, %v", out, err)
	}
	if _, err := n.Run(ctx, "no-such-program-anywhere"); err == nil {
		t.Error("a program that is not there ran")
	}
	if out := n.MustRun("ls", "/sys/class/net"); out != "lo\n" {
		t.Errorf("interfaces in /sys: %q", out)
	}

	short, stop := context.WithTimeout(ctx, 50*time.Millisecond)
	defer stop()
	if _, err := n.Run(short, "sleep", "600"); err == nil {
		t.Error("the time limit of Run has no effect")
	}

	p := n.Start("sh", "-c", "echo begin; exec sleep 600")
	if err := p.AwaitOutput(ctx, regexp.MustCompile("begin")); err != nil {
		t.Error(err)
	}
	if err := p.Stop(syscall.SIGTERM); err == nil {
		t.Error("a process ended by a signal counts as a success")
	}
	if err := n.Start("true").AwaitOutput(ctx, regexp.MustCompile("never")); err == nil || !strings.Contains(err.Error(), "without saying") {
		t.Errorf("waiting for a dead process: %v", err)
	}
}

// Nothing is left after a test: no namespace, no process, not even one that left
// its process group.
func TestCleanupLeavesNothing(t *testing.T) {
	var names string
	var pids []string
	t.Run("lab", func(t *testing.T) {
		lab := New(t)
		names = lab.names
		a, b := lab.Namespace("a"), lab.Namespace("b")
		lab.Link(a, "eth0", b, "eth0")
		p := a.Start("sh", "-c", "setsid sh -c 'echo pid $$; exec sleep 600' & wait")
		if err := p.AwaitOutput(context.Background(), regexp.MustCompile(`pid \d+\n`)); err != nil {
			t.Fatal(err)
		}
		pids = []string{fmt.Sprint(p.Pid()), strings.Fields(p.Stdout())[1]}
		if len(ours(t, names)) != 2 {
			t.Fatalf("namespaces: %v", ours(t, names))
		}
	})
	if left := ours(t, names); left != nil {
		t.Errorf("left: %v", left)
	}
	for _, pid := range pids {
		awaitGone(t, pid)
	}
}

// awaitGone waits until the process has ended; reaped or not.
func awaitGone(t *testing.T, pid string) {
	t.Helper()
	for range 1000 {
		text, err := os.ReadFile("/proc/" + pid + "/stat")
		if err != nil || strings.Contains(string(text), ") Z ") {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("process %s still runs", pid)
}
