package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// distant is a connector of servers far away, which cut the connection of a request that is larger than a limit.
type distant struct {
	driver.Connector
	e        *memdriver.Ensemble
	oneWay   time.Duration
	limit    int
	sessions atomic.Int32 // that were opened
}

// remote is a session of distant.
type remote struct {
	driver.Session
	of *distant
}

func (c *distant) Connect(ctx context.Context, timeout time.Duration) (driver.Session, error) {
	s, err := c.Connector.Connect(ctx, timeout)
	if err != nil {
		return nil, err
	}
	c.sessions.Add(1)
	return remote{s, c}, nil
}

// reads reports whether the server reads a request. If not, it ends the connection when the request has arrived.
func (s remote) reads(size int) bool {
	if size <= s.of.limit {
		return true
	}
	gen, _ := s.Conn()
	before, _ := s.State()
	<-time.After(s.of.oneWay)
	if now, _ := s.Conn(); before == driver.Connected && now == gen {
		s.of.e.KillConnection(s.ID())
	}
	return false
}

func (s remote) Get(ctx context.Context, path string) (driver.Node, error) {
	if !s.reads(13 + len(path)) {
		return driver.Node{}, driver.ErrConnLoss
	}
	return s.Session.Get(ctx, path)
}

func (s remote) Multi(ctx context.Context, ops []driver.Op) ([]driver.OpResult, error) {
	size := 0
	for _, op := range ops {
		size += 30 + len(op.Path) + len(op.Data) // about what it has on the wire
	}
	if !s.reads(size) {
		return nil, driver.ErrConnLoss
	}
	return s.Session.Multi(ctx, ops)
}

// Thousands of callers wait while servers far away are asked what they read, for longer than connect_timeout, and do not
// fail as in an outage. Nor do those whose own requests were on a connection that was cut: while the session answers, each waits
// until it has looked for its node. The questions that servers with a low limit cut cost no session: all but the first of them have a
// connection of their own.
func TestManyCallersWhileDistantServersAreAsked(t *testing.T) {
	corekit.Short(t)
	const many = 3000
	for _, c := range []struct {
		limit, pool int
		extra       int // sessions that are opened for questions
	}{
		{1 << 20, 1, 0},
		{1 << 16, 4, 2},
		{1 << 15, 1, 2},
	} {
		t.Run(fmt.Sprint(c.limit, " bytes"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const oneWay = 500 * time.Millisecond
				e := memdriver.New(memdriver.WithLatency(oneWay))
				d := &distant{Connector: e.Connector(), e: e, oneWay: oneWay, limit: c.limit}
				client := connect(t, d, map[string]string{"pool_max_sessions": fmt.Sprint(c.pool)})
				done := make(chan error, many)
				for i := range many {
					go func() {
						_, err := client.Mutex(strings.Repeat("n", 60) + fmt.Sprint(i)).Acquire(t.Context())
						done <- err
					}()
				}
				held, full, unavailable := 0, 0, 0
				for range many {
					switch err := <-done; {
					case err == nil:
						held++
					case errors.Is(err, zklock.ErrTooManyWaiters):
						full++
					case errors.Is(err, zklock.ErrUnavailable):
						unavailable++
					default:
						t.Error(err)
					}
				}
				if unavailable > 0 || c.extra == 0 && held < many || client.Stats().SessionsLost > 0 {
					t.Errorf("%d are held, %d found no room, %d met an outage, %d sessions were lost: want no outage and no loss",
						held, full, unavailable, client.Stats().SessionsLost)
				}
				if n := int(d.sessions.Load()); n != c.pool+c.extra {
					t.Errorf("%d sessions were opened, want %d, and %d for questions", n, c.pool, c.extra)
				}
			})
		})
	}
}
