package queue

import (
	"fmt"

	"github.com/zklock/go-zklock/zklock/internal/errs"
)

// Kind is what a queue node says it is: who it excludes follows from it, and
// contenders of one name have to be of kinds that know each other.
type Kind struct {
	Mode    Mode
	Permits int // of a semaphore; 0 for the others
}

// String describes the kind for an error.
func (k Kind) String() string {
	if k.Mode == Permit {
		return fmt.Sprintf("one of %d permits", k.Permits)
	}
	return "it " + k.Mode.String()
}

// KindConflict is the error of who meets a contender of a kind that
// does not know its own, see Conflict, and gives way.
func KindConflict(ahead Node) error {
	return fmt.Errorf("%w: %s is in the queue, wanting %v; all clients have to use one kind of lock for a name, and semaphores with the same number of permits",
		errs.ErrConflict, ahead.Name, ahead.Kind)
}
