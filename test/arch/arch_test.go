package arch

import (
	"os"
	"path/filepath"
	"testing"

	"gorouter/internal/testenv"
)

// tree returns the repository's root, its files, and its Go files.
func tree(t *testing.T) (string, []string, []GoFile) {
	t.Helper()
	root := testenv.Root(t)
	files, err := Files(root)
	if err != nil {
		t.Fatal(err)
	}
	gofiles, err := GoFiles(root, files)
	if err != nil {
		t.Fatal(err)
	}
	if len(gofiles) < 10 {
		t.Fatalf("only %d Go files found in %s", len(gofiles), root)
	}
	return root, files, gofiles
}

func report(t *testing.T, complaints []string) {
	t.Helper()
	for _, c := range complaints {
		t.Error(c)
	}
}

func TestImportsGoDownwards(t *testing.T) {
	_, _, files := tree(t)
	report(t, Check(Arrows(files)))
}

func TestFilesAreShort(t *testing.T) {
	_, _, files := tree(t)
	report(t, CheckLength(files))
}

func TestPackagesAreDocumented(t *testing.T) {
	_, _, files := tree(t)
	report(t, CheckDocs(files))
}

func TestNoForbiddenText(t *testing.T) {
	root, files, _ := tree(t)
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(f)))
		if err != nil {
			t.Fatal(err)
		}
		report(t, CheckText(f, text))
	}
}
