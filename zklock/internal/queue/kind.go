package queue

import (
	"fmt"
	"strconv"
)

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

// Kind is the kind of lock that a queue node is for. It decides which other contenders the
// node excludes. All contenders of one name must be of compatible kinds: see Conflict.
type Kind struct {
	Mode    Mode
	Permits int // the number of a semaphore's permits; 0 for the other kinds
}

// String describes the kind for an error.
func (k Kind) String() string {
	if k.Mode == Permit {
		return fmt.Sprintf("one of %d permits", k.Permits)
	}
	return "the " + k.Mode.String() + " lock"
}
