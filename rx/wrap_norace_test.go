//go:build !race && !skbdebug

package rx

// wrapStep is the step of the tested ring sizes, in units of RingStep.
const wrapStep = 1
