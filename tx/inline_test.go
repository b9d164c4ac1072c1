//go:build !skbdebug

package tx

import (
	"testing"

	"gorouter/internal/inlinetest"
)

func TestHotFunctionsAreInlined(t *testing.T) {
	inlinetest.Require(t, "gorouter/tx", "(*E1000).at", "(*E1000).after", "(*E1000).last", "(*E1000).waiting")
}
