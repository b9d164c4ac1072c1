package dataplane

import (
	"encoding/binary"

	"gorouter/fib"
	"gorouter/internal/inet"
	"gorouter/skb"
)

// ip4Forward sends the n packets of w.ip, which came in by a port, on by the
// lookup results in w.res.
func (w *Worker) ip4Forward(n int, in uint16) {
	// Only the slow path sends redirects.
	back := fib.NoPort
	if w.ip4.Redirects {
		back = in
	}
	fast := 0
	for i, h := range w.ip[:n&(2*skb.BatchSize-1)] {
		m := w.arena.Meta(h)
		f := w.frame(h, m)
		res := w.res[i&(skb.BatchSize-1)]
		if res&fib.GroupFlag != 0 {
			res = w.reader.Pick(res, w.flowHash(f))
		}
		a := w.reader.Adjacency(res)
		if a.Kind == fib.Connected {
			a = w.onLink(a, w.dst[i&(skb.BatchSize-1)])
		}
		if a.State != fib.Reachable || f[22] <= 1 || f[14] != 0x45 || uint32(m.Len) > w.frameMTU(a) || a.Port == back {
			w.done(stageIP4Rewrite, 0) // the time so far is not the slow path's
			w.special(h, m, f, a)
			w.done(stageSlow, 1)
			continue
		}
		decrementTTL(f)
		*(*[14]byte)(f[0:14]) = [14]byte(a.Rewrite[0:14])
		w.emit(a.Port, h)
		fast++
	}
	w.stats.Live.Forwarded += uint64(fast)
	w.done(stageIP4Rewrite, fast)
}

// onLink is the adjacency of a host on a connected network, or the network's
// own when the host is not known.
func (w *Worker) onLink(a *fib.Adjacency, dst uint32) *fib.Adjacency {
	if idx, ok := w.r.neigh.Find(a.Port, dst); ok {
		return w.reader.Adjacency(idx)
	}
	return a
}

// frameMTU is the longest frame that goes out by an adjacency: the MTU limits
// the IP packet.
func (w *Worker) frameMTU(a *fib.Adjacency) uint32 {
	mtu := uint32(a.MTU)
	if mtu == 0 {
		mtu = w.ifs.ifs[a.Port].mtu
	}
	return mtu + inet.EthHeaderLen
}

// decrementTTL takes one off the time to live and brings the checksum after
// it (RFC 1624, equation 3).
func decrementTTL(f *frame) {
	old := binary.BigEndian.Uint16(f[22:24])
	binary.BigEndian.PutUint16(f[24:26], inet.Update(binary.BigEndian.Uint16(f[24:26]), old, old-0x100))
	f[22]--
}

// flowHash is the hash that spreads flows over the legs of a route: addresses,
// protocol and ports, or without ports for every fragment, so that all
// fragments of a datagram take one way.
func (w *Worker) flowHash(f *frame) uint32 {
	src := binary.BigEndian.Uint32(f[26:30])
	dst := binary.BigEndian.Uint32(f[30:34])
	proto := f[23]
	ports := uint32(0)
	fragment := binary.BigEndian.Uint16(f[20:22])&0x3fff != 0
	// Behind options the ports lie elsewhere; such packets are rare enough to
	// be spread by address.
	if !fragment && f[14] == 0x45 && (proto == inet.ProtoTCP || proto == inet.ProtoUDP) &&
		binary.BigEndian.Uint16(f[16:18]) >= inet.IPv4HeaderLen+4 {
		ports = binary.BigEndian.Uint32(f[34:38])
	}
	return w.reader.Hash4(src, dst, proto, ports)
}

// special handles a packet that cannot simply be rewritten. Options are looked
// at before anything is done by the destination (RFC 1812 section 5.2.1.1).
func (w *Worker) special(h skb.Handle, m *skb.Meta, f *frame, a *fib.Adjacency) {
	if f[14] != 0x45 && !w.optionsPass(h) {
		return
	}
	switch a.Kind {
	case fib.Local:
		w.local(h, m, f)
	case fib.Miss:
		w.refuse(h, skb.IP4NoRoute, icmpUnreachable, codeNetUnreachable)
	case fib.Blackhole:
		w.drop(h, skb.IP4Blackhole)
	case fib.Unreachable:
		w.refuse(h, skb.IP4Unreachable, icmpUnreachable, codeHostUnreachable)
	case fib.Prohibit:
		w.refuse(h, skb.IP4Prohibit, icmpUnreachable, codeAdminProhibited)
	default:
		w.forwardSlow(h, m, f, a)
	}
}

