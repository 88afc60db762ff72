package queue

import (
	"fmt"

	"github.com/zklock/go-zklock/zklock/internal/errs"
)

// Kind is the kind of lock that a queue node is for. It decides which other contenders the
// node excludes. All contenders of one name must be of compatible kinds; see Conflict.
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

// KindConflict returns the error of a contender that gives way because a contender of an
// incompatible kind is ahead of it; see Conflict.
func KindConflict(ahead Node) error {
	return fmt.Errorf("%w: %s is in the queue and wants %v; all clients have to use one kind of lock for a name, and semaphores with the same number of permits",
		errs.ErrConflict, ahead.Name, ahead.Kind)
}
