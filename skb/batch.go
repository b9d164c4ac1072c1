package skb

// BatchSize is the most frames a batch holds and the largest vector.
const BatchSize = 64

// Batch is a fixed array of handles that moves through the stages. It is
// reused and passed by pointer; it never allocates.
type Batch struct {
	N int
	H [BatchSize]Handle
}

// Add appends a handle. The batch must not be full.
func (b *Batch) Add(h Handle) {
	b.H[b.N&(BatchSize-1)] = h
	b.N++
}

// Reset empties the batch; it does not free what was in it.
func (b *Batch) Reset() { b.N = 0 }

// Full reports whether nothing more fits.
func (b *Batch) Full() bool { return b.N >= BatchSize }

// Handles is the filled part.
func (b *Batch) Handles() []Handle { return b.H[:b.N] }
