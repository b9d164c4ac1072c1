package packet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"syscall"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"gorouter/internal/inet"
)

// watcher is the goroutine that follows the interface: carrier, up and down,
// MTU, MAC address, deleted and made again.
type watcher struct {
	d     *Device
	links *os.File // netlink socket in the group of link changes
	ns    int      // network namespace in which the port was opened
	done  sync.WaitGroup
}

// newWatcher subscribes; changes queue up until start.
func newWatcher(d *Device) (*watcher, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("watch the link: open a netlink socket: %w", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: unix.RTMGRP_LINK}); err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("watch the link: %w", err)
	}
	ns, err := unix.Open(ownNamespace, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("watch the link: open the network namespace: %w", err)
	}
	return &watcher{d: d, links: os.NewFile(uintptr(fd), "link changes"), ns: ns}, nil
}

// ownNamespace is the network namespace of the calling thread.
const ownNamespace = "/proc/thread-self/ns/net"

func (w *watcher) start() {
	w.done.Add(1)
	go w.run()
}

// close ends the goroutine and waits for it.
func (w *watcher) close() error {
	err := w.links.Close()
	w.done.Wait()
	if e := unix.Close(w.ns); err == nil {
		err = e
	}
	return err
}

func (w *watcher) run() {
	defer w.done.Done()
	if err := w.enter(); err != nil {
		w.d.log.Error("cannot follow the interface", "error", err)
		return
	}
	buf := make([]byte, 1<<16)
	for {
		n, err := w.links.Read(buf)
		switch {
		case err == nil:
			if !w.concerns(buf[:n]) {
				continue
			}
		case errors.Is(err, unix.ENOBUFS):
			// Changes were lost; the state is read afresh.
		default:
			return // closed
		}
		w.d.refresh()
	}
}

// enter makes sure that the goroutine works in the port's namespace: attaching
// a BPF link goes by the thread's.
func (w *watcher) enter() error {
	var here, there unix.Stat_t
	if err := unix.Stat(ownNamespace, &here); err != nil {
		return err
	}
	if err := unix.Fstat(w.ns, &there); err != nil {
		return err
	}
	if here.Ino == there.Ino && here.Dev == there.Dev {
		// Threads of one namespace may be taken for each other's.
		return nil
	}
	// The thread ends with the goroutine, as it is never unlocked.
	runtime.LockOSThread()
	return unix.Setns(w.ns, unix.CLONE_NEWNET)
}

// concerns reports whether one of the messages is about the interface, or, as
// long as there is none, about any.
func (w *watcher) concerns(b []byte) bool {
	msgs, err := syscall.ParseNetlinkMessage(b)
	if err != nil {
		return true
	}
	index := w.d.index()
	for _, m := range msgs {
		if m.Header.Type != unix.RTM_NEWLINK && m.Header.Type != unix.RTM_DELLINK || len(m.Data) < unix.SizeofIfInfomsg {
			continue
		}
		// struct ifinfomsg: the index follows family and type.
		if i := int(int32(binary.NativeEndian.Uint32(m.Data[4:]))); index == 0 || i == index {
			return true
		}
	}
	return false
}

func (d *Device) index() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.on == nil {
		return 0
	}
	return d.on.index
}

// refresh brings the port to the state of the interface.
func (d *Device) refresh() {
	up, mac, mtu, ok := d.follow()
	if !ok {
		return
	}
	// Outside the lock: whoever is told may ask for statistics.
	if mac != (inet.MAC{}) {
		d.port.SetMAC(mac)
	}
	if mtu > 0 {
		d.port.SetLinkMTU(mtu)
	}
	d.port.SetUp(up)
}

// follow reads the interface, attaches to it anew where that is needed, and
// returns what the port is to show, MTU 0 when the interface is gone; not ok when
// the port is closed.
func (d *Device) follow() (up bool, mac inet.MAC, mtu int, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed || d.given {
		return false, mac, 0, false
	}
	link := d.current()
	if link == nil {
		return false, d.cfg.MAC, 0, true
	}
	attrs := link.Attrs()
	up = attrs.RawFlags&unix.IFF_UP != 0 && attrs.RawFlags&unix.IFF_RUNNING != 0
	if mac = d.cfg.MAC; mac == (inet.MAC{}) && len(attrs.HardwareAddr) == len(mac) {
		mac = inet.MAC(attrs.HardwareAddr)
	}
	if attrs.MTU != d.on.mtu {
		d.log.Warn("the interface's MTU changed; packets are sent up to it, but none longer than at the start are sent or received", "from", d.on.mtu, "to", attrs.MTU)
		d.on.mtu = attrs.MTU
		d.changes++
	}
	d.txq.SetMaxFrame(min(attrs.MTU, d.port.MTU) + inet.EthHeaderLen)
	if up != d.port.Up() {
		d.changes++
		d.log.Info("link", "up", up)
		d.rx.clearError()
		d.tx.clearError()
	}
	return up, mac, attrs.MTU, true
}

// current is the interface that the port is attached to; one that was deleted
// and is there again by its name is attached to. nil while there is none.
func (d *Device) current() netlink.Link {
	if d.on != nil {
		link, err := d.nl.LinkByIndex(d.on.index)
		if err == nil {
			return link
		}
		if _, gone := err.(netlink.LinkNotFoundError); !gone {
			d.log.Error("cannot read the interface", "error", err)
			return nil
		}
		d.log.Warn("the interface is gone; the port waits for it to come back")
		d.changes++
		_ = d.detach() // nothing is left to restore
		d.rx.clearError()
		d.tx.clearError()
	}
	link, err := d.find()
	if err != nil {
		return nil
	}
	if err := d.attach(link); err != nil {
		d.log.Error("cannot take the interface over again", "error", err)
		return nil
	}
	d.changes++
	d.log.Info("the interface is back")
	// What attaching changed is not in what was read before.
	if fresh, err := d.nl.LinkByIndex(d.on.index); err == nil {
		return fresh
	}
	return link
}
