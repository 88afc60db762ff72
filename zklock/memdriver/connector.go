package memdriver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
)

// connector opens sessions with an ensemble.
type connector struct {
	e     *Ensemble
	ids   []identity
	route []*server
	own   bool  // the ensemble is private to the connector
	err   error // of each Connect, if the identity cannot be computed

	mu     sync.Mutex
	closed bool // guarded by mu
	trying int  // guarded by mu; calls of Connect that no server has answered yet
}

var _ driver.Connector = (*connector)(nil)

// Connector returns a connector to the ensemble, or only to some of its servers,
// given by number. Each new session starts with the server after that of the session
// before. A session that has to reconnect goes on to the next server.
func (e *Ensemble) Connector(servers ...int) driver.Connector {
	return &connector{e: e, route: e.route(servers)}
}

// As returns a connector whose sessions authenticate as a user, in ZooKeeper's digest
// scheme, like those of a URL with a user and a password. With GODEBUG=fips140=only and Go 1.25, which cannot
// make an exception for the scheme's SHA-1, each Connect fails.
func (e *Ensemble) As(user string, password driver.Secret) driver.Connector {
	id, err := digestIdentity(user, password.Reveal())
	return &connector{e: e, ids: []identity{id}, route: e.servers, err: err}
}

func (e *Ensemble) route(servers []int) []*server {
	if len(servers) == 0 {
		return e.servers
	}
	route := make([]*server, len(servers))
	for i, n := range servers {
		route[i] = e.servers[n]
	}
	return route
}

// Connect implements [driver.Connector].
func (c *connector) Connect(ctx context.Context, timeout time.Duration) (driver.Session, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("mem: connect: %w", err)
	}
	s, err := c.start(timeout, hello{})
	if err != nil {
		return nil, err
	}
	return c.establish(ctx, s)
}

// start makes a new session, or takes over that of resumed, and begins to look for a server.
func (c *connector) start(timeout time.Duration, resumed hello) (*session, error) {
	c.mu.Lock()
	closed := c.closed
	c.mu.Unlock()
	if c.err != nil {
		return nil, c.err
	}
	e := c.e
	e.enter()
	defer e.leave()
	if closed || e.closed {
		return nil, fmt.Errorf("mem: connect: %w", driver.ErrClosed)
	}
	return e.newClient(c.ids, c.route, timeout, resumed), nil
}

// establish waits until a server has accepted the session. The session is over if none has when ctx
// ends.
func (c *connector) establish(ctx context.Context, s *session) (driver.Session, error) {
	e := c.e
	c.try(1)
	defer c.try(-1)
	select {
	case <-s.up:
	case <-ctx.Done():
	}
	e.enter()
	defer e.leave()
	if s.gen > 0 {
		return s, nil
	}
	if s.over {
		return nil, fmt.Errorf("mem: connect: %w", cmp.Or(s.usable(), driver.ErrClosed))
	}
	s.end(nil, driver.ErrClosed)
	return nil, fmt.Errorf("mem: connect: no server answered: %w", ctx.Err())
}

// try counts calls of Connect.
func (c *connector) try(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.trying += n
}

// errUnanswered is the only error that a Connect that still runs can have met.
var errUnanswered = errors.New("mem: connect: no server has answered yet")

// Diagnose implements [driver.Connector].
func (c *connector) Diagnose() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.trying == 0 {
		return nil
	}
	return errUnanswered
}

// Driver implements [driver.Connector].
func (c *connector) Driver() driver.Driver { return urlDriver{} }

// Close implements [driver.Connector].
func (c *connector) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	if !c.own {
		return nil
	}
	c.e.enter()
	c.e.private = true
	c.e.retire()
	c.e.leave()
	return nil
}

// newClient makes the client's side of a session, which is to be established with one
// of the servers in route.
func (e *Ensemble) newClient(ids []identity, route []*server, timeout time.Duration, resumed hello) *session {
	s := &session{
		e: e, ids: ids, id: resumed.session, password: resumed.password, taken: resumed.session != 0, route: route, hop: e.turn, asked: timeout,
		up: make(chan struct{}), ended: make(chan struct{}),
	}
	// Spread the sessions over the servers.
	e.turn++
	idle := !e.busy()
	e.clients[s] = struct{}{}
	if idle {
		e.wake()
	}
	s.dial()
	return s
}
