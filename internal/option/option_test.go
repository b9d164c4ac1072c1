package option

import (
	"strings"
	"testing"
	"time"
)

type things struct {
	Ring  int
	Mode  string
	On    bool
	Delay time.Duration
}

var table = Table[things]{
	{Name: "ring", Int: func(t *things) *int { return &t.Ring }, Min: 80, Max: 4096, Multiple: 8, DefInt: 256, Unit: "descriptors"},
	{Name: "mode", Str: func(t *things) *string { return &t.Mode }, Values: []string{"turn", "end"}, DefStr: "turn"},
	{Name: "on", Bool: func(t *things) *bool { return &t.On }, DefBool: true},
	{Name: "delay", Dur: func(t *things) *time.Duration { return &t.Delay }, Max: 1000, DefDur: time.Microsecond * 50},
}

func TestDefaultsPassTheirOwnCheck(t *testing.T) {
	v := table.Defaults()
	if v != (things{256, "turn", true, 50 * time.Microsecond}) {
		t.Errorf("defaults %+v", v)
	}
	if errs := table.Check(&v); errs != nil {
		t.Error(errs)
	}
}

func TestSet(t *testing.T) {
	for _, c := range []struct {
		name, text string
		ok         bool
	}{
		{"ring", "80", true}, {"ring", "4096", true}, {"ring", "79", false}, {"ring", "81", false}, {"ring", "4104", false},
		{"ring", "0x50", false}, {"ring", "0400", false}, {"ring", "1e3", false}, {"ring", "1_000", false}, {"ring", "", false}, {"ring", "-", false},
		{"mode", "end", true}, {"mode", "End", false},
		{"on", "false", true}, {"on", "no", false},
		{"delay", "1ms", true}, {"delay", "2ms", false}, {"delay", "10", false}, {"delay", "-1us", false},
	} {
		v := table.Defaults()
		s := table.Find(c.name)
		err := s.Set(&v, c.text)
		if (err == nil) != c.ok {
			t.Errorf("%s=%q: %v", c.name, c.text, err)
		}
		if err != nil {
			if v != table.Defaults() {
				t.Errorf("%s=%q changed the value although it failed", c.name, c.text)
			}
			if !strings.Contains(err.Error(), s.Expect()) || !strings.Contains(err.Error(), c.name) {
				t.Errorf("error does not say what was expected: %v", err)
			}
		} else if c.name != "delay" && s.Text(&v) != c.text {
			t.Errorf("%s=%q reads back %q", c.name, c.text, s.Text(&v))
		}
	}
}
