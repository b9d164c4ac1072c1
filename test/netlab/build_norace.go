//go:build !race

package netlab

const raceBuild = false
