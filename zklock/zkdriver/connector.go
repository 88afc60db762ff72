package zkdriver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
)

const (
	// sendBuffer is the size of the client's buffer for one request.
	sendBuffer = maxRequest + 1<<10

	// discardTime limits the time for closing a session that was made but could not
	// be returned to the caller.
	discardTime = 2 * time.Second
)

func init() {
	zklock.Register(schemePlain, Driver{})
	zklock.Register(schemeTLS, Driver{})
}

// Driver implements driver.Driver for the schemes zk and zks. Its zero value is
// registered.
type Driver struct{}

// Keys implements driver.Driver.
func (Driver) Keys() []string { return slices.Clone(keys) }

// OpenConnector implements driver.Driver. It reads the files that the URL names, so
// that mistakes show early. It does no network I/O.
func (d Driver) OpenConnector(u driver.URL) (driver.Connector, error) {
	c, err := parse(u)
	if err != nil {
		return nil, err
	}
	life, end := context.WithCancel(context.Background())
	return &connector{
		config: c, first: newFirstServers(), backoff: &backoff{}, life: life, end: end,
		trying: make(map[*session]struct{}), opened: make(map[*session]struct{}),
	}, nil
}

var _ driver.Connector = (*connector)(nil)

// connector implements driver.Connector.
type connector struct {
	config  *config
	first   *firstServers   // shared by all calls of Connect
	backoff *backoff        // likewise
	life    context.Context // ends with Close
	end     context.CancelFunc

	mu     sync.Mutex
	closed bool                  // guarded by mu
	renews bool                  // guarded by mu; keepTickets runs
	trying map[*session]struct{} // guarded by mu; sessions that have no server yet
	opened map[*session]struct{} // guarded by mu; sessions that Connect has returned, without most of those that have ended
	failed error                 // guarded by mu; why the last call of Connect to end found no server; nil if it found one
	wg     sync.WaitGroup        // counts calls of Connect, the clean-up after failed ones, and keepTickets; added to under mu
}

// Driver implements driver.Connector.
func (c *connector) Driver() driver.Driver { return Driver{} }

// Close implements driver.Connector. It ends the calls of Connect that are under way,
// and waits for them.
func (c *connector) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.end()
	c.wg.Wait()
	return nil
}

// Connect implements driver.Connector. It tries servers until ctx ends. It gives up
// earlier only if every server fails for a permanent reason: the peer is not a
// ZooKeeper server, or a certificate is not accepted.
func (c *connector) Connect(ctx context.Context, timeout time.Duration) (driver.Session, error) {
	if timeout < time.Millisecond || timeout > maxTimeout {
		return nil, fmt.Errorf("zkdriver: session timeout %v is out of range: %w", timeout, driver.ErrBadArguments)
	}
	ctx, done, err := c.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	var digest []byte
	if c.config.creds != nil {
		if digest, err = c.config.creds.digest(); err != nil {
			return nil, err
		}
	}
	s, err := c.start(timeout)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.trying[s] = struct{}{}
	c.mu.Unlock()
	err = s.ready(ctx)
	var failed error
	if err != nil {
		s.dialer.leave()
		failed = s.dialer.err(nil)
	}
	c.mu.Lock()
	delete(c.trying, s)
	c.failed = failed // from here on Diagnose returns it: the caller may not have err yet
	c.mu.Unlock()
	if err == nil && digest != nil {
		err = s.authenticate(ctx, func(c *zk.Conn) error { return c.AddAuth("digest", digest) })
	}
	if err == nil {
		c.mu.Lock()
		c.forgetEndedLocked()
		c.opened[s] = struct{}{}
		c.mu.Unlock()
		c.beginTickets()
		return s, nil
	}
	if s.ID() == 0 {
		s.end() // it has no server yet: stop dialling
	}
	// No caller has the session, so it is closed here, in the background: Connect
	// must not take longer than ctx allows.
	c.wg.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), discardTime)
		defer cancel()
		_ = s.Close(ctx) // it expires by itself if this fails
	})
	return nil, err
}

