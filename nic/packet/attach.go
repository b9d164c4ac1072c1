package packet

import (
	"errors"
	"fmt"
	"net"
	"sort"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"gorouter/internal/inet"
)

// attachment is what ties the port to one life of the interface: an interface
// that is deleted and made again is another one to the kernel.
type attachment struct {
	index   int
	mtu     int
	lock    int             // descriptor of the lock, -1: none
	offload map[string]bool // what to restore
	keepOff isolation
	wasDown bool
}

// attach takes the interface over. The caller holds d.mu. On an error
// everything is as before.
func (d *Device) attach(link netlink.Link) error {
	attrs := link.Attrs()
	a := &attachment{index: attrs.Index, mtu: attrs.MTU, lock: -1}
	d.on = a
	if err := d.takeOver(a, link); err != nil {
		_ = d.detach()
		return err
	}
	return nil
}

func (d *Device) takeOver(a *attachment, link netlink.Link) error {
	name := link.Attrs().Name
	var err error
	if a.lock, err = lockInterface(a.index); err != nil {
		return fmt.Errorf("interface %s: %w", name, err)
	}
	if a.keepOff, err = d.isolate(link); err != nil {
		return err
	}
	if a.offload, err = d.offloadsOff(name); err != nil {
		return fmt.Errorf("turn off the offloads of interface %s: %w", name, privilege(err))
	}
	if link.Attrs().Flags&net.FlagUp == 0 {
		if err := d.nl.LinkSetUp(link); err != nil {
			return fmt.Errorf("set interface %s up: %w", name, privilege(err))
		}
		// One that comes back while the port is open is on its way up anyway;
		// who made it would be surprised to find it down later.
		a.wasDown = d.opening
	}
	if err := d.tx.bind(0, a.index); err != nil {
		return fmt.Errorf("send by interface %s: %w", name, err)
	}
	if d.started {
		if err := d.rx.bind(unix.ETH_P_ALL, a.index); err != nil {
			return fmt.Errorf("receive from interface %s: %w", name, err)
		}
	}
	if own := d.cfg.MAC; own != (inet.MAC{}) && own != inet.MAC(link.Attrs().HardwareAddr) {
		if err := d.rx.promiscuous(a.index); err != nil {
			return fmt.Errorf("receive frames to %s on interface %s: %w", own, name, err)
		}
	}
	return nil
}

// detach gives the interface back as it was found. The caller holds d.mu.
func (d *Device) detach() error {
	a := d.on
	d.on = nil
	var errs []error
	// The name may have changed; the index has not.
	if link, err := d.nl.LinkByIndex(a.index); err == nil {
		if len(a.offload) > 0 {
			if err := d.eth.Change(link.Attrs().Name, a.offload); err != nil {
				errs = append(errs, fmt.Errorf("restore the offloads of interface %s: %w", link.Attrs().Name, err))
			}
		}
		if a.wasDown {
			if err := d.nl.LinkSetDown(link); err != nil {
				errs = append(errs, fmt.Errorf("set interface %s down again: %w", link.Attrs().Name, err))
			}
		}
	}
	if a.keepOff != nil {
		if err := a.keepOff.undo(); err != nil {
			errs = append(errs, err)
		}
	}
	if a.lock >= 0 {
		errs = append(errs, unix.Close(a.lock))
	}
	return errors.Join(errs...)
}

// lockInterface makes sure that one port at a time has the interface. The lock
// is an abstract unix socket: such names are per network namespace, and the
// kernel drops them with the process.
func lockInterface(index int) (int, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("open a lock socket: %w", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: fmt.Sprintf("@gorouter/interface/%d", index)}); err != nil {
		_ = unix.Close(fd)
		if errors.Is(err, unix.EADDRINUSE) {
			return -1, errors.New("busy: another gorouter has it (stop that one, or choose another interface)")
		}
		return -1, fmt.Errorf("lock: %w", err)
	}
	return fd, nil
}

// offloads are the features, by their kernel names, that make frames which
// were never on a wire, out of received ones or for sent ones.
var offloads = []string{
	"rx-gro", "rx-gro-hw", "rx-gro-list", "rx-udp-gro-forwarding", "rx-lro",
	"tx-generic-segmentation", "tx-tcp-segmentation", "tx-tcp-ecn-segmentation",
	"tx-tcp-mangleid-segmentation", "tx-tcp6-segmentation", "tx-udp-segmentation",
}

// offloadsOff turns them off and returns what restores them.
func (d *Device) offloadsOff(name string) (map[string]bool, error) {
	state, err := d.eth.FeaturesWithState(name)
	if errors.Is(err, unix.EOPNOTSUPP) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	off, restore := map[string]bool{}, map[string]bool{}
	for _, f := range offloads {
		if s := state[f]; s.Available && !s.NeverChanged && (s.Requested || s.Active) {
			off[f], restore[f] = false, true
		}
	}
	if len(off) == 0 {
		return nil, nil
	}
	if err := d.eth.Change(name, off); err != nil {
		return nil, err
	}
	return restore, nil
}

// interfaces lists what there is, for an error message.
func (d *Device) interfaces() string {
	links, err := d.nl.LinkList()
	if err != nil || len(links) == 0 {
		return "none"
	}
	var names []string
	for _, l := range links {
		names = append(names, l.Attrs().Name)
	}
	sort.Strings(names)
	return strings.Join(names, ", ")
}
