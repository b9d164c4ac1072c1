package netlab

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// helperVariable makes the test program build a lab and wait to be ended.
const helperVariable = "NETLAB_TEST_HELPER"

func TestMain(m *testing.M) {
	code := Main(m)
	if code == 0 && os.Getenv(helperVariable) == "" {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}
