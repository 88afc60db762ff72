package zklock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/hook"
	"github.com/zklock/go-zklock/zklock/internal/place"
	"github.com/zklock/go-zklock/zklock/internal/queue"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// Client is a handle on the locks below one root of one ensemble: a pool of a
// few sessions, which are opened when first needed. It is safe for concurrent
// use, meant to be shared, and usually lives as long as the process.
type Client struct {
	*common
	hooks      Hooks
	connector  driver.Connector
	pool       *session.Pool
	turnstiles turnstiles

	closed   chan struct{} // closed when Close has finished
	closeErr error         // set before closed is closed
	once     sync.Once
}

// Open makes a Client from a URL; see the package documentation for its form, and
// docs/urls.md for its keys.
// It checks everything that can be checked, and does no I/O: use Ping to see
// whether the ensemble answers. No error contains the URL's password.
func Open(url string, opts ...Option) (*Client, error) {
	c, err := open(url, opts)
	if err != nil {
		return nil, &Error{Op: "open", Err: err}
	}
	return c, nil
}

func open(text string, opts []Option) (*Client, error) {
	u, err := parseURL(text)
	if err != nil {
		return nil, err
	}
	d, err := lookupDriver(u.Scheme)
	if err != nil {
		return nil, err
	}
	cfg := defaultConfig()
	cfg.Root, cfg.User = u.Root, u.User
	if u.Params, err = cfg.applyParams(u.Params, d.Keys()); err != nil {
		return nil, err
	}
	if cfg.acl == aclAuto && u.User != "" {
		cfg.acl = aclCreator
	}
	if err := cfg.complete(opts); err != nil {
		return nil, err
	}
	u.Root, u.Logger = cfg.Root, cfg.DriverLogger
	connector, err := d.OpenConnector(u)
	if err != nil {
		return nil, err
	}
	return newClient(cfg, connector), nil
}

// OpenConnector makes a Client of a driver's connector, which it owns from then
// on: Close closes it. It does no I/O. Settings come from opts.
func OpenConnector(connector driver.Connector, opts ...Option) (*Client, error) {
	if connector == nil {
		return nil, &Error{Op: "open", Err: errors.New("the connector is nil")}
	}
	cfg := defaultConfig()
	if err := cfg.complete(opts); err != nil {
		return nil, &Error{Op: "open", Err: err}
	}
	return newClient(cfg, connector), nil
}

// complete applies the options and checks the whole.
func (c *config) complete(opts []Option) error {
	for _, o := range opts {
		if o != nil {
			o.applyOpen(c)
		}
	}
	if _, err := c.applyParams(c.params, nil); err != nil {
		return err
	}
	if c.Root == "" {
		c.Root = defaultRoot
	}
	if c.acl == aclAuto {
		c.acl = aclOpen
	}
	c.CreatorOnly = c.acl == aclCreator
	c.useHooks()
	return c.check()
}

func newClient(cfg config, connector driver.Connector) *Client {
	c := &Client{common: newCommon(cfg.rules), hooks: cfg.hooks, connector: connector, closed: make(chan struct{})}
	c.pool = session.NewPool(&c.cfg.Settings.Settings, connector)
	c.turnstiles.init(c.common, c.pool, observersOf(&c.hooks))
	c.places.Serve(c.pool, c.turnstiles.inUse)
	return c
}

// Ping reports whether a quorum of the ensemble answers, whether the root is
// there, or could be made, and whether this client has the rights that locks
// need, on the root and on the znodes that it makes: the error, which matches
// [ErrNoAuth], says which is missing on which path. Znodes of locks that were
// made by others may have access lists of their own, which Ping does not look at.
// It waits until ctx ends, but no longer than connect_timeout.
//
// Servers may grant another session timeout than session_timeout asks for. It is
// Ping's error if locks cannot work with what was granted, or if it shows that
// tick_time is less than the servers' tickTime. Else it is a warning in the log, one
// for each session, Ping's included.
//
// It costs two transactions. The first proves the quorum. The second does all
// that a lock would do, and a check that cannot hold, so that nothing of it is
// applied. A right that there is a way round, which is DELETE on the root, is
// logged if it is missing, and no error.
func (c *Client) Ping(ctx context.Context) error {
	if err := c.ping(ctx); err != nil {
		return &Error{Op: "ping", Err: err}
	}
	return nil
}

func (c *Client) ping(ctx context.Context) error {
	if c == nil || c.pool == nil {
		return errNoClient
	}
	ctx, cancel := c.bound(ctx)
	defer cancel()
	ctx, stop := c.pool.Patient(ctx, time.Now())
	defer stop()
	for {
		s, err := c.pool.Session(ctx, "")
		if err != nil {
			return err
		}
		if err = place.DeskOf(s).Ping(ctx); !errors.Is(err, errs.ErrSessionOver) {
			return err
		}
	}
}

// errNoClient is the error of methods of a zero Client.
var errNoClient = errors.New("the Client was not made by Open")

