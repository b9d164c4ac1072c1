//go:build !skbdebug

package rx

import (
	"testing"

	"gorouter/internal/inlinetest"
)

func TestHotFunctionsAreInlined(t *testing.T) {
	inlinetest.Require(t, "gorouter/rx", "(*E1000).at", "(*E1000).bad", "(*E1000).Replenish", "(*E1000).Ready")
}
