//go:build !skbdebug

package netlab

const debugBuild = false
