package config

import (
	"fmt"

	"gorouter/dataplane"
	"gorouter/fib"
	"gorouter/internal/option"
	"gorouter/pktgen"
	"gorouter/skb"
)

// key is one key of a mapping that is not described by an option table.
type key struct{ name, values, def, help string }

func names(keys []key) []string {
	n := make([]string, len(keys))
	for i := range keys {
		n[i] = keys[i].name
	}
	return n
}

// Limits that no option table has.
const (
	maxWorkers = 16
	maxCPU     = 1023
	minMTU     = 68   // RFC 791
	minMTU6    = 1280 // RFC 8200
	maxMTU     = 9000
	defaultMTU = 1500
	maxPorts   = int(fib.NoPort) // indices are below NoPort
)

var topKeys = []key{
	{"workers", "1 to 16, or a list of {cpu}", "1", "packet workers"},
	{"poll", "mapping", "", "the poll loop of every worker"},
	{"ip", "mapping", "", "IPv4 and ICMP"},
	{"neigh", "mapping", "", "the neighbour table: ARP, packets that wait for it, announcements of own addresses"},
	{"buffers", "mapping", "", "the packet buffers"},
	{"ports", "mapping: name to port", "required", "the ports of the router"},
	{"routes", "list", "none", "static routes"},
	{"routes_file", "path, or mapping: file, via", "none", "a list of routes, such as a full Internet table"},
	{"neighbors", "list", "none", "static neighbours (ARP and ND entries)"},
	{"pktgen", "mapping: streams", "none", "the traffic generator"},
}

var workerKeys = []key{
	{"cpu", fmt.Sprintf("auto, or 0 to %d", maxCPU), "auto", "processor that the worker is pinned to"},
}

var portKeys = []key{
	{"driver", "model, af_packet or pcap", "required", "model is a software 8254x, af_packet an interface of the kernel, pcap plays and writes files"},
	{"interface", "name", "required for af_packet", "af_packet: the kernel's interface"},
	{"file", "path", "none", "pcap: file whose frames are received; without it the port only sends (file, output or both are required)"},
	{"output", "path", "none", "pcap: file that gets the frames sent"},
	{"loop", "true or false", "false", "pcap: begin again at the end of the file"},
	{"cable", "port", "none", "model: the port at the other end of the cable; without it the far end is the generator and sink"},
	{"model", "mapping", "", "model: options of the software chip"},
	{"impair", "mapping", "", "model: what the cable does to frames that arrive at the port"},
	{"flap", "mapping", "", "model: when the cable is pulled out"},
	{"packet", "mapping", "", "af_packet: options of the kernel interface"},
	{"mac", "MAC address", "the device's", "address of the port; another than a kernel interface's makes that promiscuous"},
	{"mtu", fmt.Sprintf("%d to %d bytes", minMTU, maxMTU), fmt.Sprint(defaultMTU), fmt.Sprintf("longest IP packet; above %d buffers.stride has to hold it, and driver model takes at most %d, with stride %d", defaultMTU, modelMTU(), skb.OptionTable.Find("stride").Max)},
	{"worker", "number of a worker, from 0", "0", "the worker that polls the port"},
	{"weight", "auto, or " + dataplane.OptionTable.Find("weight").Expect(), auto, "frames that each receive queue of the port may use in one turn; auto is poll.weight (can be changed on a running router)"},
	{"addresses", "list of address/length", "none", "the router's addresses on this network"},
	{"rx", "mapping", "", "options of the receive queue"},
	{"tx", "mapping", "", "options of the transmit queue"},
}

// driverKeys says which drivers have a key that not all have.
var driverKeys = map[string][]string{
	"interface": {DriverAFPacket},
	"file":      {DriverPcap},
	"output":    {DriverPcap},
	"loop":      {DriverPcap},
	"cable":     {DriverModel},
	"model":     {DriverModel},
	"impair":    {DriverModel},
	"flap":      {DriverModel},
	"packet":    {DriverAFPacket},
}

var drivers = []string{DriverModel, DriverAFPacket, DriverPcap}

// laterDrivers are the names of drivers that this release does not have.
var laterDrivers = []string{"e1000", "xsk", "af_xdp", "tap"}

var routeKeys = []key{
	{"prefix", "network/length", "required", "destinations of the route"},
	{"via", "address, or a list of next hops", "none", "the next hop; several share the traffic by weight"},
	{"port", "port", "by the connected networks", "port of the one next hop; without via the destinations are on the link itself"},
	{"onlink", "true or false", "false", "the next hop is on the link although no connected network has it; needs port"},
	{"type", "blackhole, unreachable or prohibit", "none", "instead of a next hop: drop silently, or with an ICMP error"},
	{"metric", "0 to 4294967295", "0", "among routes of the same prefix the lowest wins"},
	{"table", "0 to 4294967295", "0", "routing table; 0 is the main table"},
}

var hopKeys = []key{
	{"gateway", "address", "none", "the next hop; without it the destinations are on the link itself"},
	{"port", "port", "by the connected networks", "port of the next hop"},
	{"weight", fmt.Sprintf("1 to %d", fib.MaxWeight), "1", "share of the traffic"},
	{"onlink", "true or false", "false", "as for the route"},
}

var routeTypes = []string{fib.Blackhole.String(), fib.Unreachable.String(), fib.Prohibit.String()}

var neighborKeys = []key{
	{"address", "address", "required", "address of the neighbour"},
	{"mac", "MAC address", "required", "its Ethernet address"},
	{"port", "port", "by the connected networks", "port it is reached by"},
}

var pktgenKeys = []key{
	{"streams", "list", "none", "streams of UDP frames that come in by a port's cable"},
}

const auto = "auto"

var streamKeys = []key{
	{"name", "name", "stream1, stream2, …", "name in reports"},
	{"port", "port", "required", "model port, without cable, that receives the stream"},
	{"src", "address", "required", "source address"},
	{"dst", "address, network/length, or a list of them", "required without dst_file", "destinations; a network stands for addresses spread over it"},
	{"dst_file", "path", "none", "destinations from a list of prefixes as routes_file takes, those of the family of src, after those of dst"},
	{"src_mac", "MAC address or auto", auto, "Ethernet source; auto makes one up"},
	{"dst_mac", "MAC address or auto", auto, "Ethernet destination; auto is the port's"},
}

func streamNames() []string { return append(names(streamKeys), pktgen.StreamTable.Names()...) }

// rows describes the options of a table as keys.
func rows[T any](t option.Table[T]) []key {
	k := make([]key, len(t))
	for i := range t {
		help := t[i].Help
		if t[i].Live {
			help += " (can be changed on a running router)"
		}
		k[i] = key{t[i].Name, t[i].Expect(), ascii(t[i].Default()), help}
	}
	return k
}
