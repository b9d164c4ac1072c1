package config

import "strings"

// Change is one difference of two configurations.
type Change struct {
	// Path says where: "poll.weight", "ports.p0.rx.ring",
	// "routes[0.0.0.0/0 table 0 metric 0]".
	Path string
	// Old and New are the values as YAML on one line; "" where there is none.
	Old, New string
	// Live says that a running router can take the change over; otherwise it
	// has to be started anew.
	Live bool
}

// String is one line: "+ path: new", "- path: old" or "~ path: old -> new".
func (c Change) String() string {
	switch {
	case c.Old == "":
		return "+ " + c.Path + ": " + c.New
	case c.New == "":
		return "- " + c.Path + ": " + c.Old
	}
	return "~ " + c.Path + ": " + c.Old + " -> " + c.New
}

// Diff lists what changes from one configuration to another, in the order of
// the new one with removals last in each section. What is equal by default and
// what is equal by being written down are the same.
func Diff(from, to *Config) []Change {
	a, b := from.tree(), to.tree()
	changes := diff(nil, "", &a, &b, false)
	// Routes and counters know a port by its index.
	if x, y := from.portNames(to), to.portNames(from); x != y {
		changes = append(changes, Change{Path: "ports", Old: "[" + x + "]", New: "[" + y + "]"})
	}
	return changes
}

// portNames lists the ports that the other configuration has, too.
func (c *Config) portNames(other *Config) string {
	var names []string
	for i := range c.Ports {
		if name := c.Ports[i].Name; other.PortIndex(name) >= 0 {
			names = append(names, quote(name))
		}
	}
	return strings.Join(names, ", ")
}

func diff(list []Change, path string, a, b *item, live bool) []Change {
	live = live || b.live
	if a.flow || b.flow || a.kids == nil && b.kids == nil {
		if x, y := a.inline(), b.inline(); x != y {
			list = append(list, Change{path, x, y, live})
		}
		return list
	}
	old := make(map[string]*item, len(a.kids))
	for i := range a.kids {
		old[a.kids[i].name] = &a.kids[i]
	}
	join := func(k *item) string {
		switch {
		case a.list || b.list:
			return path + "[" + k.name + "]"
		case path == "":
			return k.name
		}
		return path + "." + k.name
	}
	for i := range b.kids {
		k := &b.kids[i]
		was, ok := old[k.name]
		if !ok {
			list = append(list, Change{Path: join(k), New: k.inline(), Live: k.live})
			continue
		}
		list = diff(list, join(k), was, k, live)
		delete(old, k.name)
	}
	for i := range a.kids {
		if k := &a.kids[i]; old[k.name] != nil {
			list = append(list, Change{Path: join(k), Old: k.inline(), Live: k.live})
		}
	}
	return list
}
