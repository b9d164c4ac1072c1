package dataplane

import (
	"fmt"

	"gorouter/fib"
)

// followed is a route that is in the FIB while one of its ports has a link.
type followed struct {
	route fib.Route
	in    bool
}

// AddRoutes adds routes that follow the links of their ports: one whose ports
// are all down is withdrawn, so that the route with the next metric, or a
// shorter prefix, takes over (RFC 1812 section 5.3.12.3). It is for routes that
// are configured; a routing protocol's are its own to withdraw. Each link
// event looks at all of them, so long lists go to the FIB directly.
//
// An error names the route; those before it stay.
func (r *Router) AddRoutes(routes []fib.Route) error {
	r.ifMu.Lock()
	defer r.ifMu.Unlock()
	for _, x := range routes {
		if err := r.follow(x); err != nil {
			return err
		}
	}
	return nil
}

// follow adds or replaces one route. The lock must be held.
func (r *Router) follow(x fib.Route) error {
	// A route that waits for its link must be right all the same.
	if err := x.Validate(); err != nil {
		return err
	}
	for _, h := range x.NextHops {
		if int(h.Port) >= len(r.ports) && h.Port != fib.NoPort {
			return fmt.Errorf("route %v: no port %d", x.Prefix, h.Port)
		}
	}
	f := &followed{route: x}
	for i, old := range r.follows {
		if old.route.Key() == x.Key() {
			f.in = old.in
			r.follows[i] = f
			return r.place(f, true)
		}
	}
	r.follows = append(r.follows, f)
	return r.place(f, true)
}

// place brings the FIB up to date with a route's links. again also replaces a
// route that is there.
func (r *Router) place(f *followed, again bool) error {
	switch alive := r.alive(&f.route); {
	case alive && (again || !f.in):
		f.in = true
		return r.fib.Replace(f.route)
	case !alive && f.in:
		f.in = false
		r.fib.Delete(f.route.Key())
	}
	return nil
}

// alive reports whether a route has a port with a link, or needs none.
func (r *Router) alive(x *fib.Route) bool {
	if x.Kind != fib.Forward && x.Kind != fib.Connected {
		return true
	}
	for _, h := range x.NextHops {
		if h.Port != fib.NoPort && r.ports[h.Port].Up() {
			return true
		}
	}
	return false
}

// followLinks looks at every such route after a port changed.
func (r *Router) followLinks() {
	for _, f := range r.follows {
		if err := r.place(f, false); err != nil {
			r.log.Error("route cannot be put back", "prefix", f.route.Prefix, "error", err)
		}
	}
}
