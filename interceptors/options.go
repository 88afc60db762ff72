package interceptors

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/fence"
)

// Defaults of the options; their comments quote them.
const (
	defaultWait       = 10 * time.Second
	defaultCode       = codes.Aborted
	defaultRetryDelay = time.Second
)

// Option sets something about an interceptor. Later ones win over earlier ones.
type Option interface{ apply(*config) }

type optionFunc func(*config)

func (f optionFunc) apply(c *config) { f(c) }

// config is what the options set. It does not change once the interceptor has
// been made.
type config struct {
	pick         Pick
	wait         time.Duration // zero or less: try
	label        func(context.Context, Call) string
	code         codes.Code
	retryDelay   time.Duration
	maxHold      time.Duration
	firstMessage bool
	logger       *slog.Logger
	sequencers   bool // clients only
	guard        *fence.Guard
	trust        func(context.Context, Call) (string, bool)

	acquire []zklock.AcquireOption // of all calls
}

func newConfig(interceptor string, pick Pick, opts []Option) *config {
	if pick == nil {
		panic("interceptors: " + interceptor + " with a nil pick")
	}
	c := &config{pick: pick, wait: defaultWait, code: defaultCode, retryDelay: defaultRetryDelay}
	for _, o := range opts {
		if o != nil {
			o.apply(c)
		}
	}
	if c.logger == nil {
		c.logger = slog.Default()
	}
	c.acquire = []zklock.AcquireOption{zklock.WithWait(c.wait)}
	return c
}

// acquisition is what to acquire for a call, and how.
func (c *config) acquisition(ctx context.Context, call Call, a zklock.Acquirer) (zklock.Acquirer, []zklock.AcquireOption) {
	opts := c.acquire
	if d, ok := a.(*declared); ok {
		a, opts = d.Acquirer, d.wait
	}
	if c.label != nil {
		opts = append(opts[:1:1], zklock.WithLabel(c.label(ctx, call)))
	}
	return a, opts
}

// WithWait sets how long a call waits for its lock before it fails with the
// code of WithCode; 10 s by default. Zero or less is WithTry. A wait that is
// declared in the .proto, see FromProto, counts instead.
func WithWait(d time.Duration) Option { return optionFunc(func(c *config) { c.wait = d }) }

// WithTry fails a call at once if somebody else has its lock.
func WithTry() Option { return WithWait(0) }

// WithLabel sets what other processes are shown about a call that waits for a
// lock or holds it, a request id for instance; see zklock.WithLabel.
func WithLabel(label func(ctx context.Context, call Call) string) Option {
	return optionFunc(func(c *config) { c.label = label })
}

// WithCode sets the code of calls that somebody else's lock was in the way of:
// Aborted by default, which asks the one who made the call to think again.
// Unavailable and ResourceExhausted ask for just the same call again, which
// clients may do by themselves; Unavailable looks like an outage to whoever
// counts errors. Other cases have codes of their own.
//
// WithCode panics if code is OK, which would be no refusal, or no code at all.
func WithCode(code codes.Code) Option {
	if code == codes.OK || code > codes.Unauthenticated {
		panic(fmt.Sprintf("interceptors: WithCode(%v): want a code that says no", code))
	}
	return optionFunc(func(c *config) { c.code = code })
}

// WithRetryDelay sets the delay in the RetryInfo of calls that have not been
// served and may be made again: d, and up to half as much again at random, so
// that those who were refused together do not come back together. 1 s by
// default; zero or less for no RetryInfo.
func WithRetryDelay(d time.Duration) Option { return optionFunc(func(c *config) { c.retryDelay = d }) }

// WithMaxHold cancels the handler's context, or that of a client's call, d after
// the lock was acquired, with zklock.ErrMaxHold as the cause. It releases
// nothing: the lock is held until the call has ended, and on a server what the
// handler answers is the answer. No limit by default.
func WithMaxHold(d time.Duration) Option { return optionFunc(func(c *config) { c.maxHold = d }) }

// WithLogger sets where errors of the program are logged, of which the other
// side learns only that there is one: slog.Default by default.
func WithLogger(l *slog.Logger) Option { return optionFunc(func(c *config) { c.logger = l }) }

// WithFirstMessage locks streams by their first message from the client, which
// the Pick gets as Call.Request, instead of by method and metadata alone. It
// changes nothing about unary calls.
//
// On a server the handler starts without a lock, and its first RecvMsg returns
// once the lock is held. Handlers of methods to which the client sends one
// message only are called behind that; others must keep from what the lock
// protects until then. A stream that ends without a message is picked for with
// a nil Request.
//
// On a client the stream is opened by the first SendMsg, or by a CloseSend
// before any; Header and RecvMsg wait for that.
func WithFirstMessage() Option { return optionFunc(func(c *config) { c.firstMessage = true }) }
