package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
	_ "github.com/zklock/go-zklock/zklock/memdriver"
)

// Do passes the lock that the context carries, for every kind. Of a nil or zero lock it returns an
// error.
func TestDoOfEveryKind(t *testing.T) {
	c := open(t, "mem://")
	held := errors.New("held")
	for what, a := range map[string]zklock.Acquirer{
		"Mutex": c.Mutex("m"), "Writer": c.RWMutex("rw").Writer(), "Reader": c.RWMutex("rw").Reader(), "Semaphore": c.Semaphore("s", 2), "All": zklock.All(c.Mutex("a"), c.Mutex("b")),
	} {
		var inner *zklock.Lock
		err := zklock.Do(t.Context(), a, func(ctx context.Context, lock *zklock.Lock) error {
			inner = lock
			if carried, ok := zklock.FromContext(ctx); ok && carried == lock && lock.Valid() {
				return held
			}
			return nil
		}, zklock.WithLabel("l"))
		if err != held || inner.Err() != zklock.ErrReleased {
			t.Errorf("%s: %v; the lock afterwards: %v", what, err, inner.Err())
		}
		if err := zklock.Do(t.Context(), a, nil); !errors.Is(err, zklock.ErrMisuse) {
			t.Errorf("%s without a function: %v", what, err)
		}
	}
	for what, a := range map[string]zklock.Acquirer{
		"nil Mutex": (*zklock.Mutex)(nil), "nil Reader": (*zklock.Reader)(nil), "nil Semaphore": (*zklock.Semaphore)(nil), "zero Mutex": &zklock.Mutex{},
	} {
		err := zklock.Do(t.Context(), a, func(context.Context, *zklock.Lock) error { t.Error("the function was called"); return nil })
		if !errors.Is(err, zklock.ErrMisuse) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// If the function returns the cause of its context, as it should, the error of Do reports
// the loss once. If the function returns another error, Do's error has both.
func TestDoReportsALossOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e.Connector(), nil)
		broken := errors.New("half done")
		for _, returned := range []error{nil, context.Canceled, broken} {
			err := zklock.Do(t.Context(), c.Mutex("x"), func(ctx context.Context, _ *zklock.Lock) error {
				e.ExpireAll()
				<-ctx.Done()
				if returned == context.Canceled {
					return fmt.Errorf("stopped: %w", context.Cause(ctx))
				}
				return returned
			})
			// One line with the loss first: it matters more than the function's own error.
			if text := err.Error(); strings.Contains(text, "\n") || returned == broken && strings.Index(text, "lost") > strings.Index(text, broken.Error()) {
				t.Errorf("%q", text)
			}
			if !errors.Is(err, zklock.ErrLost) || returned == broken && !errors.Is(err, broken) {
				t.Errorf("the function returned %v, and Do returned %v", returned, err)
			}
			if n := strings.Count(err.Error(), "session expired"); n != 1 {
				t.Errorf("the function returned %v, and Do's error reports the loss %d times: %v", returned, n, err)
			}
		}
	})
}

// A function may release the lock itself, and may not look at the error. Do reports the loss
// nevertheless.
func TestDoReportsALossAfterTheFunctionsOwnRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		defer e.Close()
		c := connect(t, e.Connector(), nil)
		for _, own := range []error{nil, errors.New("no such order")} {
			err := zklock.Do(t.Context(), c.Mutex("x"), func(ctx context.Context, lock *zklock.Lock) error {
				defer lock.Release(context.WithoutCancel(ctx))
				e.ExpireAll()
				<-ctx.Done()
				return own
			})
			if !errors.Is(err, zklock.ErrLost) || own != nil && !errors.Is(err, own) {
				t.Errorf("Do of a function that returns %v: %v, want one that matches ErrLost and that", own, err)
			}
		}
	})
}
