package routefile

import (
	"bytes"
	"compress/gzip"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

const example = `# a list
192.0.2.0/24
  198.51.100.0/24	10.0.0.1   # a comment

0.0.0.0/0 fe80::1 wan0
2001:db8::/32 fe80::1 lan0
`

func want() []Route {
	p, a := netip.MustParsePrefix, netip.MustParseAddr
	return []Route{
		{Line: 2, Prefix: p("192.0.2.0/24")},
		{Line: 3, Prefix: p("198.51.100.0/24"), Via: a("10.0.0.1")},
		{Line: 5, Prefix: p("0.0.0.0/0"), Via: a("fe80::1"), Port: "wan0"},
		{Line: 6, Prefix: p("2001:db8::/32"), Via: a("fe80::1"), Port: "lan0"},
	}
}

func packed(t testing.TB, s string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(s)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func collect(data []byte, o Options) ([]Route, int, error) {
	var got []Route
	n, err := Read(bytes.NewReader(data), o, func(r Route) error {
		got = append(got, r)
		return nil
	})
	return got, n, err
}

func TestRead(t *testing.T) {
	for name, data := range map[string][]byte{
		"plain": []byte(example), "gzip": packed(t, example), "no newline at the end": []byte(strings.TrimSpace(example)),
		"carriage returns": []byte(strings.ReplaceAll(example, "\n", "\r\n"))} {
		got, n, err := collect(data, Options{})
		if err != nil || n != 4 || !slices.Equal(got, want()) {
			t.Errorf("%s: %v, %d, %v", name, got, n, err)
		}
	}
}

func TestErrorsNameTheLine(t *testing.T) {
	for line, fault := range map[string]string{
		"10.0.0.0":                     "like 192.0.2.0/24",
		"10.0.0.0/33":                  "like 192.0.2.0/24",
		"10.0.0.1/8":                   "use 10.0.0.0/8",
		"::ffff:10.0.0.0/104":          "write it as IPv4",
		"10.0.0.0/8 gateway":           `next hop "gateway"`,
		"10.0.0.0/8 fe80::1%eth0":      "third field",
		"10.0.0.0/8 ::ffff:192.0.2.1":  "write it as IPv4",
		"10.0.0.0/8 0.0.0.0":           "not a unicast address",
		"10.0.0.0/8 ff02::1":           "not a unicast address",
		"2001:db8::/32 192.0.2.1":      "give an IPv6 one",
		"10.0.0.0/8 10.0.0.1 p0 extra": `"extra"`,
		strings.Repeat("x", 5000):      "longer than",
	} {
		got, n, err := collect([]byte("192.0.2.0/24\n\n"+line+"\n"), Options{})
		if err == nil || !strings.HasPrefix(err.Error(), "line 3: ") || !strings.Contains(err.Error(), fault) || n != 1 || len(got) != 1 {
			t.Errorf("%q: %d routes, error %v, want line 3 and %q", line, n, err, fault)
		}
	}
}

func TestErrorOfTheCallerIsWrapped(t *testing.T) {
	stop := errors.New("table full")
	name := filepath.Join(t.TempDir(), "routes")
	if err := os.WriteFile(name, []byte(example), 0o600); err != nil {
		t.Fatal(err)
	}
	n, err := ReadFile(name, Options{}, func(r Route) error {
		if r.Line == 3 {
			return stop
		}
		return nil
	})
	if n != 1 || !errors.Is(err, stop) || !strings.Contains(err.Error(), name+": line 3: ") {
		t.Errorf("%d, %v", n, err)
	}
	if _, err := ReadFile(name+".gz", Options{}, nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file gives %v", err)
	}
}

func TestCutGzip(t *testing.T) {
	data := packed(t, strings.Repeat(example, 100))
	for _, n := range []int{3, len(data) - 1} {
		if _, _, err := collect(data[:n], Options{}); err == nil {
			t.Errorf("no error from %d of %d bytes", n, len(data))
		}
	}
}

func TestProgress(t *testing.T) {
	var calls []int
	if _, _, err := collect([]byte(strings.Repeat("10.0.0.0/8\n", 25)), Options{Every: 10, Progress: func(n int) { calls = append(calls, n) }}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(calls, []int{10, 20, 25}) {
		t.Errorf("progress %v", calls)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(example))
	f.Add(packed(f, example))
	f.Add([]byte("10.0.0.0/8 \x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, n, err := collect(data, Options{})
		if len(got) != n {
			t.Fatalf("%d routes, but Read says %d", len(got), n)
		}
		for _, r := range got {
			if !r.Prefix.IsValid() || r.Prefix != r.Prefix.Masked() || r.Line < 1 {
				t.Fatalf("bad route %+v, error %v", r, err)
			}
		}
	})
}

func TestNamedPipeIsRefused(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadFile(pipe, Options{}, func(Route) error { return nil }); err == nil || !strings.Contains(err.Error(), "a named pipe") {
		t.Error(err)
	}
}
