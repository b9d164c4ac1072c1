package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// Pos is a place in a file; lines and columns count from 1, columns in
// characters. The zero Pos means no place in particular.
type Pos struct{ Line, Col int }

// Error is one problem of a file.
type Error struct {
	File string
	Pos  Pos
	Err  error
}

// Error is "file:line:column: message".
func (e *Error) Error() string {
	if e.Pos == (Pos{}) {
		return fmt.Sprintf("%s: %v", e.File, e.Err)
	}
	return fmt.Sprintf("%s:%d:%d: %v", e.File, e.Pos.Line, e.Pos.Col, e.Err)
}

// Unwrap gives the message without the place.
func (e *Error) Unwrap() error { return e.Err }

// Errors are all problems of a file, in the order of the file.
type Errors []*Error

// Error has one line for each problem.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, x := range e {
		lines[i] = x.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap lists the problems for errors.Is and errors.As.
func (e Errors) Unwrap() []error {
	list := make([]error, len(e))
	for i, x := range e {
		list[i] = x
	}
	return list
}

func (e Errors) sort() {
	slices.SortStableFunc(e, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Pos.Col, b.Pos.Col))
	})
}

// decoder carries what decoding and checking share.
type decoder struct {
	cfg  *Config
	errs Errors
	// hidden says that a port or an address of it could not be read, so that
	// a missing port or network may only be a consequence.
	hidden bool
	byName map[string]int // index of each port
	// portHints remembers suggestions for port names that do not exist.
	portHints map[string]string
	// workerCount bounds the workers that ports may name.
	workerCount int

	networks networks       // of the ports' addresses
	links    networks       // of routes that are on a link
	onLink   map[place]bool // next hops declared on-link
	// Paths of the items that made it into the lists.
	neighborPaths, streamPaths []string
	aliases                    map[string]bool // reported
}

func (d *decoder) errorf(p Pos, format string, args ...any) {
	d.errs = append(d.errs, &Error{File: d.cfg.File, Pos: p, Err: fmt.Errorf(format, args...)})
}

func at(n *yaml.Node) Pos { return Pos{n.Line, n.Column} }

// mark remembers where a key was given.
func (d *decoder) mark(path string, n *yaml.Node) { d.cfg.where[path] = at(n) }
