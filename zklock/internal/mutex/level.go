package mutex

// Level says whether another mutex may be locked under a mutex.
type Level interface{ outer() bool }

type (
	// Outer is the level of the mutexes of a local queue, which the goroutines of this process that want
	// one name share, and of the pool of sessions. Under one of them one Inner may be locked at a time:
	// what a queue or the pool decides depends on facts that others keep, such as the mode of a hold or
	// the end of a session, and it must not change between the facts and the decision.
	Outer struct{}

	// Inner is the level of all other mutexes. Under it no other is locked.
	Inner struct{}
)

func (Outer) outer() bool { return true }
func (Inner) outer() bool { return false }
