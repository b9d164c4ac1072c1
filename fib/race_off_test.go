//go:build !race

package fib_test

const raceEnabled = false
