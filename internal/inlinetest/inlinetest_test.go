package inlinetest

import (
	"slices"
	"testing"
)

const example = `# gorouter/x
x/a.go:10:6: can inline (*T).Small
x/a.go:20:6: can inline plain
x/a.go:21:9: inlining call to (*T).Small
x/a.go:22:9: cannot inline big: function too complex
`

func TestMissingFindsOnlyWhatIsNotReported(t *testing.T) {
	got := missing(example, []string{"(*T).Small", "plain", "big", "Small"})
	if want := []string{"big", "Small"}; !slices.Equal(got, want) {
		t.Fatalf("missing = %q, want %q", got, want)
	}
}

func TestReportOfTheStandardLibrary(t *testing.T) {
	out := report(t, "math/bits")
	got := missing(out, []string{"LeadingZeros64", "NoSuchFunction"})
	if want := []string{"NoSuchFunction"}; !slices.Equal(got, want) {
		t.Fatalf("missing = %q, want %q", got, want)
	}
}
