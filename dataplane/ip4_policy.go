package dataplane

import "gorouter/internal/option"

// IPOptions are the choices that RFC 1812 leaves to who runs the router; the
// same for every worker. The zero value stands for the defaults.
type IPOptions struct {
	ICMPRate          int
	ICMPBurst         int
	Redirects         bool
	DirectedBroadcast bool
}

// worker4 is what a worker needs for these.
type worker4 struct {
	ip4       IPOptions
	redirects tokenBucket
	ident     uint16 // of the last packet made here
}

// IPTable lists the options of IPv4 and ICMP.
var IPTable = option.Table[IPOptions]{
	{Name: "icmp_rate", Unit: "a second", Min: 1, Max: 1000000, DefInt: 1000, Live: true,
		Help: "ICMP errors that a worker sends at most; redirects have as many of their own",
		Int:  func(o *IPOptions) *int { return &o.ICMPRate }},
	{Name: "icmp_burst", Unit: "messages", Min: 1, Max: 100000, DefInt: 50, Live: true,
		Help: "ICMP errors that a worker may send at once after a rest",
		Int:  func(o *IPOptions) *int { return &o.ICMPBurst }},
	{Name: "icmp_redirects", DefBool: false, Live: true,
		Help: "tell a host when its packet leaves by the port it came in, to a next hop on the host's own network",
		Bool: func(o *IPOptions) *bool { return &o.Redirects }},
	{Name: "directed_broadcast", DefBool: false, Live: true,
		Help: "forward a packet to the broadcast address of a connected network as a broadcast, which lets strangers use its hosts as amplifiers (RFC 2644)",
		Bool: func(o *IPOptions) *bool { return &o.DirectedBroadcast }},
}

// SetIPOptions changes the options of IPv4; the zero value sets the defaults.
// Owner only: call it in Do.
func (w *Worker) SetIPOptions(o IPOptions) error {
	if o == (IPOptions{}) {
		o = IPTable.Defaults()
	}
	if errs := IPTable.Check(&o); len(errs) > 0 {
		return errs[0]
	}
	if o.ICMPRate != w.ip4.ICMPRate || o.ICMPBurst != w.ip4.ICMPBurst {
		b := tokenBucket{rate: int64(o.ICMPRate), burst: int64(o.ICMPBurst), tokens: int64(o.ICMPBurst), last: w.clk.Now()}
		w.icmp, w.redirects = b, b
	}
	w.ip4 = o
	return nil
}
