package dataplane

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"gorouter/internal/inet"
)

// announcing makes a lab that claims its addresses, and logs into what it
// returns.
func announcing(t testing.TB, change ...func(*Config)) (*lab, *bytes.Buffer) {
	var log bytes.Buffer
	l := newLab(t, append([]func(*Config){func(c *Config) {
		c.Neigh.Announce = 2
		c.Log = slog.New(slog.NewTextHandler(&log, nil))
	}}, change...)...)
	return l, &log
}

// claimsOf says what a port's frames are, each a broadcast that must be a
// well-formed probe or announcement, in the order of their addresses.
func claimsOf(t *testing.T, l *lab, portIndex int) (got []string) {
	t.Helper()
	mac := l.r.ports[portIndex].MAC()
	for _, f := range l.out(portIndex) {
		_, a := readARP(t, f)
		if inet.MAC(f[0:6]) != inet.Broadcast || inet.MAC(f[6:12]) != mac || !bytes.Equal(a.SourceHwAddress, mac[:]) ||
			a.Operation != arpRequest || !bytes.Equal(a.DstHwAddress, make([]byte, 6)) {
			t.Errorf("%+v in %x", a, f[:14])
		}
		kind := "announce"
		switch {
		case bytes.Equal(a.SourceProtAddress, make([]byte, 4)):
			kind = "probe"
		case !bytes.Equal(a.SourceProtAddress, a.DstProtAddress):
			t.Errorf("neither probe nor announcement: %+v", a)
		}
		got = append(got, kind+" "+from4(binary.BigEndian.Uint32(a.DstProtAddress)).String())
	}
	slices.Sort(got)
	return got
}

// watchClaims lets time go by and says what left by a port and when, in
// milliseconds from now.
func watchClaims(t *testing.T, l *lab, portIndex int, d time.Duration) (got []string) {
	t.Helper()
	for ms := 0; ms < int(d/time.Millisecond); ms += 100 {
		l.r.Housekeep()
		l.run()
		for _, c := range claimsOf(t, l, portIndex) {
			got = append(got, fmt.Sprintf("%d %s", ms, c))
		}
		l.clk.Advance(100e9)
	}
	return got
}

