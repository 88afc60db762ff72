package zklock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zklock/go-zklock/internal/backlog"
	"github.com/zklock/go-zklock/internal/oneline"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/deadlock"
	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/hook"
	"github.com/zklock/go-zklock/zklock/internal/local"
	"github.com/zklock/go-zklock/zklock/internal/place"
	"github.com/zklock/go-zklock/zklock/internal/queue"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// Client gives access to the locks below one root of one ensemble. It has a pool of
// a few sessions, which it opens when they are first needed. A Client is safe for
// concurrent use and meant to be shared, and usually lives as long as the process.
type Client struct {
	clientCore
	places *place.Shared
	end    func() error // what Close does, at its first call
}

// Open returns a Client for a URL. The package documentation describes the URL's form, and
// docs/urls.md its keys. Open checks the URL and the options, and does not contact the ensemble:
// [Client.Ping] checks whether it answers. No error contains the URL's password.
func Open(url string, opts ...Option) (*Client, error) {
	cfg, err := parseConfig(url)
	if err != nil {
		return nil, &Error{Op: "open", Err: err}
	}
	return OpenConfig(cfg, opts...)
}

// OpenConfig returns a Client with the settings of a [Config]. Like [Open] it checks them, and
// does not contact the ensemble.
func OpenConfig(cfg Config, opts ...Option) (c *Client, err error) {
	defer annotate(&err, "open", "")
	settings, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	c = &Client{clientCore: clientCore{cfg: settings}}
	c.cfg.Place.Lines = new(backlog.Queue)
	for _, o := range opts {
		if o != nil {
			o.applyOpen(c)
		}
	}
	c.useHooks()
	cfg.identify(&c.cfg)
	connector := cfg.Connector
	if connector == nil {
		if connector, err = cfg.connect(c); err != nil {
			return nil, err
		}
	}
	c.places = place.NewShared(&c.cfg.Place)
	c.pool = session.NewPool[*place.WatchedDesk](&c.cfg.Place.Settings, connector)
	c.local = local.NewQueues(&c.cfg.QueueSettings, c.pool)
	c.deadlocks = deadlock.New(&c.cfg.Place, c.pool, c.local, c.cfg.deadlockTimeout)
	place.Serve(c.places, c.pool, c.local.InUse)
	c.end = sync.OnceValue(func() (err error) {
		defer annotate(&err, "close", "")
		c.local.Refuse()
		c.pool.Close()
		err = connector.Close()
		c.cfg.Place.Lines.Flush(backlog.Patience)
		return err
	})
	return c, nil
}

// useHooks sets the hooks that sessions call.
func (c *Client) useHooks() {
	if f := c.hooks.Operation; f != nil {
		c.cfg.Place.Operation = func(ctx context.Context, op session.Operation) (context.Context, func(error)) {
			return f(ctx, OperationEvent(op))
		}
	}
	if f := c.hooks.Session; f != nil {
		c.cfg.Place.Changed = func(s session.Snapshot) { f(SessionEvent(s)) }
	}
}

// OpenConnector returns a Client that uses a driver's connector instead of a URL, as in tests
// with memdriver. It is short for OpenConfig of a Config with a Connector only.
func OpenConnector(connector driver.Connector, opts ...Option) (*Client, error) {
	if connector == nil {
		return nil, &Error{Op: "open", Err: errors.New("the connector is nil: pass a driver's connector, such as that of memdriver.New().Connector()")}
	}
	return OpenConfig(Config{Connector: connector}, opts...)
}

