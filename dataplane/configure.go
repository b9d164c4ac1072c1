package dataplane

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"gorouter/internal/option"
	"gorouter/rx"
	"gorouter/tx"
)

// Setting is one option of a running router by its path in the configuration
// and its value as text: "poll.budget", "ip.icmp_rate", "ports.NAME.weight",
// "ports.NAME.rx.replenish", "ports.NAME.tx.doorbell".
type Setting struct{ Name, Value string }

// AutoWeight is the text of a port's weight that follows poll.weight.
const AutoWeight = "auto"

// rxTunable is a receive queue whose options can be changed.
type rxTunable interface {
	Options() rx.Options
	Configure(rx.Options)
}

// txTunable is a transmit queue whose options can be changed.
type txTunable interface {
	Options() tx.Options
	Configure(tx.Options)
}

// settings is what is in force, as the control side knows it. The workers have
// their own copies.
type settings struct {
	mu      sync.Mutex // held during a change, and while the workers start
	started bool
	values
}

// values are all options of the router.
type values struct {
	poll  Options
	ip    IPOptions
	ports []portValues
}

// portValues are the options of one port; its queues share them. hasRx and
// hasTx tell whether the queues have options at all.
type portValues struct {
	name         string
	weight       int
	hasRx, hasTx bool
	rx           rx.Options
	tx           tx.Options
}

func (v *values) clone() values {
	c := *v
	c.ports = slices.Clone(v.ports)
	return c
}

func (s *settings) init(c *Config) error {
	s.poll, s.ip = c.Options, c.IP
	if s.ip == (IPOptions{}) {
		s.ip = IPTable.Defaults()
	}
	for i, p := range c.Ports {
		v := portValues{name: p.Name, hasRx: len(p.Rx) > 0, hasTx: true}
		if c.Weights != nil {
			if v.weight = c.Weights[i]; v.weight != 0 {
				if err := checkWeight(v.weight); err != nil {
					return fmt.Errorf("port %s: %w", p.Name, err)
				}
			}
		}
		for _, q := range p.Rx {
			if t, ok := q.(rxTunable); ok {
				v.rx = t.Options()
			} else {
				v.hasRx = false
			}
		}
		for _, q := range p.Tx {
			if t, ok := q.(txTunable); ok {
				v.tx = t.Options()
			} else {
				v.hasTx = false
			}
		}
		s.ports = append(s.ports, v)
	}
	return nil
}

// checkWeight applies the limits of the option to a port's own weight.
func checkWeight(n int) error {
	o := Options{Weight: n}
	return OptionTable.Find("weight").Check(&o)
}

// Set changes one option; see Configure.
func (r *Router) Set(name, value string) error { return r.Configure(Setting{name, value}) }

// Configure changes options of a router, running or not: all of the settings,
// or none when one of them is wrong. The error names each wrong option and its
// range. Every worker takes the changes over between two rounds; when Configure
// returns, all have. It must not be called by a worker (in Do).
func (r *Router) Configure(list ...Setting) error {
	return r.change(func(v *values) error {
		var errs []error
		for _, s := range list {
			errs = append(errs, v.set(s.Name, s.Value))
		}
		return errors.Join(errs...)
	})
}

// SetPoll changes all options of the poll loop; as Configure.
func (r *Router) SetPoll(o Options) error {
	return r.change(func(v *values) error { return replace("poll.", OptionTable, &v.poll, o) })
}

// SetIP changes all options of IPv4 and ICMP; as Configure.
func (r *Router) SetIP(o IPOptions) error {
	return r.change(func(v *values) error { return replace("ip.", IPTable, &v.ip, o) })
}

// SetWeight gives a port's receive queues a weight of their own, in frames a
// turn; 0 makes them follow poll.weight. As Configure.
func (r *Router) SetWeight(portName string, weight int) error {
	text := AutoWeight
	if weight != 0 {
		text = strconv.Itoa(weight)
	}
	return r.Set("ports."+portName+".weight", text)
}

