package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// GoFile is what the checks want to know of one Go file.
type GoFile struct {
	Path    string // from the repository's root, with slashes
	Package string // import path of its folder
	Name    string // of the package, without _test
	Test    bool
	Doc     string // package doc comment
	Lines   int
	Imports []string
}

// Files lists the files of the repository, from its root, with slashes: those
// that git tracks or would track; without git, all.
func Files(root string) ([]string, error) {
	wanted := tracked(root)
	var files []string
	// Walked even with git's list at hand: go test notices new files, and runs
	// the tests anew, only in folders which the tests have read.
	err := filepath.WalkDir(root, func(p string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && e.Name() == ".git":
			return filepath.SkipDir
		case !e.Type().IsRegular():
			return nil
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if wanted == nil || wanted[rel] {
			files = append(files, rel)
		}
		return nil
	})
	return files, err
}

// tracked returns the set of files that git tracks or would track, or nil when
// git does not say.
func tracked(root string) map[string]bool {
	cmd := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil || len(out) == 0 {
		return nil
	}
	set := map[string]bool{}
	for _, f := range strings.Split(string(out), "\x00") {
		set[f] = true
	}
	return set
}

// GoFiles parses the Go files among files, whatever their build tags and
// architecture, so that no arrow hides from a host that does not build it.
// Fixtures under testdata and the separate tools module are left out.
func GoFiles(root string, files []string) ([]GoFile, error) {
	var out []GoFile
	for _, f := range files {
		if !strings.HasSuffix(f, ".go") || strings.HasPrefix(f, "tools/") || strings.Contains("/"+f, "/testdata/") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(f)))
		if err != nil {
			return nil, err
		}
		g, err := parse(f, text)
		if err != nil {
			return nil, err
		}
		out = append(out, g)
	}
	return out, nil
}

func parse(name string, text []byte) (GoFile, error) {
	tree, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ImportsOnly|parser.ParseComments)
	if err != nil {
		return GoFile{}, err
	}
	g := GoFile{
		Path:    name,
		Package: path.Join(Module, path.Dir(name)),
		Name:    strings.TrimSuffix(tree.Name.Name, "_test"),
		Test:    strings.HasSuffix(name, "_test.go"),
		Lines:   strings.Count(string(text), "\n"),
		Doc:     docText(tree.Doc),
	}
	for _, i := range tree.Imports {
		p, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			return GoFile{}, err
		}
		g.Imports = append(g.Imports, p)
	}
	return g, nil
}

func docText(c *ast.CommentGroup) string {
	if c == nil {
		return ""
	}
	return c.Text()
}

// Arrows returns the imports of all files.
func Arrows(files []GoFile) []Arrow {
	var arrows []Arrow
	for _, f := range files {
		for _, to := range f.Imports {
			arrows = append(arrows, Arrow{From: f.Package, To: to, File: f.Path, Test: f.Test})
		}
	}
	return arrows
}
