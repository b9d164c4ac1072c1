package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// syntax parses the text into the node of its one document; nil when it is not
// YAML that a configuration may be written in.
func (d *decoder) syntax(data []byte) *yaml.Node {
	if !utf8.Valid(data) {
		d.errorf(firstInvalid(data), "the file is not UTF-8 text: save it as UTF-8")
		return nil
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, next yaml.Node
	err := decodeNode(dec, &doc)
	if errors.Is(err, io.EOF) || err == nil && len(doc.Content) == 0 {
		d.errorf(Pos{1, 1}, "the configuration is empty: it needs at least ports")
		return nil
	}
	if err == nil {
		switch err = decodeNode(dec, &next); {
		case err == nil:
			d.errorf(at(&next), "a second YAML document begins here: a configuration is one document, remove the --- line")
			return nil
		case errors.Is(err, io.EOF):
			err = nil
		}
	}
	if err != nil {
		d.syntaxError(data, err)
		return nil
	}
	root := doc.Content[0]
	d.refuseCleverness(root)
	return root
}

// decodeNode guards against panics of the YAML library on hostile input.
func decodeNode(dec *yaml.Decoder, n *yaml.Node) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("yaml: not readable: %v", r)
		}
	}()
	return dec.Decode(n)
}

var (
	yamlLine    = regexp.MustCompile(`^line (\d+): `)
	yamlAnchor  = regexp.MustCompile(`^unknown anchor '(.*)' referenced`)
	colonEnd    = regexp.MustCompile(`[\[{,:]\s*::|::\s*[,\]}]`)
	tabIndented = regexp.MustCompile(`^ *\t\s*[^\s#]`)
)

// syntaxError reports what the YAML library says, with a line and in our words
// where the library's mislead.
func (d *decoder) syntaxError(data []byte, err error) {
	lines := splitLines(data)
	tabs := false
	for i, line := range lines {
		if tabIndented.MatchString(line) {
			tabs = true
			d.errorf(Pos{i + 1, strings.IndexByte(line, '\t') + 1}, "tab used for indentation, line %d: YAML wants spaces", i+1)
		}
	}
	if tabs {
		return // the library stumbled over them
	}
	msg, line := strings.TrimPrefix(err.Error(), "yaml: "), 1
	if m := yamlLine.FindStringSubmatch(msg); m != nil {
		line, _ = strconv.Atoi(m[1])
		msg = msg[len(m[0]):]
		// The library counts from 0 in what its parser finds, from 1 in what
		// its scanner finds.
		if strings.HasPrefix(msg, "did not find expected") {
			line++
		}
	}
	if m := yamlAnchor.FindStringSubmatch(msg); m != nil {
		msg = "*" + m[1] + " refers to an anchor that does not exist; text that begins with * must be in quotes"
		for i, l := range lines {
			if strings.Contains(l, "*"+m[1]) {
				line = i + 1
				break
			}
		}
	}
	p := clamp(lines, Pos{line, 1})
	text := lines[p.Line-1]
	p.Col = utf8.RuneCountInString(text) - utf8.RuneCountInString(strings.TrimLeft(text, " ")) + 1
	hint := ""
	if colonEnd.MatchString(text) {
		hint = " (inside { } and [ ], an address that begins or ends with a colon must be in quotes)"
	}
	d.errorf(p, "not valid YAML: %s%s", msg, hint)
}

// refuseCleverness complains about what YAML can do and a configuration has no
// use for: one thing then is written in one way, and no text can grow when it
// is read.
func (d *decoder) refuseCleverness(n *yaml.Node) {
	switch {
	case n.Kind == yaml.AliasNode:
		if !d.aliases[n.Value] {
			d.aliases[n.Value] = true
			d.errorf(at(n), "alias *%s: aliases are not supported, write the value out", n.Value)
		}
		return // what it refers to is in the tree already, and may contain it
	case n.Anchor != "":
		d.errorf(at(n), "anchor &%s: anchors are not supported, leave it out; text that begins with & must be in quotes", n.Anchor)
	case n.Style&yaml.TaggedStyle != 0:
		d.errorf(at(n), "tag %s: tags are not supported, leave it out; text that begins with ! must be in quotes", n.Tag)
	}
	for _, c := range n.Content {
		d.refuseCleverness(c)
	}
}

// breaks are the line ends of YAML besides the usual one.
var breaks = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n")

// splitLines cuts text as the YAML library counts lines.
func splitLines(data []byte) []string { return strings.Split(breaks.Replace(string(data)), "\n") }

func firstInvalid(data []byte) Pos {
	n := 0
	for n < len(data) {
		r, size := utf8.DecodeRune(data[n:])
		if r == utf8.RuneError && size <= 1 {
			break
		}
		n += size
	}
	lines := splitLines(data[:n])
	return Pos{len(lines), utf8.RuneCountInString(lines[len(lines)-1]) + 1}
}

// clamp moves a position behind the last line onto it.
func clamp(lines []string, p Pos) Pos {
	last := len(lines)
	if last > 1 && lines[last-1] == "" {
		last--
	}
	if p.Line <= last {
		return Pos{max(p.Line, 1), max(p.Col, 1)}
	}
	return Pos{last, min(p.Col, utf8.RuneCountInString(lines[last-1])+1)}
}
