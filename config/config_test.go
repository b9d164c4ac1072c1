package config

import (
	"bytes"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gorouter/dataplane"
	"gorouter/dataplane/neigh"
	"gorouter/fib"
	"gorouter/internal/inet"
	"gorouter/nic/model"
	"gorouter/pktgen"
	"gorouter/rx"
	"gorouter/skb"
	"gorouter/tx"
)

// sameConfig compares what two configurations say, not where they say it.
var sameConfig = cmp.Options{
	cmp.Comparer(func(a, b Pos) bool { return true }),
	cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
	cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }),
	cmp.FilterPath(func(p cmp.Path) bool { s := p.String(); return s == "File" || s == "where" }, cmp.Ignore()),
}

func parse(t *testing.T, text string) *Config {
	t.Helper()
	c, err := Parse("x", []byte(text))
	if err != nil {
		t.Fatalf("%s\n%v", text, err)
	}
	return c
}

func effective(t interface{ Fatal(...any) }, c *Config) string {
	var b bytes.Buffer
	if err := c.Effective(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestGoodFiles(t *testing.T) {
	files, _ := filepath.Glob("testdata/good/*.yaml")
	if len(files) < 2 {
		t.Fatalf("%d files in testdata/good", len(files))
	}
	for _, f := range files {
		c, err := Load(f)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		text := effective(t, c)
		golden(t, strings.TrimSuffix(f, ".yaml")+".effective", text)
		if d := cmp.Diff(c, parse(t, text), sameConfig); d != "" {
			t.Errorf("%s: effective configuration differs:\n%s", f, d)
		}
	}
}

// TestShippedFiles: what the repository offers as configurations must be some.
func TestShippedFiles(t *testing.T) {
	files := []string{"../router.yaml"}
	more, _ := filepath.Glob("../examples/*.yaml")
	deeper, _ := filepath.Glob("../examples/*/*.yaml")
	for _, f := range append(append(files, more...), deeper...) {
		if _, err := os.Stat(f); os.IsNotExist(err) {
			continue
		}
		if _, err := Load(f); err != nil {
			t.Error(err)
		}
	}
}

func TestDefaults(t *testing.T) {
	c := parse(t, "ports: {p0: {driver: model}}")
	buffers := skb.OptionTable.Defaults()
	buffers.DeviceMax, buffers.RingBytes = 1522, 2<<20
	want := &Config{
		Workers: []Worker{{CPU: AnyCPU}}, Poll: dataplane.OptionTable.Defaults(), IP: dataplane.IPTable.Defaults(), Neigh: neigh.OptionTable.Defaults(), Buffers: buffers,
		Ports: []Port{{
			Name: "p0", Driver: DriverModel, MTU: 1500, Model: ModelTable.Defaults(),
			Impair: model.ImpairmentTable.Defaults(), Flap: FlapTable.Defaults(),
			Rx: rx.OptionTable.Defaults(), Tx: tx.OptionTable.Defaults(),
		}},
	}
	if d := cmp.Diff(want, c, sameConfig); d != "" {
		t.Error(d)
	}
}

func TestFull(t *testing.T) {
	c, err := Load("testdata/good/full.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if c.Neigh != (neigh.Options{Max: 1024, GCSoft: 512, GCStale: 2 * time.Minute, Reachable: 20 * time.Second, Retransmit: 250 * time.Millisecond,
		Unicast: 1, Broadcast: 5, Negative: 10 * time.Second, RequestRate: 50, Hold: 32}) {
		t.Errorf("neigh: %+v", c.Neigh)
	}
	if c.Poll != (dataplane.Options{Weight: 16, Vector: 1, Budget: 1000, Limit: 1500 * time.Microsecond, Idle: "spin", IdleMax: 50 * time.Microsecond}) {
		t.Errorf("poll %+v", c.Poll)
	}
	if d := cmp.Diff([]Worker{{CPU: AnyCPU}, {CPU: 2}}, c.Workers, sameConfig); d != "" {
		t.Error(d)
	}
	impair := model.ImpairmentTable.Defaults()
	impair.Loss, impair.Delay = 10, 2*time.Millisecond
	west := Port{
		Name: "west", Driver: DriverModel, MTU: 1600, MAC: inet.MAC{2, 0, 0, 0, 0, 10},
		Model:  ModelOptions{Thread: true, Mode: model.ModeLax, Chip: "82545EM", Bus: "pcix133", TDH: TDHSent, Seed: 7},
		Impair: impair, Flap: model.Flap{First: time.Second, Down: 100 * time.Millisecond, Every: 2 * time.Second},
		Addresses: []Address{
			{Prefix: netip.MustParsePrefix("192.0.2.1/24")}, {Prefix: netip.MustParsePrefix("192.0.2.129/25")},
			{Prefix: netip.MustParsePrefix("10.255.0.0/31")}, {Prefix: netip.MustParsePrefix("2001:db8::1/64")},
			{Prefix: netip.MustParsePrefix("fe80::1/64")},
		},
		Rx: rx.Options{Ring: 80, Replenish: 8, ReplenishAt: rx.ReplenishEnd, Copybreak: 128},
		Tx: tx.OptionTable.Defaults(),
	}
	west.Tx.Ring, west.Tx.ReclaimAt, west.Tx.ReportEvery, west.Tx.WakeAt = 4096, 2000, 32, 64
	west.Tx.Doorbell, west.Tx.DoorbellTimer = tx.DoorbellTimer, 100*time.Microsecond
	if d := cmp.Diff(west, c.Ports[0], sameConfig); d != "" {
		t.Error(d)
	}
	for i, name := range []string{"west", "east", "back", "front", "on", "1e3"} {
		if c.Ports[i].Name != name || c.PortIndex(name) != i {
			t.Errorf("port %d is %q", i, c.Ports[i].Name)
		}
	}
	if c.Ports[3].Cable != "back" || c.Ports[4].Interface != "null" || c.Ports[5].File != "in #1.pcap" {
		t.Errorf("ports %+v", c.Ports[3:])
	}
	// A buffer of the 8254x is a power of two once long packets are on.
	if c.Buffers.DeviceMax != 2048 {
		t.Errorf("DeviceMax %d", c.Buffers.DeviceMax)
	}
	if c.PortIndex("none") != -1 {
		t.Error("found a port that does not exist")
	}
	s := c.Streams[1]
	if s.Name != "b" || s.Port != "east" || s.Flows != 16 || s.TTL != 1 || s.DstMAC != inet.Broadcast || len(s.Dst) != 2 || s.Dst[1].Bits() != 128 {
		t.Errorf("stream %+v", s)
	}
	if s := c.Streams[0]; s.Name != "stream1" || s.SrcMAC != (inet.MAC{}) || s.StreamOptions != pktgen.StreamTable.Defaults() {
		t.Errorf("stream %+v", s)
	}
}

func TestFIBRoutes(t *testing.T) {
	c, err := Load("testdata/good/full.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"forward 198.51.100.0/24 via 192.0.2.2 port 0 table 0 metric 0",
		"forward 0.0.0.0/0 via 192.0.2.2 port 0 weight 3 via 10.255.0.1 port 0 weight 1 port 1 weight 2 table 0 metric 0",
		"forward ::/0 via fe80:: port 1 table 0 metric 0",
		"blackhole 10.9.0.0/16 table 0 metric 0",
		"unreachable 10.10.0.0/16 table 7 metric 0",
		"prohibit 10.10.0.0/16 table 7 metric 9",
		"forward 10.11.0.0/16 via 203.0.113.9 port 1 table 0 metric 0",
		"connected 10.12.0.0/16 port 1 table 0 metric 0",
		"forward 10.13.0.0/16 via 10.12.255.255 port 1 table 0 metric 0",
		"forward 10.14.0.0/16 via 2001:db8::2 port 0 table 0 metric 0",
		"blackhole 192.0.2.0/24 table 0 metric 1",
	}
	for i := range c.Routes {
		f := c.FIBRoute(&c.Routes[i])
		if err := f.Validate(); err != nil {
			t.Error(err)
		}
		if f.String() != want[i] {
			t.Errorf("route %d is %s, want %s", i, f, want[i])
		}
	}
	if len(c.Routes) != len(want) || c.Routes[7].Kind != fib.Connected {
		t.Errorf("%d routes", len(c.Routes))
	}
}

func TestPositions(t *testing.T) {
	c := parse(t, "workers: 1\nports:\n  p0:\n    driver: af_packet\n    interface: eth0\n    rx: {ring: 128}\n")
	for path, want := range map[string]Pos{
		"ports.p0":            {3, 3},
		"ports.p0.interface":  {5, 16},
		"ports.p0.rx.ring":    {6, 16},
		"ports.p0.rx.replen":  {6, 9},
		"ports.p0.tx.ring":    {3, 3},
		"ports.p1":            {3, 3}, // of ports
		"buffers.count":       {},
		"workers":             {1, 10},
		"nothing.at.all.here": {},
	} {
		if got := c.At(path); got != want {
			t.Errorf("%s is at %v, want %v", path, got, want)
		}
	}
	err := c.Errorf(c.At("ports.p0.interface"), "interface %s: %w", "eth0", io.EOF)
	if err.Error() != "x:5:16: interface eth0: EOF" {
		t.Error(err)
	}
	if err := c.Errorf(Pos{}, "no memory"); err.Error() != "x: no memory" {
		t.Error(err)
	}
}

// TestArenaTakesIt: what passes the check of buffers passes the arena's.
func TestArenaTakesIt(t *testing.T) {
	for _, text := range []string{
		"ports: {p0: {driver: model}}",
		"buffers: {stride: 4096, count: 512, headroom: 1024}\nports: {p0: {driver: model, mtu: 2026, rx: {ring: 80}, tx: {ring: 80}}}",
		"buffers: {stride: 16384, count: 2048}\nports: {p0: {driver: model, mtu: 8170, rx: {ring: 512}, tx: {ring: 512}}}",
		"buffers: {stride: 16384, count: 1024}\nports: {p0: {driver: pcap, file: a, mtu: 9000}}",
	} {
		c := parse(t, text)
		c.Buffers.HugePages = false
		a, err := skb.NewArena(c.Buffers)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		for i := range c.Ports {
			for _, n := range []int{c.Ports[i].Rx.Ring, c.Ports[i].Tx.Ring} {
				if _, err := a.AllocRing(n * descriptorBytes); err != nil {
					t.Errorf("%s: %v", text, err)
				}
			}
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestEdge(t *testing.T) {
	for _, c := range []struct {
		prefix string
		edge   bool
	}{
		{"10.0.0.0/8", true}, {"10.255.255.255/8", true}, {"10.0.0.255/8", false}, {"10.255.255.254/8", false},
		{"10.1.3.255/22", true}, {"10.1.2.255/22", false}, {"10.1.3.0/22", false},
		{"192.0.2.0/31", false}, {"192.0.2.1/31", false}, {"192.0.2.255/32", false},
		{"192.0.2.3/30", true}, {"192.0.2.0/30", true}, {"192.0.2.2/30", false}, {"127.255.255.255/1", true}, {"128.0.0.0/1", true},
		{"2001:db8::/64", true}, {"2001:db8::ffff:ffff:ffff:ffff/64", false}, {"2001:db8::/127", false}, {"2001:db8::/128", false},
	} {
		p := netip.MustParsePrefix(c.prefix)
		if got := edge(p, p.Addr()); (got != "") != c.edge {
			t.Errorf("%s: %q", c.prefix, got)
		}
	}
}

func TestReference(t *testing.T) {
	var b bytes.Buffer
	if err := Reference(&b); err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, k := range [][]key{topKeys, routesFileKeys, workerKeys, portKeys, routeKeys, hopKeys, neighborKeys, streamKeys} {
		keys = append(keys, names(k)...)
	}
	keys = append(keys, dataplane.OptionTable.Names()...)
	keys = append(keys, neigh.OptionTable.Names()...)
	keys = append(keys, skb.OptionTable.Names()...)
	keys = append(keys, rx.OptionTable.Names()...)
	keys = append(keys, tx.OptionTable.Names()...)
	keys = append(keys, ModelTable.Names()...)
	keys = append(keys, PacketTable.Names()...)
	keys = append(keys, pktgen.StreamTable.Names()...)
	for _, k := range keys {
		if !strings.Contains(b.String(), "| `"+k+"` |") {
			t.Errorf("%s is missing", k)
		}
	}
	for _, line := range strings.Split(b.String(), "\n") {
		if strings.HasPrefix(line, "|") && strings.Count(line, "|")-strings.Count(line, `\|`) != 5 {
			t.Errorf("not four cells: %s", line)
		}
	}
}

// failing is a writer whose disk is full.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func TestWriteErrors(t *testing.T) {
	if err := Reference(failing{}); err == nil {
		t.Error("Reference hides the error")
	}
	if err := parse(t, "ports: {p0: {driver: model}}").Effective(failing{}); err == nil {
		t.Error("Effective hides the error")
	}
}
