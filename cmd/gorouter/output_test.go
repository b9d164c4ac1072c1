package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gorouter/pktgen"
)

func TestOutputRemembersItsFirstError(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	o := newOutput(full)
	if _, err := o.Write([]byte("x")); err == nil || o.failed() != err {
		t.Errorf("%v, remembered %v", err, o.failed())
	}
	select {
	case <-reader(o):
		t.Error("a full disk is no reader that went away")
	default:
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	o = newOutput(w)
	if _, err := o.Write([]byte("x")); err != nil || o.failed() != nil {
		t.Error(err)
	}
	r.Close()
	for range 2 {
		if _, err := o.Write([]byte("x")); err == nil {
			t.Error("written to nobody")
		}
	}
	<-reader(o)
	if file(o) != w || file(w) != w || file(&strings.Builder{}) != nil || reader(&strings.Builder{}) != nil {
		t.Error("the file behind a writer")
	}
}

func TestClosedOutputIsSeen(t *testing.T) {
	for flags, closed := range map[int]bool{os.O_RDWR: true, os.O_WRONLY: false} {
		f, err := os.OpenFile(os.DevNull, flags, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := checkOpen(newOutput(f)); (err != nil) != closed {
			t.Errorf("flags %d: %v", flags, err)
		}
	}
	f, err := os.Create(filepath.Join(t.TempDir(), "f")) // for reading and writing
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := checkOpen(newOutput(f)); err != nil {
		t.Error(err)
	}
}

func TestRowsOfANarrowedTerminal(t *testing.T) {
	for _, c := range []struct {
		text        string
		width, want int
	}{
		{"", 10, 0}, {"a\n\nb\n", 10, 3}, {"0123456789\n", 10, 1}, {"0123456789\nab\n", 9, 3}, {"012345678…\n", 5, 2}, {"abc\n", 1, 3},
	} {
		if got := rows(c.text, c.width); got != c.want {
			t.Errorf("%q at %d: %d rows, want %d", c.text, c.width, got, c.want)
		}
	}
}

func TestGeneratedReportNamesItsStreams(t *testing.T) {
	rep := &pktgen.Report{
		Streams: []pktgen.Result{{Stream: "s1", Sent: 100}, {Stream: "s2", Sent: 5}},
		Sink:    []pktgen.SinkResult{{Stream: "s1"}, {Stream: "s2"}},
	}
	text := func(emulated bool) string {
		var s strings.Builder
		if err := printGenerated(&s, rep, emulated); err != nil {
			t.Fatal(err)
		}
		return s.String()
	}
	if got := text(false); !strings.Contains(got, "stream s1:") || !strings.Contains(got, "stream s2:") || strings.Contains(got, "received s1") || !strings.Contains(got, "no frame") {
		t.Errorf("nothing came back:\n%s", got)
	}
	if got := text(true); !strings.Contains(got, "received s1: 0 frames") {
		t.Errorf("a lossy cable:\n%s", got)
	}
	rep.Sink[1].Packets = 4
	if got := text(false); !strings.Contains(got, "received s2: 4 frames") || strings.Contains(got, "received s1") {
		t.Errorf("one came back:\n%s", got)
	}
}
