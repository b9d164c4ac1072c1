package arch

import (
	"strings"
	"testing"
)

// The checker itself: arrows of a made-up graph, good and bad.
func TestCheckFindsWrongArrows(t *testing.T) {
	for _, c := range []struct {
		name     string
		from, to string
		test     bool
		fault    string // part of the complaint; empty for an allowed arrow
	}{
		{"down", "gorouter/rx", "gorouter/skb", false, ""},
		{"far down", "gorouter/cmd/gorouter", "gorouter/internal/mem", false, ""},
		{"up", "gorouter/skb", "gorouter/rx", false, "floor 0 may not use floor 1"},
		{"foundation up", "gorouter/internal/mem", "gorouter/skb", false, "floor -1 may not use floor 0"},
		{"foundation sideways", "gorouter/internal/mem", "gorouter/internal/stat", false, "both are on floor -1"},
		{"up, in a test", "gorouter/rx", "gorouter/nic/model", true, ""},
		{"sideways", "gorouter/rx", "gorouter/tx", false, "both are on floor 1"},
		{"same name in front", "gorouter/rx", "gorouter/rxother", false, "no known room"},
		{"own sub-package", "gorouter/dataplane", "gorouter/dataplane/arp", false, ""},
		{"own parent", "gorouter/dataplane/arp", "gorouter/dataplane", false, "both are on floor 3"},
		{"sibling's sub-package by name", "gorouter/nic/model", "gorouter/nic/e1000/regs", false, ""},
		{"the driver's bus", "gorouter/nic/e1000", "gorouter/nic/pci", false, ""},
		{"sibling without a name", "gorouter/nic/model", "gorouter/nic/e1000", false, "both are on floor 3"},
		{"that way only", "gorouter/nic/pci", "gorouter/nic/e1000", false, "both are on floor 3"},
		{"another room of the floor", "gorouter/dataplane", "gorouter/nic/e1000", false, "both are on floor 3"},
		{"test rooms use anything", "gorouter/test/netlab", "gorouter/lab", false, ""},
		{"nobody uses test rooms", "gorouter/lab", "gorouter/test/netlab", false, "floor 4 may not use floor 6"},
		{"test environment", "gorouter/lab", "gorouter/internal/testenv", false, "only tests"},
		{"test environment, in a test", "gorouter/lab", "gorouter/internal/testenv", true, ""},
		{"unknown room", "gorouter/bridge", "gorouter/skb", false, "give it a floor"},
		{"into an unknown room", "gorouter/lab", "gorouter/bridge", false, "give it a floor"},
		{"unknown room in a test", "gorouter/lab", "gorouter/bridge", true, "give it a floor"},

		{"standard library", "gorouter/skb", "encoding/binary", false, ""},
		{"cgo", "gorouter/nic/pci", "C", false, "cgo"},
		{"bart in the FIB", "gorouter/fib", "github.com/gaissmai/bart", false, ""},
		{"bart elsewhere", "gorouter/dataplane", "github.com/gaissmai/bart", false, "allowed in fib"},
		{"gopacket in the packet path", "gorouter/dataplane", "github.com/google/gopacket/layers", false, "in tests only"},
		{"gopacket in a test", "gorouter/dataplane", "github.com/google/gopacket/layers", true, ""},
		{"gopacket in pktgen", "gorouter/pktgen", "github.com/google/gopacket", false, ""},
		{"gopacket in the pcap port", "gorouter/nic/loop", "github.com/google/gopacket/pcapgo", false, ""},
		{"gopacket in another port", "gorouter/nic/packet", "github.com/google/gopacket", false, "in tests only"},
		{"netlink in the FIB", "gorouter/fib", "github.com/vishvananda/netlink", false, "in tests only"},
		{"netlink in control", "gorouter/control/kernel", "github.com/vishvananda/netlink", false, ""},
		{"a sub-package of an allowed module", "gorouter/skb", "golang.org/x/sys/unix", false, ""},
		{"unknown module", "gorouter/lab", "example.com/nice", false, "an unknown module"},
		{"unknown module in a test", "gorouter/lab", "example.com/nice", true, "an unknown module"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Check([]Arrow{{From: c.from, To: c.to, File: "x.go", Test: c.test}})
			switch {
			case c.fault == "" && len(got) != 0:
				t.Errorf("unexpected: %v", got)
			case c.fault != "" && (len(got) != 1 || !strings.Contains(got[0], c.fault)):
				t.Errorf("want one complaint with %q, got %v", c.fault, got)
			}
		})
	}
}

// A wrong arrow planted in real source text arrives as a complaint, also from a
// file that this machine does not build.
func TestPlantedArrowIsFound(t *testing.T) {
	f, err := parse("skb/buf_arm64.go", []byte("//go:build arm64 && skbdebug\n\n// Package skb is here.\npackage skb\n\nimport (\n\t_ \"unsafe\"\n\n\tq \"gorouter/rx\"\n)\n\nvar _ q.Queue\n"))
	if err != nil {
		t.Fatal(err)
	}
	got := Check(Arrows([]GoFile{f}))
	if len(got) != 1 || !strings.Contains(got[0], "skb/buf_arm64.go: gorouter/skb imports gorouter/rx") {
		t.Errorf("got %v", got)
	}
	if f.Lines != 12 || f.Doc != "Package skb is here.\n" || f.Test {
		t.Errorf("parsed wrongly: %+v", f)
	}
}

func TestCheckLength(t *testing.T) {
	got := CheckLength([]GoFile{
		{Path: "a.go", Lines: hardLimit},
		{Path: "b.go", Lines: hardLimit + 1},
		{Path: "c_test.go", Lines: 2 * hardLimit, Test: true},
	})
	if len(got) != 1 || !strings.HasPrefix(got[0], "b.go ") {
		t.Errorf("got %v", got)
	}
}

func TestCheckDocs(t *testing.T) {
	got := CheckDocs([]GoFile{
		{Package: "gorouter/skb", Name: "skb"},
		{Package: "gorouter/skb", Name: "skb", Doc: "Package skb holds buffers.\n"},
		{Package: "gorouter/skb", Name: "skb"},
		{Package: "gorouter/fib", Name: "fib"},
		{Package: "gorouter/rx", Name: "rx", Doc: "All about receiving.\n"},
		{Package: "gorouter/cmd/gorouter", Name: "main", Doc: "Gorouter is a router.\n"},
	})
	if len(got) != 2 || !strings.Contains(got[0], "gorouter/fib ") || !strings.Contains(got[1], "gorouter/rx ") {
		t.Errorf("got %v", got)
	}
}

func TestCheckText(t *testing.T) {
	for _, c := range []struct {
		name, text string
		bad        bool
	}{
		{"a.md", "see /ho" + "me/someone/gorouter for it", true},
		{"a.go", `const dir = "/wo` + `rk/x"`, true},
		{"a.md", "read ../sha" + "red/notes.md", true},
		{"a.md", "the host's ./wo" + "rk/x is fine", false},
		{"a.md", "https://example.com/wo" + "rk/x", false},
		{"a.go", "// TO" + "DO: later", true},
		{"a.go", "ctx := context.TO" + "DO()", false},
		{"a.md", "a TO" + "DO list", false},
		{"a.bin", "\x00/ho" + "me/someone/x", false},
	} {
		if got := CheckText(c.name, []byte(c.text)); (len(got) > 0) != c.bad {
			t.Errorf("%s %q: got %v, want bad %v", c.name, c.text, got, c.bad)
		}
	}
}
