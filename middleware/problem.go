package middleware

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/zklock/go-zklock/internal/served"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/fence"
)

// The values of the member "reason" of an error response. Programs should use it
// and must not depend on title or detail. Except for ReasonBody, package
// interceptors has the same reasons in its ErrorInfo.
const (
	// ReasonContended means that another holder has the lock. The handler has
	// not run.
	ReasonContended = "LOCK_CONTENDED"

	// ReasonDeadlock means that the request's wait for its lock was ended, because it would
	// never have ended: see zklock.DeadlockError. The handler has not run. A sender that holds
	// locks should release them, and then begin again.
	ReasonDeadlock = "LOCK_DEADLOCK"

	// ReasonUnavailable means that no lock could be acquired, because the
	// ensemble cannot be reached or has lost transactions, or the Client was closed.
	// The handler has not run.
	ReasonUnavailable = "LOCK_UNAVAILABLE"

	// ReasonLost means that the lock was lost while the handler ran. The handler's
	// work may be done, half done or not done, and another holder may have worked
	// at the same time. No other reason is sent after the handler has run.
	ReasonLost = "LOCK_LOST"

	// ReasonName means that the request does not name a lock, or that the name is
	// invalid. The handler has not run.
	ReasonName = "LOCK_NAME"

	// ReasonStale means that the request was sent on behalf of a lock that has a
	// newer holder by now. The handler has not run.
	ReasonStale = "LOCK_STALE"

	// ReasonBody means that the request's body took longer to arrive than a
	// request may wait for its lock. The handler has not run.
	ReasonBody = "LOCK_BODY"

	// ReasonError means that the server's program or its set-up is at fault. The
	// server has logged the error. The handler has not run.
	ReasonError = "LOCK_ERROR"
)

// problem is the content of an error response.
type problem struct {
	status int
	reason string
	detail string
	retry  bool // with Retry-After
}

// classify returns the error response to a request whose context is ctx and whose
// lock failed with err. All cases are decided here.
func (c *config) classify(ctx context.Context, err error) problem {
	is := func(target error) bool { return errors.Is(err, target) }
	switch {
	case is(fence.ErrStale):
		return problem{http.StatusConflict, ReasonStale, "The lock of this request has a newer holder. Acquire it again before you repeat the request.", false}
	case is(errBadSequencer):
		return problem{http.StatusBadRequest, ReasonName, "The request's sequencer header is malformed.", false}
	case is(errSlowBody):
		return problem{http.StatusRequestTimeout, ReasonBody, "The request's body took too long to arrive. Send the request again.", true}
	case is(errHandled):
		// No Retry-After: how much of its work the handler has done is unknown.
		return problem{c.lostStatus, ReasonLost, "The lock was lost while the request was served. Its work may be done, half done or not done: check before you repeat it.", false}
	case is(zklock.ErrLost):
		return tryLater // before the handler has run
	case ctx.Err() != nil && is(ctx.Err()), is(errDeadline):
		return ended(ctx, is(zklock.ErrUnavailable))
	case is(zklock.ErrInvalidName):
		return problem{http.StatusBadRequest, ReasonName, "The value that names the lock is missing from the request, or is not allowed.", false}
	case is(zklock.ErrUnavailable), is(zklock.ErrClosed), zklock.Reason(err) == "token_regression":
		return tryLater
	case errors.As(err, new(*zklock.DeadlockError)):
		return problem{c.status, ReasonDeadlock, "The wait for the lock was part of a deadlock, and was ended. Release the locks that you hold, and begin again.", true}
	case is(zklock.ErrNotAcquired), is(zklock.ErrTooManyWaiters):
		return problem{c.status, ReasonContended, "The lock is in use. Try again later.", true}
	}
	return programsFault
}

// errHandled is in the error of a request whose lock was lost while its handler ran.
var errHandled = errors.New("the handler has run")

// handled is a loss that came while the handler ran. Its text is the loss's.
type handled struct{ error }

// Unwrap lets errors.Is and errors.As find the loss.
func (h handled) Unwrap() []error { return []error{h.error, errHandled} }

// tryLater is the response to a request that may be sent again.
var tryLater = problem{http.StatusServiceUnavailable, ReasonUnavailable, "No lock can be acquired at the moment. Try again later.", true}

// programsFault is the response to errors that the client cannot avoid.
var programsFault = problem{http.StatusInternalServerError, ReasonError, "The server failed to acquire the lock, and has logged the reason.", false}

// ended returns the response for a wait that the request's own context has ended.
func ended(ctx context.Context, unavailable bool) problem {
	p := problem{http.StatusServiceUnavailable, ReasonContended, "The request's deadline passed before it got the lock.", true}
	if ctx.Err() == context.Canceled {
		// Either the server has canceled the request because the client has
		// disconnected, or an outer middleware has, and the client still waits.
		// The two look the same here. A client that has disconnected gets no
		// response, but outer loggers must not see a 200 in either case.
		p.detail = "The request was canceled before it got the lock."
	}
	if unavailable {
		p.reason = ReasonUnavailable
	}
	return p
}

// observe calls the observers with an error.
func (c *config) observe(r *http.Request, err error) {
	for _, f := range c.observers {
		f(r, err)
	}
}

// fail writes the error response to a request that has no response yet, unless the response belongs to others.
func (c *config) fail(w http.ResponseWriter, r *http.Request, err error) {
	c.observe(r, err)
	if served.Over(r.Context()) {
		return
	}
	p := c.classify(r.Context(), err)
	if p.reason == ReasonError {
		// The program is at fault, and the response does not describe the error.
		c.logger.ErrorContext(r.Context(), "middleware: acquiring the lock of a request failed", "method", r.Method, "pattern", r.Pattern, "error", err)
	}
	if p.retry && c.retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.FormatInt(retryAfter(served.RetryAfter(c.retryAfter, err)), 10))
	}
	if c.errorHandler != nil {
		c.errorHandler(w, r, err)
		return
	}
	p.write(w, r)
}

// retryAfter returns d in seconds, rounded up, plus a random part of up to half of it.
func retryAfter(d time.Duration) int64 {
	least := int64((d + time.Second - 1) / time.Second)
	return least + rand.Int64N((least+1)/2+1)
}

// write sends the response in the form of RFC 9457. The response contains nothing
// from the lock's name or its holders.
func (p problem) write(w http.ResponseWriter, r *http.Request) {
	// All strings are constants of this file or of package http, without
	// characters that JSON would escape.
	body := `{"type":"about:blank","title":"` + http.StatusText(p.status) +
		`","status":` + strconv.Itoa(p.status) +
		`,"detail":"` + p.detail +
		`","reason":"` + p.reason + "\"}\n"
	h := w.Header()
	// Remove headers that outer middlewares have set for a response that is not
	// sent now. Keep Content-Encoding: the outer middleware that has set it
	// compresses this response, to a length that only it knows.
	h.Del("Etag")
	h.Del("Last-Modified")
	h.Set("Content-Type", "application/problem+json")
	if h.Get("Content-Encoding") == "" {
		h.Set("Content-Length", strconv.Itoa(len(body)))
	} else {
		h.Del("Content-Length")
	}
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(p.status)
	if r.Method != http.MethodHead {
		_, _ = w.Write([]byte(body)) // fails if the client has disconnected
	}
}
