package ginlock

import (
	"errors"
	"net/http"

	"github.com/zklock/go-zklock/internal/served"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/fence"
)

// record adds an error to c.Errors, where gin's loggers look for it. A lock that is in use is an
// answer, and not a failure of the server: otelgin would make the span of each such request one with an
// error.
func record(r *http.Request, err error) {
	unavailable := errors.Is(err, zklock.ErrUnavailable) || errors.Is(err, zklock.ErrLost)
	if served.Over(r.Context()) {
		return // the *gin.Context may serve another request
	}
	if !unavailable && (errors.Is(err, zklock.ErrNotAcquired) || errors.Is(err, zklock.ErrTooManyWaiters)) {
		return
	}
	_ = callOf(r).gin.Error(&failure{err})
}

// failure is an error in c.Errors. Spans and logs get its text, so that has no name of a lock, no
// host and no label of another holder. errors.Is and errors.As find the error itself.
type failure struct{ cause error }

// Error implements error.
func (f *failure) Error() string {
	for _, known := range []error{zklock.ErrLost, fence.ErrStale, zklock.ErrInvalidName, zklock.ErrNoAuth, zklock.ErrUnavailable, zklock.ErrClosed, zklock.ErrConflict, zklock.ErrMisuse, zklock.ErrBadEnsemble} {
		if errors.Is(f.cause, known) {
			return "zklock: " + known.Error()
		}
	}
	return "zklock: the request was not served under its lock"
}

// Unwrap returns the error itself.
func (f *failure) Unwrap() error { return f.cause }
