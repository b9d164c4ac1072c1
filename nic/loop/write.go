package loop

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"gorouter/internal/infile"
)

const (
	fileHeaderLen   = 24
	recordHeaderLen = 16
)

// writer appends frames to a pcap file with nanosecond stamps. The first
// error is kept; frames are counted as lost from there on. One goroutine
// writes, the counts may be read by any.
type writer struct {
	f    *os.File
	path string
	size int64 // of the whole records in the file
	buf  []byte
	ends []int // where each record in buf ends
	err  error

	written, lost atomic.Uint64
}

// create makes the file, or empties it, and writes its header.
func create(path string) (*writer, error) {
	if err := infile.CanWrite(path); err != nil {
		return nil, fmt.Errorf("capture output: %w", err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return nil, fmt.Errorf("capture output: %w", err)
	}
	w := &writer{f: f, path: path}
	h := make([]byte, fileHeaderLen)
	binary.LittleEndian.PutUint32(h, 0xa1b23c4d)
	binary.LittleEndian.PutUint16(h[4:], 2)
	binary.LittleEndian.PutUint16(h[6:], 4)
	binary.LittleEndian.PutUint32(h[16:], 1<<18) // snap length
	binary.LittleEndian.PutUint32(h[20:], linkEthernet)
	if _, err := f.Write(h); err != nil {
		// The port still runs; Close reports it.
		w.fail(err)
	}
	w.size = fileHeaderLen
	return w, nil
}

// add appends a frame to what the next flush writes.
func (w *writer) add(frame []byte, t time.Time) {
	var h [recordHeaderLen]byte
	binary.LittleEndian.PutUint32(h[0:], uint32(t.Unix()))
	binary.LittleEndian.PutUint32(h[4:], uint32(t.Nanosecond()))
	binary.LittleEndian.PutUint32(h[8:], uint32(len(frame)))
	binary.LittleEndian.PutUint32(h[12:], uint32(len(frame)))
	w.buf = append(w.buf, h[:]...)
	w.buf = append(w.buf, frame...)
	w.ends = append(w.ends, len(w.buf))
}

// flush writes what was added, in one call, and returns how many frames are in
// the file as a whole. After an error it writes nothing.
func (w *writer) flush() int {
	all, n := len(w.ends), 0
	if w.err == nil && all > 0 {
		done, err := w.f.Write(w.buf)
		for n < all && w.ends[n] <= done {
			n++
		}
		if n > 0 {
			w.size += int64(w.ends[n-1])
		}
		if err != nil {
			w.fail(err)
		}
	}
	w.written.Add(uint64(n))
	w.lost.Add(uint64(all - n))
	w.buf, w.ends = w.buf[:0], w.ends[:0]
	return n
}

func (w *writer) fail(err error) {
	// A record that was written in part would make the whole file unreadable to
	// some; that it cannot be cut off (a pipe, a device) changes nothing.
	_ = w.f.Truncate(w.size)
	w.err = err
}

// close writes the rest and reports the first error, with the frames that it
// cost.
func (w *writer) close() error {
	if w.f == nil {
		return nil
	}
	w.flush()
	cerr := w.f.Close()
	w.f = nil
	err := w.err
	if err == nil {
		err = cerr
	}
	if err == nil {
		return nil
	}
	remedy := "check the file system"
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		remedy = "free disk space or choose another file"
	}
	w.err = fmt.Errorf("capture output %s: %d frames written, %d lost: %w (%s)", w.path, w.written.Load(), w.lost.Load(), err, remedy)
	return w.err
}
