package worker

// The requests of locktest.
const (
	Acquire = "acquire" // wait for the lock
	Check   = "check"   // does the library believe that it holds the lock?
	Release = "release" // give the lock back
)

// The answers of a worker.
const (
	Ready    = "ready"    // the worker takes requests
	Granted  = "granted"  // the library has granted the lock
	Held     = "held"     // the library believes that it holds the lock
	Lost     = "lost"     // the library has reported that the lock is lost
	Released = "released" // the release is over
	Failed   = "failed"   // the acquisition or the release failed
)

// Message is one line of the protocol, in either direction.
type Message struct {
	// Op is the request or the answer, one of this package's constants.
	Op string `json:"op"`

	// ID is the number of the acquisition. It is unique in a run.
	ID int `json:"id,omitempty"`

	// Name is the name of the lock. Names with + between them are several, which the client wants to hold at once.
	Name string `json:"name,omitempty"`

	// Holding is the number of the acquisition whose lock the client of an acquire holds while it waits, the
	// newest one; 0: it holds none. The acquire of that one has named the one before.
	Holding int `json:"holding,omitempty"`

	// Shared reports that an acquire asks for a lock that others may hold shared at the same time, as readers do.
	Shared bool `json:"shared,omitempty"`

	// Permits is of how many permits of the name an acquire asks for one; 0: it asks for the whole lock.
	Permits int `json:"permits,omitempty"`

	// Token is the fencing token of a lock that was granted; "": the library has none.
	Token string `json:"token,omitempty"`

	// Reason is why an acquisition or a release failed.
	Reason string `json:"reason,omitempty"`
}
