package skb

import "gorouter/internal/option"

// Allocation orders.
const (
	OrderLIFO = "lifo"
	OrderFIFO = "fifo"
)

// OptionTable lists what can be set about buffers, for the configuration and
// its documentation.
var OptionTable = option.Table[Options]{
	{Name: "count", Unit: "buffers", Min: 256, Max: 1 << 20, DefInt: 8192,
		Help: "buffers in the arena; each receive ring of a chip keeps as many as it has descriptors",
		Int:  func(o *Options) *int { return &o.Buffers }},
	{Name: "stride", Unit: "bytes", Min: 2048, Max: 16384, DefInt: 2048,
		Help: "bytes from one buffer to the next (power of two); 4096 and more allow long frames",
		Int:  func(o *Options) *int { return &o.Stride }},
	{Name: "headroom", Unit: "bytes", Min: 64, Max: 1024, Multiple: 64, DefInt: 256,
		Help: "bytes kept free before a received frame",
		Int:  func(o *Options) *int { return &o.Headroom }},
	{Name: "order", Values: []string{OrderLIFO, OrderFIFO}, DefStr: OrderLIFO,
		Help: "lifo reuses the warmest buffer, fifo walks through all of them",
		Str:  func(o *Options) *string { return &o.AllocOrder }},
	{Name: "cache", Unit: "buffers", Min: 16, Max: 4096, DefInt: 128,
		Help: "buffers that a worker's cache exchanges with the shared list at once",
		Int:  func(o *Options) *int { return &o.CacheSize }},
	{Name: "huge_pages", DefBool: true,
		Help: "try 2 MiB pages; without them ordinary pages are used, as -v says",
		Bool: func(o *Options) *bool { return &o.HugePages }},
}

// MaxFrame is the longest frame, in bytes without FCS, of a port whose
// buffers are not made for long frames: 1514 plus one VLAN tag.
const MaxFrame = 1518

// DeviceBytesShort is the most that an 8254x stores in one buffer while long
// packet enable is off: frames over 1522 bytes, FCS included, are discarded by
// the chip (section 3.2.2), whatever the descriptor's buffer size is.
const DeviceBytesShort = 1522

func (o *Options) fillDefaults() {
	d := OptionTable.Defaults()
	if o.Buffers == 0 {
		o.Buffers = d.Buffers
	}
	if o.Stride == 0 {
		o.Stride = d.Stride
	}
	if o.Headroom == 0 {
		o.Headroom = d.Headroom
	}
	if o.AllocOrder == "" {
		o.AllocOrder = d.AllocOrder
	}
	if o.CacheSize == 0 {
		o.CacheSize = d.CacheSize
	}
	if o.DeviceMax == 0 {
		o.DeviceMax = DeviceBytesShort
	}
	if o.RingBytes == 0 {
		o.RingBytes = 2 << 20
	}
	if o.BusBase == 0 {
		o.BusBase = DefaultBusBase
	}
}
