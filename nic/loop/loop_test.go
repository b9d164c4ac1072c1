package loop

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"
	"pgregory.net/rapid"

	"gorouter/internal/inet"
	"gorouter/rx"
	"gorouter/skb"
)

// samples are frames of many lengths.
func samples() [][]byte {
	var out [][]byte
	for _, n := range []int{60, 61, 62, 63, 64, 1514, 100, 1518} {
		f := make([]byte, n)
		for i := range f {
			f[i] = byte(i * n)
		}
		out = append(out, f)
	}
	return out
}

func info(f []byte) gopacket.CaptureInfo {
	return gopacket.CaptureInfo{Timestamp: time.Unix(1, 2000), CaptureLength: len(f), Length: len(f)}
}

// pcapBytes has gopacket write a pcap file.
func pcapBytes(t testing.TB, nanos bool, link layers.LinkType, frames [][]byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := pcapgo.NewWriter(&b)
	if nanos {
		w = pcapgo.NewWriterNanos(&b)
	}
	if err := w.WriteFileHeader(65536, link); err != nil {
		t.Fatal(err)
	}
	for _, f := range frames {
		if err := w.WritePacket(info(f), f); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

// ngBytes has gopacket write a pcapng file.
func ngBytes(t testing.TB, link layers.LinkType, frames [][]byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := pcapgo.NewNgWriter(&b, link)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range frames {
		if err := w.WritePacket(info(f), f); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// bigEndian turns a little-endian pcap file round.
func bigEndian(b []byte) []byte {
	b = slices.Clone(b)
	swap := func(off, n int) { slices.Reverse(b[off : off+n]) }
	for _, f := range [][2]int{{0, 4}, {4, 2}, {6, 2}, {8, 4}, {12, 4}, {16, 4}, {20, 4}} {
		swap(f[0], f[1])
	}
	for off := 24; off < len(b); {
		n := int(binary.LittleEndian.Uint32(b[off+8:]))
		for i := range 4 {
			swap(off+4*i, 4)
		}
		off += 16 + n
	}
	return b
}

func gz(t testing.TB, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func tempFile(t testing.TB, name string, b []byte) string {
	t.Helper()
	p := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(p, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

func datas(fs []rx.PcapFrame) (out [][]byte) {
	for _, f := range fs {
		out = append(out, f.Data)
	}
	return out
}

func same(a, b [][]byte) bool { return slices.EqualFunc(a, b, bytes.Equal) }

func TestEveryFormatIsRead(t *testing.T) {
	want := samples()
	classic := pcapBytes(t, false, layers.LinkTypeEthernet, want)
	withFCS := slices.Clone(classic)
	binary.LittleEndian.PutUint32(withFCS[20:], 1|1<<26|2<<28) // four bytes of FCS
	for name, b := range map[string][]byte{
		"micro":      classic,
		"nano":       pcapBytes(t, true, layers.LinkTypeEthernet, want),
		"big endian": bigEndian(classic),
		"pcapng":     ngBytes(t, layers.LinkTypeEthernet, want),
		"gzip":       gz(t, classic),
		"pcapng.gz":  gz(t, ngBytes(t, layers.LinkTypeEthernet, want)),
		"sections":   append(ngBytes(t, layers.LinkTypeEthernet, want[:3]), ngBytes(t, layers.LinkTypeEthernet, want[3:])...),
	} {
		fs, err := Load(tempFile(t, "in", b))
		if err != nil || !same(datas(fs), want) {
			t.Errorf("%s: %d frames, %v", name, len(fs), err)
		}
	}
	fs, err := decode(withFCS)
	if err != nil || len(fs) != len(want) || !bytes.Equal(fs[0].Data, want[0][:56]) || fs[0].Len != 56 {
		t.Errorf("FCS: %v", err)
	}
}

func TestBadFilesAreRefused(t *testing.T) {
	good := pcapBytes(t, false, layers.LinkTypeEthernet, samples())
	ng := ngBytes(t, layers.LinkTypeEthernet, samples())
	link257 := slices.Clone(good)
	binary.LittleEndian.PutUint32(link257[20:], 257) // equal to Ethernet in its low byte
	for _, c := range []struct {
		name, want string
		b          []byte
	}{
		{"text", "neither pcap nor pcapng", []byte("hello, this is no capture")},
		{"empty file", "neither pcap nor pcapng", nil},
		{"no frames", "holds no frame", good[:24]},
		{"header cut", "cut off", good[:23]},
		{"record header cut", "cut off within the record after frame 0", good[:30]},
		{"data missing", "cut off within the record after frame 0", good[:40]},
		{"data cut", "cut off within the record after frame 7", good[:len(good)-1]},
		{"ng cut", "cut off within the record after frame 7", ng[:len(ng)-1]},
		{"ng damaged", "damaged", append(slices.Clone(ng), 6, 0, 0, 0, 13, 0, 0, 0, 0, 0, 0, 0)},
		{"cooked", "link type 113", pcapBytes(t, false, layers.LinkTypeLinuxSLL, samples())},
		{"link 257", "link type 257", link257},
		{"ng cooked", "link type 113", ngBytes(t, layers.LinkTypeLinuxSLL, samples())},
		{"bad gzip", "gzip", []byte{0x1f, 0x8b, 1, 2, 3}},
		{"cut gzip", "unexpected EOF", gz(t, good)[:100]},
	} {
		p := tempFile(t, "in.pcap", c.b)
		_, err := Load(p)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), p) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
	if _, err := Load("no/such/file.pcap"); err == nil || !strings.Contains(err.Error(), "no/such/file.pcap does not exist") {
		t.Errorf("got %v", err)
	}
	if _, err := Load(t.TempDir()); err == nil {
		t.Error("a folder was read")
	}
}

// A capture cut by a snap length keeps the length on the wire.
func TestSnapLengthIsNoticed(t *testing.T) {
	var b bytes.Buffer
	w := pcapgo.NewWriter(&b)
	if err := w.WriteFileHeader(70, layers.LinkTypeEthernet); err != nil {
		t.Fatal(err)
	}
	ci := gopacket.CaptureInfo{CaptureLength: 70, Length: 1514}
	if err := w.WritePacket(ci, make([]byte, 70)); err != nil {
		t.Fatal(err)
	}
	fs, err := decode(b.Bytes())
	if err != nil || len(fs) != 1 || fs[0].Len != 1514 || len(fs[0].Data) != 70 {
		t.Errorf("%+v, %v", fs, err)
	}
}

func TestReaderAgreesWithGopacket(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var frames [][]byte
		for range rapid.IntRange(1, 10).Draw(rt, "n") {
			frames = append(frames, rapid.SliceOfN(rapid.Byte(), 0, 80).Draw(rt, "frame"))
		}
		for _, b := range [][]byte{pcapBytes(t, true, layers.LinkTypeEthernet, frames), ngBytes(t, layers.LinkTypeEthernet, frames)} {
			fs, err := decode(b)
			if err != nil || !same(datas(fs), frames) {
				rt.Fatalf("%v: %x, want %x", err, datas(fs), frames)
			}
		}
	})
}

func FuzzDecode(f *testing.F) {
	good := pcapBytes(f, false, layers.LinkTypeEthernet, samples()[:2])
	f.Add(good)
	f.Add(bigEndian(good))
	f.Add(ngBytes(f, layers.LinkTypeEthernet, samples()[:2]))
	f.Fuzz(func(t *testing.T, b []byte) {
		fs, err := decode(b)
		if err != nil {
			return
		}
		total := 0
		for _, x := range fs {
			total += len(x.Data)
			if x.Len < len(x.Data) {
				t.Fatalf("%d bytes of a frame of %d", len(x.Data), x.Len)
			}
		}
		if total > len(b) {
			t.Fatalf("%d bytes of frames in a file of %d", total, len(b))
		}
	})
}

func newCache(t testing.TB) *skb.Cache {
	t.Helper()
	a, err := skb.NewArena(skb.Options{Buffers: 256})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return a.NewCache("w0")
}

// readBack has gopacket read a file.
func readBack(t testing.TB, path string) (out [][]byte) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	r, err := pcapgo.NewReader(f)
	if err != nil || r.LinkType() != layers.LinkTypeEthernet {
		t.Fatalf("%v, link type %v", err, r.LinkType())
	}
	for {
		b, ci, err := r.ReadPacketData()
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if age := time.Since(ci.Timestamp); age < 0 || age > time.Hour || ci.Length != len(b) {
			t.Errorf("%+v", ci)
		}
		out = append(out, b)
	}
}

// From a file through the port into a file: the same frames.
func TestPortRoundTrip(t *testing.T) {
	cache := newCache(t)
	want := samples()
	out := filepath.Join(t.TempDir(), "out.pcap")
	p, err := Open(Config{
		File: tempFile(t, "in.pcap", pcapBytes(t, true, layers.LinkTypeEthernet, want)), Output: out,
		Name: "p0", Index: 3, MAC: inet.MAC{2, 0, 0, 0, 0, 1}, Arena: cache.Arena(), Cache: cache,
	})
	if err != nil {
		t.Fatal(err)
	}
	if p.Name != "p0" || p.Index != 3 || p.MTU != 1500 || p.MAC() != (inet.MAC{2, 0, 0, 0, 0, 1}) || p.Up() || p.Device.Driver() != "pcap" {
		t.Errorf("%+v", p)
	}
	var b skb.Batch
	if p.Rx[0].Poll(&b, 64, 0) != 0 {
		t.Error("frames flow before Start")
	}
	if err := p.Device.Start(); err != nil || !p.Up() {
		t.Fatal(err)
	}
	for p.Rx[0].Poll(&b, 3, 0) > 0 {
		p.Tx[0].Send(&b, false)
	}
	if s := p.Device.Stats(); s["file_frames"] != 8 || s["written_frames"] != 8 || s["lost_frames"] != 0 {
		t.Errorf("%v", s)
	}
	if err := p.Device.Close(); err != nil || p.Up() {
		t.Error(err)
	}
	if err := p.Device.Close(); err != nil {
		t.Error(err)
	}
	p.Rx[0].Close()
	p.Tx[0].Close()
	if got := readBack(t, out); !same(got, want) {
		t.Errorf("%d frames came out, want %d", len(got), len(want))
	}
	if _, err := cache.Arena().Audit(p.Rx[0], p.Tx[0]); err != nil {
		t.Error(err)
	}
}

func TestOpenRefuses(t *testing.T) {
	cache := newCache(t)
	in := tempFile(t, "in.pcap", pcapBytes(t, true, layers.LinkTypeEthernet, samples()))
	for _, c := range []struct{ file, out, want string }{
		{"", "", "needs a file, an output or both"},
		{in, in, "is the file that is read"},
		{"gone.pcap", "", "gone.pcap does not exist"},
		{in, "no/such/folder/out.pcap", "no/such/folder/out.pcap"},
	} {
		if _, err := Open(Config{Name: "p9", File: c.file, Output: c.out, Cache: cache}); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "port p9") {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
	if got := readBack2(t, in); got != len(samples()) {
		t.Errorf("the input was changed: %d frames", got)
	}
}

func readBack2(t testing.TB, path string) int {
	t.Helper()
	fs, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return len(fs)
}

// A full disk: the port goes on, the frames are counted, Close says it.
func TestFullDisk(t *testing.T) {
	cache := newCache(t)
	p, err := Open(Config{File: tempFile(t, "in.pcap", pcapBytes(t, true, layers.LinkTypeEthernet, samples())), Output: "/dev/full", Name: "p0", Cache: cache})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Device.Start(); err != nil {
		t.Fatal(err)
	}
	var b skb.Batch
	p.Rx[0].Poll(&b, 64, 0)
	if n := p.Tx[0].Send(&b, false); n != 0 {
		t.Errorf("%d frames were stored on a full disk", n)
	}
	c := p.Tx[0].Counters().Live
	if c.Packets != 0 || c.Drops[skb.TxAborted] != 8 || p.Device.Stats()["lost_frames"] != 8 {
		t.Errorf("%+v", c)
	}
	for range 2 {
		err = p.Device.Close()
		if err == nil || !strings.Contains(err.Error(), "/dev/full: 0 frames written, 8 lost") || !strings.Contains(err.Error(), "free disk space") {
			t.Errorf("got %v", err)
		}
	}
	if _, err := cache.Arena().Audit(); err != nil {
		t.Error(err)
	}
}

// A file system that fills up within a batch: what was written stays readable.
func TestDiskFillsUp(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.pcap")
	w, err := create(path)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	w.add(samples()[0], now)
	if w.flush() != 1 {
		t.Error("not written")
	}
	// Half of a record, as a short write leaves it.
	if _, err := w.f.Write(make([]byte, 30)); err != nil {
		t.Fatal(err)
	}
	w.fail(syscall.ENOSPC)
	w.add(samples()[1], now)
	if w.flush() != 0 {
		t.Error("written after the error")
	}
	if err := w.close(); err == nil || !strings.Contains(err.Error(), "1 frames written, 1 lost") {
		t.Errorf("got %v", err)
	}
	if got := readBack(t, path); !same(got, samples()[:1]) {
		t.Errorf("%d frames", len(got))
	}
}

func TestEndpoint(t *testing.T) {
	want := samples()
	cut := []byte{1, 2, 3}
	in := tempFile(t, "in.pcap", pcapBytes(t, true, layers.LinkTypeEthernet, append(slices.Clone(want), cut)))
	out := filepath.Join(t.TempDir(), "out.pcap")
	a, err := NewEndpoint(EndpointConfig{File: in})
	if err != nil {
		t.Fatal(err)
	}
	b, err := NewEndpoint(EndpointConfig{Output: out})
	if err != nil {
		t.Fatal(err)
	}
	for f := a.Next(0); f != nil; f = a.Next(1) {
		if !b.Deliver(f) || b.Next(2) != nil {
			t.Error("refused")
		}
	}
	if sent, _, refused := a.Counts(); sent != 8 || refused != 1 {
		t.Errorf("sent %d, refused %d", sent, refused)
	}
	if _, taken, _ := b.Counts(); taken != 8 {
		t.Errorf("taken %d", taken)
	}
	for _, e := range []*Endpoint{a, b, b} {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
	if got := readBack(t, out); !same(got, want) {
		t.Errorf("%d frames came out", len(got))
	}
	l, err := NewEndpoint(EndpointConfig{File: in, Loop: true})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		if !bytes.Equal(l.Next(0), want[i%8]) {
			t.Fatalf("frame %d of a loop", i)
		}
	}
	full, err := NewEndpoint(EndpointConfig{Output: "/dev/full"})
	if err != nil {
		t.Fatal(err)
	}
	if full.Deliver(want[0]) {
		t.Error("taken by a full disk")
	}
	for range 2 {
		if err := full.Close(); err == nil || !strings.Contains(err.Error(), "0 frames written, 1 lost") {
			t.Errorf("got %v", err)
		}
	}
	if _, err := NewEndpoint(EndpointConfig{}); err == nil {
		t.Error("an end without files was made")
	}
}

func TestWritingDoesNotAllocate(t *testing.T) {
	w, err := create("/dev/null")
	if err != nil {
		t.Fatal(err)
	}
	f, now := samples()[5], time.Now()
	if n := testing.AllocsPerRun(100, func() {
		for range 64 {
			w.add(f, now)
		}
		w.flush()
	}); n != 0 {
		t.Errorf("%v allocations per batch", n)
	}
	if err := w.close(); err != nil {
		t.Error(err)
	}
}
