package fib_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"gorouter/fib"
)

func TestRefusedRoutesNamePrefixAndRemedy(t *testing.T) {
	good := hop(1, "192.0.2.1")
	many := make([]fib.NextHop, fib.MaxNextHops+1)
	for i := range many {
		many[i] = good
	}
	mod := func(r fib.Route, edit func(*fib.Route)) fib.Route { edit(&r); return r }
	ok := forward("10.0.0.0/8", good)
	for name, c := range map[string]struct {
		route fib.Route
		want  []string
	}{
		"host bits":   {forward("10.0.0.1/8", good), []string{"10.0.0.1/8", "use 10.0.0.0/8"}},
		"no prefix":   {mod(ok, func(r *fib.Route) { r.Prefix = netip.Prefix{} }), []string{"not valid"}},
		"bad length":  {mod(ok, func(r *fib.Route) { r.Prefix = netip.PrefixFrom(ip("10.0.0.0"), 33) }), []string{"length"}},
		"mapped":      {mod(ok, func(r *fib.Route) { r.Prefix = netip.PrefixFrom(ip("::ffff:10.0.0.0"), 104) }), []string{"::ffff:10.0.0.0/104", "write it as IPv4"}},
		"no hops":     {forward("10.0.0.0/8"), []string{"10.0.0.0/8", "at least one"}},
		"no gateway":  {forward("10.0.0.0/8", fib.NextHop{Port: 1}), []string{"10.0.0.0/8", "use connected"}},
		"many hops":   {forward("10.0.0.0/8", many...), []string{"257 next hops", "at most 256"}},
		"weight":      {forward("10.0.0.0/8", fib.NextHop{Port: 1, Via: good.Via, Weight: 257}), []string{"weight 257", "scale"}},
		"family":      {forward("2001:db8::/32", good), []string{"2001:db8::/32", "give an IPv6 gateway"}},
		"zone":        {forward("2001:db8::/32", hop(1, "fe80::1%eth0")), []string{"fe80::1%eth0", "leave it out"}},
		"mapped via":  {forward("10.0.0.0/8", hop(1, "::ffff:192.0.2.1")), []string{"::ffff:192.0.2.1", "write it as IPv4"}},
		"multicast":   {forward("10.0.0.0/8", hop(1, "224.0.0.5")), []string{"224.0.0.5", "unicast"}},
		"unspecified": {forward("10.0.0.0/8", hop(1, "0.0.0.0")), []string{"0.0.0.0", "unicast"}},
		"kind miss":   {mod(ok, func(r *fib.Route) { r.Kind = fib.Miss }), []string{"unknown kind miss", "forward"}},
		"kind":        {mod(ok, func(r *fib.Route) { r.Kind = 77 }), []string{"unknown kind kind(77)"}},
		"connected":   {mod(ok, func(r *fib.Route) { r.Kind = fib.Connected }), []string{"connected", "gateway 192.0.2.1"}},
		"local":       {mod(ok, func(r *fib.Route) { r.Kind, r.NextHops = fib.Local, make([]fib.NextHop, 2) }), []string{"local", "give one"}},
		"source":      {mod(ok, func(r *fib.Route) { r.Source = ip("2001:db8::1") }), []string{"source 2001:db8::1", "family"}},
		"source zone": {mod(ok, func(r *fib.Route) { r.Source = ip("fe80::1%x") }), []string{"zone"}},
	} {
		t.Run(name, func(t *testing.T) {
			f, _ := newFIB(t)
			err := f.Replace(c.route)
			if !errors.Is(err, fib.ErrInvalid) {
				t.Fatalf("error %v, want ErrInvalid", err)
			}
			for _, part := range c.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q does not say %q", err, part)
				}
			}
			if err := f.Batch(func(tx *fib.Tx) error {
				if err := tx.Replace(ok); err != nil {
					return err
				}
				return tx.Replace(c.route)
			}); !errors.Is(err, fib.ErrInvalid) {
				t.Errorf("Batch: error %v, want ErrInvalid", err)
			}
			if s := f.Stats(); s.Routes4+s.Routes6 != 0 || s.Adjacencies != 4 {
				t.Errorf("the refused route left something: %+v", s)
			}
		})
	}
}

func TestAcceptedRoutes(t *testing.T) {
	f, r := newFIB(t)
	install(t, f,
		forward("10.5.0.0/16", hop(1, "fe80::1")),                                  // IPv4 via IPv6
		forward("0.0.0.0/0", hop(1, "192.0.2.1"), fib.NextHop{Port: 2, Weight: 3}), // a gateway and a link
		fib.Route{Table: mainTable, Prefix: pfx("10.4.0.0/16"), Kind: fib.Connected, NextHops: []fib.NextHop{{Port: 1}, {Port: 2}}},
		fib.Route{Table: mainTable, Prefix: pfx("127.0.0.1/32"), Kind: fib.Local, NextHops: []fib.NextHop{{Port: fib.NoPort}}})
	expect(t, r, "10.5.1.1", fib.Forward, "fe80::1")
	expect(t, r, "10.4.1.1", fib.Connected, "")
	if a := lookup(r, "127.0.0.1"); a.Kind != fib.Local || a.Port != fib.NoPort {
		t.Errorf("127.0.0.1: %+v", a)
	}
}

func TestDeleteNeedsTheExactKey(t *testing.T) {
	f, _ := newFIB(t)
	install(t, f, forward("10.0.0.0/8", hop(1, "192.0.2.1")))
	for _, k := range []fib.Key{
		{Table: mainTable, Prefix: netip.MustParsePrefix("10.0.0.1/8")},
		{Table: mainTable, Prefix: pfx("10.0.0.0/9")},
		{Table: mainTable, Prefix: pfx("10.0.0.0/8"), Metric: 1},
		{Table: mainTable, Prefix: pfx("10.0.0.0/8"), TOS: 4},
		{Table: 1, Prefix: pfx("10.0.0.0/8")},
		{Table: mainTable},
	} {
		if f.Delete(k) {
			t.Errorf("Delete(%+v) found something", k)
		}
	}
	if s := f.Stats(); s.DeletesAbsent != 6 || s.Routes4 != 1 {
		t.Errorf("stats %+v", s)
	}
}
