// Package arch keeps the repository in the shape that its architecture asks
// for: which package may import which, which outside modules may be used where,
// and the habits of its files. Its tests read the whole tree.
package arch

import (
	"fmt"
	"strings"
)

// Module is the import path of the repository itself.
const Module = "gorouter"

// Floors of the rooms; a package imports only from floors below its own.
const (
	foundation = -1
	testFloor  = 6
)

// rooms gives each top-level folder its floor. A new one needs a row here and in
// the architecture's table of rooms.
var rooms = map[string]int{
	"internal":  foundation,
	"skb":       0,
	"fib":       0,
	"mmio":      0,
	"clock":     0,
	"rx":        1,
	"tx":        1,
	"port":      2,
	"nic":       3,
	"dataplane": 3,
	"pktgen":    3,
	"config":    4,
	"control":   4,
	"lab":       4,
	"cmd":       5,
	"test":      testFloor,
}

// siblings lists the arrows within one floor which are allowed by name.
// A package may use its own sub-packages without being listed.
var siblings = map[[2]string]bool{
	{"nic/e1000", "nic/pci"}:          true,
	{"nic/model", "nic/e1000/regs"}:   true,
	{"fib/fibbench", "fib"}:           true,
	{"fib/fibbench", "fib/fibtest"}:   true,
	{"fib/fibbench", "fib/routefile"}: true,
}

// outside says where code other than tests may use a module that is not ours:
// the folders listed, with all below them. "" stands for everywhere. A module
// that is not listed at all is refused.
var outside = map[string][]string{
	"golang.org/x/sys":               {""},
	"golang.org/x/term":              {"cmd"},
	"github.com/gaissmai/bart":       {"fib"},
	"github.com/google/gopacket":     {"pktgen", "nic/loop", "cmd", "test"},
	"github.com/vishvananda/netlink": {"nic", "control", "lab", "cmd", "test"},
	"github.com/vishvananda/netns":   {"nic", "control", "lab", "cmd", "test"},
	"github.com/safchain/ethtool":    {"nic", "test"},
	"github.com/spf13/cobra":         {"cmd"},
	"github.com/spf13/pflag":         {"cmd"},
	"gopkg.in/yaml.v3":               {"config", "lab", "test"},
	"pgregory.net/rapid":             {"test"},
	"github.com/google/go-cmp":       {"test"},
	"go.uber.org/goleak":             {"test"},
}

// Arrow is one import: From and To are import paths, File says where it stands.
// Test is set for imports of _test.go files.
type Arrow struct {
	From, To, File string
	Test           bool
}

// Check returns one complaint for each arrow that the tables above forbid.
// Tests may import what they need: a ring is tested against the software chip
// of a higher floor.
func Check(arrows []Arrow) []string {
	var complaints []string
	for _, a := range arrows {
		if reason := fault(a); reason != "" {
			complaints = append(complaints, fmt.Sprintf("%s: %s imports %s: %s", a.File, a.From, a.To, reason))
		}
	}
	return complaints
}

// fault returns what is wrong with the arrow, or "".
func fault(a Arrow) string {
	from, ours := inside(a.From)
	if !ours {
		return "not a package of this module"
	}
	fromFloor, known := rooms[room(from)]
	if !known {
		return unknownRoom(from)
	}
	to, ours := inside(a.To)
	if !ours {
		return outsideFault(a, from)
	}
	toFloor, known := rooms[room(to)]
	if !known {
		return unknownRoom(to)
	}
	switch {
	case a.Test:
		return ""
	case to == "internal/testenv" && fromFloor != testFloor:
		return "only tests ask for the test environment"
	case fromFloor == testFloor || toFloor < fromFloor || below(to, from) || siblings[[2]string{from, to}]:
		return ""
	case toFloor == fromFloor:
		return fmt.Sprintf("both are on floor %d; move what is shared one floor down, or, if the architecture allows this pair by name, list it in siblings", toFloor)
	}
	return fmt.Sprintf("floor %d may not use floor %d", fromFloor, toFloor)
}

func outsideFault(a Arrow, from string) string {
	if a.To == "C" {
		return "cgo is not used; release builds are static"
	}
	first, _, _ := strings.Cut(a.To, "/")
	if !strings.Contains(first, ".") {
		return "" // the standard library
	}
	for module, folders := range outside {
		if a.To != module && !below(a.To, module) {
			continue
		}
		if a.Test {
			return ""
		}
		for _, f := range folders {
			if f == "" || from == f || below(from, f) {
				return ""
			}
		}
		return fmt.Sprintf("this module is allowed in %s and in tests only", strings.Join(folders, ", "))
	}
	return "an unknown module; add it to the table outside in test/arch with the folders that may use it"
}

func unknownRoom(path string) string {
	return fmt.Sprintf("%q is no known room; give it a floor in the table rooms of test/arch and a row in the architecture", room(path))
}

// inside cuts the module's name off an import path, if it has it.
func inside(path string) (string, bool) {
	if path == Module {
		return "", true
	}
	return strings.CutPrefix(path, Module+"/")
}

// room is the first element of a path inside the module.
func room(path string) string {
	first, _, _ := strings.Cut(path, "/")
	return first
}

// below reports whether path lies under the folder or module.
func below(path, folder string) bool { return strings.HasPrefix(path, folder+"/") }
