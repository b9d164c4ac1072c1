package skb

import (
	"sync/atomic"
	"unsafe"
)

// The operations a kernel developer expects. Each needs the caller to own the
// buffer alone, Clone and the reads excepted. What does not fit is told by the
// result; Reserve, which has none, is checked in the debug build only.

// Reserve makes an empty buffer start n bytes further on, to leave headroom.
func (a *Arena) Reserve(h Handle, n int) {
	m := a.Meta(h)
	if debugEnabled && (m.Len != 0 || n < 0 || int(m.Data)+n > a.Stride()) {
		a.debugFail(h, "reserve on a filled buffer or beyond its end")
	}
	m.Data += uint16(n)
}

// Headspace is the number of bytes before the frame.
func (a *Arena) Headspace(h Handle) int { return int(a.Meta(h).Data) }

// Tailspace is the number of bytes after the frame.
func (a *Arena) Tailspace(h Handle) int {
	m := a.Meta(h)
	return a.Stride() - int(m.Data) - int(m.Len)
}

// Push prepends n bytes and returns the frame; nil, and nothing changed, when
// the headroom is shorter.
func (a *Arena) Push(h Handle, n int) []byte {
	m := a.Meta(h)
	if n < 0 || n > int(m.Data) {
		return nil
	}
	m.Data -= uint16(n)
	m.Len += uint16(n)
	return a.Bytes(h)
}

// Pull takes n bytes from the front and returns the rest; nil, and nothing
// changed, when the frame is shorter.
func (a *Arena) Pull(h Handle, n int) []byte {
	m := a.Meta(h)
	if n < 0 || n > int(m.Len) {
		return nil
	}
	m.Data += uint16(n)
	m.Len -= uint16(n)
	return a.Bytes(h)
}

// Put appends n bytes and returns them (their content is whatever the buffer
// held); nil, and nothing changed, when the tailroom is shorter.
func (a *Arena) Put(h Handle, n int) []byte {
	m := a.Meta(h)
	if n < 0 || n > a.Tailspace(h) {
		return nil
	}
	tail := unsafe.Add(a.Start(h), int(m.Data)+int(m.Len))
	m.Len += uint16(n)
	return unsafe.Slice((*byte)(tail), n)
}

// Trim shortens the frame to n bytes; a longer n changes nothing.
func (a *Arena) Trim(h Handle, n int) {
	m := a.Meta(h)
	if n >= 0 && n < int(m.Len) {
		m.Len = uint16(n)
	}
}

// Pad writes zeros behind a frame shorter than n bytes, up to n, and returns
// the length to send. The frame's own length stays, so a clone that is being
// sent is not disturbed: the same zeros are written again.
func (a *Arena) Pad(h Handle, n int) int {
	m := a.Meta(h)
	l := int(m.Len)
	if l >= n {
		return l
	}
	room := a.Tailspace(h)
	if n-l > room {
		n = l + room
	}
	// Old content behind a short frame would leak on the wire.
	clear(unsafe.Slice((*byte)(unsafe.Add(a.Start(h), int(m.Data)+l)), n-l))
	return n
}

// Clone adds a reference: the same bytes are held twice and nobody may change
// them until one holder is left. Every reference is given back by one Free.
func (a *Arena) Clone(h Handle) Handle {
	m := a.Meta(h)
	if atomic.LoadUint32(&m.refs) == 1 {
		// The only holder may count up without an atomic addition.
		storeRefs(&m.refs, 2)
	} else {
		atomic.AddUint32(&m.refs, 1)
	}
	return h
}
