package zklock_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// doomed opens sessions. The first ones, as many as left says, end right after they have read
// the root, about when the pool takes them.
type doomed struct {
	driver.Connector
	e      *memdriver.Ensemble
	left   atomic.Int64
	opened atomic.Int64
}

func (d *doomed) Connect(ctx context.Context, timeout time.Duration) (driver.Session, error) {
	s, err := d.Connector.Connect(ctx, timeout)
	d.opened.Add(1)
	if err != nil || d.left.Add(-1) < 0 {
		return s, err
	}
	return &doomedSession{s, d.e}, nil
}

type doomedSession struct {
	driver.Session
	e *memdriver.Ensemble
}

func (s *doomedSession) Get(ctx context.Context, path string) (driver.Node, error) {
	n, err := s.Session.Get(ctx, path)
	s.e.KillSession(s.ID())
	return n, err
}

// A session that ends while it is being opened, or right after that, is not used for an
// acquisition. The pool waits before it opens the next one.
func TestSessionThatEndsAtOnceIsReplaced(t *testing.T) {
	const ends = 1000
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithLatency(time.Millisecond))
		d := &doomed{Connector: e.Connector(), e: e}
		c := connect(t, d, map[string]string{"connect_timeout": "10h"})
		mustRelease(t, mustLock(t)(c.Mutex("x").Acquire(t.Context())))
		d.left.Store(ends)
		e.ExpireAll()
		synctest.Wait()
		began := time.Now()
		mustRelease(t, mustLock(t)(c.Mutex("x").Acquire(t.Context())))
		if n := d.opened.Load(); n != 1+ends+1 {
			t.Errorf("%d sessions were opened, want %d", n, 1+ends+1)
		}
		if took := time.Since(began); took < ends*100*time.Millisecond {
			t.Errorf("%d sessions that ended at once were replaced within %v, want a pause before each", ends, took)
		}
		if st := c.Stats(); st.Open != 1 {
			t.Errorf("%d sessions are open, want 1", st.Open)
		}
	})
}
