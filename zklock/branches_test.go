package zklock_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// The error of an acquisition whose context is that of another lock, and has ended with it, matches
// ErrNotAcquired and the reason of that end. docs/guarantees.md names these errors as ones that match
// two branches of the tree.
func TestAcquisitionEndedByAnotherLockMatchesTwoBranches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		holder, waiter := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		held := mustLock(t)(holder.Mutex("inner").Acquire(t.Context()))
		for because, end := range map[error]func(l *zklock.Lock){
			zklock.ErrReleased: func(l *zklock.Lock) { mustRelease(t, l) },
			zklock.ErrLost: func(l *zklock.Lock) {
				found, err := holder.Contenders(t.Context(), "outer")
				if err != nil || len(found) != 1 {
					t.Fatalf("%+v, %v", found, err)
				}
				if err := holder.Break(t.Context(), "outer", found[0].Node); err != nil {
					t.Fatal(err)
				}
			},
		} {
			outer := mustLock(t)(waiter.Mutex("outer").Acquire(t.Context()))
			ctx, cancel := outer.Context(t.Context())
			failed := make(chan error, 1)
			go func() {
				_, err := waiter.Mutex("inner").Acquire(ctx)
				failed <- err
			}()
			synctest.Wait()
			end(outer)
			err := <-failed
			if of := corekit.BranchesOf(err); len(of) != 2 || !slices.Contains(of, zklock.ErrNotAcquired) || !errors.Is(err, because) || !errors.Is(err, context.Canceled) {
				t.Errorf("%v matches %v, want ErrNotAcquired and %v", err, of, because)
			}
			cancel()
			_ = outer.Release(t.Context())
		}
		mustRelease(t, held)
	})
}
