package loop

import (
	"fmt"
	"os"
	"path/filepath"
)

// Use is what one port does with files; "" is none.
type Use struct {
	Port         string
	File, Output string
}

// Conflict is an output that would destroy what another port reads or writes.
type Conflict struct {
	Port, Output string // whose output it is
	Other, Path  string // the port that has the same file, as it names it
	Read         bool   // the other one reads it
}

// Error implements error.
func (c *Conflict) Error() string {
	does := "writes"
	if c.Read {
		does = "reads"
	}
	return fmt.Sprintf("capture output %s of port %s is the file that port %s %s as %s: choose another", c.Output, c.Port, c.Other, does, c.Path)
}

// Distinct looks, before any is opened, for an output that is the same file as
// another's input or output, whatever the paths are that lead there. Devices
// and pipes may be shared. The error is a *Conflict.
func Distinct(uses []Use) error {
	type end struct {
		identity
		port, path string
		read       bool
	}
	var ends []end
	for _, u := range uses {
		if u.File != "" {
			ends = append(ends, end{identify(u.File), u.Port, u.File, true})
		}
	}
	for _, u := range uses {
		if u.Output == "" {
			continue
		}
		out := end{identify(u.Output), u.Port, u.Output, false}
		for i := range ends {
			if e := &ends[i]; out.same(e.identity) {
				return &Conflict{Port: u.Port, Output: u.Output, Other: e.port, Path: e.path, Read: e.read}
			}
		}
		ends = append(ends, out)
	}
	return nil
}

// identity tells files apart: one that exists by device and inode, one that is
// to be created by its folder and its name there.
type identity struct {
	file   os.FileInfo
	folder os.FileInfo
	name   string
}

// maxLinks bounds a chain of symbolic links, as the kernel does.
const maxLinks = 40

func identify(path string) identity {
	for range maxLinks {
		if fi, err := os.Stat(path); err == nil {
			return identity{file: fi}
		}
		// A link to nothing is created where it points to.
		to, err := os.Readlink(path)
		if err != nil {
			break
		}
		if !filepath.IsAbs(to) {
			// Not joined, which would take away ".." behind a linked folder.
			to = filepath.Dir(path) + string(filepath.Separator) + to
		}
		path = to
	}
	folder, name := filepath.Split(path)
	if folder == "" {
		folder = "."
	}
	fi, err := os.Stat(folder)
	if err != nil {
		return identity{} // opening it will fail
	}
	return identity{folder: fi, name: name}
}

func (a identity) same(b identity) bool {
	switch {
	case a.file != nil && b.file != nil:
		return a.file.Mode().IsRegular() && os.SameFile(a.file, b.file)
	case a.folder != nil && b.folder != nil:
		return a.name == b.name && os.SameFile(a.folder, b.folder)
	}
	return false
}