// Ping checks whether locks can work. It returns nil if a quorum of the ensemble answers, the root
// exists or Ping has created it, and this client has the rights that locks need, on the root and
// on the znodes that it creates. If rights are missing, the error matches [ErrNoAuth] and names
// each of them with its path. Ping does not look at the access lists of lock znodes that other
// programs have created. It waits until ctx ends, but no longer than connect_timeout.
//
// Servers may grant another session timeout than session_timeout asks for. Ping
// returns an error if locks cannot work with the granted one, or if it shows that
// tick_time is less than the servers' tickTime. A shorter timeout that locks can work
// with is logged as a warning, once for each session, also for one that Ping opens.
//
// Ping costs one transaction and one request, and one transaction more for each missing
// right. Nothing that it tries is applied. It returns [ErrBadEnsemble] if the client acquires
// no more locks. It only logs a warning if DELETE on the root is
// missing, since locks can do without it, and if the servers do not know containers, as
// those before ZooKeeper 3.5.1: locks work there, but the znodes of names stay.
func (c *Client) Ping(ctx context.Context) (err error) {
	defer annotate(&err, "ping", "")
	if c == nil || c.pool == nil {
		return errNoClient
	}
	ctx, cancel := c.bound(ctx)
	defer cancel()
	ctx, stop := c.pool.Patient(ctx, time.Now())
	defer stop()
	err = onDesk(ctx, c, "", func(d *place.Desk) error {
		if err := d.Ping(ctx); err != nil {
			return err
		}
		return d.Session.CheckOrder(ctx)
	})
	if back := c.pool.Regressed(); back != nil {
		return back
	}
	return err
}

// Healthy is a check for readiness probes, which is cheap enough to be called at any time: it
// makes no request and does not wait. It returns nil if the ensemble has answered on one of the
// client's sessions within that session's timeout, and since an acquisition got no answer or locks
// were lost because of that. Otherwise the error matches
// [ErrUnavailable], or [ErrClosed] after Close or Shutdown, or [ErrBadEnsemble] for good,
// once the client has found that the ensemble has lost transactions.
//
// A client opens its sessions when they are first needed. If it has none yet, or has lost all,
// Healthy starts to open one, and returns ErrUnavailable until it is there. [Client.Ping]
// checks more: that a quorum answers at this moment, and the client's rights.
func (c *Client) Healthy() (err error) {
	defer annotate(&err, "healthy", "")
	switch {
	case c == nil || c.pool == nil:
		return errNoClient
	case c.local.Closing().Err() != nil:
		return errs.ErrClosed
	}
	if err := c.pool.Regressed(); err != nil {
		return err
	}
	return c.pool.Healthy()
}

// String returns the servers and the root of the client, as in a URL; without servers, if it has a Connector,
// the root alone. It has no user and no password.
func (c *Client) String() string {
	if c == nil {
		return "no client"
	}
	return c.cfg.servers + c.cfg.Place.Root
}

// ACL returns the access list of the znodes that the client creates, which the URL's key acl
// selects. Programs that create znodes with [Lock.Txn] can use it.
func (c *Client) ACL() []driver.ACL {
	if c == nil || c.pool == nil {
		return nil
	}
	return slices.Clone(c.cfg.Place.ACL)
}

// errNoClient is what the methods of a zero Client return.
var errNoClient = errs.Case(ErrMisuse, "the Client was not made by Open or OpenConnector")

// acquire carries out an acquisition of any kind: it calls the hooks and counts. refused, if not
// nil, is why the arguments of the request cannot be acquired.
func (c *Client) acquire(ctx context.Context, a *acquisition, refused error) (lock *Lock, err error) {
	if err = refused; err != nil {
		a.request.Name = queue.Truncate(a.request.Name, queue.MaxName)
	}
	returns := false
	defer func() {
		if !returns {
			a.abandon()
		}
	}()
	// Hooks may pass the name on to systems that accept UTF-8 only.
	ctx, end := hook.Start(c.hooks.Acquire, ctx, AcquireEvent{Name: strings.ToValidUTF8(a.request.Name, "\ufffd"), Mode: Mode(a.request.Mode), Try: a.request.Try, Candidacy: a.request.Candidacy})
	var waited time.Duration
	if err == nil {
		if c.cfg.acquireStacks {
			ctx = withStack(ctx)
		}
		a.client, a.request.Ctx, a.request.Caller = &c.clientCore, ctx, a
		if lock, err = c.acquireLock(ctx, a); lock != nil {
			lock.setUp(a.async, a.request.Origin.Revocable, a.maxHold)
		}
		waited = a.endWaiting(err)
		a.reportDeadlock(err)
		if err != nil {
			c.noteFailure(a, err)
		}
		err = a.explain(err)
	}
	if err != nil {
		c.counters.failed.Add(1)
		err = &Error{Op: "acquire", Name: a.request.Name, Err: err}
	} else {
		c.counters.acquired.Add(1)
	}
	end.Call(AcquireResult{Lock: lock, Waited: waited, Err: err})
	returns = true
	return lock, err
}

