//go:build race || skbdebug

package tx

// The instrumented builds are slow: they try fewer ring sizes.
const wrapStep = 64
