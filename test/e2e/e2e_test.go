package e2e

import (
	"os"
	"testing"

	"gorouter/test/netlab"
)

func TestMain(m *testing.M) { os.Exit(netlab.Main(m)) }
