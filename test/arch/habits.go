package arch

import (
	"bytes"
	"fmt"
	"regexp"
	"sort"
	"strings"
)

// hardLimit is the number of lines from which a file is too long. About 400 is
// what a file should stay under; the rest is for the last case of a table.
const hardLimit = 450

// CheckLength complains about files other than tests which are too long.
func CheckLength(files []GoFile) []string {
	var complaints []string
	for _, f := range files {
		if !f.Test && f.Lines > hardLimit {
			complaints = append(complaints, fmt.Sprintf("%s has %d lines, more than %d; split it by concern", f.Path, f.Lines, hardLimit))
		}
	}
	return complaints
}

// CheckDocs complains about packages without a doc comment that says, as godoc
// wants it, "Package name ...".
func CheckDocs(files []GoFile) []string {
	state := map[string]string{} // package: complaint, "" once a good comment is found
	for _, f := range files {
		good := strings.HasPrefix(f.Doc, "Package "+f.Name+" ") || f.Name == "main" && f.Doc != ""
		if complaint, seen := state[f.Package]; good || seen && complaint == "" {
			state[f.Package] = ""
		} else if !seen {
			state[f.Package] = fmt.Sprintf("package %s has no doc comment that begins with \"Package %s \"", f.Package, f.Name)
		}
	}
	var complaints []string
	for _, c := range state {
		if c != "" {
			complaints = append(complaints, c)
		}
	}
	sort.Strings(complaints)
	return complaints
}

// forbidden lists what no file may say, and why. The patterns are put together
// from pieces so that this file does not match itself.
var forbidden = []struct {
	pattern *regexp.Regexp
	goOnly  bool
	why     string
}{
	{
		regexp.MustCompile(`(^|[^\w.~}/-])/(ho` + `me|ro` + `ot|wo` + `rk|workspace|Us` + `ers|bui` + `lds)/\w`), false,
		"a path of one particular machine",
	},
	{regexp.MustCompile(`\.\./sha` + `red/|\bsha` + `red/(design|cases)`), false, "a path outside the repository"},
	{regexp.MustCompile(`(^|[^.\w])(TO` + `DO|FIX` + `ME)\b`), true, "work left undone; do it or file it"},
}

// CheckText complains about forbidden words in the file. Binary files pass.
func CheckText(name string, text []byte) []string {
	if bytes.IndexByte(text, 0) >= 0 {
		return nil
	}
	var complaints []string
	for n, line := range bytes.Split(text, []byte("\n")) {
		for _, f := range forbidden {
			if f.goOnly && !strings.HasSuffix(name, ".go") {
				continue
			}
			if f.pattern.Match(line) {
				complaints = append(complaints, fmt.Sprintf("%s:%d: %s: %s", name, n+1, f.why, bytes.TrimSpace(line)))
			}
		}
	}
	return complaints
}
