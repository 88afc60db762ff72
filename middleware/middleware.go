package middleware

import (
	"context"
	"errors"
	"net/http"

	"github.com/zklock/go-zklock/zklock"
)

// New makes a middleware that holds a lock while the handler runs. pick says
// which, for each request; nil lets the request pass without one. It is called
// once a request, by the goroutine that serves it.
//
// The handler's request carries a context that carries the lock (see
// zklock.FromContext) and is cancelled, with the cause, when the lock is lost.
// The package documentation says what becomes of the response then.
//
// New panics if pick is nil, as http.Handle does for a nil handler.
func New(pick func(*http.Request) zklock.Acquirer, opts ...Option) func(http.Handler) http.Handler {
	if pick == nil {
		panic("middleware: New with a nil pick")
	}
	cfg := newConfig(opts)
	return func(next http.Handler) http.Handler {
		if next == nil {
			panic("middleware: a nil handler to hold a lock around")
		}
		return &handler{config: cfg, pick: pick, next: next}
	}
}

// handler is one handler behind the middleware. It is immutable.
type handler struct {
	*config
	pick func(*http.Request) zklock.Acquirer
	next http.Handler
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := h.checkSequencers(r); err != nil {
		h.fail(w, r, err)
		return
	}
	a := h.pick(r)
	if a == nil {
		h.next.ServeHTTP(w, r)
		return
	}
	body, err := h.readAhead(w, r)
	if err != nil {
		w.Header().Set("Connection", "close") // else the server reads on to the body's end
		h.fail(w, r, err)
		return
	}
	c := &call{handler: h, request: r, body: body}
	c.writer.inner = w
	c.outer, _ = zklock.FromContext(r.Context())
	returned := false
	defer func() {
		if returned || !c.entered {
			return
		}
		if loss := c.loss(nil); loss != nil {
			// It is recovered to be looked at. Panicking again from here keeps
			// the stack that a recovery further out prints.
			v := recover()
			c.broke(loss, v)
			if v != nil { // nil: runtime.Goexit
				panic(v)
			}
		}
	}()
	err = zklock.Do(r.Context(), a, c.run, h.acquireOptions(r)...)
	returned = true
	c.finish(err)
}

// call is one request that is served under a lock.
type call struct {
	*handler
	writer  writer
	request *http.Request // as it came in
	body    requestBody   // what the handler reads, if that is not request.Body
	outer   *zklock.Lock  // the innermost lock that the request carried before
	entered bool          // the handler was called
}

// run calls the handler, under the lock that ctx carries.
func (c *call) run(ctx context.Context) error {
	lock, ok := zklock.FromContext(ctx)
	if !ok || lock == c.outer {
		// Ours is not among the live ones: it was lost between its grant and
		// here. Do finds that out when it releases it.
		return nil
	}
	// Again, since somebody newer may have been here while we waited.
	if err := c.checkSequencers(c.request); err != nil {
		return err
	}
	if c.maxHold > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, c.maxHold, zklock.ErrMaxHold)
		defer cancel()
	}
	inner := c.request.WithContext(ctx)
	if c.body != nil {
		inner.Body = c.body
	}
	c.writer.lock = lock
	if c.tokenHeader != "" {
		c.writer.Header().Set(c.tokenHeader, lock.Token().String())
	}
	c.entered = true
	defer c.left(inner)
	c.next.ServeHTTP(c.writer.wrap(), inner)
	return nil
}

// left is called when the handler has returned or panics.
func (c *call) left(inner *http.Request) {
	// What is outside of us knows only the request it passed in: the server,
	// which removes the files of its form, and whoever names the route.
	c.request.Pattern = inner.Pattern
	c.request.MultipartForm = inner.MultipartForm
}

// finish settles the response, given what Do returned.
func (c *call) finish(err error) {
	if !c.entered {
		c.unserved(err)
		return
	}
	loss := c.loss(err)
	w, r := c.writer.inner, c.request
	switch {
	case loss == nil:
		// The answer is right, even if the release failed in the end.
		if err != nil && !errors.Is(err, zklock.ErrReleased) {
			c.observe(r, err)
		}
	case c.writer.phase == hijacked:
		// The connection is the handler's, and the handler was told.
		c.observe(r, loss)
	case c.begun():
		c.observe(r, loss)
		silence(w)
		panic(http.ErrAbortHandler)
	default:
		c.writer.restore()
		c.fail(w, r, loss)
	}
}

// broke is finish for a handler that panics with v and had lost its lock. A
// recovery outside may keep the panic from the server, so that it alone does
// not end the connection.
func (c *call) broke(loss error, v any) {
	c.observe(c.request, loss)
	abort, _ := v.(error)
	switch {
	case c.writer.phase == hijacked:
	case c.begun(), errors.Is(abort, http.ErrAbortHandler):
		// Whoever recovers http.ErrAbortHandler has nothing to answer, as the
		// connection is meant to be gone: the server would make a 200 of it.
		silence(c.writer.inner)
	default:
		// Whoever recovers writes the answer.
		c.writer.restore()
	}
}

// begun reports whether an answer is under way, around us too: gin's
// HandleContext makes handlers write to gin's own writer, which says so.
func (c *call) begun() bool {
	outer, ok := c.writer.inner.(interface{ Written() bool })
	return c.writer.phase == begun || ok && outer.Written()
}

// loss says how the lock was lost under the handler, if it was.
func (c *call) loss(err error) error {
	if errors.Is(err, zklock.ErrLost) {
		return err
	}
	// A handler that has released a lost lock itself leaves Do nothing to find.
	if err := c.writer.lock.Err(); errors.Is(err, zklock.ErrLost) {
		return err
	}
	if c.writer.phase == refused {
		// Whatever the reason: the server must not make an empty 200 of it.
		return errRefused
	}
	return nil
}

// unserved is finish for a request whose handler was not called.
func (c *call) unserved(err error) {
	w, r := c.writer.inner, c.request
	if !errors.Is(err, zklock.ErrOutage) || r.Context().Err() != nil { // no other options ask for ErrOutage
		c.fail(w, r, err)
		return
	}
	// Again, since a newer request may have been here while we waited.
	if err := c.checkSequencers(r); err != nil {
		c.fail(w, r, err)
		return
	}
	if c.body != nil {
		r = r.WithContext(r.Context())
		r.Body = c.body
		defer c.left(r)
	}
	why := err
	if named, ok := errors.AsType[*zklock.Error](err); ok {
		why = named.Err // names of locks are not logged
	}
	c.logger.WarnContext(r.Context(), "middleware: request served without its lock, as WithFailOpen says for an outage of the ensemble", "error", why)
	c.next.ServeHTTP(w, r)
}
