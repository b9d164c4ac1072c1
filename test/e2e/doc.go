// Package e2e has the end-to-end tests: the built program, run as a user runs
// it, between hosts in network namespaces or alone with its software ports.
package e2e
