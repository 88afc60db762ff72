package middleware

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/zklock/go-zklock/zklock"
)

// limit is when a request must have stopped waiting, so that its response still reaches the client. The zero
// limit is none.
type limit struct {
	at   time.Time
	own  bool      // it is that of the request's context
	conn time.Time // that of the connection, if it has one
}

var (
	// errLate is the error of a request that has got its lock when it cannot be answered in time any longer.
	errLate = fmt.Errorf("middleware: the server's WriteTimeout leaves no time to serve the request: %w", zklock.ErrNotAcquired)

	// errDeadline is in the error of a request whose wait ended shortly before the deadline of its context.
	errDeadline = fmt.Errorf("middleware: the deadline of the request is near: %w", context.DeadlineExceeded)
)

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

// limitOf returns the limit of a request, with the writer that the middleware got for it. The server counts
// from when it has read the request's header. An outer lock of this package got the request before this one.
func (c *config) limitOf(w http.ResponseWriter, r *http.Request) (l limit) {
	if d := c.writeTimeoutOf(r); d > 0 {
		if l.conn = outerLimit(w); l.conn.IsZero() {
			l.conn = time.Now().Add(d - room(d))
		}
		l.at = l.conn
	}
	if at, ok := r.Context().Deadline(); ok {
		if at = at.Add(-room(time.Until(at))); l.at.IsZero() || at.Before(l.at) {
			l.at, l.own = at, true
		}
	}
	return l
}

// writeTimeoutOf returns the time for the response to a request; zero or less: it is not limited.
func (c *config) writeTimeoutOf(r *http.Request) time.Duration {
	if c.writeTimeout != nil {
		return *c.writeTimeout
	}
	if s, ok := r.Context().Value(http.ServerContextKey).(*http.Server); ok {
		return s.WriteTimeout
	}
	return 0
}

// room returns how much of d is left for the response.
func room(d time.Duration) time.Duration { return max(0, min(d/10, time.Second)) }

// outerLimit returns the limit of the connection that an outer lock of this package has found.
func outerLimit(w http.ResponseWriter) time.Time {
	for {
		if outer, ok := w.(interface{ limited() time.Time }); ok {
			return outer.limited()
		}
		inner, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return time.Time{}
		}
		w = inner.Unwrap()
	}
}

// limited returns the limit of the connection.
func (w *writer) limited() time.Time { return w.limit.conn }

// passed reports whether the limit has passed.
func (l limit) passed() bool { return !l.at.IsZero() && !time.Now().Before(l.at) }

// within returns d, or the time until the limit if that is less.
func (l limit) within(d time.Duration) time.Duration {
	if l.at.IsZero() {
		return d
	}
	return min(d, time.Until(l.at))
}

// explain returns the error of a request that was not served, given that of its acquisition.
func (l limit) explain(err error) error {
	if l.own && l.passed() && (errors.Is(err, zklock.ErrNotAcquired) || errors.Is(err, zklock.ErrUnavailable)) {
		return fmt.Errorf("%w: %w", errDeadline, err)
	}
	return err
}
