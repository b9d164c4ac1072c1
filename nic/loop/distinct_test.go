package loop

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestDistinctSeesThroughPaths(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return dir + "/" + name }
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(os.WriteFile(at("in.pcap"), []byte("x"), 0o600))
	check(os.Link(at("in.pcap"), at("hard.pcap")))
	check(os.Symlink("in.pcap", at("soft.pcap")))
	check(os.Symlink("new.pcap", at("dangling.pcap")))
	check(os.Symlink("loop.pcap", at("loop.pcap")))
	check(os.Mkdir(at("sub"), 0o700))
	check(os.Symlink(dir, at("sub/up")))
	other := filepath.Join(dir, "other.pcap")
	for name, c := range map[string]struct {
		uses []Use
		want string // the port whose output is refused
		read bool
	}{
		"other files":           {[]Use{{"a", at("in.pcap"), other}, {"b", at("in.pcap"), at("new.pcap")}}, "", false},
		"same path read":        {[]Use{{"a", "", at("in.pcap")}, {"b", at("in.pcap"), ""}}, "a", true},
		"own input":             {[]Use{{"a", at("in.pcap"), at("hard.pcap")}}, "a", true},
		"dot":                   {[]Use{{"a", at("in.pcap"), ""}, {"b", "", at("./sub/../in.pcap")}}, "b", true},
		"hard link":             {[]Use{{"a", at("in.pcap"), ""}, {"b", "", at("hard.pcap")}}, "b", true},
		"symbolic link":         {[]Use{{"a", "", at("soft.pcap")}, {"b", at("in.pcap"), ""}}, "a", true},
		"two outputs":           {[]Use{{"a", "", at("soft.pcap")}, {"b", "", at("hard.pcap")}}, "b", false},
		"two new outputs":       {[]Use{{"a", "", at("new.pcap")}, {"b", "", at("sub/../new.pcap")}}, "b", false},
		"link to a new output":  {[]Use{{"a", "", at("new.pcap")}, {"b", "", at("dangling.pcap")}}, "b", false},
		"folder that is linked": {[]Use{{"a", "", at("sub/up/new.pcap")}, {"b", "", at("new.pcap")}}, "b", false},
		"a device":              {[]Use{{"a", "", "/dev/null"}, {"b", "", "/dev/null"}}, "", false},
		"no such folder":        {[]Use{{"a", "", at("none/x")}, {"b", "", at("none/x")}}, "", false},
		"link in a circle":      {[]Use{{"a", "", at("loop.pcap")}, {"b", "", at("new.pcap")}}, "", false},
	} {
		err := Distinct(c.uses)
		var got *Conflict
		if errors.As(err, &got) != (c.want != "") || got != nil && (got.Port != c.want || got.Read != c.read) {
			t.Errorf("%s: %v, want one of port %q", name, err, c.want)
		}
	}
	if b, err := os.ReadFile(at("in.pcap")); err != nil || string(b) != "x" {
		t.Errorf("looking changed the file: %q, %v", b, err)
	}
}
