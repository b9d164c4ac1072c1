package dataplane

import (
	"encoding/binary"
	"net"
	"net/netip"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"gorouter/clock"
	"gorouter/dataplane/neigh"
	"gorouter/fib"
	"gorouter/internal/inet"
	"gorouter/internal/stat"
	"gorouter/port"
	"gorouter/rx"
	"gorouter/skb"
	"gorouter/tx"
)

// wire is both queues of a port without a device: frames are put in and taken
// out as bytes.
type wire struct {
	arena *skb.Arena
	cache *skb.Cache
	port  uint16

	in      [][]byte
	out     [][]byte
	rxStats *stat.Page[rx.Counters]
	txStats *stat.Page[tx.Counters]
	more    []bool
	flushes int
	idles   int // turns that ended with the ring empty
	turns   int
	repl    int
	room    int  // frames the transmit side takes before it is full; 0 = no limit
	full    bool // say that there is no room
	discard bool // count what is sent, keep nothing
	loop    bool // hand the same frames out again and again
	pos     int
	note    func(event) // told of every call, in order
}

// event is one call of a queue.
type event struct {
	what string // poll, replenish, end, send, flush
	port uint16
	n    int  // frames
	max  int  // asked for
	flag bool // more of a send, idle of an end
}

func (q *wire) tell(what string, n, max int, flag bool) {
	if q.note != nil {
		q.note(event{what, q.port, n, max, flag})
	}
}

func (q *wire) HolderName() string        { return "wire" }
func (q *wire) EachHeld(func(skb.Handle)) {}

func (q *wire) Poll(b *skb.Batch, max int, now int64) int {
	n := 0
	for n < max && !b.Full() {
		if q.pos == len(q.in) {
			if !q.loop {
				break
			}
			q.pos = 0
		}
		h := q.cache.Alloc()
		if h == skb.None {
			break
		}
		f := q.in[q.pos]
		q.pos++
		copy(q.arena.Put(h, len(f)), f)
		m := q.arena.Meta(h)
		m.Port = q.port
		m.Stamp = now
		b.Add(h)
		n++
	}
	q.rxStats.Live.Packets += uint64(n)
	q.tell("poll", n, max, false)
	return n
}
func (q *wire) Replenish() {
	q.repl++
	q.tell("replenish", 0, 0, false)
}
func (q *wire) EndTurn(idle bool) {
	q.turns++
	q.tell("end", 0, 0, idle)
	if idle {
		q.idles++
	}
}
func (q *wire) Ready() bool   { return q.pos < len(q.in) }
func (q *wire) Close()        {}
func (q *wire) rxq() rx.Queue { return wireRx{q} }
func (q *wire) txq() tx.Queue { return wireTx{q} }

type wireRx struct{ *wire }

func (q wireRx) Counters() *stat.Page[rx.Counters] { return q.rxStats }

type wireTx struct{ *wire }

func (q wireTx) Counters() *stat.Page[tx.Counters] { return q.txStats }
func (q wireTx) Flush() {
	q.flushes++
	q.tell("flush", 0, 0, false)
}
func (q wireTx) Tick(int64)   {}
func (q wireTx) Reclaim() int { return 0 }
func (q wireTx) Pending() int {
	if q.full {
		return 1
	}
	return 0
}
func (q wireTx) Room() int {
	if q.full {
		return 0
	}
	return 64
}
func (q wireTx) Send(b *skb.Batch, more bool) int {
	q.tell("send", b.N, 0, more)
	if !q.discard {
		q.wire.more = append(q.wire.more, more)
	}
	for _, h := range b.Handles() {
		if q.room > 0 && len(q.out) == q.room {
			q.txStats.Live.Drops[skb.TxRingFull]++
		} else {
			q.txStats.Live.Packets++
			if !q.discard {
				q.wire.out = append(q.wire.out, append([]byte(nil), q.arena.Bytes(h)...))
			}
		}
		q.cache.Free(h)
	}
	n := b.N
	b.Reset()
	return n
}

// lab is a router with fake ports and a clock that stands still.
type lab struct {
	t     testing.TB
	arena *skb.Arena
	fib   *fib.FIB
	clk   *clock.Clock
	r     *Router
	wires []*wire

	closed bool
}

