package zklock_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// WithMaxHold ends the context of work, and says so in the log and in the error of Do. The lock stays held until the work
// has returned.
func TestMaxHoldEndsTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, log := memdriver.New(), new(locked)
		c := connect(t, e.Connector(), nil, zklock.WithLogger(slog.New(slog.NewTextHandler(log, nil))))
		other := connect(t, e.Connector(), nil)
		failed := errors.New("half done")
		for _, returned := range []error{nil, context.DeadlineExceeded, failed} {
			log.Reset()
			err := zklock.Do(t.Context(), c.Mutex("x"), func(ctx context.Context, lock *zklock.Lock) error {
				began := time.Now()
				if end, ok := ctx.Deadline(); !ok || end.Sub(began) != time.Hour {
					t.Errorf("the deadline is in %v, want an hour", end.Sub(began))
				}
				<-ctx.Done()
				if held := time.Since(began); held != time.Hour || context.Cause(ctx) != zklock.ErrMaxHold {
					t.Errorf("the context ended after %v with the cause %v, want ErrMaxHold after an hour", held, context.Cause(ctx))
				}
				if late, cancel := lock.Context(t.Context()); context.Cause(late) != zklock.ErrMaxHold {
					t.Error("a context that is made later goes on")
				} else {
					cancel()
				}
				if l, err := other.Mutex("x").TryAcquire(t.Context()); !lock.Valid() || !errors.Is(err, zklock.ErrNotAcquired) {
					t.Errorf("before the work returned, valid: %v, another client: %v, %v", lock.Valid(), l, err)
				}
				return returned
			}, zklock.WithMaxHold(time.Hour))
			if !errors.Is(err, returned) || errors.Is(err, zklock.ErrMaxHold) != (returned == context.DeadlineExceeded) {
				t.Errorf("the work returned %v, and Do %v", returned, err)
			}
			mustRelease(t, mustLock(t)(other.Mutex("x").TryAcquire(t.Context())))
			synctest.Wait() // for the log
			if n := strings.Count(log.String(), "longer than WithMaxHold allows"); n == 0 {
				t.Errorf("the log has no line on it:\n%s", log)
			}
		}
	})
}

// Work that ends in time finds nothing of WithMaxHold, and each handle on a lock has its own limit.
func TestMaxHoldOfWorkThatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := new(locked)
		c := connect(t, memdriver.New().Connector(), nil, zklock.WithLogger(slog.New(slog.NewTextHandler(log, nil))))
		err := zklock.Do(t.Context(), c.Mutex("x"), func(ctx context.Context, _ *zklock.Lock) error {
			err := zklock.Do(ctx, c.Mutex("x"), func(inner context.Context, _ *zklock.Lock) error {
				<-inner.Done()
				return inner.Err()
			}, zklock.Reenter(), zklock.WithMaxHold(time.Minute))
			if !errors.Is(err, zklock.ErrMaxHold) || ctx.Err() != nil {
				t.Errorf("the inner Do returned %v, and the outer context ended with %v", err, ctx.Err())
			}
			synctest.Wait() // for the log
			log.Reset()
			return nil
		}, zklock.WithMaxHold(time.Hour))
		if err != nil {
			t.Error(err)
		}
		lock := mustLock(t)(c.Mutex("x").Acquire(t.Context(), zklock.WithMaxHold(time.Hour)))
		ctx, cancel := lock.Context(t.Context())
		defer cancel()
		mustRelease(t, lock)
		if context.Cause(ctx) != zklock.ErrReleased {
			t.Errorf("the context of a lock that was released ended with %v", context.Cause(ctx))
		}
		time.Sleep(2 * time.Hour)
		if log.String() != "" {
			t.Errorf("logged:\n%s", log)
		}
	})
}

// The time of WithMaxHold begins with the grant of its own call: not with that of the caller before, whose place it has, and not
// with the wait. So it does for an All.
func TestMaxHoldBeginsWithTheGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, memdriver.New().Connector(), nil)
		for what, a := range map[string]zklock.Acquirer{"a mutex": c.Mutex("x"), "a permit": c.Semaphore("s", 1), "an All": allOf(c, "a", "b")} {
			first := mustLock(t)(a.Acquire(t.Context()))
			next := acquiring(t, a, t.Context(), zklock.WithMaxHold(time.Minute))
			time.Sleep(10 * time.Minute)
			mustRelease(t, first)
			l := soon(t, what, next)
			began := time.Now()
			ctx, cancel := l.Context(t.Context())
			<-ctx.Done()
			cancel()
			if held := time.Since(began); held != time.Minute || context.Cause(ctx) != zklock.ErrMaxHold || !l.Valid() {
				t.Errorf("%s: the context ended after %v with the cause %v, valid: %v; want ErrMaxHold after a minute of the hold", what, held, context.Cause(ctx), l.Valid())
			}
			mustRelease(t, l)
		}
	})
}
