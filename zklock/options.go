package zklock

import (
	"context"
	"iter"
	"log/slog"
	"slices"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/control"
	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// Option is a setting of a [Client] that the program makes, such as hooks and a logger.
// Settings that an operator makes are keys of the URL, and fields of [Config]. A later option overrides an
// earlier one of the same kind, except [WithHooks] and [WithDriverOption], which add to those before.
type Option interface{ applyOpen(*Client) }

type openOption func(*Client)

func (o openOption) applyOpen(c *Client) { o(c) }

func init() {
	control.Provide(
		func(f func(time.Duration) time.Duration) Option {
			return openOption(func(c *Client) { c.cfg.Place.Jitter = f })
		},
		func(uses int) Option { return openOption(func(c *Client) { c.cfg.Place.KeepAfter = uses }) },
	)
	control.ProvideObserve(observe)
	control.ProvideCallersIn(func(ctx context.Context) []CallerLock { return slices.Collect(iter.Seq[CallerLock](callersOf(ctx))) })
}

// WithHooks adds hooks to those given before; see [JoinHooks] for their order.
func WithHooks(h Hooks) Option {
	return openOption(func(c *Client) { c.hooks = JoinHooks(c.hooks, h) })
}

// WithLogger sets the logger for rare events: lost locks, in one line for all that a session takes
// with it; a lock that the program dropped without a Release; a replaced session; clean-up that
// continues in the background; queue nodes of other recipes. The lines have the names of locks, at
// most five, and the ids of sessions in hexadecimal. Passwords are never logged.
//
// Without this option the client logs warnings and errors to slog's default logger, and so
// does the driver of a URL. With it, the driver also logs the events of its connections at
// debug level. WithLogger(nil) turns all of that off.
//
// No lock and no call waits for the logger's handler. A goroutine of the client passes the lines on, in their
// order. If the handler blocks, up to 128 lines wait. Further ones are dropped, and counted in
// [Stats].LogDropped; a line with their number takes their place. [Client.Close] gives the handler a second for
// the last lines.
func WithLogger(l *slog.Logger) Option {
	return openOption(func(c *Client) {
		if l == nil {
			l = slog.New(slog.DiscardHandler)
		}
		c.cfg.Place.Logger = l
	})
}

// Identity describes the process that a queue node belongs to; see [WithIdentity].
type Identity struct {
	Host string // the host's name
	PID  int    // the process id
}

// WithIdentity sets the identity of the process in the data of queue nodes, where clients that can
// read the nodes see it, for example with [Client.Contenders]. By default it is the host's name and
// the process id. Zero fields are not written, so WithIdentity(Identity{}) leaves the identity out.
func WithIdentity(id Identity) Option {
	return openOption(func(c *Client) { c.cfg.Place.Host, c.cfg.Place.PID = id.Host, id.PID })
}

// WithDriverOption passes a value to the driver of the URL, for settings that need code. Packages
// of drivers have functions that return such options.
func WithDriverOption(value any) Option {
	return openOption(func(c *Client) { c.cfg.driverOptions = append(c.cfg.driverOptions, value) })
}

// WithAcquireStacks keeps the call stack of each acquisition with its lock. If a lock is dropped
// without a Release, the log then has the functions that acquired it. Use it to find such a leak:
// each acquisition takes a microsecond or two longer, and each lock needs some hundred bytes more.
func WithAcquireStacks() Option { return openOption(func(c *Client) { c.cfg.acquireStacks = true }) }

// AcquireOption is a setting of one acquisition. A later option overrides an earlier one of the
// same kind.
type AcquireOption interface{ applyAcquire(*acquisition) }

type acquisitionOption func(*acquisition)

func (o acquisitionOption) applyAcquire(a *acquisition) { o(a) }

// WithWait bounds the wait: the acquisition fails with [ErrNotAcquired] when d has passed
// since the call. Unlike a deadline of the context, it does not affect what the context is
// used for afterwards. If d is zero or less, Acquire works like TryAcquire: it waits for no
// other contender, but it may wait for a session and for replies of the ensemble.
func WithWait(d time.Duration) AcquireOption {
	return acquisitionOption(func(a *acquisition) { a.request.Wait, a.request.Try = d, d <= 0 })
}

// WithLabel writes a text into the queue node, such as a request id, which
// [Client.Contenders] returns to other clients. It is cut at 256 bytes.
func WithLabel(label string) AcquireOption {
	return acquisitionOption(func(a *acquisition) { a.request.Origin.Label = queue.Truncate(label, queue.MaxLabel) })
}

// Reenter makes the acquisition join a lock that its context carries, instead of failing
// with [ErrDeadlock]. It returns a new [Lock] with the same token (after a Downgrade: with
// the token of readers that join later). The lock is given back when the last of its
// Locks has been released. If another goroutine releases the last one before the join,
// the acquisition works as without Reenter.
//
// A writer cannot join a reader's lock, and an acquisition of several names can join a
// lock only if that has all of them. Otherwise the acquisition fails with ErrDeadlock.
func Reenter() AcquireOption { return acquisitionOption(func(a *acquisition) { a.rejoins = true }) }

// WithFailFast makes the acquisition fail with [ErrOutage] and [ErrUnavailable] as soon as
// the client has been without a connection for almost all of connect_timeout. It fails at
// once if an outage has already lasted that long. Without this option each acquisition
// waits for connect_timeout itself, however long the outage has lasted. A try fails earlier
// with or without this option, first with ErrUnavailable alone.
//
// The client forgets an outage if no caller has wanted a session for a second. The option
// has no effect on an acquisition that waits for a holder, or behind another acquisition
// of this client without the option.
func WithFailFast() AcquireOption {
	return acquisitionOption(func(a *acquisition) { a.request.FailFast = true })
}

// WithFailBusy makes the acquisition fail with [ErrBusy] at once, and without a request, if the wait is known to be
// longer than the caller can wait: until its context's deadline, or for the time given to [WithWait]. The client
// knows how many of its goroutines wait for the name, and how often one of them got it of late. It does not know of
// those that wait in other processes, other than by that. An acquisition that has no bound never fails so.
//
// Without the option such a caller waits in vain: the lock goes to as many callers a second with it as without it. With
// it the caller learns at once that it is not served, and fewer goroutines wait.
func WithFailBusy() AcquireOption {
	return acquisitionOption(func(a *acquisition) { a.request.FailBusy = true })
}

// WithoutHandover makes the acquisition create its own queue node, and so get a token with its own
// Zxid. The lock is not passed on between goroutines of the process, and not shared with other
// readers of the process. This costs the round trips that a hand-over saves.
func WithoutHandover() AcquireOption {
	return acquisitionOption(func(a *acquisition) { a.request.Alone = true })
}

// WithAsyncRelease makes Release, and so [Do], return when the release has been handed to the
// session, and not when the ensemble has confirmed it. The release is not held back: it is sent at
// once, and repeated in the background until the queue node is gone. The next acquisition of the
// name by this client shares its transaction, if the release was not sent before. So a goroutine
// that acquires and releases one name in a loop mostly waits for one round trip each time instead
// of two.
//
// Release of such a lock does not return [ErrReleasePending]. If another program had deleted the
// queue node, and this client has not noticed yet, Release does not return [ErrLost] either: the
// client logs the loss. Other clients may see the lock as held for a moment after Release has
// returned, or until the session expires if the process is killed in that moment. If several Locks
// hold one queue node, the option counts for the last one that is released.
func WithAsyncRelease() AcquireOption {
	return acquisitionOption(func(a *acquisition) { a.async = true })
}

// WithRevocable makes the client watch for requests to give the lock back: see
// [Client.Revoke]. When there is one, [Lock.Revoked] is closed, and the contexts of
// [Lock.Context] and [Do] end with a cause that matches [ErrRevoked]. The lock stays held
// until the program releases it, so there is time to bring the work to a good end. No other
// acquisition of this client gets the queue node after that: other processes have their turn.
//
// A clean-up that has to stop when the lock is lost waits for [Lock.Done], or uses the context
// of another Lock: acquire with context.WithoutCancel(ctx) and [Reenter], without WithRevocable.
//
// The option costs one read, right after the acquisition and in the background, if the client does
// not read the queue node anyway because the acquisition has waited or the lock is held for long.
// Without the option the client learns of a request only when it reads the node for another
// reason, and then does not pass the node on.
func WithRevocable() AcquireOption {
	return acquisitionOption(func(a *acquisition) { a.request.Origin.Revocable = true })
}

// WithMaxHold ends the contexts of [Lock.Context] and [Do] when the lock was held for d, with [ErrMaxHold] as the cause, and
// logs that. Work that never ends, such as a request without a timeout, so does not keep the lock for ever, if it
// has that context. The option does not release the lock: the work may still change what the lock
// protects. A caller that cannot end its work should end the process. With zero or less the time is not limited, which
// is the default. Of several Locks on one queue node, by [Reenter], each has its own limit.
func WithMaxHold(d time.Duration) AcquireOption {
	return acquisitionOption(func(a *acquisition) { a.maxHold = d })
}

// WithCandidacy says that the acquisition is meant to wait for long, and the lock to be held for
// long. Examples are the candidates of an election and its leader, or a worker and the process that
// stands by to replace it. Package election uses it.
//
// Neither the wait nor the hold is a sign of a fault then, however long it lasts. [Stats], metrics
// and profiles leave them out of what is longest and contended, and count them apart. Hooks and
// other clients are informed: see [Contender].Candidacy. The page and the command show the holder as
// the leader, and the waiters as candidates. An acquisition without the option that waits for the leader
// counts as any other.
//
// The option implies [WithoutHandover], so that the queue node has one holder only. It changes
// nothing else about the lock, and costs no request.
func WithCandidacy() AcquireOption {
	return acquisitionOption(func(a *acquisition) { a.request.Candidacy, a.request.Alone = true, true })
}

// WithMaxWaiters makes the acquisition fail with [ErrTooManyWaiters] if it would have to
// wait while n goroutines of this client already wait for the name. It fails at once and
// without a request if the client knows that it would have to wait, and otherwise as soon
// as the ensemble has answered. An acquisition that does not have to wait never fails
// with this error: a reader that joins readers, one that gets a free permit, TryAcquire.
//
// The smaller of n and the URL's max_waiters counts. n must be positive; other values set no limit.
func WithMaxWaiters(n int) AcquireOption {
	return acquisitionOption(func(a *acquisition) { a.request.MaxWaiters = max(n, 0) })
}
