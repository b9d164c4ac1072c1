package dataplane

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"

	"gorouter/fib"
	"gorouter/internal/inet"
)

// iface is what the stages need to know of a port. It is immutable; a change
// makes a new ifaceSet.
type iface struct {
	mac   uint64 // as the first eight bytes of a frame read little-endian, masked
	hw    inet.MAC
	mtu   uint32 // of the link; 0 while the port is down, which sends every packet the slow way
	up    bool
	table fib.TableRef
	addrs []netip.Prefix
}

// ifaceSet is all ports at one moment, and all own addresses.
type ifaceSet struct {
	ifs   []iface
	own   []uint32  // sorted, host order
	bcast []uint32  // sorted: network and broadcast addresses of all our networks
	bloom [4]uint64 // of the addresses that are watched
}

const macMask = 1<<48 - 1

func macWord(m inet.MAC) uint64 {
	var b [8]byte
	copy(b[:], m[:])
	return binary.LittleEndian.Uint64(b[:])
}

func addr4(a netip.Addr) uint32 {
	b := a.As4()
	return binary.BigEndian.Uint32(b[:])
}

func from4(v uint32) netip.Addr {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], v)
	return netip.AddrFrom4(b)
}

func newIfaceSet(r *Router, old *ifaceSet) *ifaceSet {
	s := &ifaceSet{ifs: make([]iface, len(r.ports))}
	for i, p := range r.ports {
		f := &s.ifs[i]
		f.hw = p.MAC()
		f.mac = macWord(f.hw)
		if f.up = p.Up(); f.up {
			f.mtu = max(uint32(p.LinkMTU()), minMTU)
		}
		f.table = r.fib.Table(0)
		if old != nil {
			f.addrs = old.ifs[i].addrs
		}
		for _, a := range f.addrs {
			if !a.Addr().Is4() {
				continue
			}
			s.own = append(s.own, addr4(a.Addr()))
			s.watch(addr4(a.Addr()))
			if a.Bits() > 30 {
				continue // RFC 3021: no broadcast address
			}
			base, last := ends(a)
			s.bcast = append(s.bcast, base, last)
			s.watch(base)
			s.watch(last)
		}
	}
	slices.Sort(s.own)
	slices.Sort(s.bcast)
	return s
}

// ends are the first and the last address of an IPv4 network.
func ends(p netip.Prefix) (first, last uint32) {
	first = addr4(p.Masked().Addr())
	return first, first | (uint32(1)<<(32-p.Bits()) - 1)
}

func bloomBit(a uint32) (word, bit uint32) {
	h := a * 0x9e3779b1 >> 24
	return h >> 6, h & 63
}

// watch marks an address that must not be a packet's source.
func (s *ifaceSet) watch(a uint32) {
	w, b := bloomBit(a)
	s.bloom[w] |= 1 << b
}

// watched is false for nearly all addresses that are not watched, and always
// true for those that are: our own and our networks' broadcast addresses.
func (s *ifaceSet) watched(a uint32) bool {
	w, b := bloomBit(a)
	return s.bloom[w&3]>>b&1 != 0
}

func (s *ifaceSet) isOwn(a uint32) bool {
	if !s.watched(a) {
		return false
	}
	_, ok := slices.BinarySearch(s.own, a)
	return ok
}

// isBroadcast reports whether a is the network or broadcast address of one of
// our networks.
func (s *ifaceSet) isBroadcast(a uint32) bool {
	if !s.watched(a) {
		return false
	}
	_, ok := slices.BinarySearch(s.bcast, a)
	return ok
}

// sourceFor is the port's address to put on a packet to dst: the one on the
// same network, else the port's first, else any own address (RFC 1812
// section 4.3.2.4). 0 when the router has none.
func (s *ifaceSet) sourceFor(port uint16, dst uint32) uint32 {
	d := from4(dst)
	var first uint32
	for _, a := range s.ifs[port].addrs {
		if !a.Addr().Is4() {
			continue
		}
		if a.Contains(d) {
			return addr4(a.Addr())
		}
		if first == 0 {
			first = addr4(a.Addr())
		}
	}
	if first == 0 && len(s.own) > 0 {
		first = s.own[0]
	}
	return first
}

// onBroadcast reports whether a is the network or broadcast address of one of
// the port's networks; /31 and /32 have none (RFC 3021).
func (f *iface) onBroadcast(a uint32) bool {
	for _, p := range f.addrs {
		if !p.Addr().Is4() || p.Bits() > 30 {
			continue
		}
		if first, last := ends(p); a == first || a == last {
			return true
		}
	}
	return false
}

// onLink reports whether a lies in one of the port's networks.
func (f *iface) onLink(a uint32) bool {
	d := from4(a)
	for _, p := range f.addrs {
		if p.Contains(d) {
			return true
		}
	}
	return false
}

// isLast reports whether a is the broadcast address, the last one, of one of
// the port's networks.
func (f *iface) isLast(a uint32) bool {
	for _, p := range f.addrs {
		if !p.Addr().Is4() || p.Bits() > 30 {
			continue
		}
		if _, last := ends(p); a == last {
			return true
		}
	}
	return false
}

// together reports whether a and b lie in one of the port's networks.
func (f *iface) together(a, b uint32) bool {
	x, y := from4(a), from4(b)
	for _, p := range f.addrs {
		if p.Contains(x) && p.Contains(y) {
			return true
		}
	}
	return false
}

// has reports whether a is an address of this port.
func (f *iface) has(a uint32) bool {
	for _, p := range f.addrs {
		if p.Addr().Is4() && addr4(p.Addr()) == a {
			return true
		}
	}
	return false
}

// AddAddress gives a port an address with its network: a local and, while the
// port has a link, a connected route, and from then on answers to ARP.
func (r *Router) AddAddress(portIndex uint16, p netip.Prefix) error {
	if int(portIndex) >= len(r.ports) {
		return fmt.Errorf("address %v: no port %d", p, portIndex)
	}
	host := netip.PrefixFrom(p.Addr(), p.Addr().BitLen())
	r.ifMu.Lock()
	defer r.ifMu.Unlock()
	err := r.fib.Replace(fib.Route{Prefix: host, Kind: fib.Local, NextHops: []fib.NextHop{{Port: portIndex}}})
	if err == nil && p.Bits() < p.Addr().BitLen() {
		err = r.follow(fib.Route{Prefix: p.Masked(), Kind: fib.Connected, NextHops: []fib.NextHop{{Port: portIndex}}})
	}
	if err != nil {
		return fmt.Errorf("port %s: address %v: %w", r.ports[portIndex].Name, p, err)
	}
	s := newIfaceSet(r, r.ifaces.Load())
	f := &s.ifs[portIndex]
	if slices.Contains(f.addrs, p) {
		return nil
	}
	f.addrs = append(slices.Clone(f.addrs), p)
	r.ifaces.Store(newIfaceSet(r, s))
	return nil
}
