package middleware

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zklock/go-zklock/internal/served"
	"github.com/zklock/go-zklock/zklock"
)

// limit is when a request must have stopped waiting, so that its response still reaches the client.
type limit struct {
	served.Limit
	own bool // it is that of the request's context, and not the server's
}

// errDeadline is in the error of a request whose wait ended shortly before the deadline of its context.
var errDeadline = fmt.Errorf("middleware: the deadline of the request is near: %w", context.DeadlineExceeded)

// WithWriteTimeout sets until when the response to a request can be written, from when the middleware gets the
// request. The default is the http.Server's WriteTimeout: when that has passed, the client gets no response,
// and may send its request again while the handler of the first one still runs. So the wait of a
// request ends a little before: a tenth of the time, and one second at most. A request that has got its lock
// later is not served. The response is that to a wait that is over, with the status of WithStatus.
//
// The option is for requests whose write deadline an outer middleware has set, by
// http.ResponseController. With zero or less the wait is as long as WithWait says. A handler whose
// response takes long to write extends its write deadline itself, when it has the lock.
func WithWriteTimeout(d time.Duration) Option {
	return optionFunc(func(c *config) { c.writeTimeout = &d })
}

// limitOf returns the limit of a request with the context ctx, and the context for its lock.
func (c *config) limitOf(ctx context.Context) (_ context.Context, l limit) {
	ctx, l.Limit = served.LimitOf(ctx, c.writeTimeout)
	if at, ok := ctx.Deadline(); ok {
		if at = at.Add(-served.Room(time.Until(at))); l.At.IsZero() || at.Before(l.At) {
			l.At, l.own = at, true
		}
	}
	return ctx, l
}

// explain returns the error of a request that was not served, given that of its acquisition.
func (l limit) explain(err error) error {
	if l.own && l.Passed() && (errors.Is(err, zklock.ErrNotAcquired) || errors.Is(err, zklock.ErrUnavailable)) {
		return fmt.Errorf("%w: %w", errDeadline, err)
	}
	return err
}
