//go:build race || skbdebug

package rx

// The instrumented builds are slow: they try fewer ring sizes.
const wrapStep = 64
