package middleware

import (
	"context"
	"errors"
	"net/http"

	"github.com/zklock/go-zklock/internal/served"
	"github.com/zklock/go-zklock/zklock"
)

// New makes a middleware that holds a lock while the handler runs. pick chooses
// the lock for each request; if it returns nil, the request is served without a
// lock. It is called once per request, by the goroutine that serves the request.
//
// The context of the handler's request carries the lock (see
// zklock.FromContext). It is cancelled when the lock is lost, with the loss as
// its cause. The package documentation describes the response in that case.
//
// New panics if pick is nil, as http.Handle does for a nil handler.
func New(pick func(*http.Request) zklock.Acquirer, opts ...Option) func(http.Handler) http.Handler {
	if pick == nil {
		panic("middleware: New: pick is nil: want a function that chooses each request's lock")
	}
	cfg := newConfig(opts)
	return func(next http.Handler) http.Handler {
		if next == nil {
			panic("middleware: New: the handler is nil")
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
	ctx, called := h.contextOf(r)
	a := h.pick(r)
	if a == nil {
		if called {
			h.unlocked(ctx, w, r, nil)
		} else {
			h.next.ServeHTTP(w, r)
		}
		return
	}
	ctx, limit := h.limitOf(ctx)
	body, err := h.readAhead(w, r, limit)
	if err != nil {
		if !served.Over(r.Context()) {
			w.Header().Set("Connection", "close") // otherwise the server reads the rest of the body
		}
		h.fail(w, r, err)
		return
	}
	c := &call{handler: h, request: r, body: body}
	c.writer.inner, c.limit = w, limit
	returned := false
	defer func() {
		if returned || !c.entered {
			return
		}
		if loss := c.loss(nil); loss != nil {
			// This recovers only to look at the value. Panicking again from
			// here keeps the stack that an outer recovery prints.
			v := recover()
			c.broke(loss, v)
			if v != nil { // nil: runtime.Goexit
				panic(v)
			}
		}
	}()
	err = zklock.Do(ctx, limit.Acquirer(a, h.wait), c.run, h.acquireOptions(r)...)
	returned = true
	c.finish(ctx, err)
}

// call is one request that is served while a lock is held.
type call struct {
	*handler
	writer  writer
	request *http.Request // as it came in
	limit   limit
	body    requestBody // what the handler reads; nil: request.Body
	entered bool        // the handler was called
}

// run calls the handler while the lock is held.
func (c *call) run(ctx context.Context, lock *zklock.Lock) error {
	if !lock.Valid() {
		return nil // lost after its grant: Do notices that when it releases the lock
	}
	// The response may belong to others by now: see served.Over.
	if err := c.request.Context().Err(); err != nil {
		return err
	}
	// Check again: the guard may have seen a newer holder during the wait.
	if err := c.checkSequencers(c.request); err != nil {
		return err
	}
	if c.maxHold > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, c.maxHold, zklock.ErrMaxHold)
		defer cancel()
		c.writer.cut = served.NewCut(c.writer.inner, c.maxHold)
		defer c.writer.cut.Stop()
	}
	inner := c.request.WithContext(ctx)
	if c.body != nil {
		inner.Body = c.body
	}
	if c.maxHold > 0 && inner.Body != nil && inner.Body != http.NoBody {
		inner.Body = &cutBody{inner.Body, c.writer.cut}
	}
	c.writer.lock = lock
	if c.tokenHeader != "" {
		c.writer.Header().Set(c.tokenHeader, lock.Token().String())
	}
	c.entered = true
	defer left(c.request, inner)
	c.next.ServeHTTP(c.writer.wrap(), inner)
	return nil
}

// left is called when the handler of inner, which was made from r, has returned or panics.
func left(r, inner *http.Request) {
	if served.Over(r.Context()) {
		return
	}
	// The code outside knows only the request that it passed in. The server
	// removes the files of its form, and loggers read its pattern.
	r.Pattern = inner.Pattern
	r.MultipartForm = inner.MultipartForm
}

// finish ends the response, given the error that Do returned. ctx is the request's, with the locks of its
// sender.
func (c *call) finish(ctx context.Context, err error) {
	if !c.entered {
		c.unserved(ctx, err)
		return
	}
	loss := c.loss(err)
	w, r := c.writer.inner, c.request
	switch {
	case loss == nil:
		// The handler's response is valid, even if the release failed.
		if err != nil && !errors.Is(err, zklock.ErrReleased) {
			c.observe(r, err)
		}
	case c.writer.phase == hijacked, served.Over(r.Context()):
		// The handler owns the connection, and its context has ended; or others own the response.
		c.observe(r, loss)
	case c.begun():
		c.observe(r, loss)
		silence(w)
		panic(http.ErrAbortHandler)
	default:
		c.writer.restore()
		c.fail(w, r, handled{loss})
	}
}

// broke is finish for a handler that panics with v after its lock was lost. An
// outer recovery may keep the panic from the server, so the panic alone may not
// end the connection.
func (c *call) broke(loss error, v any) {
	c.observe(c.request, loss)
	abort, _ := v.(error)
	switch {
	case c.writer.phase == hijacked, served.Over(c.request.Context()):
	case c.begun(), errors.Is(abort, http.ErrAbortHandler):
		// A recovery writes no response for http.ErrAbortHandler, which means
		// that the connection is to end. The server would then send a 200.
		silence(c.writer.inner)
	default:
		// The recovery writes the response.
		c.writer.restore()
	}
}

// begun reports whether a response has begun. It also asks the outer writer: with
// gin's HandleContext, handlers write to gin's own writer, past this package's.
func (c *call) begun() bool {
	outer, ok := c.writer.inner.(interface{ Written() bool })
	return c.writer.phase == begun || ok && outer.Written()
}

// loss returns an error if the lock was lost while the handler ran; nil if it was not. err is
// what Do returned.
func (c *call) loss(err error) error {
	if errors.Is(err, zklock.ErrLost) {
		return err
	}
	// A handler that panics leaves no error of Do.
	if err := c.writer.lock.Err(); errors.Is(err, zklock.ErrLost) {
		return err
	}
	if c.writer.phase == refused {
		// Nothing was sent. The server must not turn that into an empty 200.
		return errRefused
	}
	return nil
}

// unserved is finish for a request whose handler was not called.
func (c *call) unserved(ctx context.Context, err error) {
	w, r := c.writer.inner, c.request
	err = c.limit.explain(err)
	if !c.failOpen || !errors.Is(err, zklock.ErrOutage) || r.Context().Err() != nil || c.limit.Passed() {
		c.fail(w, r, err)
		return
	}
	// Check again: the guard may have seen a newer holder during the wait.
	if err := c.checkSequencers(r); err != nil {
		c.fail(w, r, err)
		return
	}
	why := err
	if named := (*zklock.Error)(nil); errors.As(err, &named) {
		why = named.Err // without the lock's name, which is not logged
	}
	c.logger.WarnContext(r.Context(), "middleware: request served without its lock (WithFailOpen): the ensemble cannot be reached", "error", why)
	c.unlocked(ctx, w, r, c.body)
}

// unlocked calls the handler without a lock, with another context than the request's. body is what it
// reads; nil: the request's.
func (h *handler) unlocked(ctx context.Context, w http.ResponseWriter, r *http.Request, body requestBody) {
	inner := r.WithContext(ctx)
	defer left(r, inner)
	if body != nil {
		inner.Body = body
	}
	h.next.ServeHTTP(w, inner)
}
