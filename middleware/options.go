package middleware

import (
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/fence"
)

// Defaults of the options; their comments quote them.
const (
	defaultWait       = 10 * time.Second
	defaultStatus     = http.StatusLocked
	defaultRetryAfter = time.Second
	defaultBufferBody = 64 << 10
)

// Option sets something about the middleware. Later ones win over earlier
// ones, except WithObserver, which adds.
type Option interface{ apply(*config) }

type optionFunc func(*config)

func (f optionFunc) apply(c *config) { f(c) }

// config is what the options set. It does not change once New has returned.
type config struct {
	wait         time.Duration // zero or less: try
	label        func(*http.Request) string
	errorHandler func(http.ResponseWriter, *http.Request, error)
	observers    []func(*http.Request, error)
	status       int
	retryAfter   time.Duration
	maxHold      time.Duration
	bufferBody   int64
	failOpen     bool
	logger       *slog.Logger
	tokenHeader  string
	guard        *fence.Guard
	trust        func(*http.Request) (string, bool)

	acquire []zklock.AcquireOption // of all requests
}

func newConfig(opts []Option) *config {
	c := &config{
		wait:       defaultWait,
		status:     defaultStatus,
		retryAfter: defaultRetryAfter,
		bufferBody: defaultBufferBody,
	}
	for _, o := range opts {
		if o != nil {
			o.apply(c)
		}
	}
	if c.logger == nil {
		c.logger = slog.Default()
	}
	c.acquire = []zklock.AcquireOption{zklock.WithWait(c.wait)}
	if c.failOpen {
		c.acquire = append(c.acquire, zklock.WithFailFast())
	}
	return c
}

// acquireOptions are those of one request.
func (c *config) acquireOptions(r *http.Request) []zklock.AcquireOption {
	if c.label == nil {
		return c.acquire
	}
	return append(slices.Clip(c.acquire), zklock.WithLabel(c.label(r)))
}

// WithWait sets how long a request waits for its lock before it is answered
// with the status of WithStatus; 10 s by default. Zero or less is WithTry.
func WithWait(d time.Duration) Option { return optionFunc(func(c *config) { c.wait = d }) }

// WithTry answers at once if somebody else has the lock.
func WithTry() Option { return WithWait(0) }

// WithLabel sets what other processes are shown about a request that waits for
// a lock or holds it, a request id for instance; see zklock.WithLabel.
func WithLabel(label func(*http.Request) string) Option {
	return optionFunc(func(c *config) { c.label = label })
}

// WithErrorHandler sets who answers a request that did not get its lock, or
// lost it before anything was written, instead of the built-in answer. err
// matches one of zklock's errors, fence.ErrStale, or os.ErrDeadlineExceeded if
// the body did not arrive in time; it may contain the lock's name, so it is not
// for the client's eyes. Retry-After is set already where it
// makes sense.
//
// The built-in answer keeps a Content-Encoding that is set before this middleware
// runs, since compressors set it. A handler outside that announces precompressed
// answers in this way has to remove it in f.
//
// It is not called when there is nothing left to answer: for a lock that was lost
// when an answer was under way. See WithObserver for that. It is called for a
// request that was canceled during the wait, with an error that matches
// context.Canceled: the client may have gone or not.
func WithErrorHandler(f func(w http.ResponseWriter, r *http.Request, err error)) Option {
	return optionFunc(func(c *config) { c.errorHandler = f })
}

// WithObserver adds a function that is told of every error, before it is
// answered, if it is: for logs and counters. It may be called by many
// goroutines at once.
func WithObserver(f func(r *http.Request, err error)) Option {
	return optionFunc(func(c *config) {
		if f != nil {
			c.observers = append(c.observers, f)
		}
	})
}

// WithStatus sets the status of the answer to a request that somebody else's
// lock was in the way of: 423 Locked by default. Clients retry 429 and 503 by
// themselves, 423 and 409 they hand to whoever called them. Other cases have
// statuses of their own.
//
// WithStatus panics if code is none of 400 to 599: a client would take others
// for a yes.
func WithStatus(code int) Option {
	if code < 400 || code > 599 {
		panic(fmt.Sprintf("middleware: WithStatus(%d): want a status from 400 to 599", code))
	}
	return optionFunc(func(c *config) { c.status = code })
}

// WithRetryAfter sets the Retry-After header of answers to requests that have
// not been served and may be sent again: d, rounded up to whole seconds, and
// up to half as much again at random, so that those who were refused together
// do not come back together. 1 s by default; zero or less for no header.
func WithRetryAfter(d time.Duration) Option {
	return optionFunc(func(c *config) { c.retryAfter = d })
}

// WithMaxHold cancels the handler's context d after the lock was acquired, with
// zklock.ErrMaxHold as the cause. It releases nothing: the lock is held until
// the handler has returned, and what the handler answers is the answer. No
// limit by default.
func WithMaxHold(d time.Duration) Option { return optionFunc(func(c *config) { c.maxHold = d }) }

// WithBufferBody sets how much of a request's body is read before the wait for
// the lock: 64 KiB by default, 0 for nothing. A server notices that an HTTP/1
// client has hung up only once the request's body has been read to its end. A
// request with a longer body keeps its place in the queue after its client has
// gone, for as long as WithWait allows. HTTP/2 needs no buffer and gets none,
// nor does WithTry.
//
// The body has as long to arrive as WithWait allows for the lock, which is
// waited for after that, and as the request's context lasts. If it is late the
// answer is 408, and the connection is closed. Around us that takes a
// ResponseWriter that http.ResponseController can set a read deadline of, as
// the server's; under others only the server's ReadTimeout ends it.
//
// A client that sends the rest of its body only when it has read some of the
// answer, as with http.ResponseController.EnableFullDuplex, is late for that
// reason: set 0 for such handlers, and where the wait is shorter than slow
// clients need to send their bodies.
func WithBufferBody(limit int64) Option { return optionFunc(func(c *config) { c.bufferBody = limit }) }

// WithFailOpen serves requests without their lock during an outage of the ensemble
// ([zklock.ErrOutage], and nothing else), and logs each of them at level Warn. It is for
// locks that only save work. Where two holders at once would do harm, it does that harm
// in the very moment in which no operator is looking.
//
// An outage begins when a client has had no connection for almost all of connect_timeout
// (10 s by default). Until then requests wait, and those whose wait ends are answered as
// without this option. From then on requests are served at once, until there is a
// session again, but for those behind an earlier one that waits for the same name. A
// client that no request has asked for anything for a second has forgotten the outage.
// A wait that ends sooner, a wrong name, a lock that another client
// holds and an ensemble that refuses this client are no outage.
func WithFailOpen() Option {
	return optionFunc(func(c *config) { c.failOpen = true })
}

// WithLogger sets where WithFailOpen logs, and where errors of the program are
// logged, of which the client learns only that there is one: those
// answered with ReasonError. It is slog.Default by default.
func WithLogger(l *slog.Logger) Option { return optionFunc(func(c *config) { c.logger = l }) }

// WithTokenHeader sets a response header that tells the client the fencing
// token under which its request was served. Off by default.
func WithTokenHeader(name string) Option { return optionFunc(func(c *config) { c.tokenHeader = name }) }