// SetRx changes all options of a port's receive queues; as Configure. The ring
// size must stay.
func (r *Router) SetRx(portName string, o rx.Options) error {
	return r.change(func(v *values) error {
		p, err := v.port(portName)
		if err == nil {
			if err = p.tunable("rx"); err == nil {
				err = replace("ports."+portName+".rx.", rx.OptionTable, &p.rx, o)
			}
		}
		return err
	})
}

// SetTx changes all options of a port's transmit queues; as Configure. The
// ring size and the reclaim policy must stay.
func (r *Router) SetTx(portName string, o tx.Options) error {
	return r.change(func(v *values) error {
		p, err := v.port(portName)
		if err == nil {
			if err = p.tunable("tx"); err == nil {
				err = replace("ports."+portName+".tx.", tx.OptionTable, &p.tx, o)
			}
		}
		return err
	})
}

// Setting is the value in force of an option that Configure knows.
func (r *Router) Setting(name string) (string, error) {
	r.conf.mu.Lock()
	defer r.conf.mu.Unlock()
	return r.conf.get(name)
}

// change has the caller's function make the new values of a copy and, when
// there is no error, takes them over.
func (r *Router) change(f func(*values) error) error {
	r.conf.mu.Lock()
	defer r.conf.mu.Unlock()
	if r.stop.Load() {
		return errors.New("this router was stopped; its options cannot be changed")
	}
	old, next := r.conf.values, r.conf.clone()
	if err := f(&next); err != nil {
		return err
	}
	r.conf.values = next
	if r.conf.started {
		r.Do(func(w *Worker) { w.apply(&old, &next) })
	} else {
		for _, w := range r.workers {
			w.apply(&old, &next)
		}
	}
	if r.conf.started && next.poll.Idle == IdleInterrupt && old.poll.Idle != IdleInterrupt {
		r.explainIdle()
	}
	return nil
}

// apply takes changes over. Owner only. Nothing can fail any more.
func (w *Worker) apply(old, next *values) {
	if next.poll != old.poll {
		w.opts = next.poll
		w.idle, w.pending = 0, 0
		w.listen()
	}
	if next.ip != old.ip {
		_ = w.SetIPOptions(next.ip) // it is in range
	}
	for i := range next.ports {
		p, was := &next.ports[i], &old.ports[i]
		for _, q := range w.queues {
			if int(q.port) != i {
				continue
			}
			q.weight = p.weight
			if p.rx != was.rx {
				q.rx.(rxTunable).Configure(p.rx)
			}
		}
		if q := w.outs[i].tx; q != nil && p.tx != was.tx {
			q.(txTunable).Configure(p.tx)
		}
	}
}

// replace puts new options in the place of old ones when they are in range and
// differ only in what may change.
func replace[T any](path string, t option.Table[T], v *T, next T) error {
	var errs []error
	for i := range t {
		s := &t[i]
		if err := s.Check(&next); err != nil {
			errs = append(errs, fmt.Errorf("%s%w", path, err))
		} else if !s.Live && s.Text(v) != s.Text(&next) {
			errs = append(errs, fixed(path+s.Name))
		}
	}
	*v = next
	return errors.Join(errs...)
}

func fixed(name string) error {
	return fmt.Errorf("%s cannot be changed on a running router (change it in the configuration and start the router again)", name)
}

// setOption parses one option of a table.
func setOption[T any](path, name string, t option.Table[T], v *T, text string) error {
	s := t.Find(name)
	switch {
	case s == nil:
		return unknown(path, name, t.Names())
	case !s.Live:
		return fixed(path + name)
	}
	if err := s.Set(v, text); err != nil {
		return fmt.Errorf("%s%w", path, err)
	}
	return nil
}

func getOption[T any](path, name string, t option.Table[T], v *T) (string, error) {
	if s := t.Find(name); s != nil {
		return s.Text(v), nil
	}
	return "", unknown(path, name, t.Names())
}

func unknown(path, name string, known []string) error {
	return fmt.Errorf("%s%s: there is no such option, expected one of %s", path, name, strings.Join(known, ", "))
}

