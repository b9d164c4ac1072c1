// Package infile opens the files that a user names for reading.
package infile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Open opens a regular file. Anything else is refused, without waiting for it:
// opening or reading a named pipe or a terminal may last for ever. What the
// caller of the program has opened already, /dev/stdin and /dev/fd/N, may also
// be a pipe, but reading it may wait.
func Open(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	if m := info.Mode(); !m.IsRegular() && !(inherited(path) && m&fs.ModeNamedPipe != 0) {
		_ = f.Close()
		return nil, &fs.PathError{Op: "open", Path: path, Err: fmt.Errorf("it is %s: give a regular file", Kind(m))}
	}
	return f, nil
}

// inherited says that the path names a descriptor of the process.
func inherited(path string) bool {
	p := filepath.Clean(path)
	return p == "/dev/stdin" || strings.HasPrefix(p, "/dev/fd/") || strings.HasPrefix(p, "/proc/self/fd/")
}

// CanWrite refuses what output to path would wait for: a named pipe, whose
// opening waits for a reader and whose writing for him to go on, a socket and a
// directory. A path that does not exist is fine, and so are devices such as
// /dev/null.
func CanWrite(path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if m := info.Mode(); m&(fs.ModeNamedPipe|fs.ModeSocket) != 0 || m.IsDir() {
		return &fs.PathError{Op: "open", Path: path, Err: fmt.Errorf("it is %s: give a regular file", Kind(m))}
	}
	return nil
}

// Kind says what a file is, in a word or two.
func Kind(m fs.FileMode) string {
	switch {
	case m.IsRegular():
		return "a regular file"
	case m.IsDir():
		return "a directory"
	case m&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeDevice != 0:
		return "a device"
	}
	return "no regular file"
}
