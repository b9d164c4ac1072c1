package netlab

import (
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Link lays a cable between two namespaces: a virtual Ethernet pair with the
// given interface names, both ends up.
func (l *Lab) Link(a *Namespace, aName string, b *Namespace, bName string) {
	l.t.Helper()
	err := a.netlinks.LinkAdd(&netlink.Veth{
		LinkAttrs:     netlink.LinkAttrs{Name: aName},
		PeerName:      bName,
		PeerNamespace: netlink.NsFd(b.handle),
	})
	if err != nil {
		l.t.Fatalf("link %s %s to %s %s: %v", a.name, aName, b.name, bName, err)
	}
	a.Up(aName)
	b.Up(bName)
}

// Up sets an interface up.
func (n *Namespace) Up(dev string) {
	n.t.Helper()
	if err := n.up(dev); err != nil {
		n.t.Fatal(err)
	}
}

func (n *Namespace) up(dev string) error {
	link, err := n.netlinks.LinkByName(dev)
	if err == nil {
		err = n.netlinks.LinkSetUp(link)
	}
	if err != nil {
		return fmt.Errorf("set %s up in %s: %w", dev, n.name, err)
	}
	return nil
}

// Down sets an interface down; the other end of the cable loses its carrier.
func (n *Namespace) Down(dev string) {
	n.t.Helper()
	if err := n.netlinks.LinkSetDown(n.Interface(dev)); err != nil {
		n.t.Fatalf("set %s down in %s: %v", dev, n.name, err)
	}
}

// MTU sets the longest packet, in bytes without the Ethernet header.
func (n *Namespace) MTU(dev string, mtu int) {
	n.t.Helper()
	if err := n.netlinks.LinkSetMTU(n.Interface(dev), mtu); err != nil {
		n.t.Fatalf("mtu %d on %s in %s: %v", mtu, dev, n.name, err)
	}
}

// Interface returns what the kernel says of an interface, its statistics
// included. That is a picture of this moment; ask again for another.
func (n *Namespace) Interface(dev string) netlink.Link {
	n.t.Helper()
	link, err := n.netlinks.LinkByName(dev)
	if err != nil {
		n.t.Fatalf("interface %s in %s: %v", dev, n.name, err)
	}
	return link
}

// MAC returns the hardware address of an interface.
func (n *Namespace) MAC(dev string) net.HardwareAddr {
	n.t.Helper()
	return n.Interface(dev).Attrs().HardwareAddr
}

// Address gives an interface an address with prefix length, such as 10.0.1.2/24
// or 2001:db8::2/64. It can be used at once: duplicates are not looked for.
func (n *Namespace) Address(dev, prefix string) {
	n.t.Helper()
	addr, err := netlink.ParseAddr(prefix)
	if err != nil {
		n.t.Fatalf("address %s: %v", prefix, err)
	}
	if strings.Contains(prefix, ":") {
		addr.Flags = unix.IFA_F_NODAD
	}
	if err := n.netlinks.AddrAdd(n.Interface(dev), addr); err != nil {
		n.t.Fatalf("address %s on %s in %s: %v", prefix, dev, n.name, err)
	}
}

// Route sends what goes to the prefix by way of a gateway.
func (n *Namespace) Route(prefix, gateway string) {
	n.t.Helper()
	to, err := netip.ParsePrefix(prefix)
	if err != nil {
		n.t.Fatal(err)
	}
	via, err := netip.ParseAddr(gateway)
	if err != nil {
		n.t.Fatal(err)
	}
	err = n.netlinks.RouteAdd(&netlink.Route{
		Dst: &net.IPNet{
			IP:   to.Masked().Addr().AsSlice(),
			Mask: net.CIDRMask(to.Bits(), to.Addr().BitLen()),
		},
		Gw: via.AsSlice(),
	})
	if err != nil {
		n.t.Fatalf("route %s via %s in %s: %v", prefix, gateway, n.name, err)
	}
}

// Neighbor enters a permanent ARP or ND entry.
func (n *Namespace) Neighbor(dev, address string, mac net.HardwareAddr) {
	n.t.Helper()
	err := n.netlinks.NeighSet(&netlink.Neigh{
		LinkIndex:    n.Interface(dev).Attrs().Index,
		State:        netlink.NUD_PERMANENT,
		IP:           net.ParseIP(address),
		HardwareAddr: mac,
	})
	if err != nil {
		n.t.Fatalf("neighbour %s %s on %s in %s: %v", address, mac, dev, n.name, err)
	}
}

// Features returns the offloads of an interface by the kernel's names, such as
// tx-checksum-ip-generic or rx-gro, and whether each is on.
func (n *Namespace) Features(dev string) map[string]bool {
	n.t.Helper()
	var features map[string]bool
	n.ethtool(dev, func(e *ethtool.Ethtool) (err error) {
		features, err = e.Features(dev)
		return err
	})
	return features
}

// SetFeatures turns offloads of an interface on and off by the kernel's names.
func (n *Namespace) SetFeatures(dev string, features map[string]bool) {
	n.t.Helper()
	n.ethtool(dev, func(e *ethtool.Ethtool) error { return e.Change(dev, features) })
}

func (n *Namespace) ethtool(dev string, f func(*ethtool.Ethtool) error) {
	n.t.Helper()
	err := n.Do(func() error {
		e, err := ethtool.NewEthtool()
		if err != nil {
			return err
		}
		defer e.Close()
		return f(e)
	})
	if err != nil {
		n.t.Fatalf("offloads of %s in %s: %v", dev, n.name, err)
	}
}
