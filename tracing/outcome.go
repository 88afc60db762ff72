package tracing

import (
	"context"
	"errors"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
)

// outcome returns the outcome of an acquisition or a wait that ended with err. A wait
// for a session that fails is an error, even if the caller's deadline ended it: no
// other holder was the reason.
func outcome(err error) string {
	refused := errors.Is(err, zklock.ErrNotAcquired)
	switch {
	case err == nil:
		return OutcomeAcquired
	case errors.Is(err, zklock.ErrDeadlock): // also that of a wait: programs acquire in a wrong order
		return OutcomeError
	case errors.Is(err, context.Canceled) && (refused || errors.Is(err, zklock.ErrUnavailable)):
		return OutcomeCanceled
	case refused && errors.Is(err, context.DeadlineExceeded):
		return OutcomeTimeout
	case refused, errors.Is(err, zklock.ErrTooManyWaiters):
		return OutcomeContended
	case errors.Is(err, zklock.ErrLost):
		return OutcomeLost
	}
	return OutcomeError
}

// failed reports whether an outcome is a failure. Outcomes that the caller's own limit or
// context caused are not.
func failed(outcome string) bool { return outcome == OutcomeLost || outcome == OutcomeError }

// errorTypes are the values of error.type. The first match counts, so the more specific
// errors come first. But the errors of a loss, of a refusal and of a missing session come
// before their causes, which they wrap: operators group by the former.
var errorTypes = []struct {
	err  error
	name string
}{
	{zklock.ErrReleasePending, "release_pending"},
	{zklock.ErrReleased, "released"},
	{zklock.ErrMaxHold, "max_hold"},
	{zklock.ErrLost, "lost"},
	{zklock.ErrDeadlock, "deadlock"},
	{zklock.ErrConflict, "conflict"},
	{zklock.ErrInvalidName, "invalid_name"},
	{zklock.ErrNoAuth, "no_auth"},
	{zklock.ErrMisuse, "misuse"},
	{zklock.ErrTooManyWaiters, "too_many_waiters"},
	{zklock.ErrUnavailable, "unavailable"},
	{zklock.ErrUnknownOutcome, "unknown_outcome"},
	{zklock.ErrClosed, "closed"},
	{zklock.ErrNotAcquired, "not_acquired"},
	{driver.ErrConnLoss, "connection_loss"},
	{driver.ErrNotSent, "not_sent"},
	{driver.ErrSessionExpired, "session_expired"},
	{driver.ErrClosed, "session_closed"},
	{driver.ErrNoNode, "no_node"},
	{driver.ErrNodeExists, "node_exists"},
	{driver.ErrNotEmpty, "not_empty"},
	{driver.ErrBadVersion, "bad_version"},
	{driver.ErrNoChildrenForEphemerals, "no_children_for_ephemerals"},
	{driver.ErrNoAuth, "no_auth"},
	{driver.ErrAuthFailed, "auth_failed"},
	{driver.ErrInvalidACL, "invalid_acl"},
	{driver.ErrBadArguments, "bad_arguments"},
	{driver.ErrUnimplemented, "unimplemented"},
	{driver.ErrTooLarge, "too_large"},
	{driver.ErrReplyTooLarge, "reply_too_large"},
	{driver.ErrThrottled, "throttled"},
	{driver.ErrQuotaExceeded, "quota_exceeded"},
	{driver.ErrRolledBack, "rolled_back"},
	{driver.ErrProtocol, "protocol"},
	{driver.ErrTLS, "tls"},
	{context.DeadlineExceeded, "deadline_exceeded"},
	{context.Canceled, "canceled"},
}

// otherError is the error.type of all other errors, as OpenTelemetry's conventions
// define it.
const otherError = "_OTHER"

// errorType returns an error's error.type; "" if err is nil.
func errorType(err error) string {
	if err == nil {
		return ""
	}
	if reason := zklock.Reason(err); reason != "" { // of a zklock.ErrBadEnsemble: what to do depends on it
		return reason
	}
	for _, t := range errorTypes {
		if errors.Is(err, t.err) {
			return t.name
		}
	}
	return otherError
}

// lossType returns the error.type of a loss: "closed" if the Client was closed, otherwise
// "lost".
func lossType(err *zklock.LostError) string {
	if errors.Is(err.Cause, zklock.ErrClosed) {
		return "closed"
	}
	return "lost"
}
