package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"gorouter/dataplane"
	"gorouter/dataplane/neigh"
	"gorouter/nic/model"
	"gorouter/rx"
	"gorouter/skb"
	"gorouter/tx"
)

// top decodes the whole file.
func (d *decoder) top(n *yaml.Node) {
	c := d.cfg
	c.Workers = []Worker{{CPU: AnyCPU}}
	c.Poll = dataplane.OptionTable.Defaults()
	c.IP = dataplane.IPTable.Defaults()
	c.Neigh = neigh.OptionTable.Defaults()
	c.Buffers = skb.OptionTable.Defaults()
	f, ok := d.fields(n, "", names(topKeys))
	if !ok {
		return
	}
	for name, v := range f {
		d.mark(name, v)
	}
	d.workerCount = 1
	if v := f["workers"]; v != nil {
		d.workers(v)
	}
	if v := f["poll"]; v != nil {
		options(d, v, "poll", dataplane.OptionTable, &c.Poll)
	}
	if v := f["ip"]; v != nil {
		options(d, v, "ip", dataplane.IPTable, &c.IP)
	}
	if v := f["neigh"]; v != nil {
		options(d, v, "neigh", neigh.OptionTable, &c.Neigh)
	}
	if v := f["buffers"]; v != nil {
		options(d, v, "buffers", skb.OptionTable, &c.Buffers)
	}
	if v := f["ports"]; v != nil {
		d.ports(v)
	} else {
		d.errorf(at(n), "ports is missing: a router needs at least one port")
	}
	if v := f["routes"]; v != nil {
		d.routes(v)
	}
	if v := f["routes_file"]; v != nil {
		d.routesFile(v)
	}
	if v := f["neighbors"]; v != nil {
		d.neighbors(v)
	}
	if v := f["pktgen"]; v != nil {
		d.pktgen(v)
	}
}

func (d *decoder) workers(n *yaml.Node) {
	c := d.cfg
	// Where the number is wrong, no port shall be told that its worker is.
	d.workerCount = maxWorkers
	if n.Kind != yaml.SequenceNode {
		if count, ok := d.integer(n, "workers", 1, maxWorkers, ", or a list such as [{cpu: auto}, {cpu: 2}]"); ok {
			c.Workers = slices.Repeat([]Worker{{Pos: at(n), CPU: AnyCPU}}, count)
			d.workerCount = count
		}
		return
	}
	if k := len(n.Content); k == 0 || k > maxWorkers {
		d.errorf(at(n), "workers is a list of %d, expected 1 to %d", k, maxWorkers)
		return
	}
	d.workerCount = len(n.Content)
	c.Workers = nil
	pinned := map[int]int{}
	for i, e := range n.Content {
		w := Worker{Pos: at(e), CPU: AnyCPU}
		path := index("workers", i)
		f, ok := d.fields(e, path, names(workerKeys))
		if cpu := f["cpu"]; ok && cpu != nil && cpu.Value != auto {
			if v, ok := d.integer(cpu, path+".cpu", 0, maxCPU, ", or auto"); ok {
				w.CPU = v
				if other, dup := pinned[v]; dup {
					d.errorf(at(cpu), "%s.cpu is %d, to which workers[%d] is pinned already: workers do not share a processor", path, v, other)
				}
				pinned[v] = i
			}
		}
		c.Workers = append(c.Workers, w)
	}
}

