package skb

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

func TestRoomEdges(t *testing.T) {
	const stride, head = 2048, 256
	const tail = stride - head
	// Each step runs on a fresh buffer with a frame of length bytes.
	cases := []struct {
		name         string
		length       int
		op           func(a *Arena, h Handle) []byte
		result       int // length of the result, -1 for nil
		data, frames int // Data and Len afterwards
	}{
		{"push nothing", 10, func(a *Arena, h Handle) []byte { return a.Push(h, 0) }, 10, head, 10},
		{"push one", 10, func(a *Arena, h Handle) []byte { return a.Push(h, 1) }, 11, head - 1, 11},
		{"push all headroom", 10, func(a *Arena, h Handle) []byte { return a.Push(h, head) }, 10 + head, 0, 10 + head},
		{"push beyond headroom", 10, func(a *Arena, h Handle) []byte { return a.Push(h, head+1) }, -1, head, 10},
		{"push negative", 10, func(a *Arena, h Handle) []byte { return a.Push(h, -1) }, -1, head, 10},
		{"push 64 KiB", 10, func(a *Arena, h Handle) []byte { return a.Push(h, 1<<16) }, -1, head, 10},
		{"pull nothing", 10, func(a *Arena, h Handle) []byte { return a.Pull(h, 0) }, 10, head, 10},
		{"pull all", 10, func(a *Arena, h Handle) []byte { return a.Pull(h, 10) }, 0, head + 10, 0},
		{"pull beyond", 10, func(a *Arena, h Handle) []byte { return a.Pull(h, 11) }, -1, head, 10},
		{"pull negative", 10, func(a *Arena, h Handle) []byte { return a.Pull(h, -1) }, -1, head, 10},
		{"pull 64 KiB", 10, func(a *Arena, h Handle) []byte { return a.Pull(h, 1<<16) }, -1, head, 10},
		{"pull up to the end", tail, func(a *Arena, h Handle) []byte { return a.Pull(h, tail) }, 0, stride, 0},
		{"put nothing", 10, func(a *Arena, h Handle) []byte { return a.Put(h, 0) }, 0, head, 10},
		{"put all tailroom", 10, func(a *Arena, h Handle) []byte { return a.Put(h, tail-10) }, tail - 10, head, tail},
		{"put beyond", 10, func(a *Arena, h Handle) []byte { return a.Put(h, tail-9) }, -1, head, 10},
		{"put negative", 10, func(a *Arena, h Handle) []byte { return a.Put(h, -1) }, -1, head, 10},
		{"put on a full buffer", tail, func(a *Arena, h Handle) []byte { return a.Put(h, 1) }, -1, head, tail},
		{"put nothing on a full buffer", tail, func(a *Arena, h Handle) []byte { return a.Put(h, 0) }, 0, head, tail},
		{"trim to nothing", 10, func(a *Arena, h Handle) []byte { a.Trim(h, 0); return a.Bytes(h) }, 0, head, 0},
		{"trim to itself", 10, func(a *Arena, h Handle) []byte { a.Trim(h, 10); return a.Bytes(h) }, 10, head, 10},
		{"trim to more", 10, func(a *Arena, h Handle) []byte { a.Trim(h, 11); return a.Bytes(h) }, 10, head, 10},
		{"trim to negative", 10, func(a *Arena, h Handle) []byte { a.Trim(h, -1); return a.Bytes(h) }, 10, head, 10},
		{"trim to 64 KiB", 10, func(a *Arena, h Handle) []byte { a.Trim(h, 1<<16); return a.Bytes(h) }, 10, head, 10},
		{"reserve nothing", 0, func(a *Arena, h Handle) []byte { a.Reserve(h, 0); return a.Bytes(h) }, 0, head, 0},
		{"reserve all", 0, func(a *Arena, h Handle) []byte { a.Reserve(h, tail); return a.Put(h, 0) }, 0, stride, 0},
		{"reserve then put beyond", 0, func(a *Arena, h Handle) []byte { a.Reserve(h, tail); return a.Put(h, 1) }, -1, stride, 0},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			a := newArena(t, Options{})
			h := mustAlloc(t, a.NewCache("t"))
			if a.Headspace(h) != head || a.Tailspace(h) != tail {
				t.Fatalf("a new buffer has %d before and %d after", a.Headspace(h), a.Tailspace(h))
			}
			if a.Put(h, tc.length) == nil {
				t.Fatal("no room")
			}
			got := tc.op(a, h)
			if (got == nil) != (tc.result < 0) || len(got) != max(tc.result, 0) {
				t.Errorf("result %v of %d bytes, want %d", got != nil, len(got), tc.result)
			}
			if m := a.Meta(h); int(m.Data) != tc.data || int(m.Len) != tc.frames {
				t.Errorf("frame at %d with %d bytes, want %d with %d", m.Data, m.Len, tc.data, tc.frames)
			}
			if a.Headspace(h) != tc.data || a.Tailspace(h) != stride-tc.data-tc.frames {
				t.Errorf("room %d and %d", a.Headspace(h), a.Tailspace(h))
			}
		})
	}
}

