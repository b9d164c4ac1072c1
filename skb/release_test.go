//go:build !skbdebug

package skb

import (
	"strings"
	"testing"
)

// TestDoubleFreeIsNotHandedOutTwice: the release build does not report a
// double free when it happens, but it does no harm to others and Audit finds it.
func TestDoubleFreeIsNotHandedOutTwice(t *testing.T) {
	a := newArena(t, Options{CacheSize: 16})
	c := a.NewCache("w")
	h := mustAlloc(t, c)
	cached := c.Cached()
	c.Free(h)
	c.Free(h)
	if c.Cached() != cached+1 {
		t.Errorf("%d cached, want %d", c.Cached(), cached+1)
	}
	if _, err := a.Audit(); err == nil || !strings.Contains(err.Error(), "lies in the cache of w with 4294967295 references") {
		t.Errorf("Audit says %v", err)
	}
	if Debug {
		t.Error("Debug is true without the tag skbdebug")
	}
}
