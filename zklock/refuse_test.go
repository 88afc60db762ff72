package zklock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// A refusal fails with its error wherever a lock is taken: by itself, in Do and in All. It belongs
// to no client, so it calls no hook and counts nowhere, except as a part of another client's All.
func TestRefuseFailsWithItsError(t *testing.T) {
	reason := errors.New("the tenant is suspended")
	refused := zklock.Refuse(reason)
	work := func(context.Context, *zklock.Lock) error { t.Error("the work ran without a lock"); return nil }
	synctest.Test(t, func(t *testing.T) {
		var ended []error
		c := connect(t, memdriver.New().Connector(), nil, zklock.WithHooks(zklock.Hooks{
			Acquire: func(ctx context.Context, _ zklock.AcquireEvent) (context.Context, func(zklock.AcquireResult)) {
				return ctx, func(r zklock.AcquireResult) { ended = append(ended, r.Err) }
			},
		}))
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		for what, k := range map[string]struct {
			call  func() error
			hooks int
		}{
			"acquire":      {func() error { _, err := refused.Acquire(t.Context()); return err }, 0},
			"with options": {func() error { _, err := refused.Acquire(t.Context(), zklock.Reenter(), nil); return err }, 0},
			"too late":     {func() error { _, err := refused.Acquire(canceled); return err }, 0},
			"try":          {func() error { _, err := refused.TryAcquire(t.Context()); return err }, 0},
			"do":           {func() error { return zklock.Do(t.Context(), refused, work) }, 0},
			"all of it":    {func() error { return zklock.Do(t.Context(), zklock.All(refused), work) }, 0},
			"all, first":   {func() error { return zklock.Do(t.Context(), zklock.All(refused, c.Mutex("a")), work) }, 1},
			"all, last":    {func() error { return zklock.Do(t.Context(), zklock.All(c.Mutex("a"), refused), work) }, 1},
			"all, wrapped": {func() error {
				return zklock.Do(t.Context(), zklock.All(c.Mutex("a"), struct{ zklock.Acquirer }{refused}), work)
			}, 1},
			"all, of a pair": {func() error {
				return zklock.Do(t.Context(), zklock.All(refused, zklock.Refuse(errors.New("other"))), work)
			}, 0},
		} {
			ended = nil
			err := k.call()
			var failed *zklock.Error
			if !errors.Is(err, reason) || !errors.As(err, &failed) || failed.Op != "acquire" || len(corekit.BranchesOf(err)) != 0 {
				t.Errorf("%s: %v, want an Error of acquire with %q and nothing else", what, err, reason)
			}
			if len(ended) != k.hooks || k.hooks == 1 && !errors.Is(ended[0], reason) {
				t.Errorf("%s: the hooks got %v, want %d times %q", what, ended, k.hooks, reason)
			}
		}
		if s := c.Stats(); s.Acquired != 0 || s.Failed != 3 {
			t.Errorf("%d acquired, %d failed; want 0, and the 3 Alls with a lock of this client", s.Acquired, s.Failed)
		}
	})
	if refused.Name() != "" {
		t.Errorf("a refusal has the name %q", refused.Name())
	}
	if _, err := zklock.Refuse(nil).Acquire(t.Context()); !errors.Is(err, zklock.ErrMisuse) {
		t.Errorf("Refuse(nil): %v, want ErrMisuse", err)
	}
	if err := zklock.Do(t.Context(), refused, nil); !errors.Is(err, zklock.ErrMisuse) {
		t.Errorf("Do with a refusal and a nil function: %v, want ErrMisuse", err)
	}
}
