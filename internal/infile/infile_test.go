package infile

import (
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

func TestOnlyRegularFilesAreOpened(t *testing.T) {
	dir := t.TempDir()
	file, pipe := filepath.Join(dir, "file"), filepath.Join(dir, "pipe")
	if err := os.WriteFile(file, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(pipe, link); err != nil {
		t.Fatal(err)
	}
	f, err := Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if b, err := io.ReadAll(f); err != nil || string(b) != "text" {
		t.Errorf("%q %v", b, err)
	}
	for path, want := range map[string]string{
		pipe: "a named pipe", link: "a named pipe", dir: "a directory", "/dev/zero": "a device",
		filepath.Join(dir, "absent"): "no such file",
	} {
		if f, err := Open(path); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v %v, want %q", path, f, err, want)
		}
	}
}

// A shell's here-document or process substitution is a pipe that is open.
func TestAnOpenPipeIsRead(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	f, err := Open("/dev/fd/" + strconv.Itoa(int(r.Fd())))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := w.WriteString("text"); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if b, err := io.ReadAll(f); err != nil || string(b) != "text" {
		t.Errorf("%q %v", b, err)
	}
}

func TestOutputGoesToFilesAndDevices(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, ok := range map[string]bool{filepath.Join(dir, "new"): true, "/dev/null": true, pipe: false, dir: false} {
		if err := CanWrite(path); (err == nil) != ok {
			t.Errorf("%s: %v", path, err)
		}
	}
}
