package port

import "testing"

func TestLinkMTUIsNeverAboveThePorts(t *testing.T) {
	p := &Port{MTU: 1500}
	told := 0
	p.Watch(func(*Port) { told++ })
	for _, c := range []struct{ set, want, told int }{
		{1500, 1500, 0}, {1200, 1200, 1}, {1200, 1200, 1}, {9000, 1500, 2}, {1500, 1500, 2}, {68, 68, 3},
	} {
		if p.SetLinkMTU(c.set); p.LinkMTU() != c.want || told != c.told {
			t.Errorf("set to %d: MTU %d, told %d times; want %d, %d", c.set, p.LinkMTU(), told, c.want, c.told)
		}
	}
}
