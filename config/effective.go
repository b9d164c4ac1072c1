package config

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// Effective writes the configuration with all defaults filled in, as YAML with
// the range of each option beside it. Read again it gives the same
// configuration, whatever the defaults are by then.
func (c *Config) Effective(w io.Writer) error {
	b := bufio.NewWriter(w)
	for _, it := range c.tree().kids {
		it.print(b, 0)
	}
	return b.Flush()
}

// noteColumn is where notes begin.
const noteColumn = 36

func (it *item) print(b *bufio.Writer, depth int) {
	it.line(b, strings.Repeat("  ", depth), depth)
}

// line prints the item, the first line after lead.
func (it *item) line(b *bufio.Writer, lead string, depth int) {
	switch {
	case it.kids == nil && it.text == "" && it.list:
		fmt.Fprintf(b, "%s%s: []\n", lead, quote(it.name))
	case it.kids == nil || it.flow:
		text := fmt.Sprintf("%s%s: %s", lead, quote(it.name), it.inline())
		if it.note != "" {
			text = fmt.Sprintf("%-*s # %s", noteColumn, text, it.note)
		}
		fmt.Fprintln(b, text)
	default:
		fmt.Fprintf(b, "%s%s:\n", lead, quote(it.name))
		indent := strings.Repeat("  ", depth+1)
		for i := range it.kids {
			k := &it.kids[i]
			switch {
			case !it.list:
				k.print(b, depth+1)
			case k.flow || k.kids == nil:
				fmt.Fprintf(b, "%s- %s\n", indent, k.inline())
			default:
				for j := range k.kids {
					lead := indent + "  "
					if j == 0 {
						lead = indent + "- "
					}
					k.kids[j].line(b, lead, depth+2)
				}
			}
		}
	}
}

// inline is the value of an item on one line.
func (it *item) inline() string {
	if it.text != "" {
		return it.text
	}
	parts := make([]string, len(it.kids))
	for i := range it.kids {
		parts[i] = it.kids[i].inline()
		if !it.list {
			parts[i] = quote(it.kids[i].name) + ": " + parts[i]
		}
	}
	if it.list {
		return "[" + strings.Join(parts, ", ") + "]"
	}
	return "{" + strings.Join(parts, ", ") + "}"
}
