package interceptors

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/zklock/go-zklock/interceptors/protolock"
	"github.com/zklock/go-zklock/internal/backlog"
	"github.com/zklock/go-zklock/internal/holding"
	"github.com/zklock/go-zklock/internal/served"
	"github.com/zklock/go-zklock/internal/verdict"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/fence"
)

// Defaults of the options; their comments quote them.
const (
	defaultWait       = 10 * time.Second
	defaultCode       = codes.Aborted
	defaultRetryDelay = time.Second
)

// Option configures an interceptor. A later option overrides an earlier one of the same
// kind, except WithAcquire, which adds options.
type Option interface{ apply(*config) }

type optionFunc func(*config)

func (f optionFunc) apply(c *config) { f(c) }

// config has what the options set. It does not change after the interceptor was made.
type config struct {
	pick         Pick
	wait         time.Duration  // zero or less: try
	writeTimeout *time.Duration // nil: the server's
	label        func(context.Context, Call) string
	code         codes.Code
	lostCode     codes.Code // 0: the default
	failures     *holding.Errors
	retryDelay   time.Duration
	maxHold      time.Duration
	firstMessage bool
	logger       *slog.Logger
	sequencers   bool // clients only
	guard        *fence.Guard
	trust        func(context.Context, Call) (string, bool)
	trustCaller  func(context.Context, Call) bool

	acquire []zklock.AcquireOption // for all calls; the last is the wait
}

func newConfig(interceptor string, pick Pick, opts []Option) *config {
	if pick == nil {
		panic("interceptors: " + interceptor + ": pick is nil: want a function that chooses each call's lock")
	}
	c := &config{pick: pick, wait: defaultWait, label: methodOf, code: defaultCode, retryDelay: defaultRetryDelay}
	for _, o := range opts {
		if o != nil {
			o.apply(c)
		}
	}
	c.failures = newFailures(codes.Code(verdict.LostCode(verdict.Code(c.lostCode), verdict.Code(c.code))))
	c.logger = new(backlog.Queue).Logger(c.logger)
	c.acquire = append(c.acquire, zklock.WithWait(c.wait))
	return c
}

// acquisition returns the lock of a call, with the options for acquiring it. The zero limit is none.
func (c *config) acquisition(ctx context.Context, call Call, a zklock.Acquirer, limit served.Limit) (zklock.Acquirer, []zklock.AcquireOption) {
	own, wait := make([]zklock.AcquireOption, 0, 2), c.wait // of the call
	if d, ok := a.(*protolock.Declared); ok {
		a, wait, own = d.Acquirer, d.Wait, append(own, d.Options...) // overrides the interceptor's wait
	}
	if c.label != nil {
		own = append(own, zklock.WithLabel(c.label(ctx, call)))
	}
	return limit.Acquirer(a, wait), append(slices.Clip(c.acquire), own...)
}

// take acquires what a call needs, and makes ctx carry the lock.
func (c *config) take(ctx *holding.Context, call Call, a zklock.Acquirer, limit served.Limit) (*holding.Hold, error) {
	a, opts := c.acquisition(ctx, call, a, limit)
	return holding.Take(ctx, a, c.maxHold, opts...)
}

// WithWait sets how long a call waits for its lock. After that it fails with the code
// of WithCode. The default is 10 s. With zero or less it does not wait. In an outage such a
// call fails as Unavailable a quarter of connect_timeout after the outage began, or at once if
// that has passed. A wait that the .proto file declares has precedence, see FromProto.
func WithWait(d time.Duration) Option { return optionFunc(func(c *config) { c.wait = d }) }

// WithWriteTimeout sets until when the answer to a call on a server can be written, from when the
// interceptor gets the call. It is for gRPC servers that are handlers of a net/http server
// (grpc.Server.ServeHTTP), and has no effect elsewhere. The default is that server's WriteTimeout: when that
// has passed, the client gets no answer, and may make the call again while the handler of the first one
// still runs. So the wait for a lock ends a little before: a tenth of the time, and one second at most. A call that
// has got its lock later is not served. Its error is that of a wait that is over, with the code of
// WithCode. With zero or less the wait is as long as WithWait says: set that if an outer http.Handler has
// moved the write deadline, as streams need.
func WithWriteTimeout(d time.Duration) Option {
	return optionFunc(func(c *config) { c.writeTimeout = &d })
}

// WithLabel sets a text that other processes can read about a call that waits for a
// lock or holds it, such as a request id; see zklock.WithLabel. The default is the full name
// of the call's method. nil leaves the label out. Many goroutines may call label at once.
func WithLabel(label func(ctx context.Context, call Call) string) Option {
	return optionFunc(func(c *config) { c.label = label })
}

