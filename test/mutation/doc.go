// Package mutation switches the rules of IPv4 off, one at a time, and sees the
// test that proves each rule fail. The rules are those of docs/conformance.md,
// which names test and mutation in every row.
//
// All mutations are compiled into one test program at once, each behind a
// switch that only exists in that program (go build -overlay); the sources are
// not touched and a release has none of it.
package mutation
