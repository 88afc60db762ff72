package zklock

import "github.com/zklock/go-zklock/zklock/internal/queue"

// Mode says how a lock is held.
type Mode uint8

const (
	// Exclusive locks are held alone.
	Exclusive = Mode(queue.Exclusive)

	// Shared locks are held together with other shared ones.
	Shared = Mode(queue.Shared)

	// Permit is one of a semaphore's permits.
	Permit = Mode(queue.Permit)
)

// String returns the mode's name in lower case.
func (m Mode) String() string { return queue.Mode(m).String() }
