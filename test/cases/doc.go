// Package cases holds the list of what went wrong in other routers, drivers and
// parsers according to their public bug reports (cases.csv), each with the tests
// that show it does not go wrong here, or with the part that it waits for.
package cases