// noteFailure lets Healthy know of a caller that got no answer of the ensemble for the time of a try, or for as long as
// it has waited, and that met no other contender.
func (c *Client) noteFailure(a *acquisition, err error) {
	if a.request.Origin.Since.IsZero() || a.waitCtx != nil { // it asked the ensemble for nothing, or had an answer
		return
	}
	if took := time.Since(a.request.Origin.Since); errors.Is(err, ErrUnavailable) || took >= c.cfg.Place.ConnectTimeout/4 {
		c.pool.Fail(took)
	}
}

func (c *Client) acquireLock(ctx context.Context, a *acquisition) (lock *Lock, err error) {
	if lock, err := a.reenter(ctx); lock != nil || err != nil {
		return lock, err
	}
	a.observed(ctx)
	if err := c.pool.Regressed(); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, errs.WaitEnded(ctx, errs.ErrNotAcquired)
	}
	q, err := c.local.Enter(&a.request)
	if err != nil {
		return nil, err
	}
	defer c.local.Leave(&a.request)
	a.request.Origin.Since = time.Now()
	if inject := c.hooks.Inject; inject != nil {
		a.request.Origin.Trace = inject(a.request.Ctx)
	}
	if label := c.hooks.Label; label != nil && a.request.Origin.Label == "" {
		a.request.Origin.Label = queue.Truncate(label(a.request.Ctx), queue.MaxLabel)
	}
	if err := q.Acquire(&a.request); err != nil {
		return nil, err
	}
	return a.lock, nil
}

// path returns the znode of a name: its contenders queue there.
func (c *Client) path(name string) string {
	return c.cfg.Place.Root + "/" + c.cfg.Place.Dialect.Encode(name)
}

// bound returns a context that ends when ctx ends, or when the client is closed or
// shut down; in the latter case its cause is ErrClosed.
func (c *Client) bound(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(c.local.Closing(), func() { cancel(errs.ErrClosed) })
	return ctx, func() { stop(); cancel(nil) }
}

// Shutdown closes the client after its locks have been released. From the call on, acquisitions and
// waiters fail with [ErrClosed]; joining a held lock with [Reenter] still works. Shutdown waits
// until every lock has been released, or until ctx ends, and then calls [Client.Close]. If locks
// were still held when ctx ended, they are lost, and the error matches the cause of ctx.
func (c *Client) Shutdown(ctx context.Context) error {
	if c == nil || c.pool == nil {
		return &Error{Op: "shutdown", Err: errNoClient}
	}
	c.local.Refuse()
	var err error
	select {
	case <-c.local.Unused():
	case <-ctx.Done():
		err = &Error{Op: "shutdown", Err: fmt.Errorf("locks were still held, and are lost: %w", context.Cause(ctx))}
	}
	return oneline.Join(err, c.Close())
}

// Close closes the client at once. Waiters fail with [ErrClosed]. Locks that are
// still held are lost, with ErrClosed as the cause, before the client asks the
// ensemble to remove their queue nodes; loss_delay does not delay that. Close returns
// when every goroutine of the client has ended, at most about a session timeout
// later. One may be left: a handler of [WithLogger] that does not take the client's lines within a second
// keeps the goroutine that waits for it. Further calls wait for the first one and return the same error.
func (c *Client) Close() error {
	if c == nil || c.pool == nil {
		return &Error{Op: "close", Err: errNoClient}
	}
	return c.end()
}

// observe implements control.Observe. Unlike hooks, an observer can come to a client that is open.
func observe(c *Client, f func(context.Context, []place.Want, bool)) (stop func()) {
	o := (*observer)(&f)
	c.changeObservers(func(l []*observer) []*observer { return append(l, o) })
	return func() {
		c.changeObservers(func(l []*observer) []*observer {
			return slices.DeleteFunc(l, func(other *observer) bool { return other == o })
		})
	}
}

// changeObservers replaces the list of observers, which acquisitions read without a mutex.
func (s *clientCore) changeObservers(change func([]*observer) []*observer) {
	for {
		old := s.observers.Load()
		var list []*observer
		if old != nil {
			list = slices.Clone(*old)
		}
		if list = change(list); s.observers.CompareAndSwap(old, &list) {
			return
		}
	}
}
