package netlab

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"gorouter/internal/testenv"
)

// binaries are the programs built by this process, by their build flags.
var binaries struct {
	sync.Mutex
	main  bool   // Main is in charge of removing them
	dir   string // "" until the first is built
	built map[string]string
}

// Main runs the tests of a package that uses Binary, and removes the programs
// built for them. Call it from TestMain: os.Exit(netlab.Main(m)).
func Main(m *testing.M) int {
	binaries.Lock()
	binaries.main = true
	binaries.Unlock()
	defer removeBinaries()
	return m.Run()
}

// Binary builds cmd/gorouter, once per test program and set of tags, and returns
// its path. It is built as the tests are: with the race detector when they have
// it, with skbdebug when they have it, and else as for a release, static.
func Binary(t testing.TB, tags ...string) string {
	t.Helper()
	path, err := build(testenv.Root(t), "./cmd/gorouter", tags)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func build(root, pkg string, tags []string) (string, error) {
	flags, env := buildFlags(tags)
	key := strings.Join(append(flags, pkg), " ")
	binaries.Lock()
	defer binaries.Unlock()
	if !binaries.main {
		return "", fmt.Errorf("the package's TestMain has to call netlab.Main, which removes what is built")
	}
	if path := binaries.built[key]; path != "" {
		return path, nil
	}
	if binaries.dir == "" {
		dir, err := os.MkdirTemp("", fmt.Sprintf("%s%d-", prefix, os.Getpid()))
		if err != nil {
			return "", err
		}
		binaries.dir, binaries.built = dir, map[string]string{}
	}
	path := filepath.Join(binaries.dir, fmt.Sprintf("%s%d", filepath.Base(pkg), len(binaries.built)))
	cmd := exec.Command("go", append(append([]string{"build", "-o", path}, flags...), pkg)...)
	cmd.Dir, cmd.Env = root, append(os.Environ(), env)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	binaries.built[key] = path
	return path, nil
}

func buildFlags(tags []string) (flags []string, env string) {
	tags = append([]string(nil), tags...)
	if debugBuild {
		tags = append(tags, "skbdebug")
	}
	flags, env = []string{"-buildvcs=false"}, "CGO_ENABLED=0"
	if raceBuild {
		flags, env = append(flags, "-race"), "CGO_ENABLED=1"
	}
	if len(tags) > 0 {
		flags = append(flags, "-tags="+strings.Join(tags, ","))
	}
	return flags, env
}

func removeBinaries() {
	binaries.Lock()
	defer binaries.Unlock()
	if binaries.dir != "" {
		_ = os.RemoveAll(binaries.dir) // the next test program tries again
		binaries.dir, binaries.built = "", nil
	}
}
