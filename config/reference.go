package config

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"gorouter/dataplane"
	"gorouter/dataplane/neigh"
	"gorouter/nic/model"
	"gorouter/pktgen"
	"gorouter/rx"
	"gorouter/skb"
	"gorouter/tx"
)

// Reference writes the tables of all keys of router.yaml as Markdown.
func Reference(w io.Writer) error {
	b := bufio.NewWriter(w)
	for _, s := range []struct {
		title string
		keys  []key
	}{
		{"router.yaml", topKeys},
		{"workers", workerKeys},
		{"poll", rows(dataplane.OptionTable)},
		{"ip", rows(dataplane.IPTable)},
		{"neigh", rows(neigh.OptionTable)},
		{"buffers", rows(skb.OptionTable)},
		{"ports.NAME", portKeys},
		{"ports.NAME.model", rows(ModelTable)},
		{"ports.NAME.impair", rows(model.ImpairmentTable)},
		{"ports.NAME.flap", rows(FlapTable)},
		{"ports.NAME.packet", rows(PacketTable)},
		{"ports.NAME.rx", rows(rx.OptionTable)},
		{"ports.NAME.tx", rows(tx.OptionTable)},
		{"routes", routeKeys},
		{"routes.via", hopKeys},
		{"routes_file", routesFileKeys},
		{"neighbors", neighborKeys},
		{"pktgen", pktgenKeys},
		{"pktgen.streams", append(append([]key{}, streamKeys...), rows(pktgen.StreamTable)...)},
	} {
		fmt.Fprintf(b, "## %s\n\n| Key | Values | Default | Meaning |\n|---|---|---|---|\n", s.title)
		for _, k := range s.keys {
			fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", k.name, cell(k.values), cell(k.def), cell(k.help))
		}
		fmt.Fprintln(b)
	}
	return b.Flush()
}

func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
