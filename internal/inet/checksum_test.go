package inet

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
)

// slow is the checksum as RFC 1071 words it, one word at a time.
func slow(b []byte) uint16 {
	var s uint32
	for i := 0; i < len(b); i += 2 {
		w := uint32(b[i]) << 8
		if i+1 < len(b) {
			w |= uint32(b[i+1])
		}
		s += w
		if s > 0xffff {
			s -= 0xffff
		}
	}
	return ^uint16(s)
}

func TestChecksumAgainstTheSlowForm(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 200 {
		for range 50 {
			b := make([]byte, n)
			for i := range b {
				b[i] = byte(r.Uint32())
			}
			if r.IntN(4) == 0 {
				for i := range b {
					b[i] = 0xff
				}
			}
			if got, want := Checksum(b), slow(b); got != want {
				t.Fatalf("%x: %#04x, want %#04x", b, got, want)
			}
		}
	}
}

// Every checksum value times every TTL: what forwarding does to a header must
// equal computing it afresh, the corners 0x0000 and 0xffff included.
func TestUpdateExhaustively(t *testing.T) {
	h := make([]byte, 20)
	copy(h, []byte{0x45, 0, 0, 40, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 198, 51, 100, 1})
	for ttl := 2; ttl <= 255; ttl++ {
		h[8] = byte(ttl)
		for id := 0; id <= 0xffff; id++ {
			// Walking the identification walks the checksum over all its values.
			binary.BigEndian.PutUint16(h[4:], uint16(id))
			binary.BigEndian.PutUint16(h[10:], 0)
			hc := slowHeader(h)
			old := binary.BigEndian.Uint16(h[8:])
			got := Update(hc, old, old-0x0100)
			h[8]--
			want := slowHeader(h)
			h[8]++
			if got != want {
				t.Fatalf("ttl %d id %#x sum %#04x: %#04x, want %#04x", ttl, id, hc, got, want)
			}
		}
	}
}

func slowHeader(h []byte) uint16 {
	var s uint32
	for i := 0; i < 20; i += 2 {
		s += uint32(h[i])<<8 | uint32(h[i+1])
	}
	s = s&0xffff + s>>16
	s = s&0xffff + s>>16
	return ^uint16(s)
}
