package config

import (
	"strconv"
	"time"

	"gopkg.in/yaml.v3"

	"gorouter/internal/option"
	"gorouter/nic/model"
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
	Mode   string
	Chip   string
	Bus    string
	TDH    string
	Seed   int
}

// ModelTable lists the options of a software 8254x.
var ModelTable = option.Table[ModelOptions]{
	{Name: "thread", DefBool: false,
		Help: "run the chip on a thread of its own; otherwise the poll loop steps it once a round, which is deterministic",
		Bool: func(o *ModelOptions) *bool { return &o.Thread }},
	{Name: "mode", Values: model.Modes(), DefStr: model.ModeStrict,
		Help: "strict stops at the first breach of the ring protocol and names the rule, lax behaves like hardware and says nothing, qemu behaves like QEMU's e1000",
		Str:  func(o *ModelOptions) *string { return &o.Mode }},
	{Name: "chip", Values: model.ChipNames(), DefStr: model.ChipNames()[0],
		Help: "which chip it is",
		Str:  func(o *ModelOptions) *string { return &o.Chip }},
	{Name: "bus", Values: busNames(), DefStr: UsualBus,
		Help: "which bus it sits on; usual is the chip's fastest conventional one",
		Str:  func(o *ModelOptions) *string { return &o.Bus }},
	{Name: "tdh", Values: []string{TDHFetched, TDHSent}, DefStr: TDHFetched,
		Help: "what the transmit head register shows: descriptors fetched, or frames sent",
		Str:  func(o *ModelOptions) *string { return &o.TDH }},
	{Name: "seed", Min: 0, Max: 1 << 30,
		Help: "decides what chip and cable do by chance",
		Int:  func(o *ModelOptions) *int { return &o.Seed }},
}

// FlapTable lists how the cable of a software 8254x is pulled out.
var FlapTable = option.Table[model.Flap]{
	{Name: "first", Max: maxFlap, DefDur: time.Second,
		Help: "when it is pulled out for the first time",
		Dur:  func(o *model.Flap) *time.Duration { return &o.First }},
	{Name: "down", Max: maxFlap,
		Help: "how long it stays out; 0 leaves it plugged in",
		Dur:  func(o *model.Flap) *time.Duration { return &o.Down }},
	{Name: "every", Max: maxFlap,
		Help: "time from one pull to the next; 0 pulls once",
		Dur:  func(o *model.Flap) *time.Duration { return &o.Every }},
	{Name: "count", Max: 1 << 30,
		Help: "pulls in all; 0 is no end",
		Int:  func(o *model.Flap) *int { return &o.Count }},
}

const maxFlap = 3600_000_000 // an hour, in microseconds

// UsualBus is ModelOptions.Bus of a chip on the bus it is usually found on.
const UsualBus = "usual"

func busNames() []string {
	names := []string{UsualBus}
	for _, b := range model.Buses() {
		names = append(names, b.Name)
	}
	return names
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
	// As everywhere, a number or time that is only out of range stands without
	// quotes, and what is none in quotes.
	shown, hint := strconv.Quote(text), suggest(text, s.Values)
	switch {
	case s.Int != nil:
		hint = plainNumber
		if _, err := option.ParseInt(text); err == nil {
			shown, hint = text, ""
		}
	case s.Dur != nil:
		if _, err := time.ParseDuration(text); err == nil && !quoted(n) {
			shown = text
		}
	}
	d.errorf(at(n), "%s is %s, expected %s%s", path, shown, want, hint)
}
