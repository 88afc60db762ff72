package zklock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	_ "github.com/zklock/go-zklock/zklock/memdriver"
)

func TestMutexIsHeldByOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, "mem://")
		var wg sync.WaitGroup
		counter, last := 0, zklock.Token{}
		for range 50 {
			wg.Go(func() {
				err := zklock.Do(t.Context(), c.Mutex("orders/42"), func(ctx context.Context, _ *zklock.Lock) error {
					lock, ok := zklock.FromContext(ctx)
					if !ok || !lock.Valid() {
						t.Error("the context carries no valid lock")
					}
					if lock.Token().Compare(last) <= 0 {
						t.Errorf("token %v after %v, want a later one", lock.Token(), last)
					}
					last = lock.Token()
					n := counter
					time.Sleep(time.Millisecond)
					counter = n + 1
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if counter != 50 {
			t.Fatalf("counter = %d, want 50", counter)
		}
	})
}

func TestTryAcquireDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, "mem://")
		m := c.Mutex("a")
		l, err := m.TryAcquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.TryAcquire(t.Context()); !errors.Is(err, zklock.ErrNotAcquired) {
			t.Fatalf("TryAcquire of a held lock: %v, want ErrNotAcquired", err)
		}
		if err := l.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := l.Release(t.Context()); !errors.Is(err, zklock.ErrReleased) {
			t.Fatalf("second Release: %v, want ErrReleased", err)
		}
		l, err = m.TryAcquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_ = l.Release(t.Context())
	})
}

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
