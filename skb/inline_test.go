//go:build !skbdebug

package skb

import (
	"testing"

	"gorouter/internal/inlinetest"
)

func TestHotFunctionsAreInlined(t *testing.T) {
	inlinetest.Require(t, "gorouter/skb",
		"(*Arena).Meta", "(*Arena).Start", "(*Arena).Head", "(*Arena).Bytes",
		"(*Arena).Bus", "(*Arena).BusAt", "(*Arena).RefsAt",
		"(*Arena).Headspace", "(*Arena).Tailspace",
		"(*Arena).Push", "(*Arena).Pull", "(*Arena).Trim", "(*Arena).Reserve", "(*Arena).Clone",
		"(*Arena).SetOwner",
		"(*Batch).Add", "(*Batch).Full", "(*Batch).Reset", "(*Batch).Handles",
		"(*Cache).prepare", "(*Cache).release", "(*Meta).Refs", "storeRefs",
	)
}
