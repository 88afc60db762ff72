package driver

import "strconv"

// State is the state of a session, as far as this process knows it.
type State uint8

const (
	// Connected means that the newest handshake succeeded and its connection is not known
	// to be broken. It does not mean that the session is alive: a server that has lost its
	// leader keeps its connections for a while, and the leader may expire the session during
	// that time.
	Connected State = iota + 1

	// Suspended means that the session has no connection. The driver is trying to make
	// one, and the session may still be alive.
	Suspended

	// Expired means that the ensemble has expired the session. This state is final.
	Expired

	// Closed means that Close was called. This state is final.
	Closed
)

// String returns the state's name in lower case.
func (s State) String() string {
	switch s {
	case Connected:
		return "connected"
	case Suspended:
		return "suspended"
	case Expired:
		return "expired"
	case Closed:
		return "closed"
	}
	return "state(" + strconv.Itoa(int(s)) + ")"
}

// Final reports whether the state is one that a session never leaves.
func (s State) Final() bool { return s == Expired || s == Closed }
