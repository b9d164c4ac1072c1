// Package loop has ports and cable ends over capture files: frames are read
// from a pcap or pcapng file into memory, and sent ones are written to a pcap
// file.
package loop

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"gorouter/internal/infile"
	"gorouter/rx"
)

// maxFile is the most bytes of a capture, decompressed, that are taken into
// memory.
const maxFile = 1 << 30

const linkEthernet = 1

// Load reads all frames of a capture file: pcap with micro- or nanoseconds in
// either byte order, or pcapng; both also compressed by gzip. Every interface
// in it must be Ethernet. The errors name the file and the remedy.
func Load(path string) ([]rx.PcapFrame, error) {
	f, err := infile.Open(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("capture file %s does not exist: give the path of a pcap or pcapng file, relative to the working directory", path)
	case err != nil:
		return nil, fmt.Errorf("capture file: %w", err)
	}
	defer f.Close()
	frames, err := read(f)
	if err != nil {
		return nil, fmt.Errorf("capture file %s: %w", path, err)
	}
	if len(frames) == 0 {
		return nil, fmt.Errorf("capture file %s holds no frame, so the port would receive nothing: leave the file out if it shall only send, or capture again, for instance with tcpdump -i DEV -w %s", path, path)
	}
	return frames, nil
}

func read(r io.Reader) ([]rx.PcapFrame, error) {
	br := bufio.NewReaderSize(r, 1<<16)
	if magic, _ := br.Peek(2); len(magic) == 2 && magic[0] == 0x1f && magic[1] == 0x8b {
		z, err := gzip.NewReader(br)
		if err != nil {
			return nil, fmt.Errorf("gzip: %w", err)
		}
		br = bufio.NewReader(z)
	}
	b, err := io.ReadAll(io.LimitReader(br, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	if len(b) > maxFile {
		return nil, fmt.Errorf("more than %d bytes, which are all held in memory: cut it, for instance with editcap -c", maxFile)
	}
	return decode(b)
}

// decode finds the frames in a file. They point into b.
//
// The formats are read here and not by a library, because the one at hand
// allocates whatever a forged length says, sees only eight bits of the link
// type, and takes a file that was cut within a record for a whole one.
func decode(b []byte) ([]rx.PcapFrame, error) {
	if len(b) < 4 {
		return nil, errNotCapture
	}
	var order binary.ByteOrder
	switch binary.LittleEndian.Uint32(b) {
	case 0x0a0d0d0a:
		return decodeNG(b)
	case 0xa1b2c3d4, 0xa1b23c4d:
		order = binary.LittleEndian
	case 0xd4c3b2a1, 0x4d3cb2a1:
		order = binary.BigEndian
	default:
		return nil, errNotCapture
	}
	return decodeClassic(b, order)
}

var errNotCapture = errors.New("neither pcap nor pcapng: convert it, for instance with editcap -F pcap")

func errLinkType(t uint32) error {
	return fmt.Errorf("link type %d, only Ethernet (%d) can be sent: capture on one Ethernet interface instead of \"any\"", t, linkEthernet)
}

func errTruncated(n int) error {
	return fmt.Errorf("cut off within the record after frame %d: capture again, or save the whole frames with tcpdump -r FILE -w NEW", n)
}

// decodeClassic reads a pcap file: a header of 24 bytes and records with a
// header of 16 bytes each.
func decodeClassic(b []byte, order binary.ByteOrder) ([]rx.PcapFrame, error) {
	if len(b) < 24 {
		return nil, errTruncated(0)
	}
	// The upper bits say whether frames have their FCS, and how long it is.
	link := order.Uint32(b[20:])
	fcs := 0
	if link&(1<<26) != 0 {
		fcs = int(link>>28) * 2
	}
	if link &= 1<<16 - 1; link != linkEthernet {
		return nil, errLinkType(link)
	}
	var frames []rx.PcapFrame
	for b = b[24:]; len(b) > 0; {
		if len(b) < 16 {
			return nil, errTruncated(len(frames))
		}
		n, wire := uint64(order.Uint32(b[8:])), uint64(order.Uint32(b[12:]))
		b = b[16:]
		if n > uint64(len(b)) {
			return nil, errTruncated(len(frames))
		}
		frames = append(frames, newFrame(b[:n:n], wire, fcs))
		b = b[n:]
	}
	return frames, nil
}

// newFrame takes the FCS off, where a frame has one and it was captured.
func newFrame(data []byte, wire uint64, fcs int) rx.PcapFrame {
	wire = max(wire, uint64(len(data)))
	if whole := int(wire) - fcs; whole >= 0 {
		wire = uint64(whole)
		data = data[:min(len(data), whole)]
	}
	return rx.PcapFrame{Data: data, Len: int(wire)}
}

// Blocks of pcapng.
const (
	ngSection   = 0x0a0d0d0a
	ngInterface = 1
	ngPacket    = 2 // obsolete, still found
	ngSimple    = 3
	ngEnhanced  = 6
)

// decodeNG reads a pcapng file: blocks that begin and end with their length.
func decodeNG(b []byte) ([]rx.PcapFrame, error) {
	var (
		frames []rx.PcapFrame
		order  binary.ByteOrder
		snap   []uint64 // snap length by interface of the section
	)
	for len(b) > 0 {
		if len(b) < 12 {
			return nil, errTruncated(len(frames))
		}
		if binary.LittleEndian.Uint32(b) == ngSection {
			switch {
			case bytes.Equal(b[8:12], []byte{0x4d, 0x3c, 0x2b, 0x1a}):
				order = binary.LittleEndian
			case bytes.Equal(b[8:12], []byte{0x1a, 0x2b, 0x3c, 0x4d}):
				order = binary.BigEndian
			default:
				return nil, errNotCapture
			}
			snap = nil
		}
		typ, size := order.Uint32(b), uint64(order.Uint32(b[4:]))
		if size < 12 || size%4 != 0 {
			return nil, fmt.Errorf("block of %d bytes after frame %d: the file is damaged", size, len(frames))
		}
		if size > uint64(len(b)) {
			return nil, errTruncated(len(frames))
		}
		body := b[8 : size-4]
		b = b[size:]
		f, ok, err := decodeBlock(typ, body, order, &snap)
		if err != nil {
			return nil, fmt.Errorf("after frame %d: %w", len(frames), err)
		}
		if ok {
			frames = append(frames, f)
		}
	}
	return frames, nil
}

// decodeBlock reads one block's body; ok says that it holds a frame.
func decodeBlock(typ uint32, body []byte, order binary.ByteOrder, snap *[]uint64) (f rx.PcapFrame, ok bool, err error) {
	short := errors.New("a block is too short for what it holds: the file is damaged")
	head := 0 // bytes before the options or the frame
	switch typ {
	case ngInterface:
		head = 8
	case ngPacket, ngEnhanced:
		head = 20
	case ngSimple:
		head = 4
	}
	if len(body) < head {
		return f, false, short
	}
	var n, wire, iface uint64
	switch typ {
	case ngInterface:
		if link := order.Uint16(body); link != linkEthernet {
			return f, false, errLinkType(uint32(link))
		}
		*snap = append(*snap, uint64(order.Uint32(body[4:])))
		return f, false, nil
	case ngEnhanced:
		iface, n, wire = uint64(order.Uint32(body)), uint64(order.Uint32(body[12:])), uint64(order.Uint32(body[16:]))
	case ngPacket:
		iface, n, wire = uint64(order.Uint16(body)), uint64(order.Uint32(body[12:])), uint64(order.Uint32(body[16:]))
	case ngSimple:
		wire = uint64(order.Uint32(body))
		n = wire
		if len(*snap) > 0 && (*snap)[0] > 0 {
			n = min(n, (*snap)[0])
		}
	default:
		return f, false, nil
	}
	if iface >= uint64(len(*snap)) {
		return f, false, fmt.Errorf("a frame of interface %d, which is not described: the file is damaged", iface)
	}
	data := body[head:]
	if n > uint64(len(data)) {
		return f, false, short
	}
	return newFrame(data[:n:n], wire, 0), true, nil
}