func wantClaims(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

func TestOwnAddressesAreProbedOnceAndAnnouncedTwice(t *testing.T) {
	l, _ := announcing(t)
	wantClaims(t, "start", watchClaims(t, l, 1, 10*time.Second),
		"0 probe 198.51.100.1", "1000 announce 198.51.100.1", "3000 announce 198.51.100.1")
	// The other ports did the same, each with its own address alone.
	wantClaims(t, "port 2", claimsOf(t, l, 2), "announce 203.0.113.1", "announce 203.0.113.1", "probe 203.0.113.1")
	if n := l.r.Neighbours().Stats().Announced; n != 6 {
		t.Errorf("%d announcements counted", n)
	}
	if err := l.r.AddAddress(1, netip.MustParsePrefix("10.3.0.1/16")); err != nil {
		t.Fatal(err)
	}
	wantClaims(t, "a second address", watchClaims(t, l, 1, 10*time.Second),
		"0 probe 10.3.0.1", "1000 announce 10.3.0.1", "3000 announce 10.3.0.1")
}

func TestAnAddressIsAnnouncedAfterTheLinkOrTheMACChanged(t *testing.T) {
	l, _ := announcing(t)
	watchClaims(t, l, 1, 5*time.Second)
	l.r.ports[1].SetMAC(inet.MAC{2, 0, 0, 0, 9, 9})
	wantClaims(t, "new MAC", watchClaims(t, l, 1, 10*time.Second), "0 announce 198.51.100.1", "2000 announce 198.51.100.1")
	l.r.ports[1].SetUp(false)
	wantClaims(t, "no link", watchClaims(t, l, 1, 5*time.Second))
	if d := l.drops(); len(d) != 0 {
		t.Errorf("sent into a dead link: %v", d)
	}
	l.r.ports[1].SetUp(true)
	wantClaims(t, "link again", watchClaims(t, l, 1, 10*time.Second),
		"0 probe 198.51.100.1", "1000 announce 198.51.100.1", "3000 announce 198.51.100.1")
	// A link that fails in between begins anew.
	l.r.ports[1].SetUp(false)
	watchClaims(t, l, 1, time.Second)
	l.r.ports[1].SetUp(true)
	watchClaims(t, l, 1, 1500*time.Millisecond)
	l.r.ports[1].SetUp(false)
	watchClaims(t, l, 1, time.Second)
	l.r.ports[1].SetUp(true)
	wantClaims(t, "twice", watchClaims(t, l, 1, 10*time.Second),
		"0 probe 198.51.100.1", "1000 announce 198.51.100.1", "3000 announce 198.51.100.1")
}

func TestAPortWithoutALinkAtTheStartWaitsForIt(t *testing.T) {
	l, _ := announcing(t)
	l.r.ports[1].SetUp(false)
	wantClaims(t, "no link", watchClaims(t, l, 1, 5*time.Second))
	l.r.ports[1].SetUp(true)
	wantClaims(t, "first link", watchClaims(t, l, 1, 5*time.Second),
		"0 probe 198.51.100.1", "1000 announce 198.51.100.1", "3000 announce 198.51.100.1")
}

func TestAnnounceZeroIsSilent(t *testing.T) {
	l, _ := announcing(t, func(c *Config) { c.Neigh.Announce = 0 })
	wantClaims(t, "start", watchClaims(t, l, 1, 5*time.Second))
	l.runAt(1, arpFrame(arpRequest, inet.Broadcast, hostMAC[2], "198.51.100.1", inet.MAC{}, "198.51.100.1"))
	l.out(1)
	wantClaims(t, "conflict", watchClaims(t, l, 1, 5*time.Second))
	if l.r.Neighbours().Counts.Conflicts.Load() != 1 {
		t.Error("the conflict is not counted")
	}
}

// A host with our address is told so, not more often than every 10 s, and so is
// the log.
func TestAnAddressIsDefendedAtMostEveryTenSeconds(t *testing.T) {
	l, log := announcing(t)
	watchClaims(t, l, 1, 5*time.Second)
	claim := arpFrame(arpReply, inet.Broadcast, hostMAC[2], "198.51.100.1", inet.Broadcast, "198.51.100.1")
	var got []string
	for i := range 250 {
		l.runAt(1, claim)
		for _, c := range watchClaims(t, l, 1, 100*time.Millisecond) {
			got = append(got, fmt.Sprintf("%d:%s", i*100, c))
		}
	}
	wantClaims(t, "defence", got, "0:0 announce 198.51.100.1", "10000:0 announce 198.51.100.1", "20000:0 announce 198.51.100.1")
	if n := l.r.Neighbours().Counts.Conflicts.Load(); n != 250 {
		t.Errorf("%d conflicts counted", n)
	}
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != 3 {
		t.Fatalf("log:\n%s", log)
	}
	for i, frames := range []string{"frames=1", "frames=100", "frames=100"} {
		for _, w := range []string{"level=WARN", "port=p1", "address=198.51.100.1", "mac=" + hostMAC[2].String(), frames} {
			if !strings.Contains(lines[i]+" ", w+" ") {
				t.Errorf("line %d lacks %s: %s", i, w, lines[i])
			}
		}
	}
	// Quiet again; the address is kept and answers.
	wantClaims(t, "afterwards", watchClaims(t, l, 1, 20*time.Second))
	l.runAt(1, arpFrame(arpRequest, inet.Broadcast, hostMAC[1], "198.51.100.2", inet.MAC{}, "198.51.100.1"))
	if out := l.out(1); len(out) != 1 || out[0][21] != arpReply {
		t.Errorf("no answer for our address: %x", out)
	}
}

func TestAnnouncementsThatAreDueAreDefenceEnough(t *testing.T) {
	l, _ := announcing(t)
	watchClaims(t, l, 1, 100*time.Millisecond)
	l.runAt(1, arpFrame(arpReply, inet.Broadcast, hostMAC[2], "198.51.100.1", inet.Broadcast, "198.51.100.1"))
	wantClaims(t, "conflict at the start", watchClaims(t, l, 1, 10*time.Second), "900 announce 198.51.100.1", "2900 announce 198.51.100.1")
}

func TestTwoThatProbeForOneAddressConflict(t *testing.T) {
	probe := arpFrame(arpRequest, inet.Broadcast, hostMAC[2], "0.0.0.0", inet.MAC{}, "198.51.100.1")
	l, _ := announcing(t)
	watchClaims(t, l, 1, 500*time.Millisecond)
	l.runAt(1, probe)
	if n := l.r.Neighbours().Counts.Conflicts.Load(); n != 1 {
		t.Errorf("%d conflicts while we probe", n)
	}
	l.out(1)
	watchClaims(t, l, 1, 5*time.Second)
	// Later the answer tells the other that the address is taken.
	l.runAt(1, probe)
	if n := l.r.Neighbours().Counts.Conflicts.Load(); n != 1 || len(l.out(1)) != 1 {
		t.Errorf("%d conflicts after a later probe", n)
	}
	// Probes for what is not ours are nobody's business.
	l.runAt(1, arpFrame(arpRequest, inet.Broadcast, hostMAC[2], "0.0.0.0", inet.MAC{}, "198.51.100.99"))
	if n := l.r.Neighbours().Counts.Conflicts.Load(); n != 1 {
		t.Errorf("%d conflicts", n)
	}
}

// Two of our ports on one network hear each other; neither is a conflict nor a
// neighbour.
func TestOurOtherPortIsNoConflict(t *testing.T) {
	l, log := announcing(t)
	if err := l.r.AddAddress(0, netip.MustParsePrefix("198.51.100.9/24")); err != nil {
		t.Fatal(err)
	}
	watchClaims(t, l, 1, 5*time.Second)
	l.run(arpFrame(arpRequest, inet.Broadcast, routerMAC[1], "198.51.100.1", inet.MAC{}, "198.51.100.1"))
	l.run(arpFrame(arpRequest, inet.Broadcast, routerMAC[1], "198.51.100.1", inet.MAC{}, "198.51.100.9"))
	watchClaims(t, l, 1, 5*time.Second)
	if s := l.r.Neighbours().Stats(); s.Conflicts != 0 || log.Len() != 0 || l.r.isNeighbour(0, "198.51.100.1") {
		t.Errorf("%+v\n%s", s, log)
	}
}
