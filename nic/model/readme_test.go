package model

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// listed is the first column of the table under a heading of the README.
func listed(t *testing.T, readme, heading string) (names []string) {
	t.Helper()
	_, rest, ok := strings.Cut(readme, "\n## "+heading+"\n")
	if !ok {
		t.Fatalf("README has no section %q", heading)
	}
	body, _, _ := strings.Cut(rest, "\n## ")
	for _, l := range strings.Split(body, "\n") {
		if name, ok := strings.CutPrefix(l, "| `"); ok {
			name, _, _ = strings.Cut(name, "`")
			names = append(names, name)
		}
	}
	return names
}

// TestReadmeListsWhatThereIs, with the same words.
func TestReadmeListsWhatThereIs(t *testing.T) {
	b, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	readme := string(b)
	var ruleNames, faultNames []string
	for r := range Rule(NumRules) {
		ruleNames = append(ruleNames, r.String())
		if i := r.Info(); !strings.Contains(readme, "| `"+i.Name+"` | "+i.Text+" | "+i.Section+" |") {
			t.Errorf("rule %s does not read as in the code: | `%s` | %s | %s |", i.Name, i.Name, i.Text, i.Section)
		}
	}
	for k := range FaultKind(NumFaults) {
		faultNames = append(faultNames, k.String())
		i := k.Info()
		ends := "Clear"
		if i.Reset {
			ends = "reset, Clear"
		}
		if !strings.Contains(readme, "| `"+i.Name+"` | "+i.Text+" | "+i.Event+" | "+ends+" |") {
			t.Errorf("fault %s does not read as in the code: | `%s` | %s | %s | %s |", i.Name, i.Name, i.Text, i.Event, ends)
		}
	}
	var busNames []string
	for _, x := range Buses() {
		busNames = append(busNames, x.Name)
	}
	for heading, want := range map[string][]string{
		"Rules": ruleNames, "Faults": faultNames, "Chips": ChipNames(), "Modes": Modes(),
		"Buses": busNames, "Impairments": ImpairmentTable.Names(),
	} {
		if got := listed(t, readme, heading); !slices.Equal(got, want) {
			t.Errorf("section %s lists\n%v, the code has\n%v", heading, got, want)
		}
	}
}
