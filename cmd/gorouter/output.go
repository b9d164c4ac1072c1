package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// output is a file that remembers the first error of writing to it, for those
// who write and do not look, such as printed help. Safe for concurrent use.
type output struct {
	f *os.File

	mu   sync.Mutex
	err  error
	gone chan struct{} // closed when the reader of a pipe has gone
}

func newOutput(f *os.File) *output { return &output{f: f, gone: make(chan struct{})} }

// Write implements io.Writer. After an error nothing is written any more.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return 0, o.err
	}
	n, err := o.f.Write(p)
	if err != nil {
		o.err = err
		if errors.Is(err, unix.EPIPE) {
			close(o.gone)
		}
	}
	return n, err
}

// failed is the first error, nil if all was written.
func (o *output) failed() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// file is the file behind a writer, nil if there is none.
func file(w io.Writer) *os.File {
	switch w := w.(type) {
	case *os.File:
		return w
	case *output:
		return w.f
	}
	return nil
}

// reader is closed when nobody reads what is written to w any more; nil, which
// never is, where that cannot be told.
func reader(w io.Writer) <-chan struct{} {
	if o, ok := w.(*output); ok {
		return o.gone
	}
	return nil
}

// checkOpen refuses a standard output that was closed when the program
// started, for those who print nothing but a result. The Go runtime puts the
// null device, open for reading and writing, in its place; "> /dev/null" opens
// it for writing only.
func checkOpen(w io.Writer) error {
	f := file(w)
	if f == nil {
		return nil
	}
	var st, null unix.Stat_t
	flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
	if err != nil {
		return fmt.Errorf("standard output: %w", err)
	}
	if unix.Fstat(int(f.Fd()), &st) != nil || unix.Stat(os.DevNull, &null) != nil {
		return nil
	}
	if st.Mode&unix.S_IFMT == unix.S_IFCHR && st.Rdev == null.Rdev && flags&unix.O_ACCMODE == unix.O_RDWR {
		return errors.New("standard output is closed, and the result would be lost (redirect it to a file, or with > /dev/null)")
	}
	return nil
}
