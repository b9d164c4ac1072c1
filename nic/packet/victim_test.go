package packet

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"gorouter/internal/inet"
	"gorouter/rx"
	"gorouter/skb"
	"gorouter/tx"
)

// victimVariable makes the test program open a port with that isolation and
// wait to be killed.
const victimVariable = "GOROUTER_TEST_VICTIM"

func beVictim(isolation string) {
	a, err := skb.NewArena(skb.Options{Buffers: 1024})
	if err == nil {
		p, err2 := Open(Config{
			Interface: hereDev, Cache: a.NewCache("victim"), Isolation: isolation,
			Rx: rx.OptionTable.Defaults(), Tx: tx.OptionTable.Defaults(),
		})
		if err = err2; err == nil {
			err = p.Device.Start()
		}
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("ready")
	time.Sleep(time.Minute) // in case that nobody comes
	os.Exit(2)
}

// victim starts the program in the port's namespace.
func (r *rig) victim(isolation string) *exec.Cmd {
	r.t.Helper()
	exe, err := os.Executable()
	if err != nil {
		r.t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), victimVariable+"="+isolation)
	out, err := cmd.StdoutPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	if err := r.here.Do(cmd.Start); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = cmd.Process.Kill() })
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		r.t.Fatalf("victim: %q %v", line, err)
	}
	return cmd
}

// answers reports whether the kernel of the port's namespace answers ARP. What
// it does with the request is over before the marker is sent.
func (r *rig) answers() bool {
	r.t.Helper()
	r.fromPeer(arpRequest(r.peer.MAC(peerDev), "10.0.0.2", "10.0.0.1"))
	r.marker()
	answered := false
	for {
		f := r.atPeer()
		if f[12] == 0x88 && f[13] == 0xb5 {
			return answered
		}
		answered = answered || f[12] == inet.EtherARP>>8 && f[13] == inet.EtherARP&0xff
	}
}

// marker sends a frame to the far end from outside the port.
func (r *rig) marker() {
	r.t.Helper()
	err := r.here.Do(func() error {
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Sendto(fd, plain(60, 0), 0, &unix.SockaddrLinklayer{Ifindex: r.here.Interface(hereDev).Attrs().Index})
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

// filters are the names of the BPF filters at the interface's ingress, and
// whether a clsact qdisc is there.
func (r *rig) filters() (names []string, qdisc bool) {
	r.t.Helper()
	err := r.here.Do(func() error {
		link, err := netlink.LinkByName(hereDev)
		if err != nil {
			return err
		}
		qs, err := netlink.QdiscList(link)
		if err != nil {
			return err
		}
		for _, q := range qs {
			qdisc = qdisc || q.Type() == "clsact"
		}
		fs, err := netlink.FilterList(link, netlink.HANDLE_MIN_INGRESS)
		for _, f := range fs {
			if b, ok := f.(*netlink.BpfFilter); ok {
				names = append(names, b.Name)
			}
		}
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return names, qdisc
}

func TestKilledWithTCXLeavesTheKernelItsFrames(t *testing.T) {
	r := newCable(t)
	r.here.Address(hereDev, "10.0.0.1/24")
	r.listen()
	v := r.victim(IsolationTCX)
	if r.answers() {
		t.Error("the kernel answers while the port is open")
	}
	_ = v.Process.Kill()
	_ = v.Wait()
	// The kernel closes what a killed process had open some time after.
	r.until("the kernel answers again", r.answers)
}

func TestFilterOfKilledRunIsReplaced(t *testing.T) {
	r := newCable(t)
	r.here.Address(hereDev, "10.0.0.1/24")
	r.listen()
	v := r.victim(IsolationClsact)
	_ = v.Process.Kill()
	_ = v.Wait()
	if names, _ := r.filters(); len(names) != 1 || names[0] != filterName {
		t.Fatalf("filters after the kill: %v", names)
	}
	if r.answers() {
		t.Error("the kernel answers in spite of the filter")
	}
	r.open(func(c *Config) { c.Isolation = IsolationClsact })
	if names, _ := r.filters(); len(names) != 1 || names[0] != filterName {
		t.Errorf("filters while open: %v", names)
	}
	r.close()
	if names, qdisc := r.filters(); len(names) != 0 || qdisc {
		t.Errorf("left behind: filters %v, qdisc %v", names, qdisc)
	}
	if !r.answers() {
		t.Error("the kernel does not answer after Close")
	}
}

func TestForeignClsactStays(t *testing.T) {
	r := newCable(t)
	r.listen()
	err := r.here.Do(func() error {
		link, err := netlink.LinkByName(hereDev)
		if err != nil {
			return err
		}
		return netlink.QdiscAdd(&netlink.Clsact{QdiscAttrs: netlink.QdiscAttrs{
			LinkIndex: link.Attrs().Index, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT}})
	})
	if err != nil {
		t.Fatal(err)
	}
	r.open(func(c *Config) { c.Isolation = IsolationClsact })
	r.fromPeer(plain(60, 1))
	r.receive(1)
	r.close()
	if names, qdisc := r.filters(); len(names) != 0 || !qdisc {
		t.Errorf("filters %v, qdisc there: %v", names, qdisc)
	}
}

// A second port on the same interface, of this process or of another one.
func TestBusyInterface(t *testing.T) {
	r := newCable(t)
	r.victim(IsolationAuto)
	err := r.here.Do(func() error { _, err := Open(r.config()); return err })
	if err == nil || !strings.Contains(err.Error(), "busy: another gorouter has it") || strings.Contains(err.Error(), "\n") {
		t.Errorf("error: %v", err)
	}
}
