package loop

import (
	"fmt"
	"os"
	"sync"
	"time"

	"gorouter/internal/inet"
	"gorouter/port"
	"gorouter/rx"
	"gorouter/skb"
	"gorouter/tx"
)

// Driver is the name of these ports in the configuration.
const Driver = "pcap"

// Config describes a port over capture files.
type Config struct {
	File   string // frames to receive; empty: none
	Output string // where sent frames are written; empty: they are only counted
	Loop   bool   // receive the file's frames again and again

	Name  string
	Index uint16
	MAC   inet.MAC
	MTU   int // longest IP packet sent, 0 = 1500; a buffer bounds what is received

	// Rx and Tx are the ring options every port has. A file has no ring, so
	// they change nothing here.
	Rx rx.Options
	Tx tx.Options

	Arena *skb.Arena
	Cache *skb.Cache // of the worker that owns the queues
}

// Open reads the file into memory, creates the output and returns a port with
// one receive and one transmit queue. Frames flow from Device.Start on. What
// goes wrong with the output later is reported by Device.Close.
func Open(c Config) (*port.Port, error) {
	if c.MTU == 0 {
		c.MTU = 1500
	}
	if c.File == "" && c.Output == "" {
		return nil, fmt.Errorf("port %s: a pcap port needs a file, an output or both", c.Name)
	}
	frames, out, err := open(c.File, c.Output)
	if err != nil {
		return nil, fmt.Errorf("port %s: %w", c.Name, err)
	}
	longest := c.MTU + inet.EthHeaderLen + inet.VLANTagLen
	d := &device{out: out, frames: uint64(len(frames))}
	d.rx = rx.NewPcap(rx.PcapConfig{
		Name: c.Name + " rx", Port: c.Index, Frames: frames, Loop: c.Loop, Cache: c.Cache,
	})
	tc := tx.PcapConfig{Name: c.Name + " tx", Cache: c.Cache, MaxFrame: longest}
	if out != nil {
		tc.Write = d.write
	}
	d.tx = tx.NewPcap(tc)
	p := &port.Port{
		Name: c.Name, Index: c.Index, MTU: c.MTU,
		Rx: []rx.Queue{d.rx}, Tx: []tx.Queue{d.tx}, Device: d,
	}
	d.port = p
	p.SetMAC(c.MAC)
	return p, nil
}

// open loads the one file and creates the other.
func open(file, output string) (frames []rx.PcapFrame, out *writer, err error) {
	if file != "" {
		if frames, err = Load(file); err != nil {
			return nil, nil, err
		}
	}
	if output == "" {
		return frames, nil, nil
	}
	if file != "" {
		a, err1 := os.Stat(file)
		b, err2 := os.Stat(output)
		if err1 == nil && err2 == nil && os.SameFile(a, b) {
			return nil, nil, fmt.Errorf("capture output %s is the file that is read: choose another", output)
		}
	}
	if out, err = create(output); err != nil {
		return nil, nil, err
	}
	return frames, out, nil
}

// device is the control side of a pcap port.
type device struct {
	port   *port.Port
	rx     *rx.Pcap
	tx     *tx.Pcap
	frames uint64

	mu  sync.Mutex // one batch against Close
	out *writer
	err error
}

// write stores one batch.
func (d *device) write(frames [][]byte) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.out == nil {
		return 0
	}
	now := time.Now()
	for _, f := range frames {
		d.out.add(f, now)
	}
	return d.out.flush()
}

// Driver implements port.Device.
func (d *device) Driver() string { return Driver }

// Start implements port.Device.
func (d *device) Start() error {
	d.rx.Start()
	d.tx.Start()
	d.port.SetUp(true)
	return nil
}

// Stop implements port.Device.
func (d *device) Stop() error {
	d.port.SetUp(false)
	d.rx.Stop()
	d.tx.Stop()
	return nil
}

// Close implements port.Device. It reports, each time, the first error of the
// output with the number of frames that it cost.
func (d *device) Close() error {
	if err := d.Stop(); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.out != nil {
		if err := d.out.close(); err != nil {
			d.err = fmt.Errorf("port %s: %w", d.port.Name, err)
		}
		d.out = nil
	}
	return d.err
}

// Stats implements port.Device.
func (d *device) Stats() map[string]uint64 {
	s := map[string]uint64{"file_frames": d.frames}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.out != nil {
		s["written_frames"] = d.out.written.Load()
		s["lost_frames"] = d.out.lost.Load()
	}
	return s
}
