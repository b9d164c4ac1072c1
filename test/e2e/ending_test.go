package e2e

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"gorouter/internal/testenv"
	"gorouter/test/netlab"
)

// changed reads what a router changes on the interface of a kernel.
func changed(n *netlab.Namespace, dev string) string {
	var keep []string
	for l := range strings.Lines(n.MustRun("ethtool", "-k", dev)) {
		if regexp.MustCompile(`^\s*(generic-|tcp-segmentation|tx-tcp|tx-udp-seg|rx-gro)`).MatchString(l) {
			keep = append(keep, strings.TrimSpace(l))
		}
	}
	return strings.Join(keep, "\n") + "\n" + n.MustRun("tc", "qdisc", "show", "dev", dev)
}

// Whatever ends the router, short of SIGKILL, gives the interfaces back.
func TestInterfacesAreGivenBackAtEveryEnd(t *testing.T) {
	testenv.NeedTool(t, "ethtool", "ethtool")
	testenv.NeedTool(t, "tc", "iproute2")
	yaml := strings.ReplaceAll(lineConfig(t), "driver: af_packet", "driver: af_packet\n    packet: {isolation: clsact}")
	lab := netlab.New(t)
	n := lab.Line()
	before := changed(n.Router, "lan0")
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		t.Run(sig.String(), func(t *testing.T) {
			r := lab.Router(n.Router, yaml)
			if changed(n.Router, "lan0") == before {
				t.Fatal("nothing changed while the router ran, so nothing is tested")
			}
			if err := r.Stop(sig); err != nil || !strings.Contains(r.Stdout(), `"duration_s"`) {
				t.Errorf("%v, standard output %q, standard error %s", err, r.Stdout(), r.Stderr())
			}
			if now := changed(n.Router, "lan0"); now != before {
				t.Errorf("before:\n%s\nafter:\n%s", before, now)
			}
		})
	}
	t.Run("the reader of the output goes away", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "router.yaml")
		if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		out, err := n.Router.Run(ctx, "sh", "-c", `{ "$0" -c "$1" --interval 100ms; echo status $? >&2; } | head -1`, netlab.Binary(t), file)
		if err != nil || !strings.Contains(out, "lan0 rx") || !strings.Contains(out, "broken pipe") || !strings.Contains(out, "status 1") {
			t.Errorf("%v\n%s", err, out)
		}
		if now := changed(n.Router, "lan0"); now != before {
			t.Errorf("before:\n%s\nafter:\n%s", before, now)
		}
	})
}

// nohup has a program ignore SIGHUP.
func TestIgnoredHangUpStaysIgnored(t *testing.T) {
	out, err := sh(t, `trap '' HUP; "$0" -c ../../router.yaml --json >/dev/null & p=$!; sleep 1; kill -HUP $p; sleep 0.5; kill -TERM $p && wait $p`)
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
