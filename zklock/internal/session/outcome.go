package session

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
)

// Transient reports whether an operation that failed with err may succeed the next time.
func Transient(err error) bool {
	return errors.Is(err, driver.ErrConnLoss) || errors.Is(err, driver.ErrNotSent) || errors.Is(err, driver.ErrThrottled) ||
		errors.Is(err, context.DeadlineExceeded)
}

// Permanent reports whether trying again does not help against err.
func Permanent(err error) bool {
	return slices.ContainsFunc([]error{
		errs.ErrSessionTimeout, errs.ErrRootMissing, errs.ErrNoAuth, errs.ErrConflict, driver.ErrAuthFailed, driver.ErrInvalidACL,
		driver.ErrBadArguments, driver.ErrQuotaExceeded, driver.ErrProtocol, driver.ErrTLS, driver.ErrClosed,
	}, func(permanent error) bool { return errors.Is(err, permanent) })
}

// AtFault returns the index of the operation that made a transaction fail; -1 if that operation
// is not among results.
func AtFault(results []driver.OpResult) int {
	return slices.IndexFunc(results, func(r driver.OpResult) bool { return r.Err != nil && !errors.Is(r.Err, driver.ErrRolledBack) })
}

// isLoss reports whether a session with this cause is lost. The others are that
// the client was closed, and that the session was ended on purpose.
func isLoss(cause error) bool { return cause != errs.ErrClosed && cause != errs.ErrSessionEnded }

// lossText returns the text of the log line for the loss of n locks; "" for none.
func lossText(n int, cause error) string {
	switch {
	case isLoss(cause) && cause != errs.ErrNodeDeleted && n > 0:
		return "zklock: session lost, and its locks with it; another session takes its place"
	case isLoss(cause) && cause != errs.ErrNodeDeleted:
		return "zklock: session lost, another one takes its place"
	case n == 1:
		return "zklock: lock lost"
	case n > 1:
		return "zklock: locks lost"
	}
	return ""
}

// HexID returns a session's id for the log, as ZooKeeper's own tools print it.
func HexID(id int64) string { return fmt.Sprintf("%#x", uint64(id)) }
