package dataplane

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"testing"

	"github.com/google/gopacket/layers"

	"gorouter/fib"
	"gorouter/internal/inet"
)

func TestEchoReply(t *testing.T) {
	for _, dst := range []string{"192.0.2.1", "198.51.100.1", "203.0.113.1"} {
		for _, n := range []int{0, 1, 2, 17, 56, 999, 1472} {
			l := newLab(t)
			p := echo("192.0.2.2", dst)
			p.ttl, p.payload = 1, bytes.Repeat([]byte{0xa5}, n) // it has arrived, ttl 1 is enough
			in := p.bytes(t)
			orig := append([]byte(nil), packet(in)...)
			l.run(in)
			out := l.out(0)
			if len(out) != 1 {
				t.Fatalf("%s, %d bytes: %d answers, drops %v", dst, n, len(out), l.drops())
			}
			_, ip, dec := decode(t, out[0])
			ic := dec.Layer(layers.LayerTypeICMPv4).(*layers.ICMPv4)
			if ic.TypeCode != 0 || ic.Id != 7 || ic.Seq != 9 || !bytes.Equal(ic.Payload, orig[28:]) || inet.Checksum(out[0][34:]) != 0 {
				t.Errorf("%s, %d bytes: %v", dst, n, ic)
			}
			if ip.SrcIP.String() != dst || ip.DstIP.String() != "192.0.2.2" || ip.TTL != icmpTTL || int(ip.Length) != 28+n {
				t.Errorf("%s, %d bytes: %+v", dst, n, ip)
			}
			if s := l.r.Stats(); s.Answered != 1 || s.Originated != 0 || s.Forwarded != 0 || s.Drops.Total() != 0 {
				t.Errorf("counted %+v", s)
			}
		}
	}
}

func TestEchoReplyChecksumCorners(t *testing.T) {
	for _, c := range []struct {
		name    string
		id, seq uint16
		payload []byte
	}{
		{"all zero", 0, 0, make([]byte, 56)}, {"nothing at all", 0, 0, nil}, {"sum is all ones", 0xffff, 0, nil},
		{"sum before was 0xffff", 0xf7ff, 0, nil}, {"sum before was 0", 0xf7fe, 1, nil},
	} {
		l := newLab(t)
		p := echo("192.0.2.2", "192.0.2.1")
		p.transport = &layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(8, 0), Id: c.id, Seq: c.seq}
		p.payload = c.payload
		l.run(p.bytes(t))
		out := l.out(0)
		if len(out) != 1 {
			t.Errorf("%s: not answered, drops %v", c.name, l.drops())
			continue
		}
		f := append([]byte(nil), out[0]...)
		got := binary.BigEndian.Uint16(f[36:])
		f[36], f[37] = 0, 0
		if want := inet.Checksum(f[34:]); got != want || inet.Checksum(out[0][34:]) != 0 {
			t.Errorf("%s: checksum %#04x, want %#04x", c.name, got, want)
		}
	}
}

func TestEchoThatIsNotAnswered(t *testing.T) {
	for name, edit := range map[string]func(f []byte) []byte{
		"wrong checksum": func(f []byte) []byte { f[36] ^= 1; return f },
		"cut short":      func(f []byte) []byte { f[17] = 27; return resum(f) },
		"fragment":       func(f []byte) []byte { f[20] = 0x20; return resum(f) },
	} {
		l := newLab(t)
		l.run(edit(echo("192.0.2.2", "192.0.2.1").bytes(t)))
		if n := len(l.out(0)); n != 0 || l.r.Stats().Answered != 0 {
			t.Errorf("%s: answered", name)
		}
	}
}

// The reply goes by the route to the sender, which may be another port.
func TestEchoReplyFollowsTheRoutes(t *testing.T) {
	l := newLab(t)
	l.via("172.16.0.0/12", 2, "203.0.113.0")
	l.run(echo("172.16.5.5", "192.0.2.1").bytes(t))
	if out := l.out(2); len(out) != 1 || len(l.out(0)) != 0 {
		t.Errorf("drops %v", l.drops())
	}
	for i, k := range []fib.Kind{fib.Blackhole, fib.Prohibit, fib.Unreachable} {
		l.route(fib.Route{Prefix: netip.MustParsePrefix(fmt.Sprintf("172.%d.0.0/16", 20+i)), Kind: k})
		l.run(echo(fmt.Sprintf("172.%d.0.1", 20+i), "192.0.2.1").bytes(t))
	}
	if d := l.drops(); d["ip4_blackhole"] != 1 || d["ip4_prohibit"] != 1 || d["ip4_unreachable"] != 1 || len(d) != 3 {
		t.Errorf("drops %v", d)
	}
}
