package middleware

import (
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/zklock/go-zklock/internal/backlog"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/fence"
)

// Defaults of the options; their comments quote them.
const (
	defaultWait       = 10 * time.Second
	defaultStatus     = http.StatusLocked
	defaultLostStatus = http.StatusFailedDependency
	defaultRetryAfter = time.Second
	defaultBufferBody = 64 << 10
)

// Option configures the middleware. A later option overrides an earlier one of
// the same kind, except WithObserver and WithAcquire, which add to those before.
type Option interface{ apply(*config) }

type optionFunc func(*config)

func (f optionFunc) apply(c *config) { f(c) }

// config has what the options set. It does not change after New has returned.
type config struct {
	wait         time.Duration  // zero or less: try
	writeTimeout *time.Duration // nil: the server's
	label        func(*http.Request) string
	errorHandler func(http.ResponseWriter, *http.Request, error)
	observers    []func(*http.Request, error)
	status       int
	lostStatus   int
	retryAfter   time.Duration
	maxHold      time.Duration
	bufferBody   int64
	failOpen     bool
	logger       *slog.Logger
	tokenHeader  string
	guard        *fence.Guard
	trust        func(*http.Request) (string, bool)
	trustCaller  func(*http.Request) bool

	acquire []zklock.AcquireOption // for all requests
}

func newConfig(opts []Option) *config {
	c := &config{
		wait:       defaultWait,
		label:      routeOf,
		status:     defaultStatus,
		lostStatus: defaultLostStatus,
		retryAfter: defaultRetryAfter,
		bufferBody: defaultBufferBody,
	}
	for _, o := range opts {
		if o != nil {
			o.apply(c)
		}
	}
	c.logger = new(backlog.Queue).Logger(c.logger)
	c.acquire = append(c.acquire, zklock.WithWait(c.wait))
	if c.failOpen {
		c.acquire = append(c.acquire, zklock.WithFailFast())
	}
	return c
}

// acquireOptions returns the options for acquiring a request's lock.
func (c *config) acquireOptions(r *http.Request) []zklock.AcquireOption {
	opts := slices.Clip(c.acquire)
	if c.label != nil {
		opts = append(opts, zklock.WithLabel(c.label(r)))
	}
	return opts
}

// WithWait sets how long a request waits for its lock. After that it gets an
// error response with the status of WithStatus. The default is 10 s. With zero or
// less it does not wait: if the lock is taken, it gets the response at once. In an outage
// such a request gets its 503 a quarter of connect_timeout after the outage began, or at once
// if that has passed. A wait ends earlier if the response could not reach the client otherwise: see
// WithWriteTimeout.
func WithWait(d time.Duration) Option { return optionFunc(func(c *config) { c.wait = d }) }

// WithLabel sets a text that other processes can read about a request that waits
// for a lock or holds it, such as a request id; see zklock.WithLabel. The default is the
// request's method and the pattern of its route, such as "POST /orders/{id}/pay". The mux sets
// the pattern, so in front of the mux the default is the method only. nil leaves the label out.
// Many goroutines may call label at once.
func WithLabel(label func(*http.Request) string) Option {
	return optionFunc(func(c *config) { c.label = label })
}

// routeOf is the default label of a request.
func routeOf(r *http.Request) string {
	method, path, found := strings.Cut(r.Pattern, " ")
	switch {
	case r.Pattern == "":
		return r.Method
	case !found: // the pattern is one for all methods
		return r.Method + " " + r.Pattern
	case method == r.Method && path[0] == '/':
		return r.Pattern // as in most cases
	}
	return r.Method + " " + strings.TrimLeft(path, " \t") // such as a HEAD for a GET pattern
}

// WithErrorHandler sets a function that writes the error responses, instead of the
// built-in ones: for a request that did not get its lock, or whose lock was lost
// before anything was written. err matches one of zklock's errors, fence.ErrStale,
// or os.ErrDeadlineExceeded if the body did not arrive in time. If err matches zklock.ErrLost, the
// handler may have run, so f writes a status that no client repeats by itself: see
// WithLostStatus. err may contain the
// lock's name, so do not send it to the client. The Retry-After header is already
// set for requests that may be sent again.
//
// The built-in responses keep a Content-Encoding that was set before this
// middleware ran, since compressors set it. If an outer handler announces
// precompressed responses in this way, f must remove the header.
//
// f is not called if the lock was lost after a response had begun; WithObserver
// reports that. f is called for a request that was canceled during the wait, with
// an error that matches context.Canceled. The client of such a request may still
// be connected.
func WithErrorHandler(f func(w http.ResponseWriter, r *http.Request, err error)) Option {
	return optionFunc(func(c *config) { c.errorHandler = f })
}

// WithObserver adds a function that is called with every error, for logs and
// counters. If the error gets a response, f is called before the response is
// written. Many goroutines may call f at once. Requests that WithFailOpen serves
// without a lock are logged, and not reported to f.
func WithObserver(f func(r *http.Request, err error)) Option {
	return optionFunc(func(c *config) {
		if f != nil {
			c.observers = append(c.observers, f)
		}
	})
}

// WithStatus sets the status of the response to a request that did not get its
// lock because another holder has it. The default is 423 Locked. HTTP clients may
// retry 429 and 503 on their own; they return 423 and 409 to the calling program.
// The option does not change the statuses of other errors.
//
// WithStatus panics if code is not between 400 and 599: a client would take other
// statuses for success.
func WithStatus(code int) Option {
	mustBeError("WithStatus", code)
	return optionFunc(func(c *config) { c.status = code })
}