var (
	routerMAC = []inet.MAC{{2, 0, 0, 0, 0, 0x10}, {2, 0, 0, 0, 0, 0x11}, {2, 0, 0, 0, 0, 0x12}}
	hostMAC   = []inet.MAC{{2, 0, 0, 0, 0, 0x20}, {2, 0, 0, 0, 0, 0x21}, {2, 0, 0, 0, 0, 0x22}}
)

// newLab makes a router with three ports: 192.0.2.1/24, 198.51.100.1/24 and
// 203.0.113.1/31, each with a resolved host .2 (.0 on the last).
func newLab(t testing.TB, change ...func(*Config)) *lab {
	t.Helper()
	return newLabWith(t, func(_ int, w *wire) (rx.Queue, tx.Queue) { return w.rxq(), w.txq() }, change...)
}

// newLabWith is newLab with queues that the caller makes of the wires.
func newLabWith(t testing.TB, queues func(i int, w *wire) (rx.Queue, tx.Queue), change ...func(*Config)) *lab {
	t.Helper()
	arena, err := skb.NewArena(skb.Options{Buffers: 2048})
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{t: t, arena: arena, fib: fib.New(fib.Options{Seed: 1}), clk: clock.Virtual()}
	c := Config{Arena: arena, FIB: l.fib, Clock: l.clk, Options: OptionTable.Defaults(), Neigh: neigh.DefaultOptions(),
		Assign: []int{0, 0, 0}}
	c.Neigh.Announce = 0 // tests that want announcements say so
	for _, f := range change {
		f(&c)
	}
	if c.Workers == nil {
		c.Workers = NewWorkers(arena, l.fib, l.clk, 1)
	}
	for i := range 3 {
		w := &wire{arena: arena, cache: c.Workers[c.Assign[i]].Cache(), port: uint16(i),
			rxStats: stat.New[rx.Counters](), txStats: stat.New[tx.Counters]()}
		rxq, txq := queues(i, w)
		p := &port.Port{Name: "p" + string(rune('0'+i)), Index: uint16(i), MTU: 1500,
			Rx: []rx.Queue{rxq}, Tx: []tx.Queue{txq}}
		p.SetMAC(routerMAC[i])
		p.SetUp(true)
		l.wires = append(l.wires, w)
		c.Ports = append(c.Ports, p)
	}
	if l.r, err = New(c); err != nil {
		t.Fatal(err)
	}
	for i, a := range []string{"192.0.2.1/24", "198.51.100.1/24", "203.0.113.1/31"} {
		if err := l.r.AddAddress(uint16(i), netip.MustParsePrefix(a)); err != nil {
			t.Fatal(err)
		}
	}
	for i, a := range []string{"192.0.2.2", "198.51.100.2", "203.0.113.0"} {
		if err := l.r.Neighbours().SetPermanent(uint16(i), netip.MustParseAddr(a), hostMAC[i]); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(l.close)
	return l
}

// close ends the lab and checks that no buffer is missing. Property tests call
// it after every example; it is idempotent.
func (l *lab) close() {
	if l.closed {
		return
	}
	l.closed = true
	if _, err := l.arena.Audit(l.r.Holders()...); err != nil {
		l.t.Errorf("buffers: %v", err)
	}
	if err := l.arena.Close(); err != nil {
		l.t.Error(err)
	}
}

func (l *lab) route(r fib.Route) {
	l.t.Helper()
	if err := l.fib.Replace(r); err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) via(prefix string, portIndex uint16, gw string) {
	l.t.Helper()
	l.route(fib.Route{Prefix: netip.MustParsePrefix(prefix), Kind: fib.Forward,
		NextHops: []fib.NextHop{{Port: portIndex, Via: netip.MustParseAddr(gw)}}})
}

// run puts frames into port 0 and runs until all is quiet.
func (l *lab) run(frames ...[]byte) { l.runAt(0, frames...) }

func (l *lab) runAt(portIndex int, frames ...[]byte) {
	l.wires[portIndex].in = append(l.wires[portIndex].in, frames...)
	for range 10000 {
		work := false
		for _, w := range l.r.workers {
			if w.Round() {
				work = true
			}
		}
		if !work {
			return
		}
	}
	l.t.Fatal("the router never comes to rest")
}

// out takes what left by a port.
func (l *lab) out(portIndex int) [][]byte {
	o := l.wires[portIndex].out
	l.wires[portIndex].out = nil
	return o
}

func (l *lab) drops() map[string]uint64 {
	var d skb.DropCounts
	for _, w := range l.r.workers {
		d.Add(&w.stats.Live.Drops)
	}
	for _, q := range l.wires {
		d.Add(&q.txStats.Live.Drops)
	}
	return d.Map()
}

// pkt describes a frame for gopacket to build.
type pkt struct {
	dstMAC, srcMAC inet.MAC
	src, dst       string
	ttl            uint8
	id             uint16
	df             bool
	frag           uint16
	mf             bool
	proto          layers.IPProtocol
	payload        []byte
	transport      gopacket.SerializableLayer
	options        []layers.IPv4Option
	sport, dport   uint16
}

// udp is a plain UDP packet from the host on port 0.
func udp(src, dst string) pkt {
	return pkt{dstMAC: routerMAC[0], srcMAC: hostMAC[0], src: src, dst: dst, ttl: 64, sport: 1000, dport: 2000, payload: []byte("payload!")}
}

func (p pkt) bytes(t testing.TB) []byte {
	t.Helper()
	eth := &layers.Ethernet{SrcMAC: net.HardwareAddr(p.srcMAC[:]), DstMAC: net.HardwareAddr(p.dstMAC[:]), EthernetType: layers.EthernetTypeIPv4}
	ip := &layers.IPv4{Version: 4, TTL: p.ttl, Id: p.id, FragOffset: p.frag, SrcIP: net.ParseIP(p.src).To4(), DstIP: net.ParseIP(p.dst).To4(),
		Protocol: layers.IPProtocolUDP, Options: p.options}
	if p.df {
		ip.Flags |= layers.IPv4DontFragment
	}
	if p.mf {
		ip.Flags |= layers.IPv4MoreFragments
	}
	ls := []gopacket.SerializableLayer{eth, ip}
	switch {
	case p.transport != nil:
		ip.Protocol = p.proto
		ls = append(ls, p.transport)
	case p.proto != 0:
		ip.Protocol = p.proto
	default:
		u := &layers.UDP{SrcPort: layers.UDPPort(p.sport), DstPort: layers.UDPPort(p.dport)}
		_ = u.SetNetworkLayerForChecksum(ip)
		ls = append(ls, u)
	}
	ls = append(ls, gopacket.Payload(p.payload))
	b := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, ls...); err != nil {
		t.Fatal(err)
	}
	f := b.Bytes()
	for len(f) < inet.EthMinLen {
		f = append(f, 0)
	}
	return f
}

