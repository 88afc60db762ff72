package zklock_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// heldTogether lets a client hold a lock, expires its session, and reports an error if that
// client still believes in the lock when another client holds it. The other client has waited
// with a session of its own before, or opens one afterwards.
func heldTogether(t *testing.T, waited bool, expire func(e *memdriver.Ensemble, session int64)) error {
	e := memdriver.New()
	defer e.Close()
	first, err := zklock.OpenConnector(e.Connector())
	if err != nil {
		return err
	}
	defer first.Close()
	second, err := zklock.OpenConnector(e.Connector())
	if err != nil {
		return err
	}
	defer second.Close()
	held, err := first.Mutex("x").Acquire(t.Context())
	if err != nil {
		return err
	}
	ctx, cancel := held.Context(t.Context())
	defer cancel()
	session := e.Sessions()[0]
	var next *zklock.Lock
	if waited {
		got := acquiring(t, second.Mutex("x"), t.Context())
		synctest.Wait()
		expire(e, session)
		next = <-got
	} else {
		expire(e, session)
		next, err = second.Mutex("x").Acquire(t.Context())
	}
	if err != nil || next == nil {
		return fmt.Errorf("the other client: %w", err)
	}
	defer next.Release(t.Context())
	done := false
	select {
	case <-held.Done():
		done = true
	default:
	}
	if !done || held.Err() == nil || held.Valid() || ctx.Err() == nil {
		return fmt.Errorf("the other client holds, and the first one's Lock has Done closed %v, Err %v, Valid %v, and a context with Err %v", done, held.Err(), held.Valid(), ctx.Err())
	}
	return nil
}

// An ensemble in memory expires a session as a real one does: its client has lost the locks
// before another client can hold one of them.
func TestExpiryComesAfterTheLoss(t *testing.T) {
	for what, expire := range map[string]func(*memdriver.Ensemble, int64){
		"Expire":    (*memdriver.Ensemble).Expire,
		"ExpireAll": func(e *memdriver.Ensemble, _ int64) { e.ExpireAll() },
	} {
		runs := corekit.Crowd(200)
		count := func(where string, once func() error) {
			together := 0
			var last error
			for range runs {
				if err := once(); err != nil {
					together, last = together+1, err
				}
			}
			if together > 0 {
				t.Errorf("%s %s, %d of %d times: %v", what, where, together, runs, last)
			}
		}
		count("in real time", func() error { return heldTogether(t, false, expire) })
		synctest.Test(t, func(t *testing.T) {
			count("in a bubble", func() error { return heldTogether(t, false, expire) })
			count("while the other client waits", func() error { return heldTogether(t, true, expire) })
			count("of a client that is stopped", func() error {
				return heldTogether(t, true, func(e *memdriver.Ensemble, session int64) {
					thaw := e.Freeze(session)
					expire(e, session)
					thaw()
				})
			})
		})
	}
}

// ExpireAll may be called in a hook, and while locks are held: a client waits for neither before
// it closes its session. With clients that hold, wait or are idle it takes no time.
func TestExpireAllInHooks(t *testing.T) {
	for _, where := range []string{"Acquire", "Acquire's end", "Wait", "Operation", "Operation's end", "Release", "Release's end", "Session", "Lost", "Do"} {
		synctest.Test(t, func(t *testing.T) {
			e := memdriver.New()
			var armed atomic.Bool
			at := func(place string) {
				if place == where && armed.CompareAndSwap(true, false) {
					began := time.Now()
					e.ExpireAll()
					if took := time.Since(began); took > 0 {
						t.Errorf("ExpireAll in %s takes %v", where, took)
					}
				}
			}
			hooks := zklock.Hooks{
				Acquire: func(ctx context.Context, _ zklock.AcquireEvent) (context.Context, func(zklock.AcquireResult)) {
					at("Acquire")
					return ctx, func(zklock.AcquireResult) { at("Acquire's end") }
				},
				Wait: func(ctx context.Context, _ zklock.WaitEvent) (context.Context, func(zklock.WaitResult)) {
					at("Wait")
					return ctx, nil
				},
				Operation: func(ctx context.Context, _ zklock.OperationEvent) (context.Context, func(error)) {
					at("Operation")
					return ctx, func(error) { at("Operation's end") }
				},
				Release: func(ctx context.Context, _ zklock.ReleaseEvent) (context.Context, func(zklock.ReleaseResult)) {
					at("Release")
					return ctx, func(zklock.ReleaseResult) { at("Release's end") }
				},
				Session: func(zklock.SessionEvent) { at("Session") },
				Lost:    func(context.Context, zklock.LostEvent) { at("Lost") },
			}
			c, other, idle := connect(t, e.Connector(), nil, zklock.WithHooks(hooks)), connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
			if err := idle.Ping(t.Context()); err != nil {
				t.Fatal(err)
			}
			held := mustLock(t)(c.Mutex("held").Acquire(t.Context()))
			theirs := mustLock(t)(other.Mutex("x").Acquire(t.Context()))
			armed.Store(true)
			mine := acquiring(t, c.Mutex("x"), t.Context())
			if where == "Lost" {
				e.ExpireAll()
			}
			time.Sleep(10 * time.Second)    // some heartbeats
			_ = theirs.Release(t.Context()) // it may be lost
			_ = (<-mine).Release(t.Context())
			_ = zklock.Do(t.Context(), c.Mutex("y"), func(context.Context, *zklock.Lock) error { at("Do"); return nil })
			time.Sleep(time.Second)
			if armed.Load() || held.Err() == nil {
				t.Errorf("ExpireAll in %s was called: %v; Err of a held lock: %v", where, !armed.Load(), held.Err())
			}
		})
	}
}