// forwardSlow handles a packet for a next hop or an on-link host that is
// expired, too long, or not resolved. The order is that of RFC 1812
// section 5.2.1: the time to live goes first.
func (w *Worker) forwardSlow(h skb.Handle, m *skb.Meta, f *frame, a *fib.Adjacency) {
	dst := binary.BigEndian.Uint32(f[30:34])
	if a.Kind == fib.Connected && w.ifs.ifs[a.Port].onBroadcast(dst) {
		w.broadcast(h, m, f, a)
		return
	}
	if f[22] <= 1 {
		w.refuse(h, skb.IP4TTL, icmpTimeExceeded, 0)
		return
	}
	if w.linkDown(h, a) {
		return
	}
	if uint32(m.Len) > w.frameMTU(a) && f[20]&flagDF != 0 {
		w.tooBig(h, a)
		return
	}
	w.redirect(h, m, f, a)
	w.resolve(h, m, dst, a)
}

// linkDown refuses a packet whose way out has no link: its sender is told at
// once, and nobody is asked for on a link that is not there (RFC 1812 section
// 5.3.12.3). It reports whether it did.
func (w *Worker) linkDown(h skb.Handle, a *fib.Adjacency) bool {
	if w.ifs.ifs[a.Port].up {
		return false
	}
	w.refuse(h, skb.TxLinkDown, icmpUnreachable, codeHostUnreachable)
	return true
}

// resolve sends a packet that passed all checks by an adjacency that may still
// have to be resolved. dst is the packet's destination. A packet that waits
// stays as it came, so that an ICMP error about it quotes what its sender sent.
func (w *Worker) resolve(h skb.Handle, m *skb.Meta, dst uint32, a *fib.Adjacency) {
	next := a.NextHop
	if a.Kind == fib.Connected {
		if a = w.onLink(a, dst); a.Kind == fib.Connected {
			next = from4(dst)
		} else {
			next = a.NextHop
		}
	}
	if w.linkDown(h, a) {
		return
	}
	switch a.State {
	case fib.Stale:
		w.uses.Note(a.Index)
		w.leave(h, m, a)
	case fib.Reachable:
		w.leave(h, m, a)
	case fib.Incomplete:
		// Asked for already: a flood to a silent neighbour takes no lock.
		w.hold(h, a.Index, a.Port, next)
	case fib.Failed:
		w.refuse(h, skb.NeighFailed, icmpUnreachable, codeHostUnreachable)
	default:
		if w.r.neigh.Busy(w.now) {
			w.drop(h, skb.NeighRequestRate)
			return
		}
		adj, q, ask, ok := w.r.neigh.Need(a.Port, next, w.now)
		if !ok {
			w.drop(h, w.noNeighbour())
			return
		}
		w.hold(h, adj, a.Port, next)
		if ask {
			w.sendRequest(q)
		}
	}
}

// leave sends a packet that took the slow way by a reachable adjacency, in
// pieces where it has to be. What it was when it came is quoted until here.
func (w *Worker) leave(h skb.Handle, m *skb.Meta, a *fib.Adjacency) {
	if w.linkDown(h, a) {
		return
	}
	f := w.frame(h, m)
	limit := w.frameMTU(a)
	long := uint32(m.Len) > limit
	if long && f[20]&flagDF != 0 {
		// The packet was made here, or the way out has changed since.
		w.tooBig(h, a)
		return
	}
	forwarded := m.Flags&skb.FlagLocal == 0
	if forwarded {
		decrementTTL(f)
		if f[14] != 0x45 {
			w.passOptions(h, a)
		}
	}
	*(*[14]byte)(f[0:14]) = [14]byte(a.Rewrite[0:14])
	if !long {
		w.emit(a.Port, h)
	} else if !w.fragment(h, m, a.Port, limit) {
		return
	}
	if forwarded {
		w.stats.Live.Forwarded++
	}
}
