package fib

// tuning holds the sizes at which structures change. Tests lower them so that
// everything happens in small tables.
type tuning struct {
	promote4 int // prefixes from which an IPv4 table is DIR-24-8
	promote6 int // prefixes from which an IPv6 table has its direct table
	demote   int // a table goes back below 1/demote of the above

	results   int // result numbers of a FIB
	results16 int // of those, what 16-bit entries can hold
	groups16  int // extension groups of a 16-bit table
	groups32  int // extension groups of the first 32-bit table
}

// The measurements behind the thresholds are in docs/fib.md.
var defaultTuning = tuning{
	promote4:  4096,
	promote6:  2048,
	demote:    4,
	results:   1 << 21,
	results16: 1 << 15,
	groups16:  1 << 15,
	groups32:  1 << 17,
}
