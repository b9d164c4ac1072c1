package config

import (
	"gopkg.in/yaml.v3"

	"gorouter/internal/option"
)

// What a software chip shows in its transmit head register.
const (
	// TDHFetched: descriptors that the chip has fetched.
	TDHFetched = "fetched"
	// TDHSent: descriptors whose frames are on the wire.
	TDHSent = "sent"
)

// PacketOptions are the options of a port over a kernel interface.
type PacketOptions struct {
	Isolation   string
	SuperFrames string
}

// PacketTable lists the options of a port over a kernel interface.
var PacketTable = option.Table[PacketOptions]{
	{Name: "isolation", Values: []string{"auto", "tcx", "clsact", "off"}, DefStr: "auto",
		Help: "how the kernel is kept from answering and forwarding what arrives: by a BPF link (tcx), by a filter (clsact), by the better of the two (auto), or not at all (off)",
		Str:  func(o *PacketOptions) *string { return &o.Isolation }},
	{Name: "super_frames", Values: []string{"segment", "drop"}, DefStr: "segment",
		Help: "what becomes of several segments in one frame, as senders on this machine make them: cut into frames again, or dropped as rx_super_frame",
		Str:  func(o *PacketOptions) *string { return &o.SuperFrames }},
}

// ModelOptions are the options of a software 8254x.
type ModelOptions struct {
	Thread bool
	Strict bool
	TDH    string
}

// ModelTable lists the options of a software 8254x.
var ModelTable = option.Table[ModelOptions]{
	{Name: "thread", DefBool: false,
		Help: "run the chip on a thread of its own; otherwise the poll loop steps it once a round, which is deterministic",
		Bool: func(o *ModelOptions) *bool { return &o.Thread }},
	{Name: "strict", DefBool: true,
		Help: "stop at the first breach of the ring protocol and name the rule",
		Bool: func(o *ModelOptions) *bool { return &o.Strict }},
	{Name: "tdh", Values: []string{TDHFetched, TDHSent}, DefStr: TDHFetched,
		Help: "what the transmit head register shows: descriptors fetched, or frames sent",
		Str:  func(o *ModelOptions) *string { return &o.TDH }},
}

// options decodes a mapping that has the options of one table and nothing else.
func options[T any](d *decoder, n *yaml.Node, path string, t option.Table[T], v *T) {
	if f, ok := d.fields(n, path, t.Names()); ok {
		setOptions(d, f, path, t, v)
	}
}

// setOptions sets those options of a table that are among the fields.
func setOptions[T any](d *decoder, f map[string]*yaml.Node, path string, t option.Table[T], v *T) {
	for i := range t {
		if n := f[t[i].Name]; n != nil {
			setOption(d, n, path+"."+t[i].Name, &t[i], v)
		}
	}
}

func setOption[T any](d *decoder, n *yaml.Node, path string, s *option.Spec[T], v *T) {
	d.mark(path, n)
	want := ascii(s.Expect())
	text, ok := d.raw(n, path, want)
	if !ok {
		return
	}
	if quoted(n) && (s.Int != nil || s.Bool != nil) {
		d.errorf(at(n), "%s is %q in quotes, expected %s without quotes", path, text, want)
		return
	}
	if s.Set(v, text) == nil {
		return
	}
	hint := suggest(text, s.Values)
	if s.Int != nil {
		if _, err := option.ParseInt(text); err != nil {
			hint = plainNumber
		}
	}
	d.errorf(at(n), "%s is %q, expected %s%s", path, text, want, hint)
}
