package e2e

import (
	"context"
	"encoding/json"
	"net"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"gorouter/internal/testenv"
	"gorouter/test/netlab"
)

// quickARP is lineConfig with a neighbour's life in seconds instead of minutes.
func quickARP(t *testing.T) string {
	return lineConfig(t) + `
neigh:
  reachable: 1s
  delay: 500ms
  retransmit: 200ms
  negative: 500ms
`
}

// await waits for text in a program's output.
func await(t *testing.T, p *netlab.Process, pattern string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := p.AwaitOutput(ctx, regexp.MustCompile(pattern)); err != nil {
		t.Fatal(err)
	}
}

// eventually repeats a command until its output matches, which may take a while
// but not for ever. The command itself may fail meanwhile.
func eventually(t *testing.T, n *netlab.Namespace, pattern string, command ...string) {
	t.Helper()
	want := regexp.MustCompile(pattern)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for {
		out, _ := n.Run(ctx, command[0], command[1:]...)
		if want.MatchString(out) {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("%v never said %q, last:\n%s", command, pattern, out)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// arpDump shows the ARP frames at a host.
func arpDump(t *testing.T, n *netlab.Namespace) *netlab.Process {
	t.Helper()
	p := n.Start("tcpdump", "-l", "-n", "-e", "-i", "eth0", "arp")
	await(t, p, `listening on eth0`)
	return p
}

// The kernel as the neighbour of the router: it learns where the router is, and
// the router follows it when its address changes, when it falls silent, and when
// it comes back.
func TestKernelNeighbour(t *testing.T) {
	for _, tool := range [][2]string{{"ping", "iputils-ping"}, {"arping", "iputils-arping"}, {"tcpdump", "tcpdump"}} {
		testenv.NeedTool(t, tool[0], tool[1])
	}
	lab := netlab.New(t)
	n := lab.Line()
	lan := n.Router.MAC("lan0").String()
	// What the host believes of the router is out of date, as after another
	// router had the address.
	n.H1.MustRun("ip", "neigh", "replace", netlab.RouterLAN, "lladdr", "02:de:ad:be:ef:01", "dev", "eth0", "nud", "stale")
	dump := arpDump(t, n.H1)
	r := lab.Router(n.Router, quickARP(t))

	t.Run("the router probes and announces its address at the start", func(t *testing.T) {
		await(t, dump, lan+` > ff:ff:ff:ff:ff:ff, .*(Probe |who-has )`+netlab.RouterLAN+`( tell 0.0.0.0)?,`)
		await(t, dump, `(?s)`+lan+` > ff:ff:ff:ff:ff:ff, [^\n]*(Announcement `+netlab.RouterLAN+`|who-has `+netlab.RouterLAN+` tell `+netlab.RouterLAN+`)`+
			`.*`+lan+` > ff:ff:ff:ff:ff:ff, [^\n]*(Announcement `+netlab.RouterLAN+`|who-has `+netlab.RouterLAN+` tell `+netlab.RouterLAN+`)`)
	})
	t.Run("an out-of-date kernel entry is corrected by the announcement", func(t *testing.T) {
		eventually(t, n.H1, "lladdr "+lan, "ip", "neigh", "show", netlab.RouterLAN)
	})
	t.Run("the kernel's entry for the router becomes valid", func(t *testing.T) {
		n.H1.MustRun("ip", "neigh", "flush", "dev", "eth0")
		if out := n.H1.MustRun("ping", "-c", "2", "-i", "0.1", "-W", "2", netlab.H2Address); !strings.Contains(out, "2 received") {
			t.Errorf("%s", out)
		}
		if out := n.H1.MustRun("ip", "neigh", "show", netlab.RouterLAN); !strings.Contains(out, "lladdr "+lan+" REACHABLE") {
			t.Errorf("%s", out)
		}
		n.H1.MustRun("ping", "-c", "30", "-i", "0.1", "-W", "2", netlab.H2Address) // past several probes
	})
	t.Run("arping has one answer to each request", func(t *testing.T) {
		out := n.H1.MustRun("arping", "-c", "3", "-I", "eth0", netlab.RouterLAN)
		if !strings.Contains(out, "Received 3 response") || strings.Count(strings.ToLower(out), lan) != 3 {
			t.Errorf("%s", out)
		}
	})
	t.Run("duplicate address detection finds the router", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		out, err := n.H1.Run(ctx, "arping", "-D", "-c", "2", "-I", "eth0", netlab.RouterLAN)
		if err == nil || !strings.Contains(strings.ToLower(out), lan) {
			t.Errorf("%v: %s", err, out)
		}
	})
	t.Run("a host that moves without a word is found by the broadcast probes", func(t *testing.T) {
		setMAC(n.H2, "02:00:00:00:77:01")
		eventually(t, n.H1, ` 1 received`, "ping", "-c", "1", "-W", "1", netlab.H2Address)
	})
	t.Run("a host that moves and says so is followed at once", func(t *testing.T) {
		n.H2.Sysctl("net.ipv4.conf.eth0.arp_notify", "1")
		dump := arpDump(t, n.H2)
		setMAC(n.H2, "02:00:00:00:77:02")
		await(t, dump, `02:00:00:00:77:02 > ff:ff:ff:ff:ff:ff`)
		eventually(t, n.H1, ` 1 received`, "ping", "-c", "1", "-W", "1", netlab.H2Address)
	})
	t.Run("a silent host is reported unreachable", func(t *testing.T) {
		// It asks nobody either, else its questions would give it away.
		mac, err := net.ParseMAC(n.Router.MAC("wan0").String())
		if err != nil {
			t.Fatal(err)
		}
		n.H2.Neighbor("eth0", netlab.RouterWAN, mac)
		n.H2.Sysctl("net.ipv4.conf.eth0.arp_ignore", "8")
		eventually(t, n.H1, `From `+netlab.RouterLAN+` .*Destination Host Unreachable`, "ping", "-c", "1", "-W", "1", netlab.H2Address)
	})
	t.Run("a host that comes back is reached again", func(t *testing.T) {
		n.H2.Sysctl("net.ipv4.conf.eth0.arp_ignore", "0")
		eventually(t, n.H1, ` 1 received`, "ping", "-c", "1", "-W", "1", netlab.H2Address)
	})
	t.Run("a host with the router's address is reported and answered", func(t *testing.T) {
		n.H1.MustRun("ip", "address", "add", netlab.RouterLAN+"/32", "dev", "lo")
		dump := arpDump(t, n.H1)
		n.H1.MustRun("arping", "-U", "-c", "1", "-I", "eth0", "-s", netlab.RouterLAN, netlab.RouterLAN)
		await(t, r.Process, `msg="another host uses an address of this router.*port=lan0 address=`+netlab.RouterLAN+` mac=`+n.H1.MAC("eth0").String())
		await(t, dump, lan+` > ff:ff:ff:ff:ff:ff, .*(Announcement|who-has) `+netlab.RouterLAN)
		n.H1.MustRun("ip", "address", "del", netlab.RouterLAN+"/32", "dev", "lo")
		// The router still has it.
		n.H1.MustRun("arping", "-c", "1", "-I", "eth0", netlab.RouterLAN)
	})
	_ = dump.Stop(syscall.SIGTERM)
	report := r.Finish()
	balance(t, report, r.Stdout())
	var more struct {
		Neighbors struct {
			States                                                 map[string]int
			Requests, Failures, Learned, Moved, Conflicts, Unasked uint64
			Announced                                              uint64
		}
	}
	if err := json.Unmarshal([]byte(r.Stdout()), &more); err != nil {
		t.Fatal(err)
	}
	c := more.Neighbors
	if c.Requests == 0 || c.Failures == 0 || c.Learned < 2 || c.Moved < 1 || c.Conflicts == 0 || c.Announced < 5 || len(c.States) == 0 {
		t.Errorf("neighbours: %+v", c)
	}
}

// setMAC changes a host's address without taking the link down.
func setMAC(n *netlab.Namespace, mac string) {
	n.MustRun("ip", "link", "set", "dev", "eth0", "address", mac)
}
