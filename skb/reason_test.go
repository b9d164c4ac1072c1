package skb

import (
	"maps"
	"regexp"
	"testing"
)

func TestReasonsAreNamedOnceAndExplained(t *testing.T) {
	snake := regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)
	seen := map[string]Reason{}
	for r := range Reason(NumReasons) {
		i := r.Info()
		if !snake.MatchString(i.Name) {
			t.Errorf("reason %d has the name %q", r, i.Name)
		}
		if r.String() != i.Name {
			t.Errorf("reason %d prints %q, is named %q", r, r.String(), i.Name)
		}
		if other, ok := seen[i.Name]; ok {
			t.Errorf("reasons %d and %d are both named %s", other, r, i.Name)
		}
		seen[i.Name] = r
		if len(i.Help) < 8 {
			t.Errorf("%s: help %q", i.Name, i.Help)
		}
		switch i.Severity.String() {
		case "normal", "protocol", "resource", "failure":
		default:
			t.Errorf("%s: severity %v", i.Name, i.Severity)
		}
	}
	if seen["none"] != ReasonNone {
		t.Error("no reason is not named none")
	}
	if got := Reason(255).Info(); got.Name != "unknown" || got.Help == "" {
		t.Errorf("a reason that does not exist is %+v", got)
	}
}

func TestDropCounts(t *testing.T) {
	var a, b DropCounts
	if a.Total() != 0 || len(a.Map()) != 0 {
		t.Fatal("a new count is not empty")
	}
	a[RxCRC], a[TxRingFull] = 3, 4
	b[TxRingFull], b[Shutdown] = 10, 1<<63
	a.Add(&b)
	want := map[string]uint64{"rx_crc": 3, "tx_ring_full": 14, "shutdown": 1 << 63}
	if got := a.Map(); !maps.Equal(got, want) {
		t.Errorf("Map = %v, want %v", got, want)
	}
	if a.Total() != 1<<63+17 {
		t.Errorf("Total = %d", a.Total())
	}
	if b[RxCRC] != 0 {
		t.Error("Add changed its argument")
	}
}
