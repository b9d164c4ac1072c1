// Command tool has the small helpers of ./test/run which a shell does badly.
//
//	tool digest       reads the events of go test -json from standard input,
//	                  prints one line per package and the output of what failed,
//	                  and fails when a test failed, was skipped, or none was seen
//	tool static FILE  fails unless FILE is a statically linked Go program
package main

import (
	"fmt"
	"os"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "test/tool:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 1 && args[0] == "digest":
		return digest(os.Stdin, os.Stdout)
	case len(args) == 2 && args[0] == "static":
		return static(args[1], os.Stdout)
	}
	return fmt.Errorf("usage: tool digest | tool static FILE")
}
