package queue

import "strconv"

// Mode says how a lock is held.
type Mode uint8

const (
	// Exclusive locks are held alone.
	Exclusive Mode = iota + 1

	// Shared locks are held together with other shared locks.
	Shared

	// Permit is one of a semaphore's permits.
	Permit
)

// String returns the mode's name in lower case.
func (m Mode) String() string {
	switch m {
	case Exclusive:
		return "exclusive"
	case Shared:
		return "shared"
	case Permit:
		return "permit"
	}
	return "mode(" + strconv.Itoa(int(m)) + ")"
}
