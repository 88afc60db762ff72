package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// What only an operator can mend is one error, with a reason that programs can compare. It is not
// ErrUnavailable: a caller that tries again, or a proxy that follows Retry-After, would never
// succeed.
func TestBadEnsembleHasAReason(t *testing.T) {
	calls := map[string]func(context.Context, *zklock.Client) error{
		"acquire": func(ctx context.Context, c *zklock.Client) error { _, err := c.Mutex("x").Acquire(ctx); return err },
		"try": func(ctx context.Context, c *zklock.Client) error {
			_, err := c.Mutex("x").TryAcquire(ctx, zklock.WithFailFast())
			return err
		},
		"do": func(ctx context.Context, c *zklock.Client) error {
			return zklock.Do(ctx, c.Mutex("x"), func(context.Context, *zklock.Lock) error { return nil })
		},
	}
	reads := map[string]func(context.Context, *zklock.Client) error{
		"ping":       func(ctx context.Context, c *zklock.Client) error { return c.Ping(ctx) },
		"contenders": func(ctx context.Context, c *zklock.Client) error { _, err := c.Contenders(ctx, "x"); return err },
		"watch": func(ctx context.Context, c *zklock.Client) (last error) {
			for _, err := range c.Watch(ctx, "x") {
				last = err // the sequence ends, since trying again does not help
			}
			return last
		},
	}
	check := func(t *testing.T, c *zklock.Client, reason string, of ...map[string]func(context.Context, *zklock.Client) error) {
		t.Helper()
		for _, calls := range of {
			for verb, call := range calls {
				err := call(t.Context(), c)
				if !errors.Is(err, zklock.ErrBadEnsemble) || zklock.Reason(err) != reason || zklock.Reason(fmt.Errorf("wrapped: %w", err)) != reason {
					t.Errorf("%s: %v, with the reason %q; want ErrBadEnsemble with the reason %q", verb, err, zklock.Reason(err), reason)
				}
				if of := corekit.BranchesOf(err); len(of) != 1 {
					t.Errorf("%s: %v matches the branches %v, want one", verb, err, of)
				}
			}
		}
	}
	t.Run("no root", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			check(t, connect(t, memdriver.New().Connector(), map[string]string{"create_root": "false"}), "root_missing", calls, reads)
		})
	})
	t.Run("a short session", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			check(t, connect(t, memdriver.New(memdriver.WithTickTime(100*time.Millisecond)).Connector(), nil), "session_timeout", calls, reads)
		})
	})
	t.Run("an older snapshot", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			before, after := memdriver.New(), memdriver.New()
			both := &twoEnsembles{Connector: before.Connector()}
			c := connect(t, both, nil)
			for range 20 {
				mustRelease(t, mustLock(t)(c.Mutex("x").Acquire(t.Context())))
			}
			both.set(after.Connector())
			before.ExpireAll()
			time.Sleep(time.Second)
			check(t, c, "token_regression", calls)
		})
	})
	for _, err := range append([]error{nil, errors.New("other"), zklock.ErrBadEnsemble, zklock.ErrOutage}, corekit.Branches...) {
		if reason := zklock.Reason(err); reason != "" {
			t.Errorf("%v has the reason %q", err, reason)
		}
	}
}

// Another try does not help against a mistake in the program. A conflict with other contenders may end.
func TestMisuseIsNoConflict(t *testing.T) {
	var none *zklock.Client
	if errors.Is(zklock.ErrMisuse, zklock.ErrConflict) {
		t.Error("ErrMisuse matches ErrConflict")
	}
	for verb, err := range map[string]error{"ping": none.Ping(t.Context()), "healthy": none.Healthy(), "shutdown": none.Shutdown(t.Context())} {
		if !errors.Is(err, zklock.ErrMisuse) {
			t.Errorf("%s of a nil Client: %v, want ErrMisuse", verb, err)
		}
	}
}
