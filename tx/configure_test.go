package tx

import (
	"fmt"
	"testing"
	"time"

	"gorouter/skb"
)

// Options change on a running ring, with frames that wait for the doorbell,
// frames held back, reports owed and room running out: every frame leaves once,
// in order, and none stays captive.
func TestLiveChangesLoseNothing(t *testing.T) {
	bells := []string{DoorbellFrame, DoorbellBatch, DoorbellTimer}
	for _, from := range bells {
		for _, to := range bells {
			for _, every := range [][2]int{{1, 256}, {256, 1}, {16, 3}} {
				for _, waiting := range []int{0, 1, 17, 39} {
					for _, more := range []bool{false, true} {
						name := fmt.Sprintf("%s to %s, report every %v, %d frames, more %v", from, to, every, waiting, more)
						o := defaults()
						o.Ring, o.Doorbell, o.ReportEvery, o.ReclaimAt = MinRing, from, every[0], 4096
						r := newRig(t, o)
						r.Send(r.fill(waiting, 60), more)
						if waiting%2 == 1 {
							r.dev.send(waiting / 2)
						}
						o.Doorbell, o.ReportEvery, o.ReclaimAt, o.WakeAt, o.DoorbellTimer = to, every[1], 1, 79, time.Millisecond
						r.Configure(o)
						if r.waiting() != 0 {
							t.Fatalf("%s: %d frames are not shown after the change", name, r.waiting())
						}
						r.dev.send(MinRing)
						if n := r.Reclaim(); r.Pending() != 0 {
							t.Fatalf("%s: %d freed, %d captive after the change", name, n, r.Pending())
						}
						for range 3 {
							r.Send(r.fill(30, 60), true)
						}
						r.Flush()
						now := int64(time.Second)
						r.Tick(now)
						r.Tick(now + int64(o.DoorbellTimer))
						r.dev.send(MinRing)
						r.Reclaim()
						if r.Pending() != 0 {
							t.Fatalf("%s: %d captive", name, r.Pending())
						}
						drops := int(r.drops(skb.TxRingFull))
						if len(r.dev.sent)+drops != waiting+90 {
							t.Fatalf("%s: %d frames left, %d dropped", name, len(r.dev.sent), drops)
						}
						r.audit(t)
					}
				}
			}
		}
	}
}