// port finds a port by name.
func (v *values) port(name string) (*portValues, error) {
	var names []string
	for i := range v.ports {
		if v.ports[i].name == name {
			return &v.ports[i], nil
		}
		names = append(names, v.ports[i].name)
	}
	return nil, fmt.Errorf("ports.%s: there is no such port, expected one of %s", name, strings.Join(names, ", "))
}

// tunable is an error when the port's queues of a direction have no options,
// as those of a pcap port.
func (p *portValues) tunable(dir string) error {
	if dir == "rx" && !p.hasRx || dir == "tx" && !p.hasTx {
		return fmt.Errorf("ports.%s.%s: queues of this kind of port have no ring and no options", p.name, dir)
	}
	return nil
}

// set changes one option by name.
func (v *values) set(name, text string) error {
	if opt, ok := strings.CutPrefix(name, "poll."); ok {
		return setOption("poll.", opt, OptionTable, &v.poll, text)
	}
	if opt, ok := strings.CutPrefix(name, "ip."); ok {
		return setOption("ip.", opt, IPTable, &v.ip, text)
	}
	p, dir, opt, err := v.find(name)
	if err != nil {
		return err
	}
	path := "ports." + p.name + "." + dir + "."
	switch dir {
	case "rx":
		return setOption(path, opt, rx.OptionTable, &p.rx, text)
	case "tx":
		return setOption(path, opt, tx.OptionTable, &p.tx, text)
	}
	if text == AutoWeight {
		p.weight = 0
		return nil
	}
	n, err := option.ParseInt(text)
	if err == nil {
		err = checkWeight(n)
	}
	if err != nil {
		return fmt.Errorf("%s is %q, expected %s or %s", name, text, AutoWeight, OptionTable.Find("weight").Expect())
	}
	p.weight = n
	return nil
}

func (v *values) get(name string) (string, error) {
	if opt, ok := strings.CutPrefix(name, "poll."); ok {
		return getOption("poll.", opt, OptionTable, &v.poll)
	}
	if opt, ok := strings.CutPrefix(name, "ip."); ok {
		return getOption("ip.", opt, IPTable, &v.ip)
	}
	p, dir, opt, err := v.find(name)
	switch {
	case err != nil:
		return "", err
	case dir == "rx":
		return getOption("ports."+p.name+".rx.", opt, rx.OptionTable, &p.rx)
	case dir == "tx":
		return getOption("ports."+p.name+".tx.", opt, tx.OptionTable, &p.tx)
	case p.weight == 0:
		return AutoWeight, nil
	}
	return strconv.Itoa(p.weight), nil
}

// find takes the path of a port's option apart: "weight", or a direction and
// the option's name. Names of ports may have dots.
func (v *values) find(name string) (p *portValues, dir, opt string, err error) {
	rest, ok := strings.CutPrefix(name, "ports.")
	if !ok {
		return nil, "", "", fmt.Errorf("%s: there is no such option, expected poll.…, ip.… or ports.…", name)
	}
	var near *portValues
	for i := range v.ports {
		k, ok := strings.CutPrefix(rest, v.ports[i].name+".")
		if !ok {
			continue
		}
		near = &v.ports[i]
		if k == "weight" {
			return near, k, "", nil
		}
		if dir, opt, ok := strings.Cut(k, "."); ok && (dir == "rx" || dir == "tx") {
			if err = near.tunable(dir); err == nil {
				return near, dir, opt, nil
			}
		}
	}
	switch {
	case err != nil:
		return nil, "", "", err
	case near != nil:
		return nil, "", "", fmt.Errorf("%s: there is no such option of a port that can be changed, expected weight, rx.… or tx.…", name)
	}
	if i := strings.IndexByte(rest, '.'); i >= 0 {
		rest = rest[:i]
	}
	if _, err = v.port(rest); err == nil {
		err = fmt.Errorf("%s: that is a port, expected one of its options: weight, rx.… or tx.…", name)
	}
	return nil, "", "", err
}
