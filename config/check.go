package config

import (
	"gorouter/internal/inet"
)

// check validates across items what each by itself has passed.
func (d *decoder) check() {
	c := d.cfg
	if len(c.Ports) > maxPorts {
		d.errorf(c.At("ports"), "there are %d ports, expected at most %d", len(c.Ports), maxPorts)
		return
	}
	d.checkDevices()
	d.checkCables()
	for i := range c.Ports {
		d.checkRings(&c.Ports[i])
	}
	d.checkBuffers()
	d.checkAddresses()
	d.checkRoutes()
	d.checkRoutesFile()
	d.checkNeighbors()
	d.checkStreams()
}

// checkDevices finds two ports that use one thing.
func (d *decoder) checkDevices() {
	interfaces := map[string]*Port{}
	files := map[string]*Port{} // that are written
	for i := range d.cfg.Ports {
		p := &d.cfg.Ports[i]
		path := "ports." + p.Name
		if p.Interface != "" {
			if q := interfaces[p.Interface]; q != nil {
				d.errorf(d.cfg.At(path+".interface"), "%s.interface is %s, which port %s has already (line %d)", path, p.Interface, q.Name, q.Pos.Line)
			}
			interfaces[p.Interface] = p
		}
		if p.Output != "" {
			if q := files[p.Output]; q != nil {
				d.errorf(d.cfg.At(path+".output"), "%s.output is %s, which port %s writes already (line %d)", path, p.Output, q.Name, q.Pos.Line)
			}
			files[p.Output] = p
		}
	}
	for i := range d.cfg.Ports {
		p := &d.cfg.Ports[i]
		if q := files[p.File]; p.File != "" && q != nil {
			d.errorf(d.cfg.At("ports."+p.Name+".file"), "ports.%s.file is %s, which port %s writes (line %d): it would be read while it is written", p.Name, p.File, q.Name, q.Pos.Line)
		}
	}
}

// checkCables makes cables known at both ends.
func (d *decoder) checkCables() {
	c := d.cfg
	said := func(p *Port) bool { _, ok := c.where["ports."+p.Name+".cable"]; return ok }
	for i := range c.Ports {
		p := &c.Ports[i]
		if p.Cable == "" || !said(p) {
			continue
		}
		path := "ports." + p.Name + ".cable"
		pos := c.At(path)
		j, ok := d.byName[p.Cable]
		if !ok {
			if !d.hidden {
				d.errorf(pos, "%s is %q, and there is no such port%s", path, p.Cable, d.suggestPort(p.Cable))
			}
			continue
		}
		q := &c.Ports[j]
		switch {
		case q.Driver == "": // reported
			continue
		case i == j:
			d.errorf(pos, "%s is the port itself: a cable joins two ports", path)
			continue
		case q.Driver != DriverModel:
			d.errorf(pos, "%s is %s, which has driver %s: a cable joins two ports of driver model", path, q.Name, q.Driver)
			continue
		case q.Cable == "":
			q.Cable = p.Name
		case q.Cable != p.Name && said(q):
			d.errorf(pos, "%s is %s, but the cable of %s goes to %s (line %d)", path, q.Name, q.Name, q.Cable, c.At("ports."+q.Name+".cable").Line)
			continue
		case q.Cable != p.Name:
			d.errorf(pos, "%s is %s, which the cable of %s goes to already (line %d)", path, q.Name, q.Cable, c.At("ports."+q.Cable+".cable").Line)
			continue
		case j < i && said(q):
			continue // the pair has been looked at from the other end
		}
		d.checkPair(p, q)
	}
}

// checkPair checks what the two ends of a cable must agree in.
func (d *decoder) checkPair(p, q *Port) {
	pos := d.cfg.At("ports." + p.Name + ".cable")
	if p.Model.Thread != q.Model.Thread {
		d.errorf(pos, "ports %s and %s share a cable, but only one has model.thread: true: set it at both or none", p.Name, q.Name)
	} else if !p.Model.Thread && p.Worker != q.Worker {
		d.errorf(pos, "ports %s and %s share a cable but not a worker (%d and %d): give them one worker, or both model.thread: true", p.Name, q.Name, p.Worker, q.Worker)
	}
	if p.MAC != (inet.MAC{}) && p.MAC == q.MAC {
		d.errorf(d.cfg.At("ports."+p.Name+".mac"), "ports.%s.mac is %s, as that of %s at the other end of the cable: two stations need two addresses", p.Name, p.MAC, q.Name)
	}
}
