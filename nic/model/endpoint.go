package model

// Endpoint is one end of a cable: a software chip, a generator, a sink, a
// file. Frames are without FCS. The cable calls both methods from the
// goroutine that steps it, so an endpoint needs no lock of its own against
// the cable.
type Endpoint interface {
	// Deliver hands over a frame that came over the cable. The slice is valid
	// only during the call. It reports whether the frame was taken; a frame
	// that was not is lost, and the endpoint counts it.
	Deliver(frame []byte) bool

	// Next returns the next frame to put on the cable, or nil when there is
	// none now. now is in nanoseconds. The slice stays valid until the next
	// call of Next.
	Next(now int64) []byte
}