// methodOf is the default label of a call.
func methodOf(_ context.Context, call Call) string { return call.FullMethod }

// WithCode sets the code of a call that did not get its lock because another holder has
// it. The default is Aborted: the caller decides whether to start again. After Unavailable and
// ResourceExhausted gRPC clients may repeat the same call on their own. Error statistics show
// Unavailable as an outage. The option does not change the codes of other errors.
//
// WithCode panics if code is OK, or not one of the codes of package codes.
func WithCode(code codes.Code) Option {
	if code == codes.OK || code > codes.Unauthenticated {
		panic(fmt.Sprintf("interceptors: WithCode(%v): want the code of an error", code))
	}
	return optionFunc(func(c *config) { c.code = code })
}

// WithLostCode sets the code of a call whose lock was lost while its handler ran ([ReasonLost]). The handler's work may be
// done, so nothing on the way may repeat the call by itself. The default is FailedPrecondition: by the
// definition of that code, a caller does not repeat the call before it has looked at the state. It
// is not the code of WithCode, so that a retry policy for locks in use repeats no work that
// may be done; if WithCode sets FailedPrecondition, the default is Aborted. A call whose handler has not
// run gets Unavailable.
//
// WithLostCode panics if code is OK, or not one of the codes of package codes.
func WithLostCode(code codes.Code) Option {
	if code == codes.OK || code > codes.Unauthenticated {
		panic(fmt.Sprintf("interceptors: WithLostCode(%v): want the code of an error", code))
	}
	return optionFunc(func(c *config) { c.lostCode = code })
}

// WithRetryDelay sets the delay in the RetryInfo of calls that were not served and may
// be made again. The delay is d plus a random part of up to half of d. So clients that
// were refused together do not come back together. If a [zklock.BusyError] has a longer estimate,
// that takes the place of d, up to a minute. The default is 1 s; zero or less leaves the
// RetryInfo out.
func WithRetryDelay(d time.Duration) Option { return optionFunc(func(c *config) { c.retryDelay = d }) }

// WithAcquire adds options for acquiring a call's lock:
//
//	zklock.Reenter()             the caller may hold the lock already
//	zklock.WithMaxWaiters(20)    while that many wait, another one is refused at once, with the code of WithCode
//	zklock.WithoutHandover()     each call has a token with a Zxid of its own
//	zklock.WithAsyncRelease()    a call does not wait until its release is confirmed
//	zklock.WithFailFast()        once the ensemble has been away for almost connect_timeout, a call is refused at once as unavailable
//
// The wait and the label are those of WithWait and WithLabel.
func WithAcquire(opts ...zklock.AcquireOption) Option {
	return optionFunc(func(c *config) { c.acquire = append(c.acquire, opts...) })
}

// WithMaxHold cancels the handler's context, or on a client the call's, d after the lock
// was acquired, with zklock.ErrMaxHold as the cause. It does not release the lock: the
// lock is held until the call has ended. On a server the call ends with what the handler
// returns. By default the time is not limited.
//
// On a server, a RecvMsg that waits for the client ends at once then, and a SendMsg a tenth of d later, and one second
// at most. So a client that is frozen, and reads and sends no more, does not keep the lock for
// ever.
func WithMaxHold(d time.Duration) Option { return optionFunc(func(c *config) { c.maxHold = d }) }

// room returns for how long a SendMsg may go on after WithMaxHold has ended the context; 0 without that.
func (c *config) room() time.Duration {
	if c.maxHold <= 0 {
		return 0
	}
	return served.Room(c.maxHold)
}

// WithLogger sets the logger for errors that are a fault of the program or its set-up
// ([ReasonError]). The status that the caller gets does not describe the fault. The default is
// slog's default logger at that moment. No call and no lock waits for its handler: lines that it
// does not take in time are dropped, and the log says how many.
func WithLogger(l *slog.Logger) Option { return optionFunc(func(c *config) { c.logger = l }) }

// WithFirstMessage makes streams acquire their lock with the first message from the
// client. The Pick gets that message as Call.Request. Without this option the Pick gets
// only method and metadata. Unary calls are not affected. It is off by default.
//
// On a server the handler starts without a lock, and its first RecvMsg returns when the
// lock is held. If the client sends exactly one message, generated code receives it
// before it calls the handler. Other handlers must not use what the lock protects before
// their first RecvMsg has returned. If a stream ends without a message, the Pick is
// called with a nil Request.
//
// On a client the first SendMsg opens the stream, or a CloseSend without any SendMsg.
// Header and RecvMsg wait for that.
func WithFirstMessage() Option { return optionFunc(func(c *config) { c.firstMessage = true }) }
