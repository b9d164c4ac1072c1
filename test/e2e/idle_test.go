package e2e

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"gorouter/internal/testenv"
	"gorouter/test/netlab"
)

// A worker that sleeps is woken by a frame: pings cross at once, not when the
// longest sleep of 100 ms is over, and in between the router does nothing.
func TestPingThroughASleepingRouter(t *testing.T) {
	testenv.NeedTool(t, "ping", "iputils-ping")
	one := strings.Replace(lineConfig(t), "idle: backoff", "idle: interrupt", 1)
	two := "workers: 2\n" + strings.Replace(one, "interface: wan0", "interface: wan0\n    worker: 1", 1)
	for name, yaml := range map[string]string{"one worker": one, "two workers": two} {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(yaml, "interrupt") || name == "two workers" && !strings.Contains(yaml, "worker: 1") {
				t.Fatal("the shipped configuration changed and this variant is none any more")
			}
			lab := netlab.New(t)
			n := lab.Line()
			r := lab.Router(n.Router, yaml)
			out := n.H1.MustRun("ping", "-c", "15", "-i", "0.2", "-W", "2", netlab.H2Address)
			m := regexp.MustCompile(`= [0-9.]+/([0-9.]+)/`).FindStringSubmatch(out)
			if m == nil || !strings.Contains(out, "15 received") || strings.Contains(out, "DUP!") {
				t.Fatalf("%s", out)
			}
			// Two crossings a ping; by the longest sleep alone they would
			// take 100 ms on average.
			if avg, err := strconv.ParseFloat(m[1], 64); err != nil || avg > 50 {
				t.Errorf("%v ms on average (%v)\n%s", avg, err, out)
			}
			time.Sleep(2 * time.Second) // nothing to do
			report := r.Finish()
			balance(t, report, r.Stdout())
			var more struct {
				Duration float64 `json:"duration_s"`
				Polls    struct{ Rounds, Sleeps, Wakeups, Naps uint64 }
				Workers  []struct {
					Ports []string
					Polls struct{ Sleeps, Wakeups uint64 }
				}
			}
			if err := json.Unmarshal([]byte(r.Stdout()), &more); err != nil {
				t.Fatal(err)
			}
			p := more.Polls
			if p.Sleeps < 15 || p.Wakeups < 15 || float64(p.Rounds) > 3000*more.Duration {
				t.Errorf("%+v in %v s", p, more.Duration)
			}
			for i, w := range more.Workers {
				if w.Polls.Wakeups == 0 {
					t.Errorf("worker %d was never woken: %+v", i, w)
				}
			}
			t.Logf("%s: %+v", m[0], p)
		})
	}
}
