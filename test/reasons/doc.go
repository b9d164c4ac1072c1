// Package reasons brings about every drop reason by the real components: rings
// driven on software chips, capture files, slots of packet rings and the router
// between them. Each frame has to end under its reason, once, and under no
// other, with every buffer back where it came from.
package reasons
