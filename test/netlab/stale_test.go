package netlab

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"gorouter/internal/testenv"
)

// TestHelperWaits is not a test of its own: TestInterrupted runs it in a second
// test program, which it then ends.
func TestHelperWaits(t *testing.T) {
	if os.Getenv(helperVariable) == "" {
		return
	}
	lab := New(t)
	n := lab.Namespace("n")
	p := n.Start("sleep", "600")
	fmt.Printf("ready %d %s\n", p.Pid(), n.Name())
	time.Sleep(10 * time.Minute)
}

func startHelper(t *testing.T) (cmd *exec.Cmd, pid, name string) {
	t.Helper()
	cmd = exec.Command(os.Args[0], "-test.run=^TestHelperWaits$")
	cmd.Env = append(os.Environ(), helperVariable+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if words := strings.Fields(lines.Text()); len(words) == 3 && words[0] == "ready" {
			return cmd, words[1], words[2]
		}
	}
	t.Fatal("the second test program did not start")
	return nil, "", ""
}

// An interrupted test program takes its network down before it goes, and goes by
// the signal.
func TestInterrupted(t *testing.T) {
	testenv.NeedRoot(t)
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		if signal.Ignored(s) {
			continue // as in a background job of a shell: nothing to clean up after
		}
		cmd, pid, name := startHelper(t)
		if len(ours(t, name)) != 1 {
			t.Fatalf("no namespace %s", name)
		}
		if err := cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		if got := cmd.ProcessState.Sys().(syscall.WaitStatus).Signal(); got != s {
			t.Errorf("%v: ended by %v", s, got)
		}
		if left := ours(t, name); left != nil {
			t.Errorf("%v: left %v", s, left)
		}
		awaitGone(t, pid)
	}
}

// What a killed test program left is found and removed; what a living one has is not.
func TestSweepStale(t *testing.T) {
	mine := New(t).Namespace("mine")
	cmd, pid, name := startHelper(t)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if len(ours(t, name)) != 1 {
		t.Fatalf("a killed program cleaned up?")
	}
	dir := fmt.Sprintf("%s/%s%d-", os.TempDir(), prefix, cmd.Process.Pid)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	sweepStale()
	if left := ours(t, name); left != nil {
		t.Errorf("left %v", left)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Errorf("left %s", dir)
	}
	awaitGone(t, pid)
	if len(ours(t, mine.Name())) != 1 {
		t.Error("the namespace of a running test is gone")
	}
}

func TestStaleNames(t *testing.T) {
	for name, want := range map[string]bool{
		"grt999999999-1-a":                    true, // more than the kernel's highest process id
		"grt999999999":                        false,
		"other999999999-1":                    false,
		"grtx-1":                              false,
		fmt.Sprintf("grt%d-1-a", os.Getpid()): false,
	} {
		if stale(name) != want {
			t.Errorf("%s: got %v", name, !want)
		}
	}
}

// The ready line is what log/slog writes, in both of its forms.
func TestReadyLine(t *testing.T) {
	for text, want := range map[string]bool{
		"time=x level=INFO msg=ready ports=2":      true,
		`{"level":"INFO","msg":"ready","ports":2}`: true,
		`level=WARN msg="not ready yet"`:           false,
		"level=INFO msg=readying":                  false,
	} {
		if readyLine.MatchString(text) != want {
			t.Errorf("%s: got %v", text, !want)
		}
	}
}
