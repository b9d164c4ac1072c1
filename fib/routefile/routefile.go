// Package routefile reads route lists: one prefix a line, with an optional next
// hop and port.
//
//	# comment
//	192.0.2.0/24
//	198.51.100.0/24  10.0.0.1
//	2001:db8::/32    fe80::1  lan0
//
// Fields are separated by spaces or tabs. A line without a next hop leaves it to
// the caller where the route leads, as does one without a port. The list may be
// compressed with gzip. It is read as a stream, so a full Internet table takes
// no memory here.
package routefile

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/netip"

	"gorouter/internal/infile"
)

// Route is one line of a list.
type Route struct {
	Line   int // from 1
	Prefix netip.Prefix
	Via    netip.Addr // the zero Addr if the line has none
	Port   string     // "" if the line has none
}

// Options for reading. The zero value is good.
type Options struct {
	// Progress, if set, is called after every Every routes and at the end with
	// the number of routes so far.
	Progress func(routes int)
	// Every is 100,000 if 0.
	Every int
}

// maxLine is the longest line in bytes; anything longer is no route.
const maxLine = 4096

// ReadFile reads the list in a file, see Read. Errors name the file.
func ReadFile(name string, o Options, each func(Route) error) (int, error) {
	f, err := infile.Open(name)
	if err != nil {
		return 0, fmt.Errorf("read routes: %w", err)
	}
	defer f.Close()
	n, err := Read(f, o, each)
	if err != nil {
		return n, fmt.Errorf("routes file %s: %w", name, err)
	}
	return n, nil
}

// Read calls each for every route of the list, in order, and returns their
// number. It stops at the first error, of the list, which names the line, or of
// each, which is wrapped with the line. Prefixes must have no host bits, next
// hops must be plain unicast addresses; IPv4 prefixes may have IPv6 next hops.
func Read(r io.Reader, o Options, each func(Route) error) (int, error) {
	if o.Every <= 0 {
		o.Every = 100_000
	}
	in, err := plain(r)
	if err != nil {
		return 0, err
	}
	n, line := 0, 0
	scan := bufio.NewScanner(in)
	scan.Buffer(make([]byte, maxLine), maxLine)
	for scan.Scan() {
		line++
		route, ok, err := parse(scan.Bytes())
		if err == nil && ok {
			route.Line = line
			err = each(route)
		}
		if err != nil {
			return n, fmt.Errorf("line %d: %w", line, err)
		}
		if !ok {
			continue
		}
		if n++; n%o.Every == 0 && o.Progress != nil {
			o.Progress(n)
		}
	}
	switch err := scan.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return n, fmt.Errorf("line %d: longer than %d bytes", line+1, maxLine)
	case err != nil:
		return n, fmt.Errorf("line %d: %w", line+1, err)
	}
	if n%o.Every != 0 && o.Progress != nil {
		o.Progress(n)
	}
	return n, nil
}

// plain unpacks what begins like gzip.
func plain(r io.Reader) (io.Reader, error) {
	b := bufio.NewReaderSize(r, 64<<10)
	if magic, _ := b.Peek(2); !bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		return b, nil
	}
	z, err := gzip.NewReader(b)
	if err != nil {
		return nil, fmt.Errorf("unpack: %w", err)
	}
	return z, nil
}

// parse reads one line; false means that there is no route on it.
func parse(line []byte) (Route, bool, error) {
	if i := bytes.IndexByte(line, '#'); i >= 0 {
		line = line[:i]
	}
	var fields [3][]byte
	n := 0
	for f := range bytes.FieldsSeq(line) {
		if n == len(fields) {
			return Route{}, false, fmt.Errorf("more than a prefix, a next hop and a port: %q", f)
		}
		fields[n] = f
		n++
	}
	if n == 0 {
		return Route{}, false, nil
	}
	r := Route{Port: string(fields[2])}
	var err error
	if r.Prefix, err = netip.ParsePrefix(string(fields[0])); err != nil {
		return r, false, fmt.Errorf("prefix %q: want an address and a length, like 192.0.2.0/24", fields[0])
	}
	if r.Prefix.Addr().Is4In6() {
		return r, false, fmt.Errorf("prefix %s is IPv4-mapped: write it as IPv4", r.Prefix)
	}
	if m := r.Prefix.Masked(); m != r.Prefix {
		return r, false, fmt.Errorf("prefix %s has host bits set: use %s", r.Prefix, m)
	}
	if n > 1 {
		if r.Via, err = parseVia(fields[1], r.Prefix); err != nil {
			return r, false, err
		}
	}
	return r, true, nil
}

func parseVia(field []byte, p netip.Prefix) (netip.Addr, error) {
	via, err := netip.ParseAddr(string(field))
	switch {
	case err != nil:
		return via, fmt.Errorf("next hop %q: want an address", field)
	case via.Zone() != "":
		return via, fmt.Errorf("next hop %s has a zone: give the port as the third field", via)
	case via.Is4In6():
		return via, fmt.Errorf("next hop %s is IPv4-mapped: write it as IPv4", via)
	case via.IsUnspecified() || via.IsMulticast():
		return via, fmt.Errorf("next hop %s is not a unicast address", via)
	case via.Is4() && p.Addr().Is6():
		return via, fmt.Errorf("next hop %s of an IPv6 prefix is IPv4: give an IPv6 one", via)
	}
	return via, nil
}
