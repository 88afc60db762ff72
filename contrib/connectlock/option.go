package connectlock

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"connectrpc.com/connect"

	"github.com/zklock/go-zklock/interceptors/protolock"
	"github.com/zklock/go-zklock/internal/backlog"
	"github.com/zklock/go-zklock/internal/holding"
	"github.com/zklock/go-zklock/internal/served"
	"github.com/zklock/go-zklock/internal/verdict"
	"github.com/zklock/go-zklock/zklock"
)

// Defaults of the options; their comments quote them.
const (
	defaultWait       = 10 * time.Second
	defaultCode       = connect.CodeAborted
	defaultRetryDelay = time.Second
)

// Option configures an interceptor. A later option overrides an earlier one of the same kind,
// except WithAcquire, which adds options.
type Option interface{ apply(*config) }

type option func(*config)

func (o option) apply(c *config) { o(c) }

// config has what the options set. It does not change after the interceptor was made.
type config struct {
	pick         Pick
	wait         time.Duration  // zero or less: try
	writeTimeout *time.Duration // nil: the server's
	label        func(context.Context, Call) string
	code         connect.Code
	lostCode     connect.Code // 0: the default
	failures     *holding.Errors
	retryDelay   time.Duration
	maxHold      time.Duration
	firstMessage bool
	trustCaller  func(context.Context, Call) bool
	logger       *slog.Logger
	acquire      []zklock.AcquireOption // for all calls; the last is the wait
}

func newConfig(interceptor string, pick Pick, opts []Option) *config {
	if pick == nil {
		panic("connectlock: " + interceptor + ": pick is nil: want a function that chooses each call's lock")
	}
	c := &config{pick: pick, wait: defaultWait, label: procedureOf, code: defaultCode, retryDelay: defaultRetryDelay}
	for _, o := range opts {
		if o != nil {
			o.apply(c)
		}
	}
	c.failures = newFailures(connect.Code(verdict.LostCode(verdict.Code(c.lostCode), verdict.Code(c.code))))
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

// procedureOf is the default label of a call.
func procedureOf(_ context.Context, call Call) string { return call.Procedure }

// WithWait sets how long a call waits for its lock. After that it fails with the code of
// WithCode. The default is 10 s. With zero or less it does not wait. In an outage such a call
// fails as unavailable a quarter of connect_timeout after the outage began, or at once if that
// has passed. A wait that the .proto file declares has precedence, see FromProto.
func WithWait(d time.Duration) Option { return option(func(c *config) { c.wait = d }) }

// WithWriteTimeout sets until when the answer to a handler's call can be written, from when the
// interceptor gets the call. The default is the http.Server's WriteTimeout: when that has passed, the
// client gets no answer, and may make the call again while the handler of the first one still runs. So the
// wait for a lock ends a little before: a tenth of the time, and one second at most. A call that has got its
// lock later is not served. Its error is that of a wait that is over, with the code of WithCode.
//
// connect has read the message of a unary call before an interceptor gets the call, while the server's
// time runs. So set the server's ReadTimeout, too, if messages may arrive slowly. With zero or less the
// wait is as long as WithWait says: set that if an outer http.Handler has moved the write deadline, as long
// streams need. The option has no effect on a client.
func WithWriteTimeout(d time.Duration) Option {
	return option(func(c *config) { c.writeTimeout = &d })
}

// WithLabel sets a text that other processes can read about a call that waits for a lock or
// holds it, such as a request id; see zklock.WithLabel. The default is the call's procedure.
// nil leaves the label out. Many goroutines may call label at once.
func WithLabel(label func(ctx context.Context, call Call) string) Option {
	return option(func(c *config) { c.label = label })
}

// WithCode sets the code of a call that did not get its lock because another holder has it.
// The default is aborted: the caller decides whether to start again. The option does not change
// the codes of other errors. WithCode panics if code is not one of those of package connect.
func WithCode(code connect.Code) Option {
	mustBeError("WithCode", code)
	return option(func(c *config) { c.code = code })
}

// WithLostCode sets the code of a call whose lock was lost while its handler ran ([ReasonLost]). The handler's work may be
// done, so nothing on the way may repeat the call by itself. The default is failed_precondition: by the
// definition of that code, a caller does not repeat the call before it has looked at the state. It
// is not the code of WithCode, so that a retry policy for locks in use repeats no work that
// may be done; if WithCode sets failed_precondition, the default is aborted. A call whose handler has not
// run gets unavailable.
//
// WithLostCode panics if code is not one of those of package connect.
func WithLostCode(code connect.Code) Option {
	mustBeError("WithLostCode", code)
	return option(func(c *config) { c.lostCode = code })
}

// mustBeError panics if code is not the code of an error. name is the option that got it.
func mustBeError(name string, code connect.Code) {
	if code < connect.CodeCanceled || code > connect.CodeUnauthenticated {
		panic(fmt.Sprintf("connectlock: %s(%v): want the code of an error", name, code))
	}
}

// WithRetryDelay sets the delay in the RetryInfo of calls that were not served and may be made
// again. The delay is d plus a random part of up to half of d. If a [zklock.BusyError] has a longer
// estimate, that takes the place of d, up to a minute. The default is 1 s; zero or less leaves the
// RetryInfo out.
func WithRetryDelay(d time.Duration) Option { return option(func(c *config) { c.retryDelay = d }) }

// WithMaxHold cancels the handler's context, or on a client the call's, d after the lock was
// acquired, with zklock.ErrMaxHold as the cause. It does not release the lock: the lock is held
// until the call has ended. By default the time is not limited. A Receive of a handler that waits for the client
// ends then. A Send that waits then, or later, ends after a tenth of d, and after one second at most, by a deadline of
// the connection, if [Handler] is around connect's handler. Without that an interceptor has no way to the connection:
// set the http.Server's WriteTimeout.
func WithMaxHold(d time.Duration) Option { return option(func(c *config) { c.maxHold = d }) }

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
	return option(func(c *config) { c.acquire = append(c.acquire, opts...) })
}

// WithLogger sets the logger for errors that are a fault of the program or its set-up
// ([ReasonError]). The error that the caller gets does not describe the fault. The default is
// slog's default logger at that moment. No call and no lock waits for its handler: lines that it
// does not take in time are dropped, and the log says how many.
func WithLogger(l *slog.Logger) Option { return option(func(c *config) { c.logger = l }) }

// WithFirstMessage makes the streams of a handler acquire their lock with the first message
// from the client, which the Pick gets as Call.Request. Without this option the Pick gets only
// procedure and header. Unary calls and clients are not affected: these always have a message.
// It is off by default.
//
// The handler starts without a lock, and its first Receive returns when the lock is held. If
// the client sends exactly one message, connect receives it before it calls the handler. Other
// handlers must not use what the lock protects before their first Receive has returned. If a
// stream ends without a message, the Pick is called with a nil Request.
func WithFirstMessage() Option { return option(func(c *config) { c.firstMessage = true }) }