func index(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

func (d *decoder) ports(n *yaml.Node) {
	list, ok := d.entries(n, "ports", "a mapping of port names, such as p0: {driver: model}")
	if !ok {
		return
	}
	if len(n.Content) == 0 {
		d.errorf(at(n), "ports is empty: a router needs at least one port")
	}
	for _, e := range list {
		name, ok := d.name(e.key, "the name of a port")
		if !ok {
			d.hidden = true
			continue
		}
		p := Port{
			Pos: at(e.key), Name: name, MTU: defaultMTU,
			Rx: rx.OptionTable.Defaults(), Tx: tx.OptionTable.Defaults(),
		}
		d.mark("ports."+name, e.key)
		d.port(e.val, &p)
		d.byName[name] = len(d.cfg.Ports)
		d.cfg.Ports = append(d.cfg.Ports, p)
	}
}

func (d *decoder) port(n *yaml.Node, p *Port) {
	path := "ports." + p.Name
	f, ok := d.fields(n, path, names(portKeys))
	if !ok {
		d.hidden = true
		return
	}
	for k, v := range f {
		d.mark(path+"."+k, v)
	}
	d.driver(f, path, p)
	if v := f["mtu"]; v != nil {
		if mtu, ok := d.integer(v, path+".mtu", minMTU, maxMTU, " bytes"); ok {
			p.MTU = mtu
		}
	}
	if v := f["worker"]; v != nil {
		why := ""
		if d.workerCount == len(d.cfg.Workers) {
			why = fmt.Sprintf(" (workers: %d)", d.workerCount)
		}
		if w, ok := d.integer(v, path+".worker", 0, d.workerCount-1, why); ok {
			p.Worker = w
		}
	}
	if v := f["weight"]; v != nil && v.Value != auto {
		s := dataplane.OptionTable.Find("weight")
		if n, ok := d.integer(v, path+".weight", s.Min, s.Max, " "+s.Unit+", or auto"); ok {
			p.Weight = n
		}
	}
	if v := f["addresses"]; v != nil {
		for i, a := range d.items(v, path+".addresses", "a list such as [192.0.2.1/24, 2001:db8::1/64]") {
			if prefix, ok := d.prefix(a, index(path+".addresses", i)); ok {
				p.Addresses = append(p.Addresses, Address{at(a), prefix})
			} else {
				d.hidden = true
			}
		}
		if v.Kind != yaml.SequenceNode {
			d.hidden = true
		}
	}
	if v := f["rx"]; v != nil {
		options(d, v, path+".rx", rx.OptionTable, &p.Rx)
	}
	if v := f["tx"]; v != nil {
		options(d, v, path+".tx", tx.OptionTable, &p.Tx)
	}
}

// driver decodes the driver and what only some drivers have.
func (d *decoder) driver(f map[string]*yaml.Node, path string, p *Port) {
	v := f["driver"]
	if v == nil {
		d.errorf(p.Pos, "%s.driver is missing, expected one of %s", path, strings.Join(drivers, ", "))
		return
	}
	driver, ok := d.raw(v, path+".driver", "one of "+strings.Join(drivers, ", "))
	switch {
	case !ok:
		return
	case slices.Contains(laterDrivers, driver):
		d.errorf(at(v), "%s.driver is %q, which is not available in this release, expected one of %s", path, driver, strings.Join(drivers, ", "))
		return
	case !slices.Contains(drivers, driver):
		d.errorf(at(v), "%s.driver is %q, expected one of %s%s", path, driver, strings.Join(drivers, ", "), suggest(driver, drivers))
		return
	}
	p.Driver = driver
	for _, k := range portKeys {
		if of := driverKeys[k.name]; of != nil && f[k.name] != nil && !slices.Contains(of, driver) {
			d.errorf(at(f[k.name]), "%s.%s is for driver %s, and %s has driver %s", path, k.name, strings.Join(of, " and "), p.Name, driver)
			delete(f, k.name)
		}
	}
	if v := f["mac"]; v != nil {
		p.MAC, _ = d.station(v, path+".mac", "")
	}
	switch driver {
	case DriverModel:
		p.Model = ModelTable.Defaults()
		if v := f["model"]; v != nil {
			options(d, v, path+".model", ModelTable, &p.Model)
		}
		p.Impair = model.ImpairmentTable.Defaults()
		if v := f["impair"]; v != nil {
			options(d, v, path+".impair", model.ImpairmentTable, &p.Impair)
		}
		p.Flap = FlapTable.Defaults()
		if v := f["flap"]; v != nil {
			options(d, v, path+".flap", FlapTable, &p.Flap)
			if p.Flap.Every != 0 && p.Flap.Every <= p.Flap.Down {
				d.errorf(at(v), "%s.flap.every is %v, expected more than the %v of down", path, p.Flap.Every, p.Flap.Down)
			}
		}
		if v := f["cable"]; v != nil {
			p.Cable, _ = d.name(v, path+".cable")
		}
	case DriverAFPacket:
		p.Packet = PacketTable.Defaults()
		if v := f["packet"]; v != nil {
			options(d, v, path+".packet", PacketTable, &p.Packet)
		}
		if v := f["interface"]; v != nil {
			p.Interface, _ = d.ifname(v, path+".interface")
		} else {
			d.errorf(p.Pos, "%s.interface is missing: driver af_packet needs the name of an interface", path)
		}
	case DriverPcap:
		if v := f["file"]; v != nil {
			p.File, _ = d.text(v, path+".file")
		} else if f["output"] == nil {
			d.errorf(p.Pos, "%s has neither file nor output: driver pcap needs the file whose frames it receives, the one that gets the frames sent, or both", path)
		}
		if v := f["output"]; v != nil {
			p.Output, _ = d.text(v, path+".output")
		}
		if v := f["loop"]; v != nil {
			p.Loop = d.boolean(v, path+".loop")
			if f["file"] == nil {
				d.errorf(at(v), "%s.loop needs file: without it the port receives nothing", path)
			}
		}
	}
}
