package e2e

import (
	"regexp"
	"strings"
	"testing"

	"gorouter/internal/testenv"
	"gorouter/test/netlab"
)

// The MTU of an interface changes under a running router: packets are cut to
// it, or their sender is told of it, and no longer once it is as before.
func TestMTUOfAnInterfaceIsFollowed(t *testing.T) {
	testenv.NeedTool(t, "ping", "iputils-ping")
	lab := netlab.New(t)
	n := lab.Line()
	r := lab.Router(n.Router, lineConfig(t))
	// ping sends one packet of 1500 bytes until what comes of it matches. The
	// host must not remember what it was told before.
	ping := func(pattern, fragment string) {
		t.Helper()
		eventually(t, n.H1, pattern, "sh", "-c",
			"ip route flush cache; ping -c 1 -W 2 -s 1472 -M "+fragment+" "+netlab.H2Address)
	}
	ping(` 1 received`, "do")

	n.H2.MTU("eth0", 1200) // or answers would come in longer than wan0 takes
	n.Router.MTU("wan0", 1200)
	ping(`(?i)from `+regexp.QuoteMeta(netlab.RouterLAN)+` .*frag needed.*mtu = 1200`, "do")
	ping(` 1 received`, "dont")

	n.H2.MTU("eth0", 1500)
	n.Router.MTU("wan0", 1500)
	ping(` 1 received`, "do")

	report := r.Finish()
	balance(t, report, r.Stdout())
	if report.Drops["ip4_too_big"] == 0 {
		t.Errorf("nothing was too long: %v", report.Drops)
	}
	for _, why := range []string{"tx_too_long", "rx_super_frame", "rx_too_long", "rx_truncated"} {
		if report.Drops[why] != 0 {
			t.Errorf("%s: the MTU was not followed: %v", why, report.Drops)
		}
	}
	if log := r.Stderr(); strings.Count(log, "MTU changed") != 2 {
		t.Errorf("two changes of the MTU are not in the log:\n%s", log)
	}
}