// begin begins a call that Close ends, and waits for. The caller calls done at its end.
func (c *connector) begin(ctx context.Context) (_ context.Context, done func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, nil, errConnectorClosed
	}
	if err := ctx.Err(); err != nil {
		err = fmt.Errorf("zkdriver: connect: %w", both(driver.ErrNotSent, err))
		if why := c.failedLocked(); why != nil {
			err = fmt.Errorf("%w; before that: %v", err, why)
		}
		return nil, nil, err
	}
	c.wg.Add(1)
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(c.life, func() { cancel(errConnectorClosed) })
	return ctx, func() { stop(); cancel(nil); c.wg.Done() }, nil
}

// Diagnose implements driver.Connector. If several calls of Connect are under way, it
// reports on one that has met a server, if there is one: they all try the same servers. Else it
// reports on a session that has lost its connection, if there is one; and if no session lives, on the
// last call.
func (c *connector) Diagnose() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var trying *session
	for s := range c.trying {
		if trying = s; s.dialer.knows() {
			break
		}
	}
	if trying != nil {
		return trying.dialer.err(nil)
	}
	why := c.failedLocked() // which forgets sessions that have ended
	for s := range c.opened {
		if state, _ := s.State(); state == driver.Suspended {
			return s.dialer.err(nil)
		}
	}
	return why
}

// failedLocked returns why the last call of Connect failed; nil if it did not, or if a session lives. mu
// is held.
func (c *connector) failedLocked() error {
	if c.forgetEndedLocked(); len(c.opened) > 0 {
		return nil
	}
	return c.failed
}

// forgetEndedLocked takes the sessions that have ended off opened. mu is held.
func (c *connector) forgetEndedLocked() {
	maps.DeleteFunc(c.opened, func(s *session, _ struct{}) bool {
		state, _ := s.State()
		return state.Final()
	})
}

// errConnectorClosed is the error of Connect after Close.
var errConnectorClosed = fmt.Errorf("zkdriver: connect: %w", driver.ErrClosed)

// start makes a session, which begins to look for its first server.
func (c *connector) start(timeout time.Duration) (*session, error) {
	s := newSession(c.config, c.first.order(c.config.names.now()), c.backoff, timeout)
	// The client takes 1.5 MiB for receiving, once for each connection. It takes
	// more, up to maxFrame, only for a frame that needs it. A lower limit would save
	// memory, but would drop the connection at every long list of children.
	conn, events, err := zk.Connect([]string{anyServer}, timeout, options(
		zk.WithHostProvider(s.hosts),
		zk.WithDialer(s.dialer.dial),
		zk.WithEventCallback(s.callback),
		zk.WithLogger(logger{c.config.logger}),
		zk.WithLogInfo(false),
		zk.WithMaxBufferSize(maxFrame),
		zk.WithMaxConnBufferSize(sendBuffer),
	)...)
	if err != nil {
		s.end()
		return nil, fmt.Errorf("zkdriver: connect: %w", err)
	}
	s.zk = conn
	go s.supervise(events) // joined by Close, which waits for stopped
	return s, nil
}

// options returns its arguments as a slice. The type of the client's options cannot
// be named here.
func options[T any](o ...T) []T { return o }

// ready waits for the first handshake.
func (s *session) ready(ctx context.Context) error {
	for {
		state, changed := s.State()
		switch state {
		case driver.Connected:
			return nil
		case driver.Expired:
			return fmt.Errorf("zkdriver: connect: %w", driver.ErrSessionExpired)
		}
		select {
		case <-changed:
		case <-s.dialer.hopeless:
			return s.dialer.err(nil)
		case <-ctx.Done():
			cause := context.Cause(ctx)
			if errors.Is(cause, driver.ErrClosed) {
				return cause
			}
			return s.dialer.err(both(cause, ctx.Err()))
		}
	}
}
