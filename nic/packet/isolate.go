package packet

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// How the kernel's own stack is kept off the frames of the interface.
const (
	// IsolationAuto takes the first of the following that the kernel has.
	IsolationAuto = "auto"
	// IsolationTCX is a BPF link, which ends with the process.
	IsolationTCX = "tcx"
	// IsolationClsact is a filter at a clsact qdisc.
	IsolationClsact = "clsact"
	// IsolationOff leaves the kernel on: it answers and forwards as well,
	// unless the interface has no address and the machine does not forward.
	IsolationOff = "off"
)

// filterName marks our filter, so that the next start knows it.
const filterName = "gorouter"

// isolation is one way that is in force.
type isolation interface{ undo() error }

// isolate keeps the kernel's stack off the interface.
func (d *Device) isolate(link netlink.Link) (isolation, error) {
	name := link.Attrs().Name
	// A filter that a killed run left would be in the way of the kernel for
	// good, since Close takes away only what it made.
	if err := d.removeStale(link); err != nil {
		return nil, err
	}
	mode := d.cfg.Isolation
	switch mode {
	case "":
		mode = IsolationAuto
	case IsolationAuto, IsolationTCX, IsolationClsact:
	case IsolationOff:
		return nil, nil
	default:
		return nil, fmt.Errorf("isolation %q: expected %s, %s, %s or %s", mode, IsolationAuto, IsolationTCX, IsolationClsact, IsolationOff)
	}
	d.reportAddresses(link)
	fail := func(err error) error {
		return fmt.Errorf("keep the kernel from answering on interface %s: %w (give the port an interface without addresses in a namespace of its own, or set isolation: off)", name, privilege(err))
	}
	program, err := loadDropProgram()
	if err != nil {
		return nil, fail(fmt.Errorf("load a BPF program: %w", err))
	}
	defer unix.Close(program)
	if mode != IsolationClsact {
		fd, err := attachTCX(program, link.Attrs().Index)
		if err == nil {
			return tcx(fd), nil
		}
		if mode == IsolationTCX || !errors.Is(err, unix.EINVAL) {
			return nil, fail(fmt.Errorf("attach a tcx link: %w", err))
		}
	}
	f, err := d.attachClsact(link, program)
	if err != nil {
		return nil, fail(err)
	}
	return f, nil
}

// reportAddresses warns of what stops working.
func (d *Device) reportAddresses(link netlink.Link) {
	addrs, err := d.nl.AddrList(link, netlink.FAMILY_ALL)
	if err != nil {
		return
	}
	for _, a := range addrs {
		if a.IP.IsLinkLocalUnicast() {
			continue
		}
		d.log.Warn("the kernel has an address on this interface; while the port is open nothing that arrives for it reaches the kernel",
			"address", a.IPNet.String())
	}
}

// tcx is the descriptor of a BPF link.
type tcx int

func (fd tcx) undo() error {
	if err := unix.Close(int(fd)); err != nil {
		return fmt.Errorf("detach the tcx link: %w", err)
	}
	return nil
}

// clsact is a filter of ours, and the qdisc when we made it.
type clsact struct {
	nl     *netlink.Handle
	filter *netlink.BpfFilter
	qdisc  netlink.Qdisc // nil: it was there before
}

func (d *Device) attachClsact(link netlink.Link, program int) (isolation, error) {
	c := &clsact{nl: d.nl}
	q := &netlink.Clsact{QdiscAttrs: netlink.QdiscAttrs{
		LinkIndex: link.Attrs().Index, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT,
	}}
	switch err := d.nl.QdiscAdd(q); {
	case err == nil:
		c.qdisc = q
	case !errors.Is(err, unix.EEXIST):
		return nil, fmt.Errorf("add a clsact qdisc: %w", err)
	}
	c.filter = &netlink.BpfFilter{
		FilterAttrs: netlink.FilterAttrs{
			LinkIndex: link.Attrs().Index, Parent: netlink.HANDLE_MIN_INGRESS,
			Handle: 1, Priority: 1, Protocol: unix.ETH_P_ALL,
		},
		Fd: program, Name: filterName, DirectAction: true,
	}
	if err := d.nl.FilterAdd(c.filter); err != nil {
		c.filter = nil
		_ = c.undo()
		return nil, fmt.Errorf("add a filter: %w", err)
	}
	return c, nil
}

func (c *clsact) undo() error {
	var err error
	if c.filter != nil {
		err = gone(c.nl.FilterDel(c.filter))
	}
	if c.qdisc != nil && err == nil {
		err = removeIfEmpty(c.nl, c.qdisc)
	}
	if err != nil {
		return fmt.Errorf("remove the clsact filter: %w", err)
	}
	return nil
}

// removeStale takes away the filter that a killed run left, told by its name,
// and its qdisc when nobody else has a filter there.
func (d *Device) removeStale(link netlink.Link) error {
	filters, err := d.nl.FilterList(link, netlink.HANDLE_MIN_INGRESS)
	if err != nil {
		return nil // no traffic control in this kernel, hence no filter
	}
	found := false
	for _, f := range filters {
		b, ok := f.(*netlink.BpfFilter)
		if !ok || b.Name != filterName {
			continue
		}
		found = true
		if err := gone(d.nl.FilterDel(b)); err != nil {
			return fmt.Errorf("remove the filter that a killed run left on interface %s: %w", link.Attrs().Name, privilege(err))
		}
	}
	if !found {
		return nil
	}
	d.log.Info("removed the ingress filter that a killed run left")
	return removeIfEmpty(d.nl, &netlink.Clsact{QdiscAttrs: netlink.QdiscAttrs{
		LinkIndex: link.Attrs().Index, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT,
	}})
}

// removeIfEmpty removes a clsact qdisc in which nobody has a filter.
func removeIfEmpty(nl *netlink.Handle, q netlink.Qdisc) error {
	link := &netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Index: q.Attrs().LinkIndex}}
	for _, parent := range []uint32{netlink.HANDLE_MIN_INGRESS, netlink.HANDLE_MIN_EGRESS} {
		filters, err := nl.FilterList(link, parent)
		if err != nil || len(filters) > 0 {
			return gone(err)
		}
	}
	return gone(nl.QdiscDel(q))
}

// gone takes an error away that says that the thing is not there any more.
func gone(err error) error {
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENODEV) {
		return nil
	}
	return err
}
