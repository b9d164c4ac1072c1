package e2e

import (
	"context"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"gorouter/internal/testenv"
	"gorouter/test/netlab"
)

// lineConfig is a router between two hosts.
func lineConfig(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("../../examples/namespaces.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// balance checks that every frame left or has a named reason.
func balance(t *testing.T, r netlab.Report, stdout string) {
	t.Helper()
	var more struct {
		Originated uint64 `json:"originated"`
	}
	if err := json.Unmarshal([]byte(stdout), &more); err != nil {
		t.Fatal(err)
	}
	in, out := more.Originated, uint64(0)
	for _, p := range r.Ports {
		in += p.RxPackets
		out += p.TxPackets
	}
	for _, n := range r.Drops {
		out += n
	}
	if in != out {
		t.Errorf("%d frames came in or were made here, %d went out or were dropped by name", in, out)
	}
	total := r.Buffers["total"]
	sum := uint64(0)
	for place, n := range r.Buffers {
		if place != "total" {
			sum += n
		}
	}
	if total == 0 || sum != total {
		t.Errorf("buffers by place add up to %d of %d: %v", sum, total, r.Buffers)
	}
}

func TestTwoHostsTalkThroughTheRouter(t *testing.T) {
	for _, tool := range [][2]string{{"ping", "iputils-ping"}, {"traceroute", "traceroute"}, {"iperf3", "iperf3"}} {
		testenv.NeedTool(t, tool[0], tool[1])
	}
	lab := netlab.New(t)
	n := lab.Line()
	// The kernel of the router's namespace is set to forward and answer, so
	// that the test sees it kept from doing so.
	n.Router.Sysctl("net.ipv4.ip_forward", "1")
	r := lab.Router(n.Router, lineConfig(t))

	t.Run("cold ping, all answered, none twice", func(t *testing.T) {
		out := n.H1.MustRun("ping", "-c", "5", "-i", "0.1", "-W", "2", netlab.H2Address)
		if !strings.Contains(out, "5 received") || strings.Contains(out, "DUP!") {
			t.Errorf("%s", out)
		}
		if !strings.Contains(out, "ttl=63") {
			t.Errorf("the answer did not cross one router: %s", out)
		}
	})
	t.Run("the router's own addresses answer", func(t *testing.T) {
		for _, a := range []string{netlab.RouterLAN, netlab.RouterWAN} {
			out := n.H1.MustRun("ping", "-c", "2", "-i", "0.1", "-W", "2", a)
			if !strings.Contains(out, "2 received") || strings.Contains(out, "DUP!") {
				t.Errorf("%s: %s", a, out)
			}
		}
	})
	t.Run("traceroute sees the router and the host", func(t *testing.T) {
		out := n.H1.MustRun("traceroute", "-n", "-q", "1", "-w", "2", netlab.H2Address)
		if !regexp.MustCompile(`(?s) 1  10\.0\.1\.1 .* 2  10\.0\.2\.2 `).MatchString(out) {
			t.Errorf("%s", out)
		}
	})
	t.Run("large pings cross whole", func(t *testing.T) {
		out := n.H1.MustRun("ping", "-c", "3", "-i", "0.1", "-W", "2", "-s", "1472", "-M", "do", netlab.H2Address)
		if !strings.Contains(out, "3 received") {
			t.Errorf("%s", out)
		}
	})
	t.Run("TCP and UDP both ways", func(t *testing.T) {
		server := n.H2.Start("iperf3", "-s", "--forceflush")
		ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
		defer cancel()
		if err := server.AwaitOutput(ctx, regexp.MustCompile(`listening`)); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{}, {"-R"}, {"-u", "-b", "20M"}, {"-u", "-b", "20M", "-R"}} {
			args = append([]string{"-c", netlab.H2Address, "-t", "1", "-J"}, args...)
			out, err := n.H1.Run(ctx, "iperf3", args...)
			if err != nil {
				t.Fatalf("iperf3 %v: %v\n%s", args, err, out)
			}
			var res struct {
				Error string
				End   struct {
					SumReceived struct{ Bytes float64 } `json:"sum_received"`
					Sum         struct {
						Bytes       float64
						LostPercent float64 `json:"lost_percent"`
					}
				}
			}
			if err := json.Unmarshal([]byte(out), &res); err != nil {
				t.Fatalf("iperf3 %v: %v\n%s", args, err, out)
			}
			if got := res.End.SumReceived.Bytes + res.End.Sum.Bytes; res.Error != "" || got < 100_000 {
				t.Errorf("iperf3 %v: %v bytes, error %q", args, got, res.Error)
			}
			if res.End.Sum.LostPercent > 50 {
				t.Errorf("iperf3 %v: %v %% lost", args, res.End.Sum.LostPercent)
			}
		}
		_ = server.Stop(syscall.SIGTERM)
	})
	report := r.Finish()
	balance(t, report, r.Stdout())
	if d := report.Drops; d["ip4_checksum"]+d["rx_truncated"]+d["tx_too_long"] != 0 {
		t.Errorf("drops that have no cause here: %v", d)
	}
	t.Run("afterwards the kernel has its interfaces back", func(t *testing.T) {
		n.Router.Address("lan0", netlab.RouterLAN+"/24")
		out := n.H1.MustRun("ping", "-c", "2", "-i", "0.1", "-W", "2", netlab.RouterLAN)
		if !strings.Contains(out, "2 received") {
			t.Errorf("%s", out)
		}
	})
}