func TestPadWritesZerosBehindTheFrameOnly(t *testing.T) {
	for _, tc := range []struct{ reserve, length, pad, want int }{
		{0, 0, 60, 60}, {0, 1, 60, 60}, {0, 59, 60, 60}, {0, 60, 60, 60}, {0, 61, 60, 61}, {0, 20, 0, 20}, {0, 20, -1, 20},
		{1792, 0, 60, 0}, {1792 - 10, 10, 60, 10}, {1792 - 30, 10, 60, 30}, {1792 - 60, 59, 60, 60},
	} {
		a := newArena(t, Options{})
		c := a.NewCache("t")
		h := mustAlloc(t, c)
		next := a.DMA(a.BusAt(h+1, 0), 2048)
		whole := a.DMA(a.BusAt(h, 0), 2048)
		for _, b := range [][]byte{whole, next} {
			for i := range b {
				b[i] = 0xee
			}
		}
		a.Reserve(h, tc.reserve)
		copy(a.Put(h, tc.length), bytes.Repeat([]byte{0x11}, tc.length))
		if got := a.Pad(h, tc.pad); got != tc.want {
			t.Fatalf("%+v: Pad returns %d", tc, got)
		}
		if len(a.Bytes(h)) != tc.length {
			t.Errorf("%+v: the frame has %d bytes", tc, len(a.Bytes(h)))
		}
		start := 256 + tc.reserve
		for i, x := range whole {
			want := byte(0xee)
			switch {
			case i >= start && i < start+tc.length:
				want = 0x11
			case i >= start+tc.length && i < start+tc.want:
				want = 0
			}
			if x != want {
				t.Fatalf("%+v: byte %d is %#x, want %#x", tc, i, x, want)
			}
		}
		if bytes.Count(next, []byte{0xee}) != 2048 {
			t.Errorf("%+v: wrote into the next buffer", tc)
		}
	}
}

// TestOpsAgainstSlices compares random operations with a frame kept in an
// ordinary slice.
func TestOpsAgainstSlices(t *testing.T) {
	a := newArena(t, Options{})
	c := a.NewCache("t")
	rapid.Check(t, func(t *rapid.T) {
		h := c.Alloc()
		defer c.Free(h)
		head := a.Headroom()
		var frame []byte
		size := rapid.OneOf(rapid.IntRange(-2, 70), rapid.IntRange(0, 2100))
		step := byte(0)
		fill := func(b []byte) {
			for i := range b {
				step++
				b[i] = step
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				n := size.Draw(t, "n")
				b := a.Push(h, n)
				if ok := n >= 0 && n <= head; ok != (b != nil) {
					t.Fatalf("push %d with %d before: %v", n, head, b != nil)
				} else if ok {
					fill(b[:n])
					frame = append(bytes.Clone(b[:n]), frame...)
					head -= n
				}
			},
			"pull": func(t *rapid.T) {
				n := size.Draw(t, "n")
				b := a.Pull(h, n)
				if ok := n >= 0 && n <= len(frame); ok != (b != nil) {
					t.Fatalf("pull %d of %d: %v", n, len(frame), b != nil)
				} else if ok {
					frame = frame[n:]
					head += n
				}
			},
			"put": func(t *rapid.T) {
				n := size.Draw(t, "n")
				b := a.Put(h, n)
				if ok := n >= 0 && head+len(frame)+n <= a.Stride(); ok != (b != nil) {
					t.Fatalf("put %d on %d at %d: %v", n, len(frame), head, b != nil)
				} else if ok {
					fill(b)
					frame = append(bytes.Clone(frame), b...)
				}
			},
			"trim": func(t *rapid.T) {
				n := size.Draw(t, "n")
				a.Trim(h, n)
				if n >= 0 && n < len(frame) {
					frame = frame[:n]
				}
			},
			"": func(t *rapid.T) {
				if !bytes.Equal(a.Bytes(h), frame) || a.Headspace(h) != head || a.Tailspace(h) != a.Stride()-head-len(frame) {
					t.Fatalf("frame %x at %d, want %x at %d", a.Bytes(h), a.Headspace(h), frame, head)
				}
				if len(frame) > 0 && *(*byte)(a.Head(h)) != frame[0] {
					t.Fatal("Head is not the first byte")
				}
			},
		})
	})
}

func TestBatch(t *testing.T) {
	var b Batch
	for i := range BatchSize {
		if b.Full() || b.N != i {
			t.Fatalf("full %v with %d", b.Full(), b.N)
		}
		b.Add(Handle(i + 100))
	}
	if !b.Full() || len(b.Handles()) != BatchSize {
		t.Fatalf("full %v with %d", b.Full(), len(b.Handles()))
	}
	for i, h := range b.Handles() {
		if h != Handle(i+100) {
			t.Fatalf("handle %d is %d", i, h)
		}
	}
	b.Reset()
	if b.N != 0 || b.Full() || len(b.Handles()) != 0 {
		t.Fatal("not empty after Reset")
	}
}