// WithLostStatus sets the status of the response to a request whose lock was lost while its handler
// ran ([ReasonLost]). The handler's work may be done, so nothing on the way may repeat the request by
// itself. The default is 424 Failed Dependency: known clients and proxies repeat it only if their
// settings name it. They repeat 408, 425, 429 and, by their usual settings, all of 500, 502, 503 and 504; nginx and
// HAProxy can be set to repeat 403 and 404, and Envoy 409. A request whose handler has not run gets 503.
//
// WithLostStatus panics if code is not between 400 and 599.
func WithLostStatus(code int) Option {
	mustBeError("WithLostStatus", code)
	return optionFunc(func(c *config) { c.lostStatus = code })
}

// mustBeError panics if code is not the status of an error. option is the function that got it.
func mustBeError(option string, code int) {
	if code < 400 || code > 599 {
		panic(fmt.Sprintf("middleware: %s(%d): want a status from 400 to 599", option, code))
	}
}

// WithRetryAfter sets the Retry-After header of responses to requests that were
// not served and may be sent again. The header is d, rounded up to whole seconds,
// plus a random part of up to half of that. So clients that were refused together
// do not come back together. If a [zklock.BusyError] has a longer estimate, the header has
// that, up to a minute. The default is 1 s; zero or less leaves the header out.
func WithRetryAfter(d time.Duration) Option {
	return optionFunc(func(c *config) { c.retryAfter = d })
}

// WithAcquire adds options for acquiring a request's lock:
//
//	zklock.Reenter()             an outer handler may hold the lock already
//	zklock.WithMaxWaiters(20)    while that many wait, another one is refused at once, with the status of WithStatus
//	zklock.WithoutHandover()     each request has a token with a Zxid of its own
//	zklock.WithAsyncRelease()    a request does not wait until its release is confirmed
//	zklock.WithFailFast()        once the ensemble has been away for almost connect_timeout, a request is refused at once as unavailable
//
// The wait and the label are those of WithWait and WithLabel.
func WithAcquire(opts ...zklock.AcquireOption) Option {
	return optionFunc(func(c *config) { c.acquire = append(c.acquire, opts...) })
}

// WithMaxHold cancels the handler's context d after the lock was acquired, with
// zklock.ErrMaxHold as the cause. It does not release the lock: the lock is held
// until the handler has returned, and the handler's response is sent. By default the
// time is not limited.
//
// Reads and writes that wait for the client then, or later, end after a tenth of d, and after one second at most, by
// a deadline of the connection. So a client that is frozen does not keep the lock for ever. A
// connection that the handler has taken over gets that deadline in any case. It needs a ResponseWriter
// that http.ResponseController can set deadlines on, as the server's.
func WithMaxHold(d time.Duration) Option { return optionFunc(func(c *config) { c.maxHold = d }) }

// WithBufferBody sets how many bytes of a request's body the middleware reads, at most, before
// the wait for the lock. The default is 64 KiB; with 0 nothing is read. A server notices that
// an HTTP/1 client has disconnected only after the request's body has been read to its end. So
// a request with a longer body stays in the queue after its client has disconnected, for as
// long as WithWait allows. HTTP/2 requests and WithWait(0) do not need this: their bodies are
// not read ahead.
//
// The body must arrive within the time of WithWait, or the response is 408. If the request's
// context ends before that, the response is 503. In both cases the connection is closed. The
// wait for the lock begins after the reading, and may take up to WithWait again. To end the
// reading, http.ResponseController must be able to set a read deadline on the outer
// ResponseWriter, as it can on the server's. With other writers, only the server's ReadTimeout
// ends it.
//
// Some clients send the rest of their body only after they have read a part of the
// response, as with http.ResponseController.EnableFullDuplex. Their bodies are
// always late: set 0 for such handlers. Also set 0 if the wait is shorter than slow
// clients need to send their bodies.
func WithBufferBody(limit int64) Option { return optionFunc(func(c *config) { c.bufferBody = limit }) }

// WithFailOpen serves requests without their lock during an outage of the
// ensemble, and logs each of them at level Warn. It is off by default. It is for
// locks that only save work. Do not use it where two holders at once would do
// harm: during an outage nothing keeps them apart.
//
// An outage is the error [zklock.ErrOutage] and no other. It begins when the client
// has had no connection for almost all of connect_timeout (10 s by default). Before
// that, requests wait, and a request whose wait ends gets the same response as
// without this option. A connection on which servers have fallen silent is lost
// after two thirds of session_timeout at the latest (20 s by default). During the outage, requests are served at once, until there
// is a session again. Only a request that is behind a waiting one for the same name waits with
// it. The client forgets the outage when no request has asked it for a lock for a second.
// With WithWait(0), requests get a 503 until the outage begins.
//
// These are not outages: a wait that ends sooner, an invalid name, a lock that
// another client holds, and an ensemble that refuses this client.
func WithFailOpen() Option {
	return optionFunc(func(c *config) { c.failOpen = true })
}

// WithLogger sets the logger for requests that WithFailOpen serves without a lock, and for errors
// that are a fault of the program or its set-up ([ReasonError]). The response that the client gets
// does not describe the fault. The default is slog's default logger at that moment. No request and no lock
// waits for its handler: lines that it does not take in time are dropped, and the log says how many.
func WithLogger(l *slog.Logger) Option { return optionFunc(func(c *config) { c.logger = l }) }

// WithTokenHeader sets the name of a response header with the fencing token of the request's
// lock. By default the header is not sent.
func WithTokenHeader(name string) Option { return optionFunc(func(c *config) { c.tokenHeader = name }) }
