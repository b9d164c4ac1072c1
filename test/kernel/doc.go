// Package kernel compares gorouter with the kernel's IPv4 router: the same
// packets go through both, and what comes out has to be the same, ICMP errors
// included, but for differences that are written down here with their reason.
package kernel