// acquire is what all acquisitions come down to.
func (c *Client) acquire(ctx context.Context, name string, mode queue.Mode, wants []place.Want, cfg acquireConfig) (*Lock, error) {
	ctx, end := hook.Start(c.hooks.Acquire, ctx, AcquireEvent{Name: name, Mode: Mode(mode), Try: cfg.try})
	if c.cfg.acquireStacks {
		ctx = withStack(ctx)
	}
	r := &request{all: &c.turnstiles, name: name, failFast: cfg.failFast,
		Request: place.Request{Ctx: ctx, Mode: mode, Wants: wants, Try: cfg.try}}
	r.By = r
	lock, err := c.acquireLock(ctx, r, cfg)
	r.waited(err)
	waited := r.waitedFor()
	c.counters.wait(waited)
	if err != nil {
		c.counters.failed.Add(1)
		err = &Error{Op: "acquire", Name: name, Err: err}
	} else {
		c.counters.acquired.Add(1)
	}
	end.Call(AcquireResult{Lock: lock, Waited: waited, Err: err})
	return lock, err
}

// refused is acquire for a request that can be refused as it stands. It counts as an
// acquisition that failed. c may be nil: then only the caller learns of it.
func (c *Client) refused(ctx context.Context, name string, mode queue.Mode, cfg acquireConfig, why error) error {
	name = queue.Truncate(name, queue.MaxName)
	err := &Error{Op: "acquire", Name: name, Err: why}
	if c == nil {
		return err
	}
	// Hooks may pass the name on to systems that take UTF-8 only.
	_, end := hook.Start(c.hooks.Acquire, ctx, AcquireEvent{Name: strings.ToValidUTF8(name, "\ufffd"), Mode: Mode(mode), Try: cfg.try})
	c.counters.failed.Add(1)
	end.Call(AcquireResult{Err: err})
	return err
}

func (c *Client) acquireLock(ctx context.Context, r *request, cfg acquireConfig) (*Lock, error) {
	if lock, err := c.reenter(ctx, r, cfg.reenter); lock != nil || err != nil {
		return lock, err
	}
	if c.places.TokensRegressed() {
		return nil, ErrTokenRegression
	}
	if ctx.Err() != nil {
		return nil, errs.WaitEnded(ctx, errs.ErrNotAcquired)
	}
	waitCtx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.cancel = cancel
	t, err := c.turnstiles.startWaiting(r, cfg)
	if err != nil {
		return nil, err
	}
	defer c.turnstiles.stopWaiting(r)
	if cfg.limited && !cfg.try {
		timer := time.AfterFunc(cfg.wait, func() { cancel(errs.ErrWaitOver) })
		defer timer.Stop()
	}
	r.introduce(cfg)
	alone := len(r.Wants) > 1 || r.Mode == queue.Permit || cfg.alone || c.cfg.handoverLimit == 0 || c.cfg.handoverTime == 0
	for {
		var lock *Lock
		if alone {
			lock, err = t.acquireAlone(waitCtx, r)
		} else {
			r.turnstile = t
			lock, err = t.acquire(waitCtx, r)
		}
		switch {
		case err != nil || lock.Err() == nil:
			return lock, err
		case waitCtx.Err() != nil:
			return nil, errs.WaitEnded(waitCtx, errs.ErrNotAcquired)
		}
		// It was lost between its grant and here: back to the tail.
		c.turnstiles.waitAgain(r)
	}
}

// path returns the znode under which the contenders of a name queue.
func (c *Client) path(name string) string { return c.cfg.Root + "/" + c.cfg.Dialect.Encode(name) }

// bound derives a context that ends with ctx and with the client (cause
// ErrClosed).
func (c *Client) bound(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(c.turnstiles.closing, func() { cancel(errs.ErrClosed) })
	return ctx, func() { stop(); cancel(nil) }
}

// Shutdown ends the client in order: from now on nothing is acquired, waiters
// get ErrClosed at once, and it waits until every lock has been released, or ctx
// ends; then it closes. Joining a held lock with Reenter still works meanwhile.
// The error is ctx's if locks were still held, and were lost.
func (c *Client) Shutdown(ctx context.Context) error {
	if c == nil || c.pool == nil {
		return &Error{Op: "shutdown", Err: errNoClient}
	}
	c.turnstiles.refuse()
	var err error
	select {
	case <-c.turnstiles.unused():
	case <-c.closed:
	case <-ctx.Done():
		err = &Error{Op: "shutdown", Err: fmt.Errorf("locks still held were given up: %w", context.Cause(ctx))}
	}
	return errors.Join(err, c.Close())
}

// Close ends the client at once. Waiters get ErrClosed; locks that are still
// held are lost, with ErrClosed as the cause, before the ensemble is told to
// remove their queue nodes, which loss_delay does not hold up. It waits until
// every goroutine of the client has ended, at most about a session timeout.
// Closing twice is harmless.
func (c *Client) Close() error {
	if c == nil || c.pool == nil {
		return &Error{Op: "close", Err: errNoClient}
	}
	c.once.Do(func() {
		c.turnstiles.refuse()
		c.pool.Close()
		if err := c.connector.Close(); err != nil {
			c.closeErr = &Error{Op: "close", Err: err}
		}
		close(c.closed)
	})
	<-c.closed
	return c.closeErr
}
