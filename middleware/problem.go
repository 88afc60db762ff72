package middleware

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/fence"
)

// Reasons are the member "reason" of the problem that a request is answered
// with: for programs, which must not depend on its title or detail. But for
// ReasonBody, they are those of ErrorInfo on the gRPC side.
const (
	// ReasonContended means that somebody else's lock was in the way. The
	// handler has not run.
	ReasonContended = "LOCK_CONTENDED"

	// ReasonUnavailable means that no lock could be had from the ensemble. The
	// handler has not run.
	ReasonUnavailable = "LOCK_UNAVAILABLE"

	// ReasonLost means that the lock was lost while the handler ran. What the
	// handler did may have been done, or half of it, and not alone.
	ReasonLost = "LOCK_LOST"

	// ReasonName means that the request does not name a lock, or names one that
	// cannot be. The handler has not run.
	ReasonName = "LOCK_NAME"

	// ReasonStale means that the request was sent on behalf of a lock that has
	// passed on to somebody else. The handler has not run.
	ReasonStale = "LOCK_STALE"

	// ReasonBody means that the request's body took longer to arrive than a
	// request may wait for its lock. The handler has not run.
	ReasonBody = "LOCK_BODY"

	// ReasonError means that something is wrong on the server's side. The
	// handler has not run.
	ReasonError = "LOCK_ERROR"
)

// problem is how an error is answered.
type problem struct {
	status int
	reason string
	detail string
	retry  bool // with Retry-After
}

// classify says how to answer a request whose context is ctx and whose lock
// ended in err. It is the one table of cases.
func (c *config) classify(ctx context.Context, err error) problem {
	is := func(target error) bool { return errors.Is(err, target) }
	switch {
	case is(fence.ErrStale):
		return problem{http.StatusConflict, ReasonStale, "The lock that this request was sent under has passed on.", false}
	case is(errBadSequencer):
		return problem{http.StatusBadRequest, ReasonName, "The request's sequencer cannot be read.", false}
	case is(errSlowBody):
		return problem{http.StatusRequestTimeout, ReasonBody, "The request's body took too long to arrive.", true}
	case is(zklock.ErrLost):
		// No Retry-After: nobody knows how far the handler has come.
		return problem{http.StatusServiceUnavailable, ReasonLost, "The lock was lost while the request was served; what came of it is unknown.", false}
	case ctx.Err() != nil && is(ctx.Err()):
		return ended(ctx, is(zklock.ErrUnavailable))
	case is(zklock.ErrMisuse): // which may match ErrInvalidName, and is not the client's fault
		return programsFault
	case is(zklock.ErrInvalidName):
		return problem{http.StatusBadRequest, ReasonName, "The request names no lock, or one that cannot be.", false}
	case is(zklock.ErrUnavailable), is(zklock.ErrClosed):
		return problem{http.StatusServiceUnavailable, ReasonUnavailable, "Locks cannot be had at the moment.", true}
	case is(zklock.ErrNotAcquired), is(zklock.ErrTooManyWaiters):
		return problem{c.status, ReasonContended, "Somebody else is working on it.", true}
	}
	return programsFault
}

// programsFault is the problem of what no request can change.
var programsFault = problem{http.StatusInternalServerError, ReasonError, "The request could not be locked.", false}

// ended is the problem of a wait that the request's own context has ended.
func ended(ctx context.Context, unavailable bool) problem {
	p := problem{http.StatusServiceUnavailable, ReasonContended, "The time for this request ran out before its turn.", true}
	if ctx.Err() == context.Canceled {
		// By the server, since the client has gone, or by a middleware outside,
		// whose client waits for an answer: it cannot be told. To the one it does
		// not get, and loggers outside must not see a 200 in either case.
		p.detail = "This request was canceled before its turn."
	}
	if unavailable {
		p.reason = ReasonUnavailable
	}
	return p
}

// observe tells the observers.
func (c *config) observe(r *http.Request, err error) {
	for _, f := range c.observers {
		f(r, err)
	}
}

// fail answers a request that was not served. Nothing has been written.
func (c *config) fail(w http.ResponseWriter, r *http.Request, err error) {
	c.observe(r, err)
	p := c.classify(r.Context(), err)
	if p.reason == ReasonError {
		// The program's fault. The client learns nothing of it.
		c.logger.ErrorContext(r.Context(), "middleware: a request could not be locked", "method", r.Method, "pattern", r.Pattern, "error", err)
	}
	if p.retry && c.retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.FormatInt(retryAfter(c.retryAfter), 10))
	}
	if c.errorHandler != nil {
		c.errorHandler(w, r, err)
		return
	}
	p.write(w, r)
}

// retryAfter is d in seconds, rounded up, and up to half as much again.
func retryAfter(d time.Duration) int64 {
	least := int64((d + time.Second - 1) / time.Second)
	return least + rand.Int64N((least+1)/2+1)
}

// write answers in the terms of RFC 9457. There is nothing in it that the
// client has not sent itself, and nothing about who holds what.
func (p problem) write(w http.ResponseWriter, r *http.Request) {
	// All strings are our own, made of what stands in JSON for itself.
	body := `{"type":"about:blank","title":"` + http.StatusText(p.status) +
		`","status":` + strconv.Itoa(p.status) +
		`,"detail":"` + p.detail +
		`","reason":"` + p.reason + "\"}\n"
	h := w.Header()
	// What others have announced about an answer that will not come. Not the
	// Content-Encoding: a middleware outside of the lock that set it compresses what is
	// written here, to a length that only it knows.
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
		_, _ = w.Write([]byte(body)) // a client that is gone is not ours to tell
	}
}
