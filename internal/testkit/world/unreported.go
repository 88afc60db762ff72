package world

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// Unreported returns a mutex and a context. A lock that is acquired with both and zklock.Reenter
// is lost when Acquire returns, but its Err does not report that yet: so it may be in a process
// that was stopped after the grant. The loss is reported a minute later, so the test needs
// testing/synctest.
func Unreported(t *testing.T) (context.Context, *zklock.Mutex) {
	t.Helper()
	e := memdriver.New()
	t.Cleanup(func() { _ = e.Close() })
	slow := &slowParent{Context: context.Background()}
	c, err := zklock.OpenConnector(e.Connector(), zklock.WithLogger(nil), zklock.WithHooks(zklock.Hooks{
		Acquire: func(ctx context.Context, _ zklock.AcquireEvent) (context.Context, func(zklock.AcquireResult)) {
			return ctx, func(r zklock.AcquireResult) {
				if !slow.armed.Load() {
					return
				}
				e.ExpireAll()
				for r.Lock.Valid() {
					time.Sleep(time.Millisecond)
				}
				if err := r.Lock.Err(); err != nil {
					t.Errorf("the loss was reported: %v", err)
				}
			}
		},
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	m := c.Mutex("orders/42")
	outer, err := m.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// The client ends the Locks of one queue node one after the other, with their contexts.
	ctx, cancel := outer.Context(slow)
	t.Cleanup(cancel)
	slow.armed.Store(true)
	return context.WithoutCancel(ctx), m
}

// slowParent is a context whose children take a minute to end.
type slowParent struct {
	context.Context
	armed atomic.Bool
}

// Done implements context.Context. Package context calls it when a child has ended.
func (s *slowParent) Done() <-chan struct{} {
	if s.armed.Swap(false) {
		time.Sleep(time.Minute)
	}
	return s.Context.Done()
}
