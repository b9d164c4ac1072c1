// Package config reads router.yaml: strict decoding, defaults, validation of
// every item and across items, the effective configuration, the reference of
// all options, and the difference of two configurations. It knows nothing of
// how anything is run.
//
// Option ranges, defaults and units come from the tables of the packages that
// own the options; nothing is written down twice.
//
// All problems of a file are reported at once, each with file, line and column
// (see [Errors]).
package config

import (
	"fmt"
	"io"
	"net/netip"
	"strings"

	"gorouter/dataplane"
	"gorouter/dataplane/neigh"
	"gorouter/fib"
	"gorouter/internal/inet"
	"gorouter/internal/infile"
	"gorouter/nic/model"
	"gorouter/pktgen"
	"gorouter/rx"
	"gorouter/skb"
	"gorouter/tx"
)

// Config is a checked configuration with all defaults filled in. It is not
// changed after Parse, so any number of goroutines may read it.
type Config struct {
	File    string // as given to Load or Parse
	Workers []Worker
	Poll    dataplane.Options
	IP      dataplane.IPOptions
	Neigh   neigh.Options
	// Buffers has DeviceMax and RingBytes set to what the ports need.
	Buffers skb.Options
	Ports   []Port // in file order; a port's place is its index in the router
	Routes  []Route
	// RoutesFile is a list of more routes.
	RoutesFile RoutesFile
	Neighbors  []Neighbor
	Streams    []Stream

	where map[string]Pos // position of each key that was given, by path
}

// AnyCPU is the Worker.CPU of `cpu: auto`: the scheduler chooses.
const AnyCPU = -1

// Worker is one packet worker.
type Worker struct {
	Pos Pos
	CPU int // processor to pin to, or AnyCPU
}

// Drivers of ports.
const (
	DriverModel    = "model"     // a software 8254x
	DriverAFPacket = "af_packet" // an interface of the kernel
	DriverPcap     = "pcap"      // frames from and to files
)

// Port is one port. Fields of other drivers than its own are zero.
type Port struct {
	Pos    Pos
	Name   string
	Driver string
	// Interface is the kernel's name of the interface (af_packet).
	Interface string
	// File is read, Output written ("" = not), Loop starts File over at its
	// end (pcap).
	File, Output string
	Loop         bool
	// Cable is the port at the other end of the cable; "" means that the far
	// end is the generator and sink (model). It is set at both ends.
	Cable string
	// Model are the options of the software chip (model).
	Model ModelOptions
	// Impair is what the cable does to frames that arrive at the port, Flap
	// when it is pulled out (model).
	Impair model.Impairment
	Flap   model.Flap
	// Packet are the options of a port over a kernel interface (af_packet).
	Packet PacketOptions
	// MAC overrides the device's address unless it is zero.
	MAC       inet.MAC
	MTU       int // longest IP packet in bytes
	Worker    int // index into Config.Workers
	Weight    int // frames a turn of each receive queue; 0 is poll.weight
	Addresses []Address
	Rx        rx.Options
	Tx        tx.Options
}

// Address is an address of a port with the length of its network.
type Address struct {
	Pos    Pos
	Prefix netip.Prefix // not masked
}

// Route is a static route.
type Route struct {
	Pos    Pos
	Prefix netip.Prefix // masked
	// Kind is fib.Forward, fib.Connected (no hop has a gateway),
	// fib.Blackhole, fib.Unreachable or fib.Prohibit.
	Kind   fib.Kind
	Table  uint32 // 0 is the main table
	Metric uint32
	Hops   []NextHop // none for the last three kinds
}

// NextHop is one leg of a route.
type NextHop struct {
	Pos     Pos
	Gateway netip.Addr // the zero Addr means on-link
	Port    string     // always set, found by the connected networks where the file leaves it out
	Weight  int        // 1..fib.MaxWeight
	OnLink  bool       // the gateway need not be on a connected network
}

// Neighbor is a static neighbour (ARP or ND entry).
type Neighbor struct {
	Pos     Pos
	Address netip.Addr
	MAC     inet.MAC
	Port    string // always set
}

// Stream is one stream of the generator: at the far end of a software port's
// cable while the router runs, or sent by the port itself with
// "gorouter pktgen", which is all that streams of other ports are for.
type Stream struct {
	Pos  Pos
	Port string
	// Stream has a zero DstMAC for `dst_mac: auto`, the address of the port,
	// and a zero SrcMAC for `src_mac: auto`, one that the generator makes up.
	pktgen.Stream
	// DstFile is a list of more destinations, which whoever runs the stream
	// reads; "" means none.
	DstFile string
}

// maxFile bounds what Load reads. Each byte costs some fifty in memory; long
// route lists have a file of their own, which is not bounded.
const maxFile = 16 << 20

// Load reads and checks a regular file, or what /dev/stdin or /dev/fd/N has open.
// The error is an Errors list unless the file cannot be read.
func Load(path string) (*Config, error) {
	f, err := infile.Open(path)
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("configuration: %s is longer than %d MiB (is it the right file? long lists of routes go into a routes_file)", path, maxFile>>20)
	}
	return Parse(path, data)
}

// Parse checks the text of a configuration; name is used in messages. The
// error is an Errors list.
func Parse(name string, data []byte) (*Config, error) {
	d := &decoder{
		cfg:    &Config{File: name, where: map[string]Pos{}},
		byName: map[string]int{}, portHints: map[string]string{}, aliases: map[string]bool{},
	}
	if root := d.syntax(data); root != nil {
		d.top(root)
		d.check()
	}
	if len(d.errs) > 0 {
		// An empty value at the very end lies behind the last line for YAML.
		lines := splitLines(data)
		for _, e := range d.errs {
			e.Pos = clamp(lines, e.Pos)
		}
		d.errs.sort()
		return nil, d.errs
	}
	return d.cfg, nil
}

// PortIndex is the place of the named port, or -1.
func (c *Config) PortIndex(name string) int {
	for i := range c.Ports {
		if c.Ports[i].Name == name {
			return i
		}
	}
	return -1
}

// FIBRoute is the route as the FIB takes it, with ports by index.
func (c *Config) FIBRoute(r *Route) fib.Route {
	f := fib.Route{Table: r.Table, Prefix: r.Prefix, Metric: r.Metric, Kind: r.Kind}
	for _, h := range r.Hops {
		f.NextHops = append(f.NextHops, fib.NextHop{
			Port: uint16(c.PortIndex(h.Port)), Via: h.Gateway, Weight: uint16(h.Weight),
		})
	}
	return f
}

// At is the position of a key such as "ports.p0.interface". Where the file
// does not have the key it is that of the nearest key around it, and the zero
// Pos when there is none.
func (c *Config) At(path string) Pos {
	for {
		if p, ok := c.where[path]; ok {
			return p
		}
		i := strings.LastIndexByte(path, '.')
		if i < 0 {
			return Pos{}
		}
		path = path[:i]
	}
}

// Errorf is an error about a place in the file, for problems that show only
// when the configuration is put to work. %w works as in fmt.Errorf.
func (c *Config) Errorf(p Pos, format string, args ...any) error {
	return &Error{File: c.File, Pos: p, Err: fmt.Errorf(format, args...)}
}
