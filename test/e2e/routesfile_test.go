package e2e

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gorouter/fib/fibtest"
	"gorouter/test/netlab"
)

// A table of many routes from a compressed file: the streams' destinations
// are routed by it alone.
func TestRoutesFile(t *testing.T) {
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "table.gz"))
	if err != nil {
		t.Fatal(err)
	}
	z := gzip.NewWriter(f)
	fmt.Fprintln(z, "# made by the test")
	for _, p := range fibtest.Table4(20000, 1) {
		fmt.Fprintln(z, p)
	}
	fmt.Fprintln(z, "10.0.0.0/8 198.51.100.2\n10.128.0.0/9 192.0.2.2 left")
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	demo, err := os.ReadFile("../../router.yaml")
	if err != nil {
		t.Fatal(err)
	}
	head, tail, ok := strings.Cut(string(demo), "routes:\n")
	if !ok {
		t.Fatal("no routes in the shipped configuration")
	}
	_, streams, _ := strings.Cut(tail, "pktgen:\n")
	write := func(routes string) string {
		file := filepath.Join(dir, "router.yaml")
		if err := os.WriteFile(file, []byte(head+routes+"pktgen:\n"+streams), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	name := f.Name()
	stdout, stderr, err := gorouter(t, "-c", write("routes_file: {file: "+name+", via: [198.51.100.2, 198.51.100.3]}\n"), "--duration", "300ms", "--json")
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	if !strings.Contains(stderr, "routes=20002") {
		t.Errorf("the number of routes is not said:\n%s", stderr)
	}
	var r netlab.Report
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatal(err)
	}
	balance(t, r, stdout)
	if r.Drops["ip4_no_route"] != 0 || r.Ports["right"].TxPackets == 0 || r.Ports["left"].TxPackets == 0 {
		t.Errorf("%+v %v", r.Ports, r.Drops)
	}
	for routes, want := range map[string]string{
		"routes_file: " + name + "\n":                "line 2: ",
		"routes_file: " + dir + "/absent\n":          "absent",
		"routes_file: {file: " + name + ", via: []}": "0 next hops",
	} {
		_, stderr, err := gorouter(t, "-c", write(routes+"\n"), "--duration", "100ms")
		if err == nil || !strings.Contains(stderr, want) || !strings.Contains(stderr, "routes_file") {
			t.Errorf("%s: %v, %s", routes, err, stderr)
		}
	}
}
