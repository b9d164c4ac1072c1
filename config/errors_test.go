package config

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestErrors runs testdata/errors.txt: every message a configuration can earn.
func TestErrors(t *testing.T) {
	const file = "testdata/errors.txt"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, _ := strings.Cut(string(text), "\n== ")
	out := head + "\n"
	for _, c := range strings.Split(rest, "\n== ") {
		title, body, _ := strings.Cut(c, "\n")
		yaml, want, ok := strings.Cut(body+"\n", "\n--\n")
		if !ok {
			t.Fatalf("case %s has no -- line", title)
		}
		want = strings.TrimSpace(want)
		got := ""
		t.Run(title, func(t *testing.T) {
			source := yaml + "\n"
			if !strings.HasSuffix(title, "(alone)") && !regexp.MustCompile(`(?m)^ports:`).MatchString(source) {
				source += "ports: {p0: {driver: model}}\n"
			}
			_, err := Parse("x", []byte(source))
			if err != nil {
				got = strings.ReplaceAll(err.Error(), "x:", "")
			} else {
				got = "good"
			}
			if got != want && !*update {
				t.Errorf("%s\ngot:\n%s\nwant:\n%s", source, got, want)
			}
		})
		out += "== " + title + "\n" + yaml + "\n--\n" + got + "\n"
	}
	if *update {
		if err := os.WriteFile(file, []byte(out), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestBadFiles(t *testing.T) {
	files, _ := filepath.Glob("testdata/bad/*.yaml")
	if len(files) < 3 {
		t.Fatalf("%d files in testdata/bad", len(files))
	}
	for _, f := range files {
		c, err := Load(f)
		if err == nil || c != nil {
			t.Errorf("%s passes", f)
			continue
		}
		golden(t, strings.TrimSuffix(f, ".yaml")+".err", err.Error()+"\n")
	}
}

// golden compares with the file, or writes it.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s\ngot:\n%s\nwant:\n%s", file, got, want)
	}
}

func TestErrorsUnwrap(t *testing.T) {
	_, err := Parse("f.yaml", []byte("wrokers: 1\npoll: {weight: 0}\nports: {p0: {driver: model}}\n"))
	var list Errors
	if !errors.As(err, &list) || len(list) != 2 || len(list.Unwrap()) != 2 {
		t.Fatalf("%v", err)
	}
	var one *Error
	if !errors.As(err, &one) || one.Pos != (Pos{1, 1}) || one.File != "f.yaml" {
		t.Errorf("first error %+v", one)
	}
}

func TestLoadFailures(t *testing.T) {
	if _, err := Load(filepath.Join(t.TempDir(), "none.yaml")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	if _, err := Load(t.TempDir()); err == nil || !strings.HasPrefix(err.Error(), "configuration: ") {
		t.Errorf("folder: %v", err)
	}
}

func TestNotUTF8(t *testing.T) {
	for text, want := range map[string]string{
		"a: 1\nb: é\xff\n":         "x:2:5: the file is not UTF-8 text: save it as UTF-8",
		"\xff\xfea\x00:\x00 \x001": "x:1:1: the file is not UTF-8 text: save it as UTF-8",
		"":                         "x:1:1: the configuration is empty: it needs at least ports",
	} {
		if _, err := Parse("x", []byte(text)); err == nil || err.Error() != want {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestSuggest(t *testing.T) {
	known := []string{"weight", "vector", "idle_max", "rx", "tx", "via"}
	for w, want := range map[string]string{
		"wieght": "weight", "Weight": "weight", "weights": "weight", "vectro": "vector", "idle-max": "idle_max",
		"rxx": "rx", "gateway": "via", "zzz": "", "": "", strings.Repeat("weight", 100): "",
	} {
		got := suggest(w, known)
		if want != "" {
			want = `, did you mean "` + want + `"?`
		}
		if got != want {
			t.Errorf("%q: %q, want %q", w, got, want)
		}
	}
	for _, c := range []struct {
		a, b string
		n    int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "acb", 1}, {"kitten", "sitting", 3}, {"ca", "abc", 3}} {
		if got := distance(c.a, c.b); got != c.n {
			t.Errorf("distance(%q, %q) = %d, want %d", c.a, c.b, got, c.n)
		}
	}
}
