package testenv

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// recorder takes the verdict instead of ending the test.
type recorder struct {
	testing.TB
	verdict, text string
}

func (r *recorder) Helper() {}

func (r *recorder) Skipf(format string, args ...any) {
	r.verdict, r.text = "skip", fmt.Sprintf(format, args...)
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.verdict, r.text = "fatal", fmt.Sprintf(format, args...)
}

func TestMissingToolSkipsOrFails(t *testing.T) {
	for _, c := range []struct{ env, want string }{{"", "skip"}, {"1", "fatal"}} {
		t.Setenv(RequireAll, c.env)
		r := &recorder{TB: t}
		NeedTool(r, "no-such-program-anywhere", "nothing-deb")
		if r.verdict != c.want {
			t.Errorf("%s=%q: got %q, want %q", RequireAll, c.env, r.verdict, c.want)
		}
		if !strings.Contains(r.text, "no-such-program-anywhere") || !strings.Contains(r.text, "nothing-deb") {
			t.Errorf("the message names neither program nor package: %s", r.text)
		}
	}
}

func TestPresentToolIsFound(t *testing.T) {
	t.Setenv(RequireAll, "1")
	r := &recorder{TB: t}
	if path := NeedTool(r, "sh", "dash"); path == "" || r.verdict != "" {
		t.Errorf("sh: path %q, verdict %q", path, r.verdict)
	}
}

func TestNeedRoot(t *testing.T) {
	t.Setenv(RequireAll, "")
	r := &recorder{TB: t}
	NeedRoot(r)
	want := "skip"
	if os.Geteuid() == 0 {
		want = ""
	}
	if r.verdict != want {
		t.Errorf("effective user %d: got %q, want %q", os.Geteuid(), r.verdict, want)
	}
}

func TestSoak(t *testing.T) {
	for _, c := range []struct {
		env     string
		want    time.Duration
		verdict string
	}{
		{"", time.Second, ""},
		{"10m", 10 * time.Minute, ""},
		{"soon", 0, "fatal"},
		{"-1s", -time.Second, "fatal"},
	} {
		t.Setenv(SoakTime, c.env)
		r := &recorder{TB: t}
		if got := Soak(r, time.Second); got != c.want || r.verdict != c.verdict {
			t.Errorf("%q: got %v %q, want %v %q", c.env, got, r.verdict, c.want, c.verdict)
		}
	}
}

func TestRootHasThisPackage(t *testing.T) {
	if _, err := os.Stat(filepath.Join(Root(t), "internal", "testenv", "testenv.go")); err != nil {
		t.Error(err)
	}
}
