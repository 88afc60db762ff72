package election

import (
	"errors"
	"fmt"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
)

// ErrStop ends a candidacy: if the function of [Election.Run] returns an error that matches
// ErrStop, Run resigns and returns nil.
var ErrStop = errors.New("the leader has ended its candidacy")

// ErrNoLeader means that no candidate leads at the moment.
var ErrNoLeader = errors.New("no candidate leads")

// Mistakes in the program.
var (
	errNoLead     = misuse("the function is nil: pass the work of the leader")
	errNoElection = misuse("the Election was not made by New")
	errCarried    = errs.Case(zklock.ErrDeadlock, "the context carries a lock of this name, so the candidate would wait for itself: stand with a context that does not carry it")
)

// misuse returns an error for a mistake in the program.
func misuse(text string) error {
	return fmt.Errorf("%w: %s", zklock.ErrMisuse, text)
}

// final are the errors that end a candidacy for good: no candidate of this client can lead any
// longer.
var final = []error{zklock.ErrClosed, zklock.ErrInvalidName, zklock.ErrConflict, zklock.ErrMisuse, zklock.ErrDeadlock, errs.ErrTokenRegression}

// isFinal reports whether standing again is useless after err. It is not after a conflict with another
// program's ephemeral znode, which goes with its session.
func isFinal(err error) bool {
	if errors.Is(err, driver.ErrNoChildrenForEphemerals) {
		return false
	}
	for _, f := range final {
		if errors.Is(err, f) {
			return true
		}
	}
	return false
}
