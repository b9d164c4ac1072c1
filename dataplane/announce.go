package dataplane

import (
	"sync"
	"time"

	"gorouter/internal/inet"
)

// Times of RFC 5227. A router cannot wait for the outcome of a probe before it
// uses an address it was told to use: it is in use at once, is probed once, and
// is announced when nobody objected for probeWait, or even so.
const (
	probeWait        = time.Second      // PROBE_MIN: from the probe to the first announcement
	announceInterval = 2 * time.Second  // ANNOUNCE_INTERVAL
	defendInterval   = 10 * time.Second // DEFEND_INTERVAL: shortest between two defences
	conflictLogEvery = 10 * time.Second // shortest between two log lines about one address
)

// claimKey is an IPv4 address of a port.
type claimKey struct {
	port uint16
	addr uint32
}

// claim is what was done to make an own address known, and who disputes it.
type claim struct {
	started bool
	probe   bool  // a probe is due before anything else
	left    int   // announcements still to be sent
	due     int64 // when the next probe or announcement is
	checked int64 // until then somebody else's probe is a conflict (RFC 5227 section 2.1.1)

	disputed uint64 // frames since the last log line
	by       inet.MAC
	defend   bool  // a defence is owed
	quiet    int64 // until then no log line
	patient  int64 // until then no defence
}

// claimPort is what was last seen of a port.
type claimPort struct {
	up bool
	hw inet.MAC
}

// claims makes own addresses known and defends them. Housekeep drives it;
// workers only note who disputes an address.
type claims struct {
	times int // announcements each time; 0 = none, no probe either

	seen  *ifaceSet // of Housekeep
	ports []claimPort

	mu  sync.Mutex
	all map[claimKey]*claim
}

// claim sends the probes and announcements that are due, and logs conflicts.
func (r *Router) claim(now int64) {
	// A worker may wait for the lock: nothing is written while it is held.
	for _, l := range r.advanceAll(now) {
		r.log.Warn("another host uses an address of this router, and both keep it: change one of them",
			"port", r.ports[l.own.port].Name, "address", from4(l.own.addr), "mac", l.by, "frames", l.frames)
	}
}

func (r *Router) advanceAll(now int64) (lines []conflictLine) {
	c := &r.claims
	set := r.ifaces.Load()
	c.mu.Lock()
	defer c.mu.Unlock()
	if set != c.seen {
		c.seen = set
		c.sync(set)
	}
	for i, p := range r.ports {
		was := &c.ports[i]
		up, hw := p.Up(), set.ifs[i].hw
		came, changed := up && !was.up, hw != was.hw
		was.up, was.hw = up, hw
		if !up {
			continue
		}
		for _, a := range set.ifs[i].addrs {
			if !a.Addr().Is4() {
				continue
			}
			own := claimKey{uint16(i), addr4(a.Addr())}
			k := c.all[own]
			switch {
			case !k.started || came:
				k.started, k.probe, k.left, k.due = true, c.times > 0, c.times, now
			case changed:
				k.left, k.due = c.times, now
			}
			r.advance(own, k, now)
			if l, tell := r.dispute(own, k, now); tell {
				lines = append(lines, l)
			}
		}
	}
	return lines
}

// sync gives every own address a claim and forgets those of addresses that are
// gone.
func (c *claims) sync(set *ifaceSet) {
	old := c.all
	c.all = make(map[claimKey]*claim)
	for i := range set.ifs {
		if i == len(c.ports) {
			c.ports = append(c.ports, claimPort{hw: set.ifs[i].hw})
		}
		for _, a := range set.ifs[i].addrs {
			if !a.Addr().Is4() {
				continue
			}
			own := claimKey{uint16(i), addr4(a.Addr())}
			if c.all[own] = old[own]; c.all[own] == nil {
				c.all[own] = &claim{}
			}
		}
	}
}

// advance sends the next probe or announcement of an address when it is due.
func (r *Router) advance(own claimKey, k *claim, now int64) {
	switch {
	case now < k.due:
	case k.probe:
		k.probe = false
		k.due = now + int64(probeWait)
		k.checked = k.due
		r.send(own, true)
	case k.left > 0:
		k.left--
		k.due = now + int64(announceInterval)
		r.send(own, false)
	}
}

// dispute says whether somebody else's use of an own address has to be logged,
// and defends the address.
func (r *Router) dispute(own claimKey, k *claim, now int64) (line conflictLine, tell bool) {
	if k.defend && now >= k.patient {
		k.patient = now + int64(defendInterval)
		r.send(own, false)
	}
	k.defend = false
	if k.disputed == 0 || now < k.quiet {
		return line, false
	}
	line = conflictLine{own, k.by, k.disputed}
	k.disputed, k.quiet = 0, now+int64(conflictLogEvery)
	return line, true
}

// conflictLine is what is logged about a disputed address.
type conflictLine struct {
	own    claimKey
	by     inet.MAC
	frames uint64
}

// send has the owner of a port send a probe (RFC 5227 section 2.1.1) or an
// announcement (section 2.3) of an own address.
func (r *Router) send(own claimKey, probe bool) {
	spa := own.addr
	if probe {
		spa = 0
	} else {
		r.neigh.Counts.Announced.Add(1)
	}
	w := r.txOwner[own.port][0]
	w.Do(func() { w.sendARP(own.port, inet.Broadcast, spa, own.addr) })
}

// conflict notes that another host sent ARP as one of our addresses. Any worker
// may call it.
func (r *Router) conflict(portIndex uint16, addr uint32, by inet.MAC) {
	r.neigh.Counts.Conflicts.Add(1)
	r.claims.mu.Lock()
	defer r.claims.mu.Unlock()
	if k := r.claims.all[claimKey{portIndex, addr}]; k != nil {
		k.disputed++
		k.by = by
		// Announcements that are still to come are defence enough.
		k.defend = r.claims.times > 0 && k.left == 0
	}
}

// probed notes that another host asks whether an address is free. That is a
// conflict while we do the same; later our answer tells it.
func (r *Router) probed(portIndex uint16, addr uint32, by inet.MAC, now int64) {
	r.claims.mu.Lock()
	k := r.claims.all[claimKey{portIndex, addr}]
	meets := k != nil && now < k.checked
	r.claims.mu.Unlock()
	if meets {
		r.conflict(portIndex, addr, by)
	}
}
