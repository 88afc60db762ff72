package corekit

import (
	"errors"

	"github.com/zklock/go-zklock/zklock"
)

// Branches are the errors of package zklock that have no parent, and do not come from a context.
var Branches = []error{zklock.ErrNotAcquired, zklock.ErrTooManyWaiters, zklock.ErrUnavailable, zklock.ErrLost, zklock.ErrReleasePending, zklock.ErrReleased,
	zklock.ErrClosed, zklock.ErrInvalidName, zklock.ErrConflict, zklock.ErrMisuse, zklock.ErrDeadlock, zklock.ErrNoAuth, zklock.ErrBadEnsemble, zklock.ErrUnknownOutcome}

// BranchesOf returns those that err matches.
func BranchesOf(err error) (of []error) {
	for _, b := range Branches {
		if errors.Is(err, b) {
			of = append(of, b)
		}
	}
	return of
}