func echo(src, dst string) pkt {
	return pkt{dstMAC: routerMAC[0], srcMAC: hostMAC[0], src: src, dst: dst, ttl: 64, proto: layers.IPProtocolICMPv4,
		transport: &layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(8, 0), Id: 7, Seq: 9}, payload: []byte("ping payload")}
}

// resum makes the header checksum of a frame right after a test changed it.
func resum(f []byte) []byte {
	f[24], f[25] = 0, 0
	hl := int(f[14]&15) * 4
	binary.BigEndian.PutUint16(f[24:], inet.Checksum(f[14:14+hl]))
	return f
}

// decode reads a frame with gopacket and verifies its IPv4 header checksum.
func decode(t testing.TB, f []byte) (*layers.Ethernet, *layers.IPv4, gopacket.Packet) {
	t.Helper()
	p := gopacket.NewPacket(f, layers.LayerTypeEthernet, gopacket.Default)
	eth, _ := p.Layer(layers.LayerTypeEthernet).(*layers.Ethernet)
	ip, _ := p.Layer(layers.LayerTypeIPv4).(*layers.IPv4)
	if ip != nil && inet.Checksum(f[14:14+int(ip.IHL)*4]) != 0 {
		t.Errorf("header checksum of %v is wrong", ip)
	}
	return eth, ip, p
}

func arpFrame(op uint16, dst, sha inet.MAC, spa string, tha inet.MAC, tpa string) []byte {
	f := make([]byte, 60)
	copy(f, dst[:])
	copy(f[6:], sha[:])
	binary.BigEndian.PutUint16(f[12:], inet.EtherARP)
	copy(f[14:], []byte{0, 1, 8, 0, 6, 4})
	binary.BigEndian.PutUint16(f[20:], op)
	copy(f[22:], sha[:])
	copy(f[28:], netip.MustParseAddr(spa).AsSlice())
	copy(f[32:], tha[:])
	copy(f[38:], netip.MustParseAddr(tpa).AsSlice())
	return f
}
